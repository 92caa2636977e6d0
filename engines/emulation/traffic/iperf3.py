"""iperf3 as traffic source: one server and one client process per flow.

Properties of iperf3 3.12: with -J it exits with 0 even if it could not connect, and reports the error in the
JSON. A client that receives SIGTERM still writes its complete JSON and notifies its server, which then ends
too. Goodput comes from sock_diag.py instead.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from common.errors import DeadlineError, HostUnfitError, RunError
from engines.emulation.hosts import processes
from engines.emulation.hosts.processes import Process
from engines.emulation.kernel.namespaces import HostRef, map_in_netns, sysctl_path
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.traffic.driver import Delivered, flow_name
from model.congestion import kernel_name
from model.flows import PlannedFlow
from model.result import NO_VALUE

STOPPED_BY_US = (
    "interrupt - the client has terminated",
    "the client has terminated",
    "interrupt - the server has terminated",
    "the server has terminated",
)
ADVICE = (
    "; iperf3 sends as soon as it is connected, which can keep others of its server from connecting: choose "
    "--traffic native"
)
SYSCTL_CC = "net.ipv4.tcp_congestion_control"
CONNECT_TIMEOUT_S = 10
SERVERS_S, GRACE_S, POLL_S = 15.0, 5.0, 0.05


def server_argv(program: str, flow: PlannedFlow) -> tuple[str, ...]:
    """Return a command for one test without interval reports, whose timers cost CPU time."""
    return (program, "-4", "-s", "-1", "-p", str(flow.port), "-i", "0", "-J")


def client_argv(program: str, flow: PlannedFlow, seconds: float, write_bytes: int = 0) -> tuple[str, ...]:
    """Return the client's command. iperf3 needs whole seconds, so `seconds` is rounded up.

    The data connection comes from `cport`, iperf3's control connection from an ephemeral port (32768 and up).
    A `cport` cannot be used again in the same namespace within a minute: it is in TIME_WAIT, and iperf3 binds
    it without SO_REUSEADDR. The congestion control is set on both ends' data sockets. The client writes
    `write_bytes` at a time; 0 means iperf3's default of 128 KiB.
    """
    return (
        *(program, "-4", "-c", flow.dst_ip, "-p", str(flow.port)),
        *("-B", flow.src_ip, "--cport", str(flow.cport)),
        *("-t", str(max(1, -int(-seconds // 1))), "-C", kernel_name(flow.cc), "-i", "0"),
        *("--connect-timeout", str(CONNECT_TIMEOUT_S * 1000), "-J"),
        *(("--dscp", str(flow.dscp)) if flow.dscp else ()),
        *(("-l", str(write_bytes)) if write_bytes else ()),
    )


def parse_report(text: str) -> Delivered:
    """Decode the JSON of a client or a server. Raises ValueError for other text."""
    try:
        document: dict[str, Any] = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {text[:80]!r}") from error
    try:
        received: Mapping[str, Any] = document["end"].get("sum_received", {})
        seconds, octets = float(received.get("seconds", 0.0)), int(received.get("bytes", 0))
        return Delivered(octets, str(document.get("error", "")), seconds)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"not a report of iperf3 ({error!r}): {text[:80]!r}") from error


def delivered(client: Delivered, server: Delivered, stopped: bool) -> Delivered:
    """Combine both ends' reports; messages about our own stop are not errors."""
    errors = {client.error, server.error} - {"", *(STOPPED_BY_US if stopped else ())}
    return Delivered(server.received_bytes or client.received_bytes, "; ".join(sorted(errors)))


def mptcp_library() -> Path:
    """Return the library that `mptcpize run` preloads to turn TCP sockets into MPTCP sockets.

    Preloading it directly saves an exec per process. Raises HostUnfitError if it is not installed.
    """
    for folder in (Path("/usr/lib"), Path("/usr/lib64"), Path("/usr/local/lib")):
        found = [*folder.glob("mptcpize/libmptcpwrap.so*"), *folder.glob("*/mptcpize/libmptcpwrap.so*")]
        if found:
            return min(found)
    raise HostUnfitError("libmptcpwrap.so was not found; run `apt-get install mptcpize`")


def iperf3_program() -> str:
    """Return the absolute path of iperf3. Raises HostUnfitError if it is not installed."""
    program = shutil.which("iperf3")
    if program is None:
        raise HostUnfitError("iperf3 was not found; run `apt-get install iperf3`")
    return program


def prefer_congestion_control(wanted: Mapping[HostRef, str]) -> bool:
    """Set each host's default congestion control, by the kernel's name, for SYNs and accepted sockets too.

    Returns False if the kernel refuses (EPERM: some kernels restrict e.g. cubic); then only `iperf3 -C` sets
    it. Raises HostUnfitError if this kernel does not have it.
    """
    path = sysctl_path(SYSCTL_CC)

    def write(cc: str) -> bool:
        try:
            path.write_text(cc)
        except PermissionError:
            return False
        except FileNotFoundError as error:
            available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().strip()
            hint = f"this kernel has: {available}; run `modprobe tcp_{cc}`"
            raise HostUnfitError(f"congestion control {cc} is not available; {hint}") from error
        return True

    return all(map_in_netns([(host.pid, partial(write, cc)) for host, cc in wanted.items()]))


