"""Pings on real networks: their paths by the ports' counters, their times by what the links allow."""

from __future__ import annotations

import math
import statistics
from typing import Any

import pytest

from common.errors import RunError
from engines.emulation.sandbox.isolation import spawn_inside
from tests.support.machine_noise import exact

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

FRAME_BYTES = 64 + 8 + 20 + 14
PACKET_MS = 1514 * 8 / 1000
"""Of a full-size packet at 1 Mb/s."""


def run(case: str, request: object = None) -> dict[str, Any]:
    reports: dict[str, Any] = {}
    target = f"tests.support.scenarios.pings:{case}"
    assert spawn_inside(target, request, deadline_s=60, on_report=reports.update) == 0
    return reports


@pytest.mark.parametrize(
    ("kind", "policy"), [("fat_tree", "hashed"), ("fat_tree", "ecmp"), ("dual_homed_fat_tree", "hashed")]
)
def test_pings_cross_exactly_the_ports_of_their_subflows(kind: str, policy: str) -> None:
    seen = run("idle", (kind, policy))
    assert seen["probes"] == (64 if kind == "fat_tree" else 96)
    assert set(seen["counts"]) <= {3, 4}, "one every 200 ms, for 750 ms"
    assert len(seen["counts"]) == seen["probes"]
    assert seen["lost"] == 0
    with exact():
        assert seen["crossed"] == seen["expected"]
    assert seen["bytes"] == FRAME_BYTES * sum(seen["crossed"])
    assert min(seen["excess_ms"]) > 0, "a link's delay is 1 ms"
    assert statistics.median(seen["excess_ms"]) < 3
    assert abs(statistics.median(seen["uneven_ms"])) < 1, "there and back are of one length"
    assert statistics.median(seen["gaps_ms"]) < 2 * 200 / seen["probes"] + 1, "spread over the interval"


def test_a_full_queue_is_felt() -> None:
    seen = run("full_queue", 30.0)
    assert seen["early"] == 0, "none is back after 0.3 s, and none is lost"
    drained_s = seen["start_s"] + 95 * PACKET_MS / 1000
    behind = [i for i, sent_s in enumerate(seen["sent_s"]) if sent_s < drained_s - 0.1]
    assert len(behind) >= 4
    for i in behind:
        arrived_s = seen["sent_s"][i] + seen["out_ms"][i] / 1000
        assert -0.001 < arrived_s - drained_s < 0.05, "it left when all before it had"
        assert seen["back_ms"][i] < 20, "the way back is empty"
    assert 1000 < seen["rtt_ms"][0] < 95 * PACKET_MS + 50
    assert seen["rtt_ms"][-1] < 20, "the queue has drained"


def test_a_late_answer_is_not_taken_for_anothers() -> None:
    seen = run("full_queue", 0.5)
    late = [math.isnan(rtt_ms) for rtt_ms in seen["rtt_ms"]]
    assert late[:3] == [True] * 3
    assert not late[-1]
    assert all(rtt_ms <= 500 for rtt_ms in seen["rtt_ms"] if not math.isnan(rtt_ms))
    assert seen["rtt_ms"][-1] < 20


def test_a_cut_link_loses_pings_until_it_heals() -> None:
    seen = run("cut_link")
    for sent_s, rtt_ms in zip(seen["sent_s"], seen["rtt_ms"], strict=True):
        if seen["down_s"] + 0.01 < sent_s < seen["up_s"] - 0.01:
            assert math.isnan(rtt_ms)
        elif sent_s < seen["down_s"] - 0.05 or sent_s > seen["up_s"] + 0.01:
            assert 0 < rtt_ms < 20
    assert 8 <= sum(map(math.isnan, seen["rtt_ms"])) <= 11
    assert "sending a ping to 10.0.0.2:" in seen["error"]
    assert "unreachable" in seen["error"]


def test_a_port_that_is_taken_is_named() -> None:
    with pytest.raises(RunError, match=r"binding UDP 10\.0\.0\.2:4\d+ on s1h1 for pings"):
        run("taken_port")
