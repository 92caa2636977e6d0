"""Options of simulated points: stacks, durations, what is refused, and what figures make of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from common.errors import UsageError
from experiments.command import main
from experiments.cs244_2013 import CS244_ONE_TO_ONE
from experiments.registry import EXPERIMENTS
from harness.options.fields import STACK_FIELDS, changed_texts, parse_stack, usual_stack
from harness.options.options import SweepOptions, UserOptions, resolve
from harness.plan import jobs
from harness.results.store import load
from model.spec import LINUX, StackSpec
from model.words import stack_words
from tests.support.svg_text import words_of

pytestmark = pytest.mark.usefixtures("in_this_process")

(FIGURE,) = CS244_ONE_TO_ONE.figures
SMALL = (
    "--engine",
    "simulator",
    "--k",
    "4",
    "--subflows",
    "1,2",
    "--rate",
    "10",
    "--seconds",
    "0.5",
    "--warmup",
    "0.2",
)


def refabric(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


def options_of(**typed: Any) -> SweepOptions:
    return resolve(UserOptions.of(engine=typed.pop("engine", "simulator"), **typed), FIGURE.defaults)


def test_stacks_are_typed_by_name_and_read_back_the_same() -> None:
    asked = ("acks=at_once", "sack=off", "min_rto_ms=10", "initial_window=1", "receive_buffer=64")
    stack = options_of(stack=asked).base.stack
    assert stack == StackSpec(
        acks="at_once", sack=False, min_rto_ms=10.0, initial_window=1, receive_buffer=64
    )
    assert options_of(stack=tuple(stack_words(stack).split())).base.stack == stack
    assert set(STACK_FIELDS) == {field.name for field in dataclasses.fields(StackSpec)}
    assert options_of(stack=tuple(usual_stack().split(", "))).base.stack == StackSpec()


@pytest.mark.parametrize(
    "stack",
    [
        LINUX,
        dataclasses.replace(LINUX, ack_gaps=False),
        StackSpec(acks="at_once"),
        StackSpec(min_rto_ms=10.0),
    ],
)
@pytest.mark.parametrize("figures_own", [StackSpec(), LINUX])
def test_the_options_of_a_stack_make_it_of_a_figures_own(stack: StackSpec, figures_own: StackSpec) -> None:
    """A report's command repeats exactly its points."""
    given = parse_stack("--stack", changed_texts(stack))
    assert dataclasses.replace(figures_own, **given) == stack  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("typed", "chosen"),
    [
        ("acks=at_once", {"acks": "at_once"}),
        ("ack_gaps=off", {"ack_gaps": False}),
        ("recovery=rfc", {"recovery": "rfc"}),
    ],
)
def test_one_parameter_of_a_figures_own_stack_is_changed_alone(typed: str, chosen: dict[str, Any]) -> None:
    """Also to the value that is the usual one elsewhere."""
    (figure,) = EXPERIMENTS["cross-check"].figures
    options = resolve(UserOptions.of(engine="simulator", stack=(typed,)), figure.defaults)
    stacks = {spec.stack for spec in figure.points(options, lambda _: 10.0)}
    assert stacks == {dataclasses.replace(LINUX, **chosen)}


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ({"stack": ("acks",)}, "write NAME=VALUE; names are: payload_bytes"),
        ({"stack": ("colour=red",)}, "names are: payload_bytes"),
        ({"stack": ("acks=magic",)}, "unknown; choose from: routed, at_once"),
        ({"stack": ("scheduler=lottery",)}, "unknown; choose from: min_rtt"),
        ({"stack": ("sack=maybe",)}, "write sack=on or sack=off"),
        ({"stack": ("initial_window=2.5",)}, "a whole number of segments"),
        ({"stack": ("initial_window=0",)}, "must be at least 1 segments"),
        ({"stack": ("min_rto_ms=-1",)}, "must be at least 0 ms"),
        ({"stack": ("min_rto_ms=nan",)}, "must be at least 0 ms"),
        ({"stack": ("payload_bytes=70000",)}, "must be at most 9000 bytes"),
        ({"stack": ("sack=on", "sack=off")}, "sack is given already"),
        ({"stack": ("sack=off",), "engine": "mininet"}, "the stacks of mininet's hosts are their own"),
        (
            {"sysctl": ("net.ipv4.tcp_sack=0",)},
            "--sysctl net.ipv4.tcp_sack=0: simulated hosts have no kernel",
        ),
        ({"write": 4096}, "--write 4096: simulated hosts have no kernel"),
        ({"traffic": "native"}, "--traffic native: simulated hosts have no kernel"),
        ({"traffic": "iperf3"}, "--traffic iperf3: simulated hosts have no kernel"),
        ({"dataplane": "ovs"}, "--dataplane ovs: simulated hosts have no kernel"),
    ],
)
def test_each_refusal_says_what_to_do(typed: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        options_of(**typed)


def test_durations_suit_virtual_time() -> None:
    """A tenth at the paper's rate and above, the usual length where queues delay as long as timers."""
    assert [(o.base.warmup_s, o.base.seconds) for o in (options_of(), options_of(rate="1000"))] == [
        (2.0, 4.0)
    ] * 2
    slow = options_of(rate="1")
    assert (slow.base.warmup_s, slow.base.seconds) == (20.0, 40.0)
    middle = options_of(rate="20")
    assert (middle.base.warmup_s, middle.base.seconds) == (10.0, 20.0)
    chosen = options_of(seconds=7.0, warmup=0.0)
    assert (chosen.base.warmup_s, chosen.base.seconds) == (0.0, 7.0)
    real = options_of(engine="mininet")
    assert (real.base.warmup_s, real.base.seconds) == (20.0, 40.0)


def test_what_figures_pin_for_real_hosts_changes_no_simulated_name() -> None:
    (figure,) = EXPERIMENTS["coupled-fairness"].figures[:1]
    assert figure.defaults.traffic == "native"
    simulated = resolve(UserOptions.of(engine="simulator"), figure.defaults)
    assert simulated.base.traffic == options_of().base.traffic
    assert simulated.base.transport.sysctls == {}


@pytest.mark.parametrize("engine", ["mininet", "linux"])
def test_networks_of_real_hosts_are_not_divided(engine: str, tmp_path: Path) -> None:
    options = ("--engine", engine, "--k", "4", "--rate", "10", "--subflows", "1", "--results", str(tmp_path))
    done = refabric("plan", "cs244-one-to-one", *options, "--parts", "2")
    assert done.exit_code == 2
    assert f"--parts 2: the hosts of {engine} are not simulated" in done.stderr
    assert refabric("plan", "cs244-one-to-one", *options, "--parts", "1").exit_code == 0


@pytest.mark.parametrize("engine", ["simulator", "linux"])
def test_only_real_time_saturates_a_machine(engine: str, tmp_path: Path) -> None:
    done = refabric("plan", "cs244-fig5", "--engine", engine, "--results", str(tmp_path))
    assert done.exit_code == 2
    assert "cs244-fig5: " in done.stderr
    assert jobs.NO_CPU_TO_SATURATE in done.stderr


def test_a_sweep_leaves_out_figures_of_a_saturated_machine(tmp_path: Path) -> None:
    whole = refabric("plan", "cs244", "--engine", "simulator", "--results", str(tmp_path))
    assert whole.exit_code == 0
    assert "cs244-fig5, cs244-fig6, cs244-fig7, cs244-fig8: " in whole.stdout


def test_a_figure_of_simulated_hosts_says_so_where_real_ones_were_asked_for(tmp_path: Path) -> None:
    done = refabric("plan", "pfabric-overall", "--engine", "linux", "--results", str(tmp_path))
    assert done.exit_code == 2
    assert f"pfabric-overall: {jobs.NO_LINUX_HOSTS}" in done.stderr


def test_a_simulated_sweep_from_run_to_report(tmp_path: Path) -> None:
    """It needs no root, has no CPU columns, and its outputs say that it is simulated."""
    done = refabric("run", "cs244-one-to-one", *SMALL, "--stack", "min_rto_ms=10", "--results", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "simulated" in done.stdout
    points = load(tmp_path / "cs244-one-to-one")
    assert {point.spec.stack.min_rto_ms for point in points} == {10.0}
    for point in points:
        assert point.metrics["simulation_cpu_s"] > 0
        assert point.elapsed_s > 0
        assert {"revision", "compiler", "cpu", "rate_choice"} <= set(point.provenance)
    summary = (tmp_path / "cs244-one-to-one" / "summary.csv").read_text().splitlines()
    head, first, *_ = (line.split(",") for line in summary)
    assert first[head.index("cpu_busy_pct")] == first[head.index("late_p99_us")] == ""
    for command in ("plot", "report", "status"):
        again = refabric(command, "cs244-one-to-one", "--results", str(tmp_path))
        assert again.exit_code == 0, again.output
    (chart,) = (tmp_path / "cs244-one-to-one" / "charts").glob("throughput-*.svg")
    assert "simulated" in words_of(chart)
    page = (tmp_path / "cs244-one-to-one" / "report.html").read_text()
    for words in ("simulated, refabric", "--stack min_rto_ms=10", "g++"):
        assert words in page.replace("</span> <span>", " "), words
    assert "sudo .venv/bin/refabric run cs244-one-to-one" not in page
    (tmp_path / "cs244-one-to-one" / points[0].name / "origin.json").unlink()
    resumed = refabric(
        "status", "cs244-one-to-one", *SMALL, "--stack", "min_rto_ms=10", "--results", str(tmp_path)
    )
    assert "origin.json" in resumed.stderr
