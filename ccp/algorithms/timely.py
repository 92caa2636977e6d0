"""TIMELY (Mittal et al., SIGCOMM 2015): a rate that follows the gradient of the round-trip time.

The paper sets delays and rates for one fabric: a lowest round-trip time of 20 us, 10 Gb/s. Here they are
multiples of the flow's own lowest round-trip time and of one packet in it. The paper's networks lose nothing;
after a loss this sender halves its rate, once per round trip. The paper's NICs measure delays of the network
alone. Here a delay is the lowest of a report, since what hosts add to some packets would be a gradient, too.
"""

from __future__ import annotations

from dataclasses import dataclass

from ccp import Algorithm, Flow, Report

ALPHA = 0.875
"""Weight of a new difference of round-trip times (algorithm 1); as in HPCC's simulator (SIGCOMM 2019)."""
BETA = 0.8
"""Decrease: section 4.4."""
LOW, HIGH = 1.25, 12.5
"""T_low and T_high, in lowest round-trip times: T_high is ten times T_low, as the paper's 500 and 50 us."""
HAI_AFTER, HAI = 5, 5
"""After so many increases in a row the increment is so many times as large: section 4.4."""
STEP_PKTS = 1.0
"""The increment, in packets per lowest round-trip time; 10 Mb/s in the paper."""
WINDOW = 2.0
"""The window, in round trips at the rate: it bounds what is in flight when reports are late."""
NO_RTT = 2**32 - 1


@dataclass
class TimelyState:
    rate: float = 0.0
    """Bytes per second."""
    rtt_us: float = 0.0
    """The previous."""
    difference_us: float = 0.0
    calm: int = 0
    """Reports in a row in which the gradient was not positive."""
    cut_us: int = -(2**62)


class Timely(Algorithm):
    program = """
lost: volatile = 0
timeout: volatile = 0
rtt_us: volatile = infinity
base_us: report = infinity

lost += Ack.lost_pkts_sample
timeout = max(timeout, Flow.was_timeout)
rtt_us = min(rtt_us, Flow.rtt_sample_us)
base_us = min(base_us, Flow.rtt_sample_us)
if Ack.lost_pkts_sample > 0 or Flow.was_timeout:
    report()
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.state = TimelyState()

    def on_report(self, flow: Flow, report: Report) -> None:
        state: TimelyState = flow.state
        rtt_us = report.rtt_us if report.rtt_us < NO_RTT else state.rtt_us  # a timeout measures none
        if not rtt_us:
            return
        if not state.rate:
            state.rate, state.rtt_us = 1e6 * flow.cwnd_bytes / rtt_us, rtt_us
        step = 1e6 * STEP_PKTS * flow.mss / report.base_us
        if report.lost or report.timeout:
            if report.t_us - state.cut_us >= rtt_us:
                state.rate /= 2
                state.cut_us, state.calm = report.t_us, 0
        else:
            state.rate = self._next(state, rtt_us, report.base_us, step)
        state.rate = max(state.rate, step)
        flow.set(cwnd_bytes=max(WINDOW * state.rate * rtt_us / 1e6, 2 * flow.mss), rate_bps=8 * state.rate)

    def _next(self, state: TimelyState, rtt_us: float, base_us: float, step: float) -> float:
        """Return the rate of algorithm 1."""
        state.difference_us += ALPHA * (rtt_us - state.rtt_us - state.difference_us)
        state.rtt_us = rtt_us
        gradient = state.difference_us / base_us
        if rtt_us < LOW * base_us:
            return state.rate + step
        if rtt_us > HIGH * base_us:
            return state.rate * (1 - BETA * (1 - HIGH * base_us / rtt_us))
        if gradient <= 0:
            state.calm += 1
            return state.rate + step * (HAI if state.calm >= HAI_AFTER else 1)
        state.calm = 0
        return state.rate * max(1 - BETA * gradient, 0.0)
