"""Traffic of all hosts from one process: the core's FlowDriver as a TrafficDriver.

Sockets are opened inside the hosts' namespaces. One thread connects, sends and receives for all flows, or
several threads if one table of descriptors is too small. A flow's server discards what it reads; its client
sends zeros. This is what iperf3 does, without two processes per flow. Connections are idle until `release`.
"""

from __future__ import annotations

import errno
import ipaddress
import math
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Self

import numpy as np
import numpy.typing as npt

from common.errors import DeadlineError, HostUnfitError, RunError, UsageError
from engines.emulation.kernel.namespaces import HostRef, sysctl_path
from engines.emulation.traffic.driver import Delivered, flow_name
from fabric._core import FlowDriver, TrafficFlow
from fabric.readings import TrafficReadings
from model.congestion import kernel_name
from model.flows import PlannedFlow

POLL_S = 0.01
MAX_READ_BYTES, READ_S = 16 << 10, 0.02
FDS_A_FLOW = 3
SPARE_FDS = 64
"""Spare descriptors in each table, for the event loop and for an uneven split of flows."""


class FlowState(IntEnum):
    """Values of `TrafficReadings.state`, in the order of a flow's life."""

    CONNECTING = 0
    READY = 1
    RUNNING = 2
    DONE = 3
    FAILED = 4


