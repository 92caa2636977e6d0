"""An sdist builds a wheel that installs in a fresh environment, runs the simulator and leaks no names.

It is built from a copy of the tree with the congestion control, the queue discipline and the transport that
docs/adding.md adds, and they run: so the core is built once for all.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import types
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

import refabric
from common.version import VERSION
from tests.support.tree_copy import changed_checkout, on_one_cpu

pytestmark = pytest.mark.builds

ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 1800.0
STUDY = "cs244-one-to-one"
SIMULATE = ("--engine", "simulator", "--k", "4", "--subflows", "1", "--rate", "10")
QUICK = (*SIMULATE, "--seconds", "1", "--warmup", "0.2")
POINT = (*SIMULATE, "--seconds", "2", "--warmup", "0.5")
LIMIT_PKTS = 100
"""What queues hold unless an option or a figure says otherwise."""
QUICKLY = ("build-type=Debug", "define.CMAKE_CXX_FLAGS_DEBUG=-O0", "define.CMAKE_UNITY_BUILD_BATCH_SIZE=0")
"""Without optimisation and debug symbols, which take most of a compiler's time, and with all sources in one
compilation, which reads every header once."""


QUICKER = {"CXX": "clang++"} if shutil.which("clang++") else {}
"""Takes two thirds of the time of g++. The congestion controls of real hosts need clang, so it is there."""


def run(
    argv: Sequence[object], cwd: Path, deadline_s: float = 300.0, env: Mapping[str, str] | None = None
) -> str:
    done = subprocess.run(
        list(map(str, argv)), cwd=cwd, capture_output=True, text=True, timeout=deadline_s, check=False,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, f"{argv}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel built from an sdist of the changed copy by the tools here."""
    folder = tmp_path_factory.mktemp("wheel")
    tree = changed_checkout(
        tmp_path_factory.mktemp("tree"), "A congestion control", "A queue discipline", "A transport"
    )
    program = f"from scikit_build_core import build; build.build_sdist({str(folder)!r})"
    run([sys.executable, "-c", program], tree)
    (sdist,) = folder.glob("*.tar.gz")
    offline = ["--no-build-isolation", "--no-deps", "--no-index", "--no-cache-dir"]
    offline += [f"--config-settings=cmake.{each}" for each in QUICKLY]
    argv = [sys.executable, "-m", "pip", "wheel", *offline, "-w", folder, sdist]
    run(argv, folder, BUILD_S, QUICKER)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a fresh environment with the wheel, and with this environment's libraries behind it.

    A folder named in a .pth file has its own .pth files ignored, so the editable install is not seen.
    """
    fresh = tmp_path_factory.mktemp("fresh") / "env"
    run([sys.executable, "-m", "venv", "--without-pip", fresh], fresh.parent)
    python = fresh / "bin" / "python"
    install = ["install", "--no-deps", "--no-index", "--no-compile", wheel]
    run([sys.executable, "-m", "pip", "--python", python, *install], fresh.parent)
    (site,) = fresh.glob("lib/python3*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return fresh


def test_a_wheel_has_one_name_at_the_top(wheel: Path) -> None:
    names = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert names == {"refabric", f"refabric-{VERSION}.dist-info"}


def test_it_has_the_licence_and_no_sources_of_the_core(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert f"refabric-{VERSION}.dist-info/licenses/LICENSE" in names
    assert [name for name in names if name.endswith((".cpp", ".hpp"))] == []


def test_the_command_runs_the_simulator_beside_modules_of_the_same_names(
    environment: Path, tmp_path: Path
) -> None:
    for name in ("common", "model", "setup"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from the current folder')\n")
    refabric = environment / "bin" / "refabric"
    assert run([refabric, "--version"], tmp_path) == f"refabric, version {VERSION}\n"
    run([refabric, "run", "cs244-one-to-one", *QUICK], tmp_path)
    assert (tmp_path / "results/cs244-one-to-one/report.html").is_file()
    run([refabric, "run", "validation-wait", "--profile", "smoke"], tmp_path)


def test_python_imports_it_and_its_workers_do_too(environment: Path, tmp_path: Path) -> None:
    program = (
        "import refabric; r = refabric.run('cs244-one-to-one', engine='simulator', k=4, subflows=[1, 2], "
        "seconds=1, warmup=0.2, rate=10, quiet=True); print(len(r), refabric.__file__)"
    )
    count, where = run([environment / "bin" / "python", "-c", program], tmp_path).split()
    assert count == "3"
    assert where.startswith(str(environment))


def means(folder: Path) -> dict[str, float]:
    """The mean goodput in Mb/s by congestion control, of the points under test."""
    with (folder / "summary.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["workload"] != "reference"]
    return {row["cc"]: float(row["goodput_mbps_mean"]) for row in rows}


@pytest.fixture(scope="module")
def gentle(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return the results of a point under Reno and under the added congestion control, and what was shown."""
    folder = tmp_path_factory.mktemp("gentle")
    refabric = str(environment / "bin" / "refabric")
    shown = on_one_cpu([refabric, "run", STUDY, *POINT, "--cc", "reno,gentle", "--results", "out"], folder)
    return folder / "out" / STUDY, shown


