"""Settings of matplotlib in the current folder, or of the user: charts keep their bytes."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.figure import Figure

from plots.shared import style

ROOT = Path(__file__).parents[2]
HOSTILE = "axes.facecolor: red\nlines.linewidth: 9\nsavefig.facecolor: green\ntext.usetex: True\n"


def charts(results: Path, start: Path, **variables: str) -> dict[str, str]:
    """Run max-min in the folder `start`; return a digest of each chart by its name."""
    options = ["--engine", "max-min", "--k", "4", "--subflows", "1,2", "--results", str(results)]
    done = subprocess.run(
        [sys.executable, "-m", "refabric.command", "run", "cs244-one-to-one", *options],
        capture_output=True, text=True, check=False, timeout=60, cwd=start,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in results.rglob("charts/*")}
    assert len(found) >= 2
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("undisturbed")
    return charts(folder / "results", folder)


def test_a_pipe_in_the_current_folder_is_not_read(tmp_path: Path, undisturbed: dict[str, str]) -> None:
    """M4: a pipe called `matplotlibrc` in the current folder was read, for ever."""
    os.mkfifo(tmp_path / "matplotlibrc")
    assert charts(tmp_path / "results", tmp_path) == undisturbed


@pytest.mark.parametrize("place", ["here", "variable", "home"])
def test_charts_do_not_depend_on_a_matplotlibrc(
    tmp_path: Path, undisturbed: dict[str, str], place: str
) -> None:
    """M4: colours, TeX and line widths came from the current folder, $MATPLOTLIBRC or the home."""
    start = tmp_path / "start"
    start.mkdir()
    folder = start if place == "here" else tmp_path / "matplotlib"
    folder.mkdir(exist_ok=True)
    (folder / "matplotlibrc").write_text(HOSTILE)
    variables = {"here": {}, "variable": {"MATPLOTLIBRC": str(folder)}, "home": {"MPLCONFIGDIR": str(folder)}}
    assert charts(tmp_path / "results", start, **variables[place]) == undisturbed


def test_settings_of_a_process_that_drew_before_do_not_matter() -> None:
    """M4: a notebook has imported matplotlib already, with the settings of its user."""
    with mpl.rc_context({"lines.linewidth": 9, "text.usetex": True}):
        with style.look():
            assert mpl.rcParams["lines.linewidth"] == 1.5 and not mpl.rcParams["text.usetex"]
            assert Figure().subplots().plot([1, 2])[0].get_linewidth() == 1.5
        assert mpl.rcParams["lines.linewidth"] == 9
