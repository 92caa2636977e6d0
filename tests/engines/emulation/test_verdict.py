"""The verdict: which evidence makes a point suspect, and which flows count as stalled."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from engines.emulation.kernel.proc import CpuSample, CpuUse
from engines.emulation.measure.observing import Sample
from engines.emulation.measure.verdict import (
    CpuLoad,
    Evidence,
    due_frames,
    judge,
    only_stalled,
    silent_flows,
    stall_error,
    stalled_and_waiting,
)
from model.flows import PlannedFlow
from model.machine import LATE_SHARES
from model.reasons import COMPLETION, GOODPUT, SATURATED, Fault
from model.result import FlowRow
from model.spec import LinkSpec
from tests.support.stored_points import flow_row


def flow(joined: int = 8, cc: str = "reno") -> FlowRow:
    return dataclasses.replace(flow_row(0, 4.0, subflows=8), subflows_joined=joined, cc=cc)


LOAD = CpuLoad([60.0] * 40, {"cpu0": [70.0] * 40, "cpu1": [50.0] * 40})
FULL = CpuLoad([100.0] * 10 + [50.0] * 30)
GOOD = Evidence(
    late_p99_us=400.0,
    queue_us=242_000.0,
    lost={"the ring": 0},
    load=LOAD,
    flows=[flow()],
    fallbacks=0,
    cc_asked=["reno"],
)


def test_a_run_the_machine_carried_is_ok() -> None:
    assert judge(GOOD) == ((), ())


def test_a_short_flow_may_be_done_before_subflows_join() -> None:
    short = dataclasses.replace(flow(joined=1), size_bytes=70_000)
    late = dataclasses.replace(GOOD, flows=[flow(), short], cc_asked=["reno"] * 2, joins_late=True)
    assert judge(late) == ((), ())
    assert judge(dataclasses.replace(late, joins_late=False))[0]


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"late_p99_us": 242_000.0}, "242.0 ms late or more, 100 % of the 242 ms that a full queue takes"),
        ({"lost": {"the ring": 3}}, "3 frames were lost in the ring"),
        ({"load": FULL, "elastic": False}, "no idle time was left in 10 of 40"),
        ({"unheld_pct": 20.0}, "in 20 % of the window; this run kept CPU0 70 % busy"),
        ({"stretch_pct": 90.0, "stretch_longest_ms": 30.0}, "90 % of the time, at most 30 ms at once"),
        ({"over_carried_pct": 112.0}, "12 % more was delivered than subflows carried"),
        ({"warmup_s": 5.0, "round_trip_s": 0.14}, "held 36 round trips of 140 ms; subflows need 50"),
        ({"halves_pct": (70.0, 80.0)}, "70.0 % of the link rate in the first half, then 80.0 %"),
        ({"flows": [flow(), flow(joined=5)], "cc_asked": ["reno"] * 2}, "1 of 2 flows had fewer than 8"),
        ({"fallbacks": 2}, "2 flows fell back"),
        ({"stalled": 1}, "1 of 1 flows delivered nothing in the whole window"),
        ({"waiting": 1}, "1 of 1 flows delivered nothing in the whole window although their subflows did"),
        ({"flows": [flow(cc="bbr/reno")]}, "reno was requested, but bbr was in effect"),
    ],
)
def test_each_departure_is_named(change: dict[str, object], word: str) -> None:
    (reason,), _ = judge(dataclasses.replace(GOOD, **change))  # type: ignore[arg-type]
    assert word in reason.text


def test_a_flow_that_was_done_before_the_window_has_no_subflows_left_to_count() -> None:
    done = dataclasses.replace(flow(joined=0), completed_s=1.0)
    assert judge(dataclasses.replace(GOOD, flows=[done])) == ((), ())
    short = dataclasses.replace(flow(joined=5), completed_s=1.0)
    assert judge(dataclasses.replace(GOOD, flows=[short]))[0]


def test_only_a_flow_that_stands_still_on_a_machine_that_kept_up_is_no_result_at_all() -> None:
    assert only_stalled(dataclasses.replace(GOOD, stalled=1))
    assert not only_stalled(dataclasses.replace(GOOD, stalled=1, lost={"the ring": 3}))
    assert not only_stalled(dataclasses.replace(GOOD, waiting=1))


def test_one_busy_second_in_forty_is_put_down_to_others() -> None:
    once = dataclasses.replace(GOOD, load=CpuLoad([100.0] + [50.0] * 39), elastic=False)
    assert not judge(once)[0]


def test_an_elastic_clock_waits_for_a_run_that_fills_a_cpu() -> None:
    full = CpuLoad([75.0] * 40, {"cpu0": [100.0] * 40, "cpu1": [50.0] * 40})
    assert not judge(dataclasses.replace(GOOD, load=full))[0]
    assert not judge(dataclasses.replace(GOOD, load=full, unheld_pct=4.0))[0]
    strict, _ = judge(dataclasses.replace(GOOD, load=full, elastic=False))
    assert [reason.kind for reason in strict] == [SATURATED]


@pytest.mark.parametrize("sized", [False, True])
def test_lateness_is_measured_against_the_delay_of_a_full_queue(sized: bool) -> None:
    """A metric is doubted beyond its own limit; the point is suspect when it is measured for that metric."""
    rows = [dataclasses.replace(flow(), size_bytes=70_000 if sized else 0)]
    main = COMPLETION if sized else GOODPUT
    for metric, limit in LATE_SHARES.items():
        for share, doubted in ((0.99 * limit, False), (1.01 * limit, True)):
            late_us = share * GOOD.queue_us
            reasons, cautions = judge(dataclasses.replace(GOOD, flows=rows, late_p99_us=late_us))
            doubts = {name for reason in (*reasons, *cautions) for name in reason.doubts}
            assert (metric in doubts) == doubted
            assert bool(reasons) == (share > LATE_SHARES[main])


@pytest.mark.parametrize(
    ("load", "whose"),
    [
        (dataclasses.replace(LOAD, steal_pct=30.0, others_pct=10.0), Fault.HYPERVISOR),
        (dataclasses.replace(LOAD, steal_pct=3.0, others_pct=30.0), Fault.OTHERS),
        (dataclasses.replace(LOAD, steal_pct=3.0, others_pct=4.0), Fault.HYPERVISOR),
        (dataclasses.replace(LOAD, others_pct=30.0), Fault.OTHERS),
        (CpuLoad([60.0] * 4, {"cpu0": [95.0] * 4}, jitter_p99_us=2000.0), Fault.LOAD),
        (dataclasses.replace(LOAD, jitter_p99_us=2000.0), Fault.HYPERVISOR),
        (LOAD, Fault.LOAD),
    ],
)
def test_a_reason_names_its_fault(load: CpuLoad, whose: Fault) -> None:
    (reason,), _ = judge(dataclasses.replace(GOOD, load=load, late_p99_us=242_000.0))
    assert reason.fault is whose


@pytest.mark.parametrize(
    ("losses", "repairs", "flow_s", "suspect"),
    [
        (1000, 2, 40, False),
        (1000, 4, 40, True),
        (10, 4, 80, False),
        (60, 6, 400, True),
        (2000, 6, 80, True),
        (2000, 6, 200, False),
    ],
)
def test_many_repairs_are_reported(losses: int, repairs: int, flow_s: int, suspect: bool) -> None:
    busy_pct = [50.0] * (flow_s // len(GOOD.flows))
    rows = [dataclasses.replace(flow, cc="lia") for flow in GOOD.flows]
    ours = dataclasses.replace(GOOD, flows=rows, cc_asked=["lia"] * len(rows))
    found = dataclasses.replace(ours, cc_losses=losses, cc_repairs=repairs, load=CpuLoad(busy_pct))
    reasons, _ = judge(found)
    assert bool(reasons) == suspect
    words = f"skipped {repairs} of {losses + repairs} window reductions"
    assert not suspect or words in reasons[0].text


FLOWS = [PlannedFlow(i, f"h{i}", f"h{i + 1}", f"10.0.0.{i}", f"10.0.0.{i + 1}", 5201, 1100) for i in range(2)]
IDLE = CpuSample(CpuUse(0, 0, 0, 0, 0), {})
LINK = LinkSpec(10.0)


def samples(*received: tuple[int | None, int | None]) -> list[Sample]:
    return [
        Sample(float(t), pair, IDLE, np.full(1, float(t)), np.zeros(1, np.uint64), float(t))
        for t, pair in enumerate(received)
    ]


@pytest.mark.parametrize(
    ("received", "silent"),
    [
        (((0, 5), (10, 7), (20, 7), (30, 7)), [1]),
        (((0, 5), (10, 7), (20, 7), (30, 8)), []),  # it is slow
        (((0, 5), (10, 5)), []),  # too short a time
    ],
)
def test_a_flow_that_delivers_nothing_is_silent(received: list[tuple[int, int]], silent: list[int]) -> None:
    assert silent_flows(FLOWS, samples(*received), 2.0, LINK) == silent
    assert "flow 1 from h1 to h2" in str(stall_error(FLOWS, [1], 2.0))


def test_a_flow_to_which_hardly_a_frame_is_due_may_wait_for_its_timer() -> None:
    still = samples((0, 5), (10, 7), (20, 7), (30, 7))
    assert silent_flows(FLOWS, still, 2.0, LinkSpec(1.0)) == []
    many = [PlannedFlow(i, "h0", f"h{i + 1}", "10.0.0.2", f"10.0.1.{i}", 5201, 1100 + i) for i in range(100)]
    assert due_frames(many, 2.0, LINK)[0] == due_frames(FLOWS, 2.0, LINK)[0] / 100


def test_a_flow_whose_subflows_deliver_data_waits_and_is_not_stalled() -> None:
    assert stalled_and_waiting([0, 3], [0, 900, 0, 1448]) == ([0], [3])
    assert stalled_and_waiting([], [0, 0]) == ([], [])
