"""The benchmark of clusters runs a sweep on each number of workers and counts what it moves."""

from __future__ import annotations

import json

from click.testing import CliRunner

from benchmarks import cluster


def sweep(workers: int, points_s: float) -> cluster.Sweep:
    return cluster.Sweep(workers, 8, points_s, points_s + 2, 180.0, 40.0)


def test_speed_is_over_one_worker() -> None:
    one, four = cluster.table([sweep(1, 20.0), sweep(4, 11.0), sweep(1, 22.0), sweep(4, 10.0)])
    assert (one["workers"], one["points_s"], one["speed"], one["runs"]) == (1, 21.0, 1.0, 2)
    assert (four["workers"], four["points_s"], four["speed"]) == (4, 10.5, 2.0)


def test_a_sweep_on_two_workers() -> None:
    command = ["cs244-one-to-one", "--engine", "simulator", "--k", "4", "--subflows", "1,2"]
    command += ["--warmup", "0.1", "--seconds", "0.1"]
    result = CliRunner().invoke(cluster.main, ["--workers", "2", "--runs", "1", "--json", "--", *command])
    assert result.exit_code == 0, result.output
    (row,) = json.loads(result.stdout)["rows"]
    assert row["points"] == 3, "the baseline and two numbers of subflows"
    assert row["kb_a_point"] > 1
    assert 0 < row["points_s"] < row["seconds"]


def test_a_refused_sweep_says_why() -> None:
    result = CliRunner().invoke(cluster.main, ["--workers", "1", "--runs", "1", "--", "no-such-experiment"])
    assert result.exit_code == 1
    assert "no-such-experiment" in result.output
