"""What pages show runs, and does what the text says: output of commands, cells of the tutorial, algorithms.

It is simulated, so it is the same on every machine.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from pathlib import Path

import pytest

from ccp.loading import load
from ccp.names import OwnAlgorithm
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.ccp.figures import FIGURES
from harness.options.options import resolve
from model.result import RunResult, Status
from refabric import Charts, Results
from tests.engines.simulation.congestion.test_agents import RATE_MBPS, goodput, mine
from tests.support.command import refabric
from tests.support.notebooks import cells, execute
from tests.support.options import options_typed
from tests.support.simulated_networks import result_of

pytestmark = pytest.mark.usefixtures("in_this_process")

ROOT = Path(__file__).resolve().parents[2]
_SHOWN = re.compile(r"<!-- output: .venv/bin/refabric (.+?) -->\n```text\n(.*?)```", re.DOTALL)
BLOCKS = [
    (page, command, text)
    for page in ("docs/start/ten-minutes.md", "README.md")
    for command, text in _SHOWN.findall((ROOT / page).read_text())
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of both commands: the points of README.md are among those of the other page."""
    return tmp_path_factory.mktemp("shown")


def test_the_outputs_are_those_of_two_pages() -> None:
    marked = [
        path
        for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
        if "<!-- output: " in path.read_text()
    ]
    assert sorted(ROOT / page for page, _, _ in BLOCKS) == sorted(marked)


@pytest.mark.parametrize(("page", "command", "text"), BLOCKS)
@pytest.mark.usefixtures("drawn")
def test_the_output_is_as_shown(
    page: str, command: str, text: str, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(results)
    done = refabric(*shlex.split(command))
    assert done.exit_code == 0, done.output
    said = [" ".join(line.split()) for line in done.stdout.splitlines()]
    for line in text.splitlines():
        assert any(each.startswith(" ".join(line.split())) for each in said), (page, line)


TUTORIAL = ROOT / "docs" / "guide" / "tutorial.ipynb"


@pytest.mark.usefixtures("drawn")
def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = execute(TUTORIAL)
    assert len(shown) == len(cells(TUTORIAL, "code"))
    (results,) = (value for value in shown if isinstance(value, Results))
    tcp, mptcp = results.measured
    assert tcp.goodput_pct is not None
    assert mptcp.goodput_pct is not None
    assert 55 <= tcp.goodput_pct <= 60, "the text says so"
    assert mptcp.goodput_pct > 85, "the text says so"
    charts = [value for value in shown if isinstance(value, Charts)]
    assert charts
    assert all("<img" in chart._repr_html_() for chart in charts)


def test_it_is_stored_without_outputs() -> None:
    notebook = json.loads(TUTORIAL.read_text())
    assert not any(cell.get("outputs") for cell in notebook["cells"])


PAGE = (ROOT / "docs/guide/congestion-control.md").read_text()
NAMES = ("fixed.py", "aimd.py", "slow_start.py", "delay.py")
TEXTS = dict(zip(NAMES, re.findall(r"```python\n(.*?)```", PAGE, re.S), strict=True))
COMMANDS = [" ".join(found.split()) for found in re.findall(r"refabric (run [^`#]*?)(?:`|\n\n)", PAGE)]
assert len(COMMANDS) >= 8
(WINDOW,) = [figure for figure in FIGURES if figure.name == "ccp-window"]


def run(
    name: str, *changes: tuple[str, str], seconds: int = 15, warmup: int = 5, delay_us: float = 280.0
) -> RunResult:
    text = TEXTS[name]
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    given = options_typed(engine="simulator", seconds=str(seconds), warmup=str(warmup))
    (spec, *_) = WINDOW.points(resolve(given, WINDOW.defaults), lambda _: 96.0)
    transport = dataclasses.replace(spec.transport, cc=OwnAlgorithm(name, text))
    agent = dataclasses.replace(spec.agent, delay_us=delay_us)
    spec = dataclasses.replace(spec, transport=transport, agent=agent)
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), Path())


def windows(result: RunResult, from_s: float = 0.0) -> list[float]:
    sockets = result.samples["sockets"].columns
    return [float(value) for value in sockets["cwnd_pkts"][sockets["t_s"] >= from_s]]


def test_a_fixed_window_of_one_product_fills_the_link() -> None:
    result = run("fixed.py")
    assert set(windows(result)) == {160}
    assert result.flows[0].goodput_mbps == pytest.approx(91.2, abs=0.7)
    half = run("fixed.py", ("WINDOW = 160", "WINDOW = 80"))
    assert half.flows[0].goodput_mbps == pytest.approx(45.6, abs=0.5)
    long = run("fixed.py", ("WINDOW = 160", "WINDOW = 240"))
    assert long.flows[0].srtt_ms_mean - result.flows[0].srtt_ms_mean == pytest.approx(10, abs=0.5)


def test_add_and_halve_is_a_sawtooth() -> None:
    result = run("aimd.py", seconds=20, warmup=10)
    assert max(windows(result)) == pytest.approx(318, abs=5)
    assert min(windows(result)) == pytest.approx(159, abs=8)
    assert result.flows[0].goodput_mbps > 91
    less = run("aimd.py", ("/ 2)", "* 0.7)"), seconds=20, warmup=10)
    assert less.flows[0].srtt_ms_mean > result.flows[0].srtt_ms_mean + 1
    assert less.metrics["drops"] > result.metrics["drops"]
    beginning = run("aimd.py", seconds=3, warmup=0)
    assert max(windows(beginning)) == pytest.approx(158, abs=12)


def test_slow_start_overshoots_to_twice_what_there_is_room_for() -> None:
    result = run("slow_start.py", seconds=4, warmup=0)
    assert 600 < max(windows(result)) < 700
    assert 350 < result.metrics["drops"] < 480


def test_a_control_by_delay_keeps_five_ms_of_queue() -> None:
    result = run("delay.py")
    assert sum(windows(result)) / len(windows(result)) == pytest.approx(198, abs=3)
    assert result.flows[0].srtt_ms_mean == pytest.approx(25.3, abs=0.5)
    assert result.metrics["drops"] == 0
    assert run("delay.py", delay_us=30_000.0).metrics["drops"] == 0
    assert run("delay.py", delay_us=100_000.0).metrics["drops"] > 100


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_page_can_be_planned(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        Path(name).write_text(text)
    arguments = shlex.split(command)[1:]
    engine = [] if "--engine" in arguments else ["--engine", "simulator"]
    result = refabric("plan", *arguments, *engine)
    assert result.exit_code == 0, result.output


CCP_PAGE = (ROOT / "docs/ccp.md").read_text()
(_, TWO) = re.findall(r"```python\n(.*?)```", CCP_PAGE, re.S)


def test_the_example_with_two_programs_fills_the_link(tmp_path: Path) -> None:
    assert load(OwnAlgorithm("mine.py", TWO), TWO)[1].names == ("start", "steady")
    result = result_of(mine(TWO, tmp_path))
    assert result.status is Status.OK
    assert goodput(result) > 0.8 * RATE_MBPS
    assert result.metrics["agent_errors"] == 0
    assert 20 < result.metrics["agent_reports"] < 1000, "one per round trip after slow start"
