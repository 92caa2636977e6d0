"""Reno (RFC 5681) as in CCP: the window grows once per report and halves once per round trip with losses or
ECN marks (RFC 3168)."""

from __future__ import annotations

from dataclasses import dataclass

from ccp import Algorithm, Flow, Report
from ccp.algorithms.shared import HOLD, PER_ROUND_TRIP


@dataclass
class RenoState:
    cwnd: float
    ssthresh: float = float("inf")
    hold_until_us: float = 0.0
    timed_out: bool = False


class Reno(Algorithm):
    program = PER_ROUND_TRIP

    def on_create(self, flow: Flow) -> None:
        flow.state = RenoState(flow.cwnd_bytes)

    def on_report(self, flow: Flow, report: Report) -> None:
        state: RenoState = flow.state
        state.timed_out = state.timed_out and not report.acked
        if report.timeout:
            if not state.timed_out:  # a further one leaves it (RFC 5681, section 3.1)
                state.ssthresh = max(state.cwnd / 2, 2 * flow.mss)
            state.cwnd, state.timed_out = flow.mss, True
        elif report.lost or report.marked:
            if report.t_us > state.hold_until_us:
                state.cwnd = state.ssthresh = max(state.cwnd / 2, 2 * flow.mss)
                state.hold_until_us = report.t_us + HOLD * report.rtt_us
        elif 2 * report.inflight < state.cwnd:
            return  # the window is not what limits the flow
        elif state.cwnd < state.ssthresh:
            state.cwnd = min(state.cwnd + report.acked, max(state.ssthresh, state.cwnd))
        else:
            state.cwnd += flow.mss * report.acked / state.cwnd
        flow.set(cwnd_bytes=state.cwnd)
