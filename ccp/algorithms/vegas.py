"""Vegas (Brakmo and Peterson, 1995): keeps between ALPHA and BETA packets of its own in the queue."""

from __future__ import annotations

from dataclasses import dataclass

from ccp import Algorithm, Flow, Report

ALPHA, BETA = 2.0, 4.0
"""Packets."""
NO_RTT = 2**32 - 1


@dataclass
class VegasState:
    cwnd: float
    slow_start: bool = True
    cut_us: int = 0


class Vegas(Algorithm):
    program = """
acked: volatile = 0
lost: volatile = 0
timeout: volatile = 0
rtt_us: volatile = infinity
base_us: report = infinity

acked += Ack.bytes_acked
lost += Ack.lost_pkts_sample
timeout = max(timeout, Flow.was_timeout)
rtt_us = min(rtt_us, Flow.rtt_sample_us)
base_us = min(base_us, Flow.rtt_sample_us)
if Ack.lost_pkts_sample > 0 or Flow.was_timeout:
    Micros = 0
    report()
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.state = VegasState(flow.cwnd_bytes)

    def on_report(self, flow: Flow, report: Report) -> None:
        state: VegasState = flow.state
        if report.timeout or report.lost:
            if report.timeout or report.t_us - state.cut_us > report.base_us:
                state.cwnd = flow.mss if report.timeout else max(state.cwnd / 2, 2 * flow.mss)
                state.slow_start, state.cut_us = False, report.t_us
        elif report.rtt_us < NO_RTT:
            queued = state.cwnd / flow.mss * (1 - report.base_us / report.rtt_us)
            if queued > BETA:
                state.slow_start = False
                state.cwnd = max(state.cwnd - flow.mss * report.acked / state.cwnd, 2 * flow.mss)
            elif queued < ALPHA:
                state.cwnd += report.acked / 2 if state.slow_start else flow.mss * report.acked / state.cwnd
        flow.set(cwnd_bytes=state.cwnd)
