"""Rows and chart of the comparison of data planes, from made-up points. Needs no root."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.dataplanes import PLANES, Seen, draw, row
from common.errors import UsageError
from model.result import RunResult, Status
from tests.support.reasons import of_text

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