class NativeDriver:
    """TrafficDriver over the core's FlowDriver.

    Each flow has its own transport and congestion control. The driver writes `write_bytes` at a time; 0 means
    as much as the flow may send. It reads flows without a size when `read_bytes` are waiting, because a
    wake-up per packet costs more than the packet. `cpu` pins its thread (-1: any); keep it off the fabric
    core's CPU. `sizes_map` is the descriptor of the socket storage that gets the flows' sizes
    (congestion/ranks.py); -1 for none. MPTCP connections use the path manager that their hosts have when
    `open` is called. Raises UsageError for invalid flows, HostUnfitError if flows that follow one another
    need more descriptors than a process may have.
    """

    def __init__(
        self,
        flows: Sequence[PlannedFlow],
        hosts: Mapping[str, HostRef],
        *,
        cpu: int = -1,
        write_bytes: int = 0,
        read_bytes: int = 1,
        sizes_map: int = -1,
        rank_by_sent: bool = False,
    ) -> None:
        self._flows = tuple(flows)
        number = {name: position for position, name in enumerate(hosts)}
        pids = [host.pid for host in hosts.values()]
        wanted = [_checked(flow, number) for flow in self._flows]
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        loops, self._fds = _tables(len(wanted), hard)
        if loops > 1 and any(flow.after is not None for flow in self._flows):
            raise HostUnfitError(
                f"{len(wanted)} flows that follow one another need {loops * self._fds} open files in one "
                f"process, and the limit is {hard}; raise it (`ulimit -Hn {loops * self._fds}` as root), or "
                "choose fewer hosts or flows"
            )
        try:
            self._core = FlowDriver(
                wanted,
                pids,
                cpu=cpu,
                loops=loops,
                write_bytes=write_bytes,
                read_bytes=read_bytes,
                sizes_map=sizes_map,
                rank_by_sent=rank_by_sent,
            )
        except ValueError as error:
            raise UsageError(f"traffic: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._call("ending the flows", self._core.stop)

    def open(self) -> None:
        """Listen at every destination and bind every source.

        Raises HostUnfitError if this kernel or user is not allowed to, RunError if a port is in use or a
        host is gone.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft != resource.RLIM_INFINITY and soft < self._fds:
            resource.setrlimit(resource.RLIMIT_NOFILE, (self._fds, hard))
        try:
            self._core.open()
        except OSError as error:
            raise self._refusal(error) from error

    def connect(self, deadline_s: float) -> None:
        """Connect all flows; they stay idle. Raises as TrafficDriver."""
        end_s = time.monotonic() + deadline_s
        self._call("connecting", self._core.connect)
        while True:
            state = self.readings()["state"]
            self._raise_failed(state, "cannot be connected")
            if not (waiting := np.flatnonzero(state == FlowState.CONNECTING)).size:
                return
            if time.monotonic() > end_s:
                raise DeadlineError(
                    f"{waiting.size} of {len(self._flows)} flows did not connect within {deadline_s:g} s; "
                    f"the first is {flow_name(self._flows[waiting[0]])}"
                )
            time.sleep(POLL_S)

    def up_s(self) -> list[float]:
        return _floats(self.readings()["ready_s"])

    def release(self) -> None:
        self._call("releasing the flows", self._core.release)

    def received(self) -> list[int | None]:
        """See TrafficDriver; a completed flow has received its size."""
        readings = self.readings()
        alive = (readings["state"] != FlowState.FAILED).tolist()
        counts: list[int] = readings["received_bytes"].tolist()
        return [count if is_alive else None for count, is_alive in zip(counts, alive, strict=True)]

    def started_s(self) -> list[float]:
        return _floats(self.readings()["started_s"])

    def completed_s(self) -> list[float]:
        return _floats(self.readings()["completed_s"])

    def retransmitted(self) -> list[int | None]:
        counts: list[int] = self.readings()["retransmitted"].tolist()
        return [None if count < 0 else count for count in counts]

    def check(self) -> None:
        self._raise_failed(self.readings()["state"], "died")

    def stop(self) -> list[Delivered]:
        """See TrafficDriver. Connections are reset; queued data is not sent."""
        self._call("ending the flows", self._core.stop)
        counts: list[int] = self.readings()["received_bytes"].tolist()
        return [
            Delivered(count, self._core.describe_failure(position)) for position, count in enumerate(counts)
        ]

    def readings(self) -> TrafficReadings:
        """Return the core's state of all flows. Raises RunError if its thread has ended."""
        try:
            return self._core.readings()
        except RuntimeError as error:
            raise RunError(f"the flows' thread ended: {error}") from error

    def _call(self, what: str, action: Callable[[], None]) -> None:
        try:
            action()
        except (OSError, RuntimeError) as error:
            raise RunError(f"{what}: {error}") from error

    def _raise_failed(self, state: npt.NDArray[np.uint8], what: str) -> None:
        failed = np.flatnonzero(state == FlowState.FAILED)
        if failed.size:
            others = f" (and {failed.size - 1} others)" if failed.size > 1 else ""
            reason = self._core.describe_failure(int(failed[0]))
            raise RunError(f"{flow_name(self._flows[failed[0]])}{others} {what}: {reason}")

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
            return HostUnfitError(f"{text}; check that MPTCP is on: run `sysctl net.mptcp.enabled`")
        return RunError(text)


def worth_reading(rate_mbps: float) -> int:
    """Return the bytes worth a wake-up at this link rate: 20 ms of the link, at most 16 kB."""
    return max(1, min(MAX_READ_BYTES, int(rate_mbps * 1e6 / 8 * READ_S)))


def _tables(flows: int, hard: int) -> tuple[int, int]:
    """Return the number of threads, each with its own table of descriptors, and the size of each table.

    `hard` is RLIMIT_NOFILE's hard limit. It applies to each table, and even root cannot always raise it.
    """
    needed = math.ceil(1.1 * FDS_A_FLOW * max(1, flows)) + SPARE_FDS
    most = needed if hard == resource.RLIM_INFINITY else min(needed, max(hard, 2 * SPARE_FDS))
    return max(1, math.ceil((needed - SPARE_FDS) / (most - SPARE_FDS))), most


def _checked(flow: PlannedFlow, number: Mapping[str, int]) -> TrafficFlow:
    for host in (flow.src, flow.dst):
        if host not in number:
            raise UsageError(f"{flow_name(flow)}: host {host} does not exist")
    if flow.size_bytes < 0 or not (math.isfinite(flow.start_s) and flow.start_s >= 0):
        raise UsageError(f"{flow_name(flow)}: size ({flow.size_bytes}) and start must not be negative")
    source, destination = (int(ipaddress.IPv4Address(ip)) for ip in (flow.src_ip, flow.dst_ip))
    return TrafficFlow(
        src_host=number[flow.src],
        src_ip=source,
        src_port=flow.cport,
        dst_host=number[flow.dst],
        dst_ip=destination,
        dst_port=flow.port,
        size_bytes=flow.size_bytes,
        start_s=flow.start_s,
        cc=kernel_name(flow.cc),
        mptcp=flow.mptcp,
        after=flow.after,
        dscp=flow.dscp,
    )


def _floats(column: npt.NDArray[np.float64]) -> list[float]:
    values: list[float] = column.tolist()
    return values
