"""Swift (Kumar et al., SIGCOMM 2020): holds the round-trip time at a target that grows as windows shrink.

The paper sets delays in microseconds, for one fabric. Here they are shares of the flow's lowest round-trip
time, because links of any length may be simulated or run. A flow that never saw empty queues aims too high.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from ccp import Algorithm, Flow, Report

AI, BETA, MAX_MDF = 1.0, 0.8, 0.5
"""Packets per round trip, and decreases: algorithm 1; the values of htsim's Swift, as the paper has none."""
BASE = 1.25
"""The base target, in lowest round-trip times (section 3.5: it covers the path without competing flows)."""
FS_RANGE = 1.0
"""The most that scaling by flows adds, in lowest round-trip times (section 3.5)."""
FS_MIN_PKTS, FS_MAX_PKTS = 0.1, 100.0
"""Windows at which scaling by flows is greatest, and ends (section 3.5; values of htsim's Swift)."""
RETX_RESET_THRESHOLD = 5
"""Timeouts in a row that leave the smallest window: algorithm 1; the value of htsim's Swift."""
MIN_PKTS = 2.0
"""The paper paces windows below one packet. The datapath has none below two."""
NO_RTT = 2**32 - 1


def target_us(cwnd: float, base_us: float) -> float:
    """Return the target delay of a window in packets (section 3.5, without scaling by hops: `base_us` is of
    the flow's own path)."""
    alpha = FS_RANGE / (1 / math.sqrt(FS_MIN_PKTS) - 1 / math.sqrt(FS_MAX_PKTS))
    beta = -alpha / math.sqrt(FS_MAX_PKTS)
    scaling = max(0.0, min(alpha / math.sqrt(cwnd) + beta, FS_RANGE))
    return base_us * (BASE + scaling)


@dataclass
class SwiftState:
    cwnd: float
    """In packets."""
    timeouts: int = 0
    """In a row."""
    cut_us: int = -(2**62)


class Swift(Algorithm):
    program = """
acked: volatile = 0
lost: volatile = 0
timeout: volatile = 0
rtt_us: report = infinity
base_us: report = infinity

acked += Ack.bytes_acked
lost += Ack.lost_pkts_sample
timeout = max(timeout, Flow.was_timeout)
rtt_us = Flow.rtt_sample_us if Flow.rtt_sample_us < 4294967295 else rtt_us
base_us = min(base_us, Flow.rtt_sample_us)
if Ack.lost_pkts_sample > 0 or Flow.was_timeout:
    Micros = 0
    report()
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.state = SwiftState(flow.cwnd_bytes / flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        if report.rtt_us >= NO_RTT:
            return
        state: SwiftState = flow.state
        may_decrease = report.t_us - state.cut_us >= report.rtt_us  # once per round trip
        before, factor = state.cwnd, 1.0
        target = target_us(state.cwnd, report.base_us)
        state.timeouts = state.timeouts + 1 if report.timeout else 0
        if state.timeouts >= RETX_RESET_THRESHOLD:
            state.cwnd = MIN_PKTS
        elif report.timeout or report.lost:
            factor = 1 - MAX_MDF
        elif report.rtt_us < target:
            state.cwnd += AI * report.acked / flow.mss / state.cwnd
        else:
            factor = max(1 - BETA * (report.rtt_us - target) / report.rtt_us, 1 - MAX_MDF)
        if may_decrease:
            state.cwnd *= factor
        state.cwnd = max(state.cwnd, MIN_PKTS)
        if state.cwnd < before:
            state.cut_us = report.t_us
        flow.set(cwnd_bytes=state.cwnd * flow.mss)
