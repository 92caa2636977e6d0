"""Traffic of all hosts from one process: the core's FlowDriver behind the seam of driver.py.

Sockets are opened inside the hosts' namespaces; one thread connects, sends and receives for all
flows (several where they are more than one table of descriptors may hold). A flow's server reads and
discards, its client sends zeros: what iperf3 does, without the two processes a flow. Connections
are silent until `release`.
"""

from __future__ import annotations

import errno
import ipaddress
import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from common.errors import DeadlineError, HostUnfitError, RunError, UsageError
from engines.emulation.kernel.netns import HostRef, sysctl_path
from engines.emulation.traffic.driver import Delivered
from fabric._core import FlowDriver
from fabric.readings import TrafficReadings
from model.congestion import kernel_name
from model.flows import PlannedFlow

if TYPE_CHECKING:
    from fabric._core import TrafficFlow

POLL_S = 0.01
MAX_READ_BYTES, READ_S = 16 << 10, 0.02
FDS_A_FLOW = 3
SPARE_FDS = 64
"""In each table, for the loop itself and for shares of flows that are not quite even."""


class State(IntEnum):
    """`TrafficReadings.state`; the order is that of a flow's life."""

    CONNECTING = 0
    READY = 1
    RUNNING = 2
    DONE = 3
    FAILED = 4


class NativeDriver:
    """TrafficDriver over the core's FlowDriver.

    Each flow has its own transport and congestion control, and is written `write_bytes` at a time, 0 for as
    much as it may send in one turn. Flows without end are read when `read_bytes` wait: waking up for every
    packet costs more than the packet. `cpu` is where its thread runs, -1 leaves it to
    the kernel; keep it off the fabric core's. MPTCP connections have the path manager that their hosts have
    when `open` is called. Raises UsageError for flows that cannot be.
    """

    def __init__(
        self,
        flows: Sequence[PlannedFlow],
        hosts: Mapping[str, HostRef],
        *,
        cpu: int = -1,
        write_bytes: int = 0,
        read_bytes: int = 1,
    ) -> None:
        self._flows = tuple(flows)
        number = {name: position for position, name in enumerate(hosts)}
        pids = [host.pid for host in hosts.values()]
        wanted = [_checked(flow, number) for flow in self._flows]
        loops, self._fds = _tables(len(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)[1])
        try:
            self._core = FlowDriver(
                wanted, pids, cpu=cpu, loops=loops, write_bytes=write_bytes, read_bytes=read_bytes
            )
        except ValueError as error:
            raise UsageError(f"traffic: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._told("ending the flows", self._core.stop)

    def open(self) -> None:
        """Listen at every destination, bind every source. Raises HostUnfitError where this kernel or user
        may not, RunError where a port is taken or a host is gone."""
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < self._fds:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._fds, hard))
        try:
            self._core.open()
        except OSError as error:
            raise self._refusal(error) from error

    def connect(self, deadline_s: float) -> None:
        """Connect all flows; they stay silent. Raises as TrafficDriver says."""
        end_s = time.monotonic() + deadline_s
        self._told("connecting", self._core.connect)
        while True:
            state = self.readings()["state"]
            self._raise_failed(state, "cannot be connected")
            if not (waiting := np.flatnonzero(state == State.CONNECTING)).size:
                return
            if time.monotonic() > end_s:
                raise DeadlineError(
                    f"{waiting.size} of {len(self._flows)} flows are not connected within {deadline_s:g} s, "
                    f"the first is {_name(self._flows[waiting[0]])}"
                )
            time.sleep(POLL_S)

    def up_s(self) -> list[float]:
        return _floats(self.readings()["ready_s"])

    def release(self) -> None:
        self._told("releasing the flows", self._core.release)

    def received(self) -> list[int | None]:
        """As TrafficDriver says; a flow that is done has got its size."""
        readings = self.readings()
        alive = (readings["state"] != State.FAILED).tolist()
        counts: list[int] = readings["received_bytes"].tolist()
        return [count if is_alive else None for count, is_alive in zip(counts, alive, strict=True)]

    def started_s(self) -> list[float]:
        return _floats(self.readings()["started_s"])

    def completed_s(self) -> list[float]:
        return _floats(self.readings()["completed_s"])

    def check(self) -> None:
        self._raise_failed(self.readings()["state"], "died")

    def stop(self) -> list[Delivered]:
        """As TrafficDriver says. Connections are reset, what is queued is not sent any more."""
        self._told("ending the flows", self._core.stop)
        counts: list[int] = self.readings()["received_bytes"].tolist()
        return [
            Delivered(flow.flow, count, self._core.describe_failure(position))
            for position, (flow, count) in enumerate(zip(self._flows, counts, strict=True))
        ]

    def readings(self) -> TrafficReadings:
        """Everything the core knows of the flows. Raises RunError when its thread has ended by itself."""
        try:
            return self._core.readings()
        except RuntimeError as error:
            raise RunError(f"the flows' thread ended: {error}") from error

    def _told(self, what: str, action: Callable[[], None]) -> None:
        try:
            action()
        except (OSError, RuntimeError) as error:
            raise RunError(f"{what}: {error}") from error

    def _raise_failed(self, state: npt.NDArray[np.uint8], what: str) -> None:
        failed = np.flatnonzero(state == State.FAILED)
        if failed.size:
            others = f" (and {failed.size - 1} others)" if failed.size > 1 else ""
            reason = self._core.describe_failure(int(failed[0]))
            raise RunError(f"{_name(self._flows[failed[0]])}{others} {what}: {reason}")

    def _refusal(self, error: OSError) -> RunError | HostUnfitError:
        text = f"opening {len(self._flows)} flows: {error.strerror}"
        if error.errno in (errno.EPERM, errno.EACCES):
            return HostUnfitError(
                f"{text}; run as root, and see `sysctl net.ipv4.tcp_allowed_congestion_control`"
            )
        if error.errno == errno.ENOENT and "congestion" in text:
            available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split()
            missing = sorted(
                {
                    f"tcp_{kernel_name(flow.cc)}"
                    for flow in self._flows
                    if kernel_name(flow.cc) not in available
                }
            )
            return HostUnfitError(
                f"{text}; this kernel has: {' '.join(available)}; run `modprobe -a {' '.join(missing)}`"
            )
        if error.errno in (errno.EPROTONOSUPPORT, errno.ENOPROTOOPT) and "MPTCP" in text:
            return HostUnfitError(f"{text}; is MPTCP on? run `sysctl net.mptcp.enabled`")
        return RunError(text)


