"""Ports that follow delivery opportunities: when packets leave, against a slow model of mahimahi's rule."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric._core import VirtualFabric, disciplines
from fabric.plan import NetworkPlan
from tests.support.core_networks import TCP, chain, ip

A, B = ip("10.0.0.1"), ip("10.0.0.2")
MS, FOREVER = 1_000_000_000, 10**17
FRAME = 1514
TRACED_PORT = 2
IN_ORDER = disciplines().index("in-order")


def traced(at_ms: Sequence[int], period_ms: int, queue_pkts: int = 1000) -> NetworkPlan:
    """Three links; the middle one follows the trace from A to B. The others take 1 ps per byte."""
    plan = chain([8 * 10**12] * 3, [0] * 3, queue_pkts=queue_pkts)
    columns = np.zeros(6, np.uint8), np.zeros(6, np.uint8)
    columns[0][TRACED_PORT], columns[1][TRACED_PORT] = IN_ORDER, 1
    return dataclasses.replace(
        plan, discipline=columns[0], traced=columns[1],
        opportunities_ps=np.array(at_ms, np.int64) * MS, opportunities_period_ps=period_ms * MS,
    )  # fmt: skip


def leaves_ms(plan: NetworkPlan, packets: Sequence[tuple[int, int]]) -> list[float]:
    """Send (ms, bytes) packets from A to B; return when each reaches B, less the other links' time, in ms."""
    fabric = VirtualFabric(plan)
    for at_ms, size in packets:
        fabric.inject(at_ms * MS, 0, size, (A, B, TCP, 1000, 80))
    arrived = [when for _, _, when, gone, _ in fabric.run_until(FOREVER) if not gone]
    return [round(when / MS, 3) for when in arrived]


def model(at_ms: Sequence[int], period_ms: int, packets: Sequence[tuple[int, int]]) -> list[int]:
    """Return when packets leave: an opportunity carries up to a frame of earlier data; its rest is lost."""
    waiting, left, n = [list(packet) for packet in packets], [], 0
    while waiting:
        now = n // len(at_ms) * period_ms + at_ms[n % len(at_ms)]
        room = FRAME
        while waiting and waiting[0][0] < now and room:
            sent = min(room, waiting[0][1])
            room -= sent
            waiting[0][1] -= sent
            if not waiting[0][1]:
                left.append(now)
                waiting.pop(0)
        n += 1
    return left


def test_small_packets_share_an_opportunity_and_large_ones_take_several_as_the_trace_repeats() -> None:
    assert leaves_ms(traced([2, 2, 5], 10), [(0, FRAME)] * 5) == [2, 2, 5, 12, 12]
    assert leaves_ms(traced([3, 6], 6), [(0, 500)] * 4) == [3, 3, 3, 6]
    assert leaves_ms(traced([3, 6], 6), [(0, 4000), (0, 500)]) == [9, 9]


@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=12).map(sorted),
    st.lists(st.tuples(st.integers(0, 60), st.integers(1, 4000)), min_size=1, max_size=40).map(sorted),
)
def test_as_the_model_says(at_ms: list[int], packets: list[tuple[int, int]]) -> None:
    """Packets reach the port within 4 ns of their millisecond, which the model takes as before the next."""
    assert leaves_ms(traced(at_ms, 20), packets) == model(at_ms, 20, packets)


def test_counts_and_the_queue_limit_hold() -> None:
    plan = traced([10], 10, queue_pkts=3)
    fabric = VirtualFabric(plan)
    for ms in range(5):
        fabric.inject(ms * MS, 0, FRAME, (A, B, TCP, 1000, 80))
    fabric.run_until(FOREVER)
    counters = fabric.counters()
    assert (counters["drops"][TRACED_PORT], counters["tx_packets"][TRACED_PORT]) == (2, 3)
    assert counters["injected"] == 5 == counters["delivered"] + counters["dropped"]


def test_a_cut_loses_what_waits_and_the_link_goes_on_after_it() -> None:
    fabric = VirtualFabric(traced([10], 10))
    for _ in range(3):
        fabric.inject(0, 0, FRAME, (A, B, TCP, 1000, 80))
    fabric.set_port_up(TRACED_PORT, False, 15 * MS)
    fabric.set_port_up(TRACED_PORT, True, 25 * MS)
    fabric.inject(26 * MS, 0, FRAME, (A, B, TCP, 1000, 80))
    arrived = [round(when / MS, 3) for _, _, when, gone, _ in fabric.run_until(FOREVER) if not gone]
    assert arrived == [10, 30]


@pytest.mark.parametrize(
    ("at_ms", "period_ms"), [([0, 1], 5), ([3, 2], 5), ([6], 5)], ids=["at 0", "not in order", "late"]
)
def test_what_is_no_trace_is_refused(at_ms: list[int], period_ms: int) -> None:
    with pytest.raises(ValueError, match="delivery opportunities"):
        VirtualFabric(traced(at_ms, period_ms))


def test_a_traced_port_needs_a_trace_and_a_discipline() -> None:
    plan = traced([1], 1)
    with pytest.raises(ValueError, match="opportunities"):
        VirtualFabric(dataclasses.replace(plan, opportunities_ps=np.zeros(0, np.int64)))
    with pytest.raises(ValueError, match="one by one"):
        VirtualFabric(dataclasses.replace(plan, discipline=np.zeros(6, np.uint8)))
