"""docs/ccp.md: its example with two programs runs, and does what the text says."""

from __future__ import annotations

import re
from pathlib import Path

from ccp.loading import load
from ccp.names import OwnAlgorithm
from model.result import Status
from tests.engines.simulation.congestion.test_agents import RATE_MBPS, goodput, mine
from tests.support.simulated_networks import result_of

PAGE = (Path(__file__).resolve().parents[2] / "docs/ccp.md").read_text()
(_, TWO) = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_example_with_two_programs_fills_the_link(tmp_path: Path) -> None:
    assert load(OwnAlgorithm("mine.py", TWO), TWO).programs.names == ("start", "steady")
    result = result_of(mine(TWO, tmp_path))
    assert result.status is Status.OK
    assert goodput(result) > 0.8 * RATE_MBPS
    assert result.metrics["agent_errors"] == 0
    assert 20 < result.metrics["agent_reports"] < 1000, "one per round trip after slow start"
