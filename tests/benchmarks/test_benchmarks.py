"""Benchmarks run what their options say, and report what they ran. No speed or cost is checked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from benchmarks import cluster, parts, scaling, simulator, stored_results
from benchmarks.ccp import simulated_agents
from benchmarks.ccp.simulated_agents import AGENT, CORE, FOLD


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
