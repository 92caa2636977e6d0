"""pFabric between real hosts: the rank on every segment, and what a bottleneck does with it."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest

from engines.emulation.ranks.support import unsupported
from engines.emulation.sandbox.isolation import spawn_inside
from model.flows import FIRST_CPORT
from tests.support.scenarios.ranks import Frame

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

LONG, SHORT, SHORTS = 3_000_000, 20_000, 12
LOSSY = 8, (LONG, 400_000, 4, 0.2)
FIRST_WINDOW, MAX_WINDOW, MSS, MIN_RTO_S = 12, 15, 1460, 0.03
LATELY_S = 0.01
"""How long the kernel may take from the tap to its TCP, while another CPU sends."""


def run(discipline: str, queue_pkts: int, flows: tuple[int, int, int, float]) -> dict[str, Any]:
    if reason := unsupported():
        pytest.skip(reason)
    reports: list[dict[str, Any]] = []
    request = {"discipline": discipline, "queue_pkts": queue_pkts, "flows": list(flows)}
    target = "tests.support.scenarios.ranks:completions"
    assert spawn_inside(target, request, deadline_s=120, on_report=reports.append) == 0
    (report,) = reports
    return report


def stamp(rank: int) -> int:
    """Return the stamp of a rank, computed apart from the program: the 12 leading bits and their place."""
    shift = max(0, rank.bit_length() - 12)
    mantissa = rank >> shift
    return mantissa if mantissa < 2048 else (shift + 1) * 2048 + mantissa - 2048


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
    assert report["counts"]["stamp"]["stamped"] >= segments


def test_short_flows_overtake_a_long_one_at_the_bottleneck() -> None:
    flows = (LONG, SHORT, SHORTS, 0.12)
    check_completions(*(run(discipline, 24, flows)["completed_s"] for discipline in ("pfabric", "fifo")))


def check_completions(ranked: list[float], fifo: list[float]) -> None:
    """Alone a short flow takes 16 ms to serialise and 10 ms of delay."""
    alone_s = (SHORT + 14 * 54) * 8 / 10e6 + 0.0101
    assert statistics.median(ranked[1:]) < 1.5 * alone_s
    assert statistics.median(ranked[1:]) < 0.7 * statistics.median(fifo[1:])


def test_stamps_keep_the_order_of_ranks() -> None:
    """Checked here as well, since the test above compares stamps only."""
    ranks = sorted({*range(5000), *(2**n + d for n in range(12, 32) for d in (-1, 0, 1))})
    stamps = [stamp(rank) for rank in ranks if rank < 2**32 - 1]
    assert all(a <= b for a, b in itertools.pairwise(stamps))
    assert max(stamps) < 0xFFFF
