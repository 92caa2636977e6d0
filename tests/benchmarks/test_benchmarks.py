"""Benchmarks run what their options say, and report what they ran. No speed or cost is checked."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchmarks import agents, cluster, messages, parts, scaling, simulator, stored_results
from benchmarks.agent_charts import LABELS, draw_messages, draw_ratios
from benchmarks.agents import Cost, table
from benchmarks.ccp import simulated_agents
from benchmarks.ccp.simulated_agents import AGENT, CORE, FOLD
from benchmarks.dataplanes import PLANES, Seen, draw, row
from common.errors import UsageError
from fabric._core import StallMaker
from model.result import RunResult, Status
from tests.support.reasons import of_text
from tests.support.waiting import until


def run(main: click.Command, *arguments: object) -> list[Any]:
    """Return the JSON objects that a benchmark prints, one a line."""
    done = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_simulator_at_each_number_of_threads() -> None:
    options = ("--k", 4, "--subflows", 2, "--seconds", 0.1, "--parts", 4, "--threads", "1,3", "--json")
    whole, one, three = run(parts.main, *options)
    assert [(each["parts"], each["threads"]) for each in (whole, one, three)] == [(1, 1), (4, 1), (4, 3)]
    assert one["packet_hops"] == three["packet_hops"] > 5000
    assert one["goodput_pct"] == three["goodput_pct"]
    assert (whole["faster"], one["faster_than_one"]) == (1.0, 1.0)
    assert abs(three["faster"] * three["wall_s"] / whole["wall_s"] - 1) < 0.25  # both are rounded to ms


@pytest.mark.parametrize("stack", ["htsim", "linux"])
def test_the_simulator_at_each_size(stack: str) -> None:
    (found,) = run(simulator.main, "--k", 4, "--subflows", 2, "--seconds", 0.2, "--stack", stack, "--json")
    assert (found["k"], found["subflows"], found["cc"], found["stack"]) == (4, 2, "lia", stack)
    assert found["packet_hops"] > 16 * 0.1 * 100e6 / 12000 * 2
    assert found["packet_hops_per_cpu_s"] == pytest.approx(found["packet_hops"] / found["run_cpu_s"], rel=0.2)
    assert 0 < found["goodput_pct_mean"] < 100
    assert 0 < found["jain"] <= 1
    assert found["setup_s"] > 0
    assert found["rss_mb"] > 10
    assert found["machine"]["cpus"] >= 1


@pytest.mark.parametrize(
    ("main", "option", "says"),
    [
        (parts.main, ("--k", "5"), "parts:"),
        (simulator.main, ("--k", "5"), "simulator:"),
        (simulated_agents.main, ("--runs", "0"), "--runs"),
    ],
)
def test_what_makes_no_sense_is_refused(main: click.Command, option: tuple[str, str], says: str) -> None:
    done = CliRunner().invoke(main, option)
    assert done.exit_code == 2 and says in done.stderr


def test_both_engines_at_each_size_with_a_chart(tmp_path: Path) -> None:
    chart = tmp_path / "scaling.png"
    options = ("--k", 4, "--flow-level-k", 4, "--subflows", "1,2", "--chart", chart, "--json")
    (found,) = run(scaling.main, *options)
    points = found["points"]
    assert {(point["engine"], point["subflows"]) for point in points} == {
        ("simulator", 1), ("simulator", 2), ("flow-level", 1), ("flow-level", 2),
    }  # fmt: skip
    assert all(point["hosts"] == 16 and point["peak_mb"] > 10 for point in points)
    assert all("packet_hops_per_cpu_s" in point for point in points if point["engine"] == "simulator")
    assert chart.stat().st_size > 1000


def test_larger_networks_are_simulated_for_a_shorter_time() -> None:
    window_s = scaling.window_s
    assert window_s(4) > window_s(16) > window_s(24) > window_s(32) == window_s(48)


def test_three_variants_of_agents_in_turn_which_send_alike() -> None:
    options = ("--k", 4, "--subflows", 2, "--seconds", 0.5, "--runs", 2, "--json")
    (found,) = run(simulated_agents.main, *options)
    rows = {row["variant"]: row for row in found["rows"]}
    assert list(rows) == [CORE, FOLD, AGENT]
    assert [cost["variant"] for cost in found["costs"]] == [CORE, FOLD, AGENT, FOLD, AGENT, CORE]
    assert rows[CORE]["run_cpu_s_ratio"] == 1.0
    for name in (FOLD, AGENT):
        assert rows[name]["packet_hops"] == pytest.approx(rows[CORE]["packet_hops"], rel=0.1)
        assert rows[name]["acks"] > 1000
        assert rows[name]["errors"] == 0
    assert rows[FOLD]["reports"] == 0 < rows[AGENT]["reports"]


def test_each_run_of_a_command_on_stored_results(tmp_path: Path) -> None:
    command = ["status", "cs244-one-to-one", "--engine", "max-min", "--k", "4", "--results", str(tmp_path)]
    (found,) = run(stored_results.main, "--times", 2, "--json", "--", *command)
    assert found["command"] == command
    assert [each["exit_code"] for each in found["runs"]] == [0, 0]
    assert all(each["peak_mb"] > 10 and each["cpu_s"] > 0 for each in found["runs"])
    assert found["machine"]


def sweep(workers: int, points_s: float) -> cluster.Sweep:
    return cluster.Sweep(workers, 8, points_s, points_s + 2, 180.0, 40.0)


def test_the_speed_of_a_cluster_is_over_one_worker() -> None:
    one, four = cluster.table([sweep(1, 20.0), sweep(4, 11.0), sweep(1, 22.0), sweep(4, 10.0)])
    assert (one["workers"], one["points_s"], one["speed"], one["runs"]) == (1, 21.0, 1.0, 2)
    assert (four["workers"], four["points_s"], four["speed"]) == (4, 10.5, 2.0)


def test_a_sweep_on_two_workers() -> None:
    command = ["cs244-one-to-one", "--engine", "simulator", "--k", "4", "--subflows", "1,2"]
    command += ["--warmup", "0.1", "--seconds", "0.1"]
    (found,) = run(cluster.main, "--workers", 2, "--runs", 1, "--json", "--", *command)
    (row,) = found["rows"]
    assert row["points"] == 3, "the baseline and two numbers of subflows"
    assert row["kb_a_point"] > 1
    assert 0 < row["points_s"] < row["seconds"]


def test_a_refused_sweep_says_why() -> None:
    done = CliRunner().invoke(cluster.main, ["--workers", "1", "--runs", "1", "--", "no-such-experiment"])
    assert done.exit_code == 1
    assert "no-such-experiment" in done.output


def cost(variant: str, gbps: float, cpu_pct: float = 100.0, others_pct: float = 0.0) -> Cost:
    return Cost(variant, 4, gbps, cpu_pct, others_pct, acks=10, ns_per_ack=1000.0)


def test_ratios_are_between_runs_of_one_repetition() -> None:
    costs = [cost("kernel", 10), cost("ack", 9), cost("kernel", 20), cost("ack", 22), cost("ack", 10)]
    kernel, ack = table([*costs, cost("kernel", 10)], by_cpu=False)
    assert kernel["ratio"] == 1.0
    assert (ack["ratio"], ack["ratio_range"], ack["acks"]) == (1.0, [0.9, 1.1], 30)


def test_cpu_time_is_compared_at_a_fixed_rate() -> None:
    costs = [cost("kernel", 1, cpu_pct=20), cost("ack", 1, cpu_pct=30)]
    assert table(costs, by_cpu=True)[1]["ratio"] == 1.5


def test_disturbed_repetitions_are_left_out_unless_all_are() -> None:
    quiet = [cost("kernel", 10), cost("ack", 8)]
    disturbed = [cost("kernel", 10), cost("ack", 1, others_pct=30)]
    (_, both), (_, alone) = table([*quiet, *disturbed], by_cpu=False), table(disturbed, by_cpu=False)
    assert (both["ratio"], both["runs"], both["status"]) == (0.8, 1, "ok")
    assert alone["status"] == "suspect"


def test_no_variant_is_always_first() -> None:
    assert [agents._turned("abc", by)[0] for by in range(4)] == ["a", "b", "c", "a"]


def test_percentiles_of_messages() -> None:
    trips = messages.summary("unix", [1000 * us for us in range(1, 101)], 102, 0.0)
    assert (trips.median_us, trips.p95_us, trips.p99_us, trips.lost) == (51, 96, 100, 2)
    assert trips.status == "ok"
    assert messages.summary("unix", [1000], 1, 6.0).status == "suspect"


def test_charts_are_drawn(tmp_path: Path) -> None:
    costs = [cost(variant, gbps) for variant, gbps in (("kernel", 10), ("ack", 9), ("10ms", 11))]
    draw_ratios(table(costs, by_cpu=False), tmp_path / "agents.png", by_cpu=False, words=["3 runs"])
    rows = [vars(messages.summary(name, [9000, 30_000], 2, 0.0)) for name in LABELS]
    draw_messages(rows, tmp_path / "messages.png", ["2 messages"])
    assert all((tmp_path / f"{name}.png").stat().st_size > 1000 for name in ("agents", "messages"))


@pytest.mark.parametrize(
    ("main", "arguments", "says"),
    [
        (agents.main, ["--flows", "0"], "numbers from 1 to 128"), (agents.main, ["--flows", "x"], "numbers"),
        (agents.main, ["--reports", "never"], "choose from"), (agents.main, ["--rate", "-1"], "at least 0"),
        (messages.main, ["--transports", "pigeon"], "choose from"), (messages.main, ["--messages", "0"], "1"),
    ],
)  # fmt: skip
def test_options_of_agents_that_make_no_sense_are_refused(
    main: click.Command, arguments: list[str], says: str
) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert says in result.output


FABRIC, OVS = PLANES[0], PLANES[2]


def result(status: Status, who: str, late_us: float | None = None) -> RunResult:
    metrics = {"packet_hops_per_s": 10_000.0, "cpu_busy_pct": 25.0, f"{who}_cpu_pct": 10.0, "setup_s": 0.5}
    late = {} if late_us is None else {"late_p99_us": late_us}
    reasons = (of_text("CPU: late"),) if status is Status.SUSPECT else ()
    return RunResult(status, reasons, metrics={**metrics, **late})


def test_the_highest_rate_counts_at_which_most_points_were_ok() -> None:
    ok, bad = result(Status.OK, "fabric", 100.0), result(Status.SUSPECT, "fabric", 9000.0)
    seen = Seen({1.0: [ok, ok, bad], 2.0: [ok, bad, ok], 5.0: [bad, bad, ok]}, "CPU: late")
    found = row(FABRIC, seen)
    assert (found["valid_mbps"], found["at_mbps"], found["late_p99_us"]) == (2.0, 1.0, 100.0)
    assert found["plane_us_a_hop"] == 10.0, "a tenth of a CPU for 10 000 packet-hops a second"


def test_a_missing_plane_has_a_reason_and_one_without_a_clock_has_no_lateness() -> None:
    assert row(OVS, Seen(why_out="no module"))["not_here"] == "no module"
    found = row(OVS, Seen({1.0: [result(Status.OK, "ovs")]}))
    assert found["late_p99_us"] is None
    assert found["valid_mbps"] == 1.0


def test_the_chart_draws_what_there_is(tmp_path: Path) -> None:
    rows = [row(FABRIC, Seen({1.0: [result(Status.OK, "fabric", 1.0)]})), {"plane": "stock", "up_s": 7.0}]
    draw(rows, tmp_path / "chart.png", "k=4")
    assert (tmp_path / "chart.png").stat().st_size > 1000
    with pytest.raises((UsageError, OSError)):
        draw(rows, tmp_path / "nowhere" / "chart.png", "k=4")


WRAPPER = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "stalls.py"), "--p99", "1"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real-time threads need root")
CPUS = sorted(os.sched_getaffinity(0))


def wrapped(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WRAPPER, "--", *command], capture_output=True, text=True, timeout=30, check=False)


@needs_root
@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("true", 0), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_commands(script: str, status: int) -> None:
    run = wrapped("sh", "-c", script)
    assert run.returncode == status, run.stderr
    assert "every 33 ms" in run.stderr


@needs_root
def test_a_command_that_is_not_there_is_named() -> None:
    run = wrapped("no-such-command")
    assert run.returncode == 127
    assert "no-such-command" in run.stderr


@needs_root
def test_signals_are_passed_on() -> None:
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    command = [*WRAPPER, "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 9


@needs_root
def test_stalls_take_the_time_they_should_and_end_at_once() -> None:
    """2 to 4 ms every 20 ms are 15 % of the time on each CPU."""
    maker = StallMaker(CPUS, every_ms=20, least_ms=2, most_ms=4, seed=1, together=True)
    began_s = time.monotonic()
    maker.start()
    until(lambda: maker.stalls >= 30 * len(CPUS), 20.0, "30 stalls on each CPU")
    asked_s = time.monotonic()
    maker.stop()
    stopped_s = time.monotonic()
    assert stopped_s - asked_s < 5.0, "without an end of their own they would go on for ever"
    stalled_s = maker.stalled_ns / 1e9 / len(CPUS)
    assert 0.05 < stalled_s / (stopped_s - began_s) < 0.3
    assert 2e6 * 0.5 < maker.stalled_ns / maker.stalls <= 4e6 + 1e5
    time.sleep(0.05)
    assert maker.stalled_ns / 1e9 / len(CPUS) == stalled_s


@needs_root
def test_stalls_end_by_themselves() -> None:
    maker = StallMaker(CPUS, every_ms=10, least_ms=1, most_ms=1, seed=1, lasts_s=0.1)
    maker.start()
    time.sleep(0.25)
    done = maker.stalls
    assert 0 < done <= 0.1 / 0.001 * len(CPUS)
    time.sleep(0.1)
    assert maker.stalls == done
    maker.stop()


@pytest.mark.parametrize(
    ("every_ms", "least_ms", "most_ms", "says"),
    [(5, 2, 4, "half of the time"), (100, 0, 4, "above 0"), (100, 4, 2, "longest"), (9000, 1, 900, "500 ms")],
)
def test_laws_that_would_take_the_machine_are_refused(
    every_ms: float, least_ms: float, most_ms: float, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        StallMaker(CPUS, every_ms=every_ms, least_ms=least_ms, most_ms=most_ms, seed=1)


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no CPU"):
        StallMaker([], every_ms=10, least_ms=1, most_ms=1, seed=1)
    with pytest.raises((RuntimeError, OSError), match="CPU 1000"):
        StallMaker([1000], every_ms=10, least_ms=1, most_ms=1, seed=1).start()
