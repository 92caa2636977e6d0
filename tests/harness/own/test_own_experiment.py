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


@pytest.mark.usefixtures("drawn")
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


@pytest.mark.usefixtures("drawn")
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
    ("x = 1\n", "experiment mine.py: it defines no experiment"),
    ("x = \n", "mine.py, line 2: invalid syntax"),
    ("x = 1 / 0\n", "mine.py, line 2: ZeroDivisionError"),
    ("import helper\n", "mine.py, line 2: ModuleNotFoundError: No module named 'helper'"),
    ("E = experiment('a b', 't')\n", "experiment 'a b': a name has letters"),
    ("E = experiment('star', 't')\n", "mine.py: refabric has one called star"),
    ("E = experiment('m', 't', charts=('rnak',))\n", "chart rnak is unknown"),
    ("E = experiment('m', 't', network=lambda: 1)\n", "its network is a int, not a Topology"),
    ("E = experiment('m', 't', metrics=(metric('jain', '', 'x', len),))\n", "refabric has a column of this"),
    ("E = experiment('m', 't', subflows=(0,))\n", "subflows"),
    ("E = experiment('m', 't', pins={'link.queue': 1})\n", "did you mean link.queue_pkts"),
    ("E = experiment('m', 't', axes={'link.queue_pkts': 20})\n", "axes: link.queue_pkts: give a list"),
    ("E = experiment('m', 't', curves=[{'cc': 'reno'}])\n", "cc: a point has no such field"),
]
NO_FIELD = "a point has no such field"
BAD_SETTINGS = [
    ("curves={'routing': 'ecmp'}", "curves: give a list"),
    ("curves=['ecmp']", "curves: write values of fields"),
    ("curves=[]", "curves: give at least one curve, or leave it out"),
    ("curves=[{'stack': 3}]", 'curves: stack: write its fields, {"stack.min_rto_ms"'),
    ("curves=[{'link.queue_pkts': True}]", "curves: link.queue_pkts of True: must be a number"),
    ("curves=[{'topology': 'ls,4'}]", "curves: topology: write network="),
    ("curves=[{'engine': 'simulater'}]", "curves: engine simulater: unknown; did you mean simulator"),
    ("curves=[{'scheduler': 3}]", "curves: scheduler: write a value as in --scheduler NAME"),
    ("pins=['link.queue_pkts']", "pins: write values of fields"),
    ("pins={'stack.min_rto': 10}", f"pins: stack.min_rto: {NO_FIELD}; did you mean stack.min_rto_ms or"),
    ("pins={'stack': {'min_rto': 3}}", f"pins: stack.min_rto: {NO_FIELD}; did you mean stack.min_rto_ms or"),
    ("pins={'queue': 3}", f"pins: queue: {NO_FIELD}; did you mean link.queue_pkts?"),
    ("pins={'transport.join_after_ms': 3}", "pins: transport.join_after_ms: only a curve can set it"),
    ("pins={'scheduler': 'first_fir'}", "pins: --scheduler first_fir: unknown; did you mean first_fit"),
    ("axes={'stack': ('a',)}", "axes: stack: write its fields"),
    ("axes={'events': ('x',)}", "axes: --event x: write SECONDS:NODE-NODE"),
    ("axes=['link.queue_pkts']", "axes: write {"),
    ("axes={'link.queue_pkts': (2, 3)}, pins={'link.queue_pkts': 4}", "axes: link.queue_pkts is in pins too"),
    ("axes={'routing': ('ecmp', 'hashed')}, curves=[{'routing': 'ecmp'}]", "axes: routing: all curves have"),
    ("pins={'warmup': 1}", f"pins: warmup: {NO_FIELD}; did you mean warmup_s?"),
    ("pins={'transport.subflows': 3}", "pins: transport.subflows: write subflows=(...) instead"),
    ("pins={'seconds': 'x'}", "pins: seconds of 'x': must be a number"),
    ("pins={'engine': 'simulater'}", "pins: --engine simulater: unknown; did you mean simulator"),
    ("axes={'engine': ('simulator', 'linux')}", 'axes: engine: write pins={"engine": (...)} instead'),
]
BAD += [(f"E = experiment('m', 't', {each})\n", f"experiment m: {words}") for each, words in BAD_SETTINGS]
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


