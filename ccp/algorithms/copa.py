"""Copa (Arun and Balakrishnan, NSDI 2018), default mode: a rate of 1 / (DELTA x queueing delay), in packets.

Reports come every quarter of a round trip, so that the direction of the window has a velocity (section 2.1).
"""

from __future__ import annotations

from dataclasses import dataclass

from ccp import Algorithm, Flow, Report

DELTA = 0.5
NO_RTT = 2**32 - 1


@dataclass
class CopaState:
    cwnd: float
    slow_start: bool = True
    velocity: float = 1.0
    direction: int = 0
    turned_us: int = 0
    looked_us: int = 0
    cwnd_before: float = 0.0


class Copa(Algorithm):
    program = """
acked: volatile = 0
timeout: volatile = 0
standing_us: volatile = infinity
base_us: report = infinity

acked += Ack.bytes_acked
timeout = max(timeout, Flow.was_timeout)
standing_us = min(standing_us, Flow.rtt_sample_us)
base_us = min(base_us, Flow.rtt_sample_us)
if Flow.was_timeout:
    Micros = 0
    report()
if Micros > Flow.report_us // 2:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.state = CopaState(flow.cwnd_bytes / flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        state: CopaState = flow.state
        if report.timeout:
            flow.state = state = CopaState(2.0)
        elif report.standing_us < NO_RTT:
            self._steer(state, report, report.acked / flow.mss)
        window_bytes = state.cwnd * flow.mss
        pace = 2 * 8e6 * window_bytes / report.standing_us if report.standing_us < NO_RTT else 0
        flow.set(cwnd_bytes=window_bytes, rate_bps=pace)

    def _steer(self, state: CopaState, report: Report, acked: float) -> None:
        queueing_us = report.standing_us - report.base_us
        # cwnd / standing RTT against 1 / (DELTA x queueing delay).
        up = state.cwnd * DELTA * queueing_us < report.standing_us
        if state.slow_start and up:
            state.cwnd += acked
            return
        state.slow_start = False
        self._set_velocity(state, report)
        change = state.velocity * acked / (DELTA * state.cwnd)
        state.cwnd = max(2.0, state.cwnd + min(change, acked) if up else state.cwnd - min(change, acked))

    def _set_velocity(self, state: CopaState, report: Report) -> None:
        """Once per round trip: double while the window keeps its direction for three round trips."""
        if report.t_us - state.looked_us < report.standing_us:
            return
        direction = 1 if state.cwnd > state.cwnd_before else -1
        if direction != state.direction:
            state.velocity, state.direction, state.turned_us = 1.0, direction, report.t_us
        elif report.t_us - state.turned_us > 3 * report.standing_us:
            state.velocity *= 2
        state.looked_us, state.cwnd_before = report.t_us, state.cwnd
