from __future__ import annotations

import numpy as np

from engines.emulation.kernel.proc import CpuSample, CpuUse
from engines.emulation.measure.observing import Sample
from engines.emulation.measure.verdict import due_frames, silent_flows, stall_error, stalled_and_waiting
from model.flows import PlannedFlow
from model.spec import LinkSpec

FLOWS = [PlannedFlow(i, f"h{i}", f"h{i + 1}", f"10.0.0.{i}", f"10.0.0.{i + 1}", 5201, 1100) for i in range(2)]
IDLE = CpuSample(0.0, CpuUse(0, 0, 0, 0, 0), {})
LINK = LinkSpec(10.0)


def samples(*received: tuple[int | None, int | None]) -> list[Sample]:
    return [
        Sample(float(t), pair, IDLE, np.full(1, float(t)), np.zeros(1, np.uint64), float(t))
        for t, pair in enumerate(received)
    ]


def test_a_flow_that_delivers_nothing_is_named() -> None:
    assert silent_flows(FLOWS, samples((0, 5), (10, 7), (20, 7), (30, 7)), 2.0, LINK) == [1]
    assert "flow 1 from h1 to h2" in str(stall_error(FLOWS, [1], 2.0))


def test_slow_flows_are_not_stalled() -> None:
    assert silent_flows(FLOWS, samples((0, 5), (10, 7), (20, 7), (30, 8)), 2.0, LINK) == []


def test_too_short_a_time_finds_no_stall() -> None:
    assert silent_flows(FLOWS, samples((0, 5), (10, 5)), 2.0, LINK) == []


def test_a_flow_to_which_hardly_a_frame_is_due_may_wait_for_its_timer() -> None:
    still = samples((0, 5), (10, 7), (20, 7), (30, 7))
    assert silent_flows(FLOWS, still, 2.0, LinkSpec(1.0)) == []
    many = [PlannedFlow(i, "h0", f"h{i + 1}", "10.0.0.2", f"10.0.1.{i}", 5201, 1100 + i) for i in range(100)]
    assert due_frames(many, 2.0, LINK)[0] == due_frames(FLOWS, 2.0, LINK)[0] / 100


def test_a_flow_whose_subflows_deliver_data_waits_and_is_not_stalled() -> None:
    assert stalled_and_waiting([0, 3], [0, 900, 0, 1448]) == ([0], [3])
    assert stalled_and_waiting([], [0, 0]) == ([], [])
