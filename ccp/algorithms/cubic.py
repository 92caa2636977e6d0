"""CUBIC (RFC 9438): the window is a cubic function of the time since the last reduction."""

from __future__ import annotations

from dataclasses import dataclass

from ccp import Algorithm, Flow, Report
from ccp.algorithms.shared import HOLD, PER_ROUND_TRIP

C, BETA = 0.4, 0.7
ALPHA = 3 * (1 - BETA) / (1 + BETA)
"""Increase of the Reno-friendly estimate, packets per round trip (section 4.3)."""


@dataclass
class CubicState:
    """Windows in packets, times in seconds."""

    cwnd: float
    ssthresh: float = float("inf")
    prior: float = 0.0
    w_max: float = 0.0
    k: float = 0.0
    w_est: float = 0.0
    epoch_s: float | None = None
    hold_until_us: float = 0.0
    timed_out: bool = False


class Cubic(Algorithm):
    program = PER_ROUND_TRIP

    def on_create(self, flow: Flow) -> None:
        flow.state = CubicState(flow.cwnd_bytes / flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        state: CubicState = flow.state
        reduced = report.lost or report.marked
        state.timed_out = state.timed_out and not report.acked
        if report.timeout:
            self._restart(state, report)
        elif reduced and report.t_us > state.hold_until_us:
            self._reduce(state, report)
        elif reduced or 2 * report.inflight < state.cwnd * flow.mss:
            return  # the reduction was made, or the window is not what limits the flow
        elif state.cwnd < state.ssthresh:
            state.cwnd = min(state.cwnd + report.acked / flow.mss, max(state.ssthresh, state.cwnd))
        else:
            self._grow(state, report.acked / flow.mss, report.t_us / 1e6, report.rtt_us / 1e6)
        flow.set(cwnd_bytes=state.cwnd * flow.mss)

    def _reduce(self, state: CubicState, report: Report) -> None:
        """Section 4.6, with fast convergence (4.7)."""
        state.prior = state.cwnd
        state.w_max = state.cwnd * (1 + BETA) / 2 if state.cwnd < state.w_max else state.cwnd
        state.cwnd = state.ssthresh = max(state.cwnd * BETA, 2.0)
        state.epoch_s, state.hold_until_us = None, report.t_us + HOLD * report.rtt_us

    def _restart(self, state: CubicState, report: Report) -> None:
        """A timeout begins slow start, and growth after it begins with K = 0 (4.8). A further one before any
        acknowledgement leaves ssthresh (RFC 5681, section 3.1)."""
        if not state.timed_out:
            self._reduce(state, report)
        state.cwnd, state.w_max, state.timed_out = 1.0, 0.0, True

    def _grow(self, state: CubicState, acked: float, now_s: float, rtt_s: float) -> None:
        if state.epoch_s is None:
            state.epoch_s, state.w_est = now_s, state.cwnd
            state.w_max = max(state.w_max, state.cwnd)
            state.k = ((state.w_max - state.cwnd) / C) ** (1 / 3)
        reno_like = 1.0 if state.w_est >= state.prior else ALPHA
        state.w_est += reno_like * acked / state.cwnd
        target = C * (now_s - state.epoch_s + rtt_s - state.k) ** 3 + state.w_max
        target = min(max(target, state.cwnd), 1.5 * state.cwnd)
        state.cwnd = max(state.cwnd + (target - state.cwnd) * min(1.0, acked / state.cwnd), state.w_est)
