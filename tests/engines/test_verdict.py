from __future__ import annotations

import dataclasses

import pytest

from engines.emulation.verdict import Evidence, judge, only_stalled
from engines.result import FlowRow, Status


def flow(joined: int = 8, asked: int = 8, cc: str = "reno") -> FlowRow:
    return FlowRow(
        flow=0,
        src="p0e0h0",
        dst="p1e0h0",
        src_ip="10.0.0.2",
        dst_ip="10.1.0.2",
        sport=1100,
        dport=5201,
        transport="mptcp",
        subflows_asked=asked,
        subflows_joined=joined,
        cc=cc,
        goodput_mbps=4.0,
        bytes_received=1,
        retransmits=0,
        up_s=0.1,
    )


GOOD = Evidence(
    rate_mbps=5.0,
    late_p99_us=400.0,
    lost={"the ring": 0},
    busy_pct=[60.0] * 40,
    flows=[flow()],
    fallbacks=0,
    cc_asked=["reno"],
)


def test_a_run_the_machine_carried_is_ok() -> None:
    assert judge(GOOD) == (Status.OK, ())


def test_a_short_flow_may_be_done_before_subflows_join() -> None:
    short = dataclasses.replace(flow(joined=1), size_bytes=70_000)
    late = dataclasses.replace(GOOD, flows=[flow(), short], cc_asked=["reno"] * 2, joins_late=True)
    assert judge(late) == (Status.OK, ())
    assert judge(dataclasses.replace(late, joins_late=False))[0] is Status.SUSPECT


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"late_p99_us": 2500.0}, "late"),
        ({"lost": {"the ring": 3}}, "3 frames were lost in the ring"),
        ({"busy_pct": [100.0] * 10 + [50.0] * 30}, "no idle time left in 10 of 40"),
        (
            {"flows": [flow(), flow(joined=5)], "cc_asked": ["reno"] * 2},
            "1 of 2 flows had fewer than 8, the worst 5",
        ),
        ({"fallbacks": 2}, "2 flows fell back"),
        ({"stalled": 1}, "1 of 1 delivered nothing in the whole window"),
        ({"waiting": 1}, "1 of 1 delivered nothing in the whole window although their subflows did"),
        ({"flows": [flow(cc="bbr/reno")]}, "reno was asked, bbr was in force"),
    ],
)
def test_each_departure_is_named(change: dict[str, object], word: str) -> None:
    status, reasons = judge(dataclasses.replace(GOOD, **change))  # type: ignore[arg-type]
    assert status is Status.SUSPECT
    assert len(reasons) == 1
    assert word in reasons[0]


def test_a_flow_that_was_done_before_the_window_has_no_subflows_left_to_count() -> None:
    done = dataclasses.replace(flow(joined=0), completed_s=1.0)
    assert judge(dataclasses.replace(GOOD, flows=[done])) == (Status.OK, ())
    short = dataclasses.replace(flow(joined=5), completed_s=1.0)
    assert judge(dataclasses.replace(GOOD, flows=[short]))[0] is Status.SUSPECT


def test_only_a_flow_that_stands_still_on_a_machine_that_kept_up_is_no_result_at_all() -> None:
    assert only_stalled(dataclasses.replace(GOOD, stalled=1))
    assert not only_stalled(dataclasses.replace(GOOD, stalled=1, lost={"the ring": 3}))
    assert not only_stalled(dataclasses.replace(GOOD, waiting=1))


def test_one_busy_second_in_forty_is_put_down_to_others() -> None:
    assert judge(dataclasses.replace(GOOD, busy_pct=[100.0] + [50.0] * 39))[0] is Status.OK


def test_lateness_is_measured_against_the_packet_time() -> None:
    slow = dataclasses.replace(GOOD, late_p99_us=2500.0, rate_mbps=1.0)
    assert judge(slow)[0] is Status.OK


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
def test_repairs_are_told_when_they_are_many(losses: int, repairs: int, flow_s: int, suspect: bool) -> None:
    busy_pct = [50.0] * (flow_s // len(GOOD.flows))
    rows = [dataclasses.replace(flow, cc="lia") for flow in GOOD.flows]
    ours = dataclasses.replace(GOOD, flows=rows, cc_asked=["lia"] * len(rows))
    found = dataclasses.replace(ours, cc_losses=losses, cc_repairs=repairs, busy_pct=busy_pct)
    status, reasons = judge(found)
    assert (status is Status.SUSPECT) == suspect
    assert not suspect or f"left out {repairs} of {losses + repairs} window reductions" in reasons[0]


def test_sockets_of_flows_that_are_done_are_gone_for_no_fault() -> None:
    done = dataclasses.replace(flow(joined=0), completed_s=1.5)
    assert judge(dataclasses.replace(GOOD, flows=[done]))[0] is Status.OK
