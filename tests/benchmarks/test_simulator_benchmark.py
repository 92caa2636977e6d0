"""The benchmark runs what its options say, and reports what it ran. No speed is checked."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks.simulator import main


@pytest.mark.parametrize("stack", ["htsim", "linux"])
def test_one_json_object_per_size(stack: str) -> None:
    run = CliRunner().invoke(
        main, ("--k", "4", "--subflows", "2", "--seconds", "0.2", "--stack", stack, "--json")
    )
    assert run.exit_code == 0, run.output
    (found,) = (json.loads(line) for line in run.stdout.splitlines())
    assert (found["k"], found["subflows"], found["cc"], found["stack"]) == (4, 2, "lia", stack)
    assert found["packet_hops"] > 16 * 0.1 * 100e6 / 12000 * 2
    assert found["packet_hops_per_cpu_s"] == pytest.approx(found["packet_hops"] / found["run_cpu_s"], rel=0.2)
    assert 0 < found["goodput_pct_mean"] < 100
    assert 0 < found["jain"] <= 1
    assert found["setup_s"] > 0
    assert found["rss_mb"] > 10
    assert found["machine"]["cpus"] >= 1


def test_an_odd_fat_tree_is_refused() -> None:
    run = CliRunner().invoke(main, ("--k", "5"))
    assert run.exit_code == 2
    assert "simulator:" in run.stderr
