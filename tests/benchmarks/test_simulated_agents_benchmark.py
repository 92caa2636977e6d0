"""The benchmark runs three variants in turn, which send alike; one of them reports. No speed is checked."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from benchmarks.ccp.simulated_agents import AGENT, CORE, FOLD, main


def test_one_row_per_variant() -> None:
    run = CliRunner().invoke(
        main, ("--k", "4", "--subflows", "2", "--seconds", "0.5", "--runs", "2", "--json")
    )
    assert run.exit_code == 0, run.output
    found = json.loads(run.stdout)
    rows = {row["variant"]: row for row in found["rows"]}
    assert list(rows) == [CORE, FOLD, AGENT]
    assert [cost["variant"] for cost in found["costs"]] == [CORE, FOLD, AGENT, FOLD, AGENT, CORE]
    assert rows[CORE]["run_cpu_s_ratio"] == 1.0
    for name in (FOLD, AGENT):
        assert rows[name]["packet_hops"] == pytest.approx(rows[CORE]["packet_hops"], rel=0.1)
        assert rows[name]["acks"] > 1000
        assert rows[name]["errors"] == 0
    assert rows[FOLD]["reports"] == 0 < rows[AGENT]["reports"]


def test_a_repetition_is_needed() -> None:
    assert CliRunner().invoke(main, ("--runs", "0")).exit_code == 2
