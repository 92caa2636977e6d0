"""BBR version 1 (Cardwell et al., CACM 2017): paces at the measured rate of the bottleneck."""

from __future__ import annotations

from dataclasses import dataclass, field

from ccp import Algorithm, Flow, Report

HIGH_GAIN = 2.885
"""2 / ln 2: doubles the rate each round trip."""
CYCLE = (1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
"""Pacing gains of PROBE_BW, one per round trip."""
CWND_GAIN = 2.0
FILTER_ROUNDS = 10
GROWTH, FULL_ROUNDS = 1.25, 3
"""The pipe is full when the rate grew by less than 25 % in three rounds."""
PROBE_RTT_US, PROBE_RTT_EVERY_US = 200_000, 10_000_000
NO_RTT = 2**32 - 1
STARTUP, DRAIN, PROBE_BW, PROBE_RTT = "startup", "drain", "probe_bw", "probe_rtt"


@dataclass
class BbrState:
    phase: str = STARTUP
    rates: list[int] = field(default_factory=list)
    full_rate: int = 0
    rounds_without_growth: int = 0
    cycle: int = 0
    min_rtt_us: int = NO_RTT
    min_rtt_at_us: int = 0
    probe_until_us: int = 0


class Bbr(Algorithm):
    program = """
rate: volatile = 0
rtt_us: volatile = infinity
inflight: report = 0

rate = max(rate, min(Flow.rate_incoming, Flow.rate_outgoing))
rtt_us = min(rtt_us, Flow.rtt_sample_us)
inflight = Flow.bytes_in_flight
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.state = BbrState(min_rtt_at_us=flow.created_us)

    def on_report(self, flow: Flow, report: Report) -> None:
        state: BbrState = flow.state
        if not report.rate or report.rtt_us >= NO_RTT:
            return
        state.rates = [*state.rates[1 - FILTER_ROUNDS :], report.rate]
        expired = report.t_us - state.min_rtt_at_us > PROBE_RTT_EVERY_US
        if report.rtt_us <= state.min_rtt_us or (expired and state.phase == PROBE_RTT):
            state.min_rtt_us, state.min_rtt_at_us = report.rtt_us, report.t_us
        rate = max(state.rates)
        bdp_bytes = rate * state.min_rtt_us / 1e6
        self._advance(state, report, rate, bdp_bytes, expired)
        pacing, window = self._gains(state)
        cwnd = 4 * flow.mss if state.phase == PROBE_RTT else max(window * bdp_bytes, 4 * flow.mss)
        flow.set(cwnd_bytes=cwnd, rate_bps=8 * pacing * rate)

    def _advance(self, state: BbrState, report: Report, rate: int, bdp_bytes: float, expired: bool) -> None:
        if state.phase == STARTUP:
            if rate >= GROWTH * state.full_rate:
                state.full_rate, state.rounds_without_growth = rate, 0
            else:
                state.rounds_without_growth += 1
            if state.rounds_without_growth >= FULL_ROUNDS:
                state.phase = DRAIN
        elif state.phase == DRAIN and report.inflight <= bdp_bytes:
            state.phase = PROBE_BW
        elif state.phase == PROBE_BW:
            state.cycle = (state.cycle + 1) % len(CYCLE)
            if expired:
                state.phase, state.probe_until_us = PROBE_RTT, report.t_us + PROBE_RTT_US
        elif state.phase == PROBE_RTT and report.t_us > state.probe_until_us:
            state.phase, state.min_rtt_at_us = PROBE_BW, report.t_us

    def _gains(self, state: BbrState) -> tuple[float, float]:
        """Return the gains of rate and window."""
        if state.phase == STARTUP:
            return HIGH_GAIN, HIGH_GAIN
        if state.phase == DRAIN:
            return 1 / HIGH_GAIN, HIGH_GAIN
        return (CYCLE[state.cycle] if state.phase == PROBE_BW else 1.0), CWND_GAIN