def worth_reading(rate_mbps: float) -> int:
    """Bytes worth a wake-up at this link rate: what the link carries in 20 ms, 16 kB at most."""
    return max(1, min(MAX_READ_BYTES, int(rate_mbps * 1e6 / 8 * READ_S)))


def _tables(flows: int, hard: int) -> tuple[int, int]:
    """How many threads, with a table of descriptors each, and the descriptors in each: at most `hard`,
    RLIMIT_NOFILE's hard limit, which holds for every table by itself and which even root may not raise
    everywhere."""
    needed = math.ceil(1.1 * FDS_A_FLOW * max(1, flows)) + SPARE_FDS
    most = needed if hard == resource.RLIM_INFINITY else min(needed, max(hard, 2 * SPARE_FDS))
    return max(1, math.ceil((needed - SPARE_FDS) / (most - SPARE_FDS))), most


def _checked(flow: PlannedFlow, number: Mapping[str, int]) -> TrafficFlow:
    for host in (flow.src, flow.dst):
        if host not in number:
            raise UsageError(f"{_name(flow)}: there is no host {host}")
    if flow.size_bytes < 0 or not (math.isfinite(flow.start_s) and flow.start_s >= 0):
        raise UsageError(f"{_name(flow)}: neither its size ({flow.size_bytes}) nor its start can be negative")
    source, destination = (int(ipaddress.IPv4Address(ip)) for ip in (flow.src_ip, flow.dst_ip))
    ends = (source, flow.cport, destination, flow.port)
    transport = (kernel_name(flow.cc), flow.mptcp)
    after = -1 if flow.after is None else flow.after
    hosts = (number[flow.src], number[flow.dst])
    return (*hosts, *ends, flow.size_bytes, flow.start_s, *transport, after, flow.dscp)


def _name(flow: PlannedFlow) -> str:
    source, destination = f"{flow.src} {flow.src_ip}:{flow.cport}", f"{flow.dst} {flow.dst_ip}:{flow.port}"
    return f"flow {flow.flow} ({source} -> {destination})"


def _floats(column: npt.NDArray[np.float64]) -> list[float]:
    values: list[float] = column.tolist()
    return values