class Iperf3Traffic:
    """A TrafficDriver. Flows last `seconds` unless stopped, which should exceed warm-up plus measurement.

    iperf3 sends as soon as it is connected, so `release` does nothing. Raw output:
    `raw`/flow-NNNN-{client,server}.{json,err}.
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
        self._hosts = hosts
        self._raw = raw
        self._seconds = seconds
        self._write_bytes = write_bytes
        self._program = iperf3_program()
        self._env = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        self._library = str(mptcp_library()) if any(flow.mptcp for flow in self._flows) else ""
        self._servers: list[Process] = []
        self._clients: list[Process] = []
        self._up_s: list[float | None] = [None] * len(self._flows)
        self._sampler = SocketSampler(list(hosts.values()))
        self._meter = ReceiveMeter(self._sampler, [(hosts[f.dst], f.seen_by_receiver) for f in flows])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            processes.end([*self._clients, *self._servers])
        finally:
            self._sampler.close()

    def open(self) -> None:
        """Start every flow's server, wait until all listen, and suspend them.

        Raises RunError if one ends, DeadlineError that names one that does not listen in time.
        """
        argvs = [server_argv(self._program, flow) for flow in self._flows]
        self._servers = self._start("server", [flow.dst for flow in self._flows], argvs)
        self._await(self._servers, lambda flow: self._waiting(flow) is not None, "listen", SERVERS_S)
        for server in self._servers:
            server.signal(signal.SIGSTOP)

    def connect(self, deadline_s: float) -> None:
        """See TrafficDriver; a flow is established when its receiver has the data connection.

        All servers are resumed at once when all clients have connected: otherwise the first flows' traffic
        would delay the start of the last. Raises CommandError if a client cannot start.
        """
        started_s = time.monotonic()
        argvs = [client_argv(self._program, flow, self._seconds, self._write_bytes) for flow in self._flows]
        self._clients = self._start("client", [flow.src for flow in self._flows], argvs)
        # The control connection waits to be accepted.
        self._await(self._clients, lambda flow: bool(self._waiting(flow)), "reach their servers", deadline_s)
        for server in self._servers:
            server.signal(signal.SIGCONT)
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
                    f"{deadline_s:.0f} s, the first from {missing.src} to {missing.dst}{ADVICE}"
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
        """Raise RunError if an iperf3 process has ended early."""
        for flow, *ends in zip(self._flows, self._clients, self._servers, strict=True):
            for process in ends:
                if process.poll() is not None:
                    raise RunError(
                        f"{flow_name(flow)} ended early: {_error_of(process)}; {process.describe()}"
                    )

    def stop(self) -> list[Delivered]:
        """End the flows now, then collect.

        Clients receive SIGTERM and notify their servers. Servers receive SIGTERM too if that notification
        is delayed in a long queue. Raises RunError that names the first flow without data, and why.
        """
        processes.end(self._clients, GRACE_S)
        processes.wait(self._servers, GRACE_S)
        processes.end(self._servers, GRACE_S)
        ends = zip(self._clients, self._servers, strict=True)
        found = [delivered(_read(client), _read(server), stopped=True) for client, server in ends]
        empty = [i for i, end in enumerate(found) if end.received_bytes == 0]
        if empty:
            others = f" (and {len(empty) - 1} others)" if len(empty) > 1 else ""
            why = found[empty[0]].error or "iperf3 reported no error"
            raise RunError(f"{flow_name(self._flows[empty[0]])}{others} delivered no data: {why}")
        return found

    def _await(
        self, started: list[Process], ready: Callable[[PlannedFlow], bool], what: str, deadline_s: float
    ) -> None:
        end_s = time.monotonic() + deadline_s
        waiting = list(zip(self._flows, started, strict=True))
        while waiting:
            for flow, process in waiting:
                if process.poll() is not None:
                    raise RunError(f"{flow_name(flow)}: {_error_of(process)}; {process.describe()}")
            waiting = [(flow, process) for flow, process in waiting if not ready(flow)]
            if not waiting:
                return
            if time.monotonic() > end_s:
                flow, process = waiting[0]
                raise DeadlineError(
                    f"{len(waiting)} of {len(self._flows)} iperf3 did not {what} within {deadline_s:g} s; "
                    f"{flow_name(flow)}: {process.describe()}{ADVICE}"
                )
            time.sleep(processes.POLL_S)

    def _waiting(self, flow: PlannedFlow) -> int | None:
        """Return how many connections the flow's server has to accept; None if it does not listen."""
        listener = self._sampler.listener(self._hosts[flow.dst], flow.dst_ip, flow.port)
        return None if listener is None else listener.receive_queue

    def _start(self, role: str, hosts: Sequence[str], argvs: Sequence[tuple[str, ...]]) -> list[Process]:
        programs = []
        for flow, host, argv in zip(self._flows, hosts, argvs, strict=True):
            out, err = (self._raw / f"flow-{flow.flow:04d}-{role}.{end}" for end in ("json", "err"))
            env = {**self._env, "LD_PRELOAD": self._library} if flow.mptcp else self._env
            programs.append(Process(self._hosts[host], argv, out, err, env))
        processes.start(programs)
        return programs


def _read(process: Process) -> Delivered:
    """Return the report of an ended process; if it wrote none, return a report with an error."""
    try:
        return parse_report(process.stdout.read_text())
    except ValueError as error:
        return Delivered(0, f"no iperf3 report ({error}); {process.describe()}")


def _error_of(process: Process) -> str:
    report = _read(process)
    return report.error or f"iperf3 finished its test of {report.seconds:.0f} s"
