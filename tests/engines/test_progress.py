from __future__ import annotations

import pytest

from engines.emulation.cpu import CpuSample, CpuUse
from engines.emulation.summarise import Sample, check_progress
from engines.emulation.traffic import PlannedFlow
from fabric.errors import StalledFlowError

FLOWS = [PlannedFlow(i, f"h{i}", f"h{i + 1}", f"10.0.0.{i}", f"10.0.0.{i + 1}", 5201, 1100) for i in range(2)]
IDLE = CpuSample(0.0, CpuUse(0, 0, 0, 0, 0), {})


def samples(*received: tuple[int | None, int | None]) -> list[Sample]:
    return [Sample(float(t), pair, IDLE) for t, pair in enumerate(received)]


def test_a_flow_that_stands_still_is_named() -> None:
    with pytest.raises(StalledFlowError, match="flow 1 from h1 to h2"):
        check_progress(FLOWS, samples((0, 5), (10, 7), (20, 7), (30, 7)), 2.0)


def test_slow_flows_are_not_stalled() -> None:
    check_progress(FLOWS, samples((0, 5), (10, 7), (20, 7), (30, 8)), 2.0)


def test_too_short_a_time_says_nothing() -> None:
    check_progress(FLOWS, samples((0, 5), (10, 5)), 2.0)
