"""docs/guide/congestion-control.md: its algorithms run, and do what the text and its exercises say."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from ccp.names import OwnAlgorithm
from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.ccp.figures import FIGURES
from experiments.command import main
from harness.options.options import UserOptions, resolve
from model.result import RunResult

PAGE = (Path(__file__).resolve().parents[2] / "docs/guide/congestion-control.md").read_text()
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
    given = UserOptions.of(engine="simulator", seconds=str(seconds), warmup=str(warmup))
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
    result = CliRunner().invoke(main, ["plan", *arguments, *engine])
    assert result.exit_code == 0, result.output
