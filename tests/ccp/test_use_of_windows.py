"""Shipped algorithms let windows grow that their flows use, and no others, with any reporting interval."""

from __future__ import annotations

import pytest

from ccp.agent import Agent, FlowCreated, FlowReport
from ccp.loading import load
from tests.support.agents.ccp_model import Native, primitives

MSS, RTT_US, ROUND_TRIPS = 1000, 50, 40
EACH_ACKNOWLEDGEMENT_US = 1


def window_after(name: str, share: float, packets: int) -> float:
    """Return the window in packets after ROUND_TRIPS, each with one acknowledgement for `share` of it."""
    loaded = load(name)
    agent, window, number = Agent(loaded.algorithm, loaded.programs), packets * MSS, 1
    flow = Native(loaded.program, window=window)
    agent.handle(FlowCreated(number, 0, MSS, window, "10.0.0.1", "10.0.0.2"))
    for now_us in range(RTT_US, RTT_US * (ROUND_TRIPS + 1), RTT_US):
        acked = int(window * share)
        of_all = primitives(
            bytes_acked=acked, rtt_sample_us=RTT_US, now=now_us, report_us=EACH_ACKNOWLEDGEMENT_US
        )
        fields = flow.acknowledge(of_all, now_us, mss=MSS)
        assert fields is not None, "an acknowledgement without a report"
        for command in agent.handle(FlowReport(number, now_us, fields)):
            window = int(command.cwnd_bytes or window)
    return window / MSS


@pytest.mark.parametrize("name", ["ccp:reno", "ccp:cubic", "ccp:aggregate"])
def test_a_window_grows_whose_last_packet_is_acknowledged_with_its_first(name: str) -> None:
    """Receivers that merge segments acknowledge a small window at once: nothing is in flight then."""
    assert window_after(name, share=1.0, packets=2) > 4


@pytest.mark.parametrize("name", ["ccp:reno", "ccp:cubic", "ccp:aggregate"])
def test_a_window_stays_of_which_the_flow_uses_less_than_half(name: str) -> None:
    assert window_after(name, share=0.4, packets=20) == 20
