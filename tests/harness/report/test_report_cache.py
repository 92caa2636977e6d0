"""A run with nothing to do leaves charts and report alone, and makes them again when anything has changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.command import main
from harness.report import report
from tests.support import chart_files

STUDY = "cs244-one-to-one"
RUN = ("run", STUDY, "--engine", "fake", "--k", "4", "--subflows", "1,2", "--json")
RECORD = ".report.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chart_files.sketch(monkeypatch)
    again()
    return tmp_path / "results" / STUDY


def again(*more: str) -> str:
    done = CliRunner().invoke(main, [*RUN, *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def made(folder: Path) -> dict[str, int]:
    """Return when each file that a browser or a paper uses was written."""
    paths = [path for path in folder.rglob("*") if path.suffix in {".svg", ".png", ".pdf", ".html"}]
    assert len(paths) > 3
    return {str(path): path.stat().st_mtime_ns for path in paths}


def test_nothing_is_made_again_and_the_same_is_printed(folder: Path) -> None:
    before, said = made(folder), again()
    assert made(folder) == before
    charts = json.loads(said.splitlines()[-1])["charts"]
    assert charts and all(Path(name).is_file() for name in charts)
    assert again() == said


def spoil_chart(folder: Path) -> None:
    next(folder.rglob("*.svg")).write_text("<svg/>")


def remove_chart(folder: Path) -> None:
    next(folder.rglob("*.svg")).unlink()


def link_chart(folder: Path) -> None:
    chart = next(folder.rglob("*.svg"))
    other = chart.with_name("other")
    chart.rename(other)
    chart.symlink_to(other)


def remove_report(folder: Path) -> None:
    (folder / "report.html").unlink()


def touch_point(folder: Path) -> None:
    os.utime(next(folder.glob("*/flows.csv")))


def edit_point_and_keep_its_times(folder: Path) -> None:
    flows = next(folder.glob("*mptcp*/flows.csv"))
    about, text = flows.stat(), flows.read_text()
    flows.write_text(text.replace(",tcp,", ",udp,"))
    os.utime(flows, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert flows.stat().st_size == about.st_size


def spoil_record(folder: Path) -> None:
    (folder / RECORD).write_text("{")


def name_a_file_outside(folder: Path) -> None:
    data = json.loads((folder / RECORD).read_text())
    data["charts"] = {STUDY: ["../../../etc/passwd"]}
    (folder / RECORD).write_text(json.dumps(data))


CHANGES = (
    spoil_chart, remove_chart, link_chart, remove_report, touch_point,
    edit_point_and_keep_its_times, spoil_record, name_a_file_outside,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_after_a_change_all_is_made_again(folder: Path, change: Callable[[Path], None]) -> None:
    before = made(folder)
    change(folder)
    assert "passwd" not in again()
    after = made(folder)
    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in before)
    assert not any(Path(name).is_symlink() for name in after)
    again()
    assert made(folder) == after


def test_other_options_and_other_code_are_other_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(folder)
    again("--subflows", "1,2,3")
    after = made(folder)
    assert after[str(folder / "report.html")] > before[str(folder / "report.html")]
    monkeypatch.setattr(report, "_code", lambda: "another")
    again("--subflows", "1,2,3")
    assert made(folder)[str(folder / "report.html")] > after[str(folder / "report.html")]
