"""`refabric run ./mine.py`: the written file runs, its parts are used, and its errors are one line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import refabric
from common.errors import UsageError
from experiments.command import main
from harness.catalogue import load_file

pytestmark = pytest.mark.usefixtures("in_this_process")

QUICK = ("--engine", "simulator", "--seconds", "2", "--warmup", "0.5")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_written_experiment_runs_with_all_its_parts(tmp_path: Path) -> None:
    assert "refabric run ./mine.py" in run("new", "experiment", "mine.py").stdout
    done = run("run", "./mine.py", *QUICK)
    assert done.exit_code == 0, done.output
    assert "gap_mbps" in done.stdout
    assert "bars.svg" in {path.name for path in Path("results/mine/charts").iterdir()}
    page = (tmp_path / "results/mine/report.html").read_text()
    for words in ("gap_mbps", "Mean goodput", "refabric run mine.py"):
        assert words in page, words
    assert "Usually part of this figure" not in page
    again = run("status", "./mine.py", *QUICK)
    assert "4 of 4 planned points finished" in again.stdout
    assert run("plot", "./mine.py").exit_code == 0
    loaded = refabric.load("results/mine", experiment="./mine.py")
    gaps = loaded.summary()["gap_mbps"]
    assert loaded.measured[-1].metrics["gap_mbps"] == gaps[-1] >= 0
    assert Path("results/mine/summary.csv").read_text().splitlines()[0].endswith(",gap_mbps")


def test_a_page_follows_an_edit_of_a_file_that_has_only_built_in_charts(tmp_path: Path) -> None:
    text = """from refabric.own import experiment
EXPERIMENT = experiment("mine", "A title", about="What was thought first.")
"""
    for about in ("What was thought first.", "What is known now."):
        (tmp_path / "mine.py").write_text(text.replace("What was thought first.", about))
        assert run("run", "./mine.py", "--engine", "fake", "--k", "4", "--subflows", "1").exit_code == 0
        assert about in (tmp_path / "results/mine/report.html").read_text()


def test_results_can_be_read_without_the_file(tmp_path: Path) -> None:
    run("new", "experiment", "mine.py")
    ran = refabric.run("./mine.py", engine="simulator", seconds=2, warmup=0.5, subflows=1, quiet=True)
    (tmp_path / "mine.py").rename(tmp_path / "moved.py")
    (point,) = refabric.load("results/mine").measured
    assert point.name == ran.measured[0].name
    assert point.flows["src"].tolist() == ["l0", "l1", "l2", "l3"]
    assert min(point.flows["goodput_mbps"]) > 10  # no flow starves behind a strict drop-tail queue
    (chart,) = ran.plot("bars")
    assert chart.title == "Mean goodput"
    with pytest.raises(UsageError, match=r'refabric.load\(".*mine", experiment="./mine.py"\)'):
        refabric.load("results/mine").plot()


def write(text: str) -> None:
    Path("mine.py").write_text("from refabric.own import *\n" + text)


BAD = [
    ("x = 1\n", "experiment mine.py: it defines 0 experiments"),
    ("x = \n", "mine.py, line 2: invalid syntax"),
    ("x = 1 / 0\n", "mine.py, line 2: ZeroDivisionError"),
    ("import helper\n", "mine.py, line 2: ModuleNotFoundError: No module named 'helper'"),
    ("E = experiment('a b', 't')\n", "experiment 'a b': a name has letters"),
    ("E = experiment('star', 't')\n", "mine.py: refabric has one called star"),
    ("E = experiment('m', 't', charts=('rnak',))\n", "chart rnak is unknown"),
    ("E = experiment('m', 't', network=lambda: 1)\n", "its network is a int, not a Topology"),
    ("E = experiment('m', 't', metrics=(metric('jain', '', 'x', len),))\n", "refabric has a column of this"),
    ("E = experiment('m', 't', subflows=(0,))\n", "subflows"),
]
BAD_FLOWS = [
    ("h.x", "its flows: mine.py, line 2: Attr"),
    ("[Flow('a', 'b')]", "no host a"),
    ("[]", "the function returns an empty list"),
    ("None", "the function returns nothing"),
    ("3", "its flows: TypeError: 'int' object is not"),
    ("[('a', 'b')]", "flow 1 is a tuple; write Flow(src, dst)"),
    ("[Flow(h[0], h[0])]", "a host cannot send to itself"),
    ("[Flow(h[0], h[1], 1.5)]", "size_bytes must be a whole number"),
    ("[Flow(h[0], h[1], 'x')]", "size_bytes and start_s must be numb"),
    ("[Flow(h[0], h[1], 9, -1)]", "start_s must be a number from 0"),
]
BAD += [(f"E = experiment('m', 't', flows=lambda h, seed: {flows})\n", words) for flows, words in BAD_FLOWS]


@pytest.mark.parametrize(("text", "words"), BAD)
def test_an_error_is_one_line_and_nothing_starts(text: str, words: str) -> None:
    write(text)
    Path("helper.py").write_text("raise SystemExit('imported from the current folder')\n")
    done = run("run", "mine.py", *QUICK)
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("results").exists()


def test_an_error_of_a_metric_names_it() -> None:
    write("E = experiment('m', 't', subflows=(1,), metrics=(metric('bad', '', 'x', lambda p: p.nope),))\n")
    done = run("run", "mine.py", *QUICK)
    assert done.exit_code == 2
    assert "metric bad: mine.py, line 2: AttributeError" in done.stderr


def test_new_overwrites_nothing() -> None:
    for name, words in (("mine.txt", "ends in .py"), ("star.py", "has an experiment called star")):
        assert words in run("new", "experiment", name).stderr
    Path("mine.py").write_text("mine")
    done = run("new", "experiment", "mine.py")
    assert done.exit_code == 2
    assert "it exists" in done.stderr
    assert Path("mine.py").read_text() == "mine"


def test_a_folder_or_nothing_is_refused() -> None:
    Path("folder.py").mkdir()
    for name, words in (("folder.py", "Is a directory|not a regular file"), ("nope.py", "No such file")):
        with pytest.raises(UsageError, match=words):
            load_file(name)