def test_an_added_congestion_control_runs_and_is_named(gentle: tuple[Path, str]) -> None:
    results, shown = gentle
    assert "gentle" in shown
    found = means(results)
    assert set(found) == {"reno", "gentle"}
    assert found["gentle"] != found["reno"], "another increase, other packets"
    assert 0.5 < found["gentle"] / found["reno"] < 1.5
    assert "gentle Reno" in (results / "report.html").read_text()


def longest_queue(folder: Path) -> int:
    """Return the longest queue of a switch in packets, in the point of Reno under test."""
    (point,) = [path.parent for path in folder.glob("*reno*/run.json") if "reference" not in path.parent.name]
    with (point / "ports.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if not row["layer"].startswith("host-")]
    return max(int(row["max_queue_pkts"]) for row in rows)


def test_an_added_discipline_drops_early_and_is_named(
    environment: Path, gentle: tuple[Path, str], tmp_path: Path
) -> None:
    refabric = str(environment / "bin" / "refabric")
    on_one_cpu(
        [refabric, "run", STUDY, *POINT, "--discipline", "early:pkts=5", "--results", "early"], tmp_path
    )
    plain, early = gentle[0], tmp_path / "early" / STUDY
    specs = [json.loads(path.read_text())["spec"] for path in early.glob("*/run.json")]
    assert {spec["link"]["discipline"] for spec in specs} == {"early:pkts=5", "fifo"}
    assert longest_queue(plain) == LIMIT_PKTS
    assert 5 < longest_queue(early) < 40, "forty need thirty packets in a row that enter with chance 1/2"
    assert "early:pkts=5 queues" in (early / "report.html").read_text()


def test_an_added_transport_delivers_recovers_and_is_named(environment: Path, tmp_path: Path) -> None:
    """A window of 20 packets fills the links; one of 1 has a packet in a round trip, which is known."""
    refabric = str(environment / "bin" / "refabric")
    for window, more in (("20", ()), ("1", ()), ("20", ("--queue", "5"))):
        folder = f"w{window}{len(more)}"
        argv = [refabric, "run", STUDY, *POINT, "--transport", f"fixed:window_pkts={window}", *more]
        on_one_cpu([*argv, "--results", folder], tmp_path)
    flows = {folder: rows(tmp_path / folder / STUDY) for folder in ("w200", "w10", "w202")}
    assert {row["transport"] for row in flows["w200"]} == {"fixed"}
    goodput = {folder: means(tmp_path / folder / STUDY)["fixed"] for folder in flows}
    assert 1 < goodput["w10"] < 3 < goodput["w200"] < 9.6
    assert sum(int(row["retransmits"]) for row in flows["w200"]) == 0, "queues hold all windows"
    assert sum(int(row["retransmits"]) for row in flows["w202"]) > 0
    assert "fixed window" in (tmp_path / "w200" / STUDY / "report.html").read_text()


def rows(folder: Path) -> list[dict[str, str]]:
    """Return the flows of the point under test."""
    (point,) = [path for path in folder.glob("*/flows.csv") if "reference" not in path.parent.name]
    with point.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_module_of_the_same_name_is_a_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wellknown").mkdir()
    monkeypatch.setattr(sys, "path", list(sys.path))
    refabric._make_importable(tmp_path)
    assert sys.path[0] == str(tmp_path)
    users = types.ModuleType("wellknown")
    users.__file__ = "/home/user/wellknown.py"
    monkeypatch.setitem(sys.modules, "wellknown", users)
    with pytest.raises(ImportError, match=r"wellknown is imported already \(/home/user/wellknown.py\)"):
        refabric._make_importable(tmp_path)


def test_the_version_is_the_same_everywhere() -> None:
    citation = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.*)$", citation, re.MULTILINE) == [VERSION]
    assert f"\n## {VERSION}" in (ROOT / "CHANGELOG.md").read_text()
