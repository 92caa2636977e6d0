"""One Reno window for all flows between two hosts, which they share evenly (Narayan et al., 2018)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ccp import Algorithm, Flow, Report
from ccp.algorithms.shared import HOLD, PER_ROUND_TRIP


@dataclass
class HostPair:
    cwnd: float
    ssthresh: float = float("inf")
    hold_until_us: float = 0.0
    flows: list[Flow] = field(default_factory=list)

    def share(self) -> None:
        for flow in self.flows:
            flow.set(cwnd_bytes=self.cwnd / len(self.flows))


class Aggregate(Algorithm):
    program = PER_ROUND_TRIP

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], HostPair] = {}

    def on_create(self, flow: Flow) -> None:
        group = self._groups.setdefault((flow.source, flow.destination), HostPair(flow.cwnd_bytes))
        group.flows.append(flow)
        flow.state = group
        group.share()

    def on_report(self, flow: Flow, report: Report) -> None:
        group: HostPair = flow.state
        least = 2 * flow.mss * len(group.flows)
        if report.timeout or report.lost or report.marked:
            if report.t_us > group.hold_until_us:
                group.cwnd = group.ssthresh = max(group.cwnd / 2, least)
                group.hold_until_us = report.t_us + HOLD * report.rtt_us
        elif 2 * report.inflight < flow.cwnd_bytes:
            return  # the window is not what limits the flow
        elif group.cwnd < group.ssthresh:
            group.cwnd += report.acked
        else:
            group.cwnd += flow.mss * report.acked / group.cwnd
        group.share()

    def on_close(self, flow: Flow) -> None:
        group: HostPair = flow.state
        group.flows.remove(flow)
        group.share()