def test_an_experiment_that_sets_the_stack_runs_in_the_simulator() -> None:
    write("""E = experiment("m", "t", subflows=1, charts="rank", workloads="stride:4",
                   pins={"stack.min_rto_ms": 10.0, "seconds": 1.0, "warmup_s": 0.5, "link.rate_mbps": 20},
                   curves=[{"scheduler": "first_fit:50"}, {"stack": {"initial_window": 4}}])
""")
    done = run("run", "mine.py")
    assert done.exit_code == 0, done.output
    specs = [point.spec for point in refabric.load("results/m", experiment="./mine.py").measured]
    shown = {(spec.scheduler.name, spec.scheduler.interval_ms, spec.stack.initial_window) for spec in specs}
    assert shown == {("first_fit", 50, 10), ("none", 0, 4)}
    assert {(s.engine, s.stack.min_rto_ms, s.seconds, s.link.rate_mbps) for s in specs} == {
        ("simulator", 10, 1, 20)
    }
    assert run("report", "mine.py").exit_code == 0
    refused = run("plan", "mine.py", "--engine", "mininet")
    assert refused.exit_code == 2 and "choose --engine simulator" in refused.stderr


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


ADDED = """
def gap(point):
    return point.goodput_mbps.maximum - point.goodput_mbps.minimum if point.goodput_mbps else None

def dots(points):
    from matplotlib.figure import Figure
    figure = Figure()
    figure.add_subplot().plot([point.subflows for point in points])
    return figure

GAP = metric("gap_mbps", "Mb/s", "the fastest flow's goodput minus the slowest flow's", gap)
DOTS = chart("dots", "Subflows of every point", "One dot is a point.", dots)
STATED = [
    statement(GAP, "<", 9, network="ft,4", subflows=1, words="the gap of TCP is small"),
    statement("goodput_pct_mean", ">", 10, network="ft,4", subflows=1, where={"link.loss": 0.01}),
    statement(
        between("lossy_over", "x", "goodput with loss over that without", lambda p: p.goodput_mbps.mean,
                {"link.loss": 0.01}, {"link.loss": 0}),
        "<", 2, network="ft,4", subflows=1, where={"link.loss": "any"}, words="loss costs goodput"),
]
"""
SMALL = ("cs244-one-to-one", "--k", "4", "--subflows", "1", *QUICK)


@pytest.mark.usefixtures("drawn")
def test_metrics_charts_and_statements_of_a_file_join_any_experiment(tmp_path: Path) -> None:
    write(ADDED)
    done = run("run", *SMALL, "--metric", "./mine.py")
    assert done.exit_code == 0, done.output
    assert "gap_mbps" in done.stdout and "the gap of TCP is small" in done.stdout
    assert next(tmp_path.rglob("summary.csv")).read_text().splitlines()[0].endswith(",gap_mbps")
    assert [*tmp_path.rglob("dots.svg")]
    assert "--loss 0" in done.stdout  # why the second statement is not judged
    lossy = run("run", *SMALL, "--metric", "./mine.py", "--loss", "1")
    assert "loss costs goodput" in lossy.stdout  # it compares these points with those of the first run
    assert "--loss 0" not in lossy.stdout and "1 % random loss" in lossy.stdout


