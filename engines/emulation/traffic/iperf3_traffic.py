"""iperf3 as a TrafficDriver: a server and a client process per flow; goodput is read by INET_DIAG."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from common.errors import DeadlineError
from engines.emulation.kernel.netns import HostRef
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.traffic.driver import Delivered
from engines.emulation.traffic.iperf3 import Iperf3Driver, Iperf3Flow
from model.congestion import kernel_name
from model.flows import PlannedFlow
from model.result import NO_VALUE

POLL_S = 0.05


def iperf3_flow(flow: PlannedFlow, hosts: Mapping[str, HostRef]) -> Iperf3Flow:
    """Return the iperf3 form of a planned flow."""
    ends = (hosts[flow.src], hosts[flow.dst], flow.src_ip, flow.dst_ip, flow.port, flow.cport)
    return Iperf3Flow(flow.flow, *ends, kernel_name(flow.cc), flow.mptcp, flow.dscp)


class Iperf3Traffic:
    """A TrafficDriver. Flows last `seconds` unless stopped; raw output goes below `raw`.

    iperf3 sends as soon as it is connected, so `release` does nothing.
    """

    def __init__(
        self,
        flows: Sequence[PlannedFlow],
        hosts: Mapping[str, HostRef],
        raw: Path,
        *,
        seconds: float,
        write_bytes: int = 0,
    ) -> None:
        self._flows = tuple(flows)
        self._sampler = SocketSampler(list(hosts.values()))
        self._meter = ReceiveMeter(self._sampler, [(hosts[f.dst], f.seen_by_receiver) for f in flows])
        ends = [iperf3_flow(flow, hosts) for flow in flows]
        self._iperf3 = Iperf3Driver(ends, self._sampler, raw, seconds=seconds, write_bytes=write_bytes)
        self._up_s: list[float | None] = [None] * len(self._flows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._iperf3.__exit__()
        finally:
            self._sampler.close()

    def open(self) -> None:
        self._iperf3.start_servers()

    def connect(self, deadline_s: float) -> None:
        """See TrafficDriver; a flow is established when its receiver has the data connection."""
        started_s = time.monotonic()
        self._iperf3.start_clients(deadline_s)
        while True:
            now = time.monotonic()
            for i, received in enumerate(self.received()):
                if received is not None and self._up_s[i] is None:
                    self._up_s[i] = now - started_s
            self.check()
            if None not in self._up_s:
                return
            if now - started_s > deadline_s:
                missing = self._flows[self._up_s.index(None)]
                raise DeadlineError(
                    f"{self._up_s.count(None)} of {len(self._flows)} flows had no connection after "
                    f"{deadline_s:.0f} s, the first from {missing.src} to {missing.dst}"
                )
            time.sleep(POLL_S)

    def up_s(self) -> list[float]:
        return [NO_VALUE if seconds is None else seconds for seconds in self._up_s]

    def release(self) -> None:
        """Do nothing: iperf3 has already started."""

    def received(self) -> list[int | None]:
        return self._meter.sample()

    def started_s(self) -> list[float]:
        """Return 0 for all flows: they start with the release or before."""
        return [0.0] * len(self._flows)

    def completed_s(self) -> list[float]:
        """Return no values: iperf3's flows have no size."""
        return [NO_VALUE] * len(self._flows)

    def retransmitted(self) -> list[int | None]:
        """Return no values, as no flow completes."""
        return [None] * len(self._flows)

    def check(self) -> None:
        self._iperf3.check()

    def stop(self) -> list[Delivered]:
        return [Delivered(o.flow.flow, o.received_bytes, o.error) for o in self._iperf3.stop()]
