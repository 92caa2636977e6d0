"""Strict priority between real hosts: flows of the higher class get the bottleneck, with any traffic."""

from __future__ import annotations

import pytest

from engines.emulation.sandbox.isolation import spawn_inside
from tests.support.scenarios.priorities import RATE_MBPS

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

PAYLOAD = 1448 / 1514


def goodput_mbps(discipline: str, traffic: str) -> tuple[float, float]:
    """Return the goodput of the flow without a class, and of the one with DSCP 46."""
    reports: list[list[float]] = []
    request = {"discipline": discipline, "traffic": traffic}
    target = "tests.support.scenarios.priorities:goodput"
    assert spawn_inside(target, request, deadline_s=120, on_report=reports.append) == 0
    ((usual, expedited),) = reports
    return usual, expedited


@pytest.mark.parametrize("traffic", ["native", "iperf3"])
def test_the_higher_class_gets_the_link(traffic: str) -> None:
    usual, expedited = goodput_mbps("priority", traffic)
    assert expedited > 0.95 * RATE_MBPS * PAYLOAD
    assert usual < 0.05 * RATE_MBPS * PAYLOAD


def test_a_fifo_does_not_look_at_classes() -> None:
    usual, expedited = goodput_mbps("fifo", "native")
    assert 0.9 * RATE_MBPS * PAYLOAD < usual + expedited < 1.01 * RATE_MBPS * PAYLOAD
    assert usual > 0.1 * RATE_MBPS * PAYLOAD
