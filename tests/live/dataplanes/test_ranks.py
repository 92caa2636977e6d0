"""pFabric between real hosts: the rank on every segment, and what a bottleneck does with it."""

from __future__ import annotations

import statistics
from typing import Any

import pytest

from engines.emulation.machine import ranks_unsupported
from model.flows import FIRST_CPORT
from tests.support.dataplanes.rank_stamps import stamp
from tests.support.sandboxed import report
from tests.support.scenarios.ranks import Frame, completions

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

LONG, SHORT, SHORTS = 3_000_000, 20_000, 12
LOSSY = 8, (LONG, 400_000, 4, 0.2)
FIRST_WINDOW, MAX_WINDOW, MSS, MIN_RTO_S = 12, 15, 1460, 0.03
LATELY_S = 0.01
"""How long the kernel may take from the tap to its TCP, while another CPU sends."""


def run(discipline: str, queue_pkts: int, flows: tuple[int, int, int, float]) -> dict[str, Any]:
    if reason := ranks_unsupported():
        pytest.skip(reason)
    request = {"discipline": discipline, "queue_pkts": queue_pkts, "flows": list(flows)}
    found: dict[str, Any] = report(completions, request)
    return found


def possible(acks: list[tuple[float, int]], at_s: float, size: int, lately_s: float) -> set[int]:
    """Return the possible stamps of a segment that left at `at_s`, by the last acknowledgements before it."""
    lately = [acked for t_s, acked in acks if at_s - lately_s <= t_s <= at_s]
    before = [acked for t_s, acked in acks if t_s < at_s - lately_s][-1:]
    return {stamp(size - acked) for acked in (*before, *lately)}


@pytest.fixture(scope="module")
def lossy() -> dict[str, Any]:
    """The queue has room for 8 packets and two windows of 15 meet there, so segments are lost."""
    return run("pfabric", *LOSSY)


def test_every_segment_has_what_remains_of_its_flow_retransmissions_included(lossy: dict[str, Any]) -> None:
    check_frames(lossy, LATELY_S)


def test_the_sender_is_mintcp_as_far_as_the_kernel_goes(lossy: dict[str, Any]) -> None:
    check_sender(lossy)


def check_sender(report: dict[str, Any]) -> None:
    """The first flow must begin with 12 segments, keep its window to 15, and find its first loss by a
    timeout: a fast retransmission would come after a round trip, 10 ms and at most 8 packets of 1.2 ms."""
    frames = [Frame(*frame) for frame in report["frames"] if frame[2] == FIRST_CPORT]
    (first, *_) = (frame.number for frame in frames if frame.leaves and frame.payload < 0)
    acked, sent, burst = 0, 0, 0
    sent_s: dict[int, float] = {}
    waits_s: list[float] = []
    for frame in frames:
        offset = (frame.number - first) % 2**32
        if not frame.leaves:
            acked = max(acked, offset) if offset <= LONG else acked
        elif frame.payload > 0:
            burst += acked == 0
            if offset < sent:
                waits_s.append(frame.t_s - sent_s[offset])
            sent_s[offset] = frame.t_s
            sent = max(sent, offset + frame.payload)
            assert sent - acked <= MAX_WINDOW * MSS
    assert burst == FIRST_WINDOW
    assert waits_s and waits_s[0] >= MIN_RTO_S
    assert report["counts"]["hide_sacks"]["hidden"] > 0


def check_frames(report: dict[str, Any], lately_s: float) -> None:
    """Each segment of the first flow must have what remained of it, as its sender knew `lately_s` before."""
    frames = [Frame(*frame) for frame in report["frames"] if frame[2] == FIRST_CPORT]
    first = next(frame.number for frame in frames if frame.leaves and frame.payload < 0)
    acks: list[tuple[float, int]] = [(0.0, 0)]
    sent, again, segments = 0, 0, 0
    for t_s, leaves, _, number, payload, identification in frames:
        offset = (number - first) % 2**32
        if not leaves:
            if offset <= LONG and offset >= acks[-1][1]:
                acks.append((t_s, offset))
            continue
        if payload <= 0:
            continue
        segments += 1
        again += offset < sent
        sent = max(sent, offset + payload)
        assert identification in possible(acks, t_s, LONG, lately_s), f"segment {segments} at byte {offset}"
    assert sent == LONG
    assert segments >= LONG / 1460
    assert again > 0, "nothing was lost, so retransmissions were not tested"
    assert report["retransmitted"][0] == again
    assert report["counts"]["stamp"]["stamped"] >= segments


def test_short_flows_overtake_a_long_one_at_the_bottleneck() -> None:
    flows = (LONG, SHORT, SHORTS, 0.12)
    check_completions(*(run(discipline, 24, flows)["completed_s"] for discipline in ("pfabric", "fifo")))


def test_short_flows_overtake_without_priority_dropping() -> None:
    """Both windows fit into the queue. The long flow stays in a later band until 1.8 MB remain, for 3.5 s."""
    flows = (2 * LONG, SHORT, SHORTS, 0.12)
    fifo = run("fifo", 40, flows)["completed_s"]
    for discipline in ("pfabric_scheduling", "pfabric_bands"):
        check_completions(run(discipline, 40, flows)["completed_s"], fifo)


def test_short_flows_lose_nothing_where_packets_are_dropped_by_rank_alone() -> None:
    """Packets leave in order of arrival, so a short one waits for 8 others; but it pushes a long flow's out
    of a full queue, so no short flow waits for a timeout, as some do where the newcomer is dropped."""
    flows = (LONG, SHORT, SHORTS, 0.12)
    ranked, fifo = (run(name, 8, flows)["completed_s"] for name in ("pfabric_dropping", "fifo"))
    waiting_s = 8 * 1514 * 8 / 10e6
    assert statistics.median(ranked[1:]) < 2 * (alone_s(SHORT) + waiting_s)
    assert sum(ranked[1:]) < sum(fifo[1:])


def alone_s(size: int) -> float:
    """Return the time of a short flow alone: 14 packets to serialise, and 10 ms of delay."""
    return (size + 14 * 54) * 8 / 10e6 + 0.0101


def check_completions(ranked: list[float], fifo: list[float]) -> None:
    assert statistics.median(ranked[1:]) < 1.5 * alone_s(SHORT)
    assert statistics.median(ranked[1:]) < 0.7 * statistics.median(fifo[1:])