def test_a_new_metric_is_read_off_points_that_are_stored(tmp_path: Path) -> None:
    assert run("run", *SMALL).exit_code == 0
    write(ADDED)
    shown = run("plot", "cs244-one-to-one", "--metric", "./mine.py")
    assert shown.exit_code == 0 and "gap_mbps" in shown.stdout, shown.output
    assert run("report", "cs244-one-to-one", "--metric", "./mine.py").exit_code == 0
    pages = "".join(page.read_text() for page in tmp_path.rglob("report*.html"))
    assert "gap_mbps" in pages and "the gap of TCP is small" in pages
    assert "gap_mbps" not in run("plot", "cs244-one-to-one").stdout
    folder = next(tmp_path.rglob("summary.csv")).parent
    (point,) = refabric.load(folder, metric="./mine.py").measured
    assert point.metrics["gap_mbps"] > 0 and "gap_mbps" not in refabric.load(folder).measured[0].metrics
    Path("results").rename("before")
    assert run("run", *SMALL, "--queue", "50").exit_code == 0
    both = [next(Path(folder).iterdir()) for folder in ("before", "results")]
    assert "gap_mbps" in run("compare", *map(str, both), "--metric", "./mine.py").stdout
    assert "gap_mbps" not in run("compare", *map(str, both)).stdout


BAD_ADDED = [
    ("x = 1\n", "it defines no metric, chart or statement"),
    ("M = metric('jain', '', 'x', len)\n", "refabric has a column of this"),
    ("M = [metric('a', '', 'x', len), metric('a', '', 'y', len)]\n", "a: there are two of this name"),
    ("C = chart('rank', 't', 'r', len)\n", "chart rank: choose a new name"),
    ("S = statement('jian', '<', 1, network='ft,4')\n", "jain"),
    ("S = statement('jain', '=', 1, network='ft,4')\n", "about"),
    ("S = statement('jain', '<', 1)\n", "name its network"),
    ("S = statement('jain', '<', 1, network='ft,5')\n", "k"),
    ("S = statement('jain', '<', 1, network='ft,4', where={'queue': 1})\n", "link.queue_pkts"),
]


@pytest.mark.parametrize(("text", "words"), BAD_ADDED)
def test_an_error_of_an_addition_is_one_line_and_nothing_starts(text: str, words: str) -> None:
    write(text)
    done = run("run", *SMALL, "--metric", "./mine.py")
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert not Path("results").exists()


TWO_NETWORKS = """
def line():
    net = Builder("line", {})
    switch = net.switch("s1", Layer.EDGE)
    for number in range(3):
        net.attach(net.host(f"h{number}"), switch, f"10.0.0.{number + 2}")
    return net.build()

ONE = experiment("one", "Two networks", network=[line, "ls,4"], subflows=(1,), charts=("throughput",),
                 pins={"link.queue_pkts": 20},
                 published=[statement("goodput_pct_mean", ">", 1, subflows=1, words="it works")])
TWO = experiment("two", "A FatTree", subflows=(1,), charts=("rank",), pins={"link.queue_pkts": 50})
"""


@pytest.mark.usefixtures("drawn")
def test_a_file_has_several_networks_and_several_experiments(tmp_path: Path) -> None:
    write(TWO_NETWORKS)
    done = run("run", "mine.py", *QUICK)
    assert done.exit_code == 0, done.output
    points = refabric.load("results/mine", experiment="./mine.py").measured
    shown = {(point.spec.topology.kind, point.spec.link.queue_pkts) for point in points}
    assert shown == {("file", 20), ("leaf_spine", 20), ("fat_tree", 50)}
    assert "it works" in done.stdout
    assert {path.name for path in (tmp_path / "results/mine/charts").iterdir()} >= {"one", "two"}


def test_a_metric_reads_what_the_guide_lists_and_what_it_listed_before() -> None:
    write("""
ROWS = metric("rows", "", "rows of both tables", lambda p: len(p.flows) + len(p.ports))
SAME = metric("same", "", "the same", lambda p: len(p.point.flows) + len(p.point.ports))
MORE = metric("more", "", "a sum", lambda p: p.jain + p.retransmits + p.drops if p.goodput_mbps else None)
TIMES = metric("times", "", "rows over time", lambda p: len(p.sample("links")))
""")
    done = run("run", *SMALL, "--metric", "./mine.py")
    assert done.exit_code == 0, done.output
    (point,) = refabric.load("results/cs244-one-to-one", metric="./mine.py").measured
    of = point.metrics
    assert of["rows"] == of["same"] == point.flows.rows + point.ports.rows and of["times"] > 0
    assert of["more"] == of["jain"] + of["retransmits"] + of["drops"]
