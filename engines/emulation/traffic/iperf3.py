"""iperf3 as traffic source: one server and one client process per flow.

Pure functions come first (argv, JSON), then `Iperf3Driver`. Properties of iperf3 3.12: with -J it exits with
0 even if it could not connect, and reports the error in the JSON. A client that receives SIGTERM still writes
its complete JSON and notifies its server, which then ends too. Goodput comes from sock_diag.py instead.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

from common.errors import DeadlineError, HostUnfitError, RunError
from engines.emulation.hosts import processes
from engines.emulation.hosts.processes import Command, Process
from engines.emulation.kernel.namespaces import HostRef, map_in_netns, sysctl_path
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.traffic.driver import Delivered
from model.congestion import kernel_name
from model.flows import PlannedFlow
from model.result import NO_VALUE

STOPPED_BY_US = (
    "interrupt - the client has terminated",
    "the client has terminated",
    "interrupt - the server has terminated",
    "the server has terminated",
)
SYSCTL_CC = "net.ipv4.tcp_congestion_control"
CONNECT_TIMEOUT_S = 10


@dataclass(frozen=True)
class Iperf3Flow:
    """One flow. `port` is free on the server, `cport` on the client; the data connection comes from
    `cport`, iperf3's control connection from an ephemeral port (32768 and up). Do not use a `cport` again
    in the same namespace within a minute: it is in TIME_WAIT, and iperf3 binds it without SO_REUSEADDR.
    `cc` is the kernel's name of the congestion control, `dscp` the class of service of its data connection,
    both ways."""

    flow: int
    client: HostRef
    server: HostRef
    client_ip: str
    server_ip: str
    port: int
    cport: int
    cc: str = "reno"
    mptcp: bool = False
    dscp: int = 0

    def __str__(self) -> str:
        source = f"{self.client.name} {self.client_ip}:{self.cport}"
        return f"flow {self.flow} ({source} -> {self.server.name} {self.server_ip}:{self.port})"


@dataclass(frozen=True)
class Report:
    """Report of one iperf3 process. Bytes are payload over the whole connection, 0 if this side does not
    know them; `error` is iperf3's text or empty."""

    seconds: float
    sent_bytes: int
    received_bytes: int
    retransmits: int
    sender_cc: str
    receiver_cc: str
    local_port: int
    error: str


@dataclass(frozen=True)
class Outcome:
    """A finished flow, from both ends' reports: bytes at each end, and retransmitted segments."""

    flow: Iperf3Flow
    seconds: float
    sent_bytes: int
    received_bytes: int
    retransmits: int
    cc: str
    error: str


def server_argv(program: str, flow: Iperf3Flow) -> tuple[str, ...]:
    """Return a command for one test without interval reports, whose timers cost CPU time."""
    return (program, "-4", "-s", "-1", "-p", str(flow.port), "-i", "0", "-J")


def client_argv(program: str, flow: Iperf3Flow, seconds: float, write_bytes: int = 0) -> tuple[str, ...]:
    """Return the client's command. iperf3 needs whole seconds, so `seconds` is rounded up.

    The congestion control is set on both ends' data sockets. The client writes `write_bytes` at a time; 0
    means iperf3's default of 128 KiB.
    """
    return (
        *(program, "-4", "-c", flow.server_ip, "-p", str(flow.port)),
        *("-B", flow.client_ip, "--cport", str(flow.cport)),
        *("-t", str(max(1, -int(-seconds // 1))), "-C", flow.cc, "-i", "0"),
        *("--connect-timeout", str(CONNECT_TIMEOUT_S * 1000), "-J"),
        *(("--dscp", str(flow.dscp)) if flow.dscp else ()),
        *(("-l", str(write_bytes)) if write_bytes else ()),
    )


def parse_report(text: str) -> Report:
    """Decode the JSON of a client or a server. Raises ValueError for other text."""
    try:
        document: dict[str, Any] = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {text[:80]!r}") from error
    try:
        return _report_of(document)
    except (AttributeError, IndexError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"not a report of iperf3 ({error!r}): {text[:80]!r}") from error


def _report_of(document: Mapping[str, Any]) -> Report:
    end: Mapping[str, Any] = document["end"]
    sent: Mapping[str, Any] = end.get("sum_sent", {})
    received: Mapping[str, Any] = end.get("sum_received", {})
    connected = document["start"]["connected"]
    return Report(
        seconds=float(received.get("seconds", 0.0)),
        sent_bytes=int(sent.get("bytes", 0)),
        received_bytes=int(received.get("bytes", 0)),
        retransmits=int(sent.get("retransmits", 0)),
        sender_cc=str(end.get("sender_tcp_congestion", "")),
        receiver_cc=str(end.get("receiver_tcp_congestion", "")),
        local_port=int(connected[0]["local_port"]) if connected else 0,
        error=str(document.get("error", "")),
    )


def outcome(flow: Iperf3Flow, client: Report, server: Report, stopped: bool) -> Outcome:
    """Combine both ends' reports; messages about our own stop are not errors."""
    errors = {client.error, server.error} - {"", *(STOPPED_BY_US if stopped else ())}
    return Outcome(
        flow=flow,
        seconds=server.seconds or client.seconds,
        sent_bytes=client.sent_bytes,
        received_bytes=server.received_bytes or client.received_bytes,
        retransmits=client.retransmits,
        cc=client.sender_cc,
        error="; ".join(sorted(errors)),
    )


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


class Iperf3Driver:
    """Runs all flows of one point: `start_servers`, `start_clients`, then `stop` (or `finish`).

    `seconds` should exceed warm-up plus measurement; `stop` ends the flows early and cleanly. Leaving the
    context ends every process. Raw output: `raw`/flow-NNNN-{client,server}.{json,err}.
    """

    def __init__(
        self,
        flows: Sequence[Iperf3Flow],
        sampler: SocketSampler,
        raw: Path,
        *,
        seconds: float,
        write_bytes: int = 0,
    ) -> None:
        self._flows = tuple(flows)
        self._sampler = sampler
        self._raw = raw
        self._seconds = seconds
        self._write_bytes = write_bytes
        self._program = iperf3_program()
        self._env = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        self._library = str(mptcp_library()) if any(flow.mptcp for flow in self._flows) else ""
        self._servers: list[Process] = []
        self._clients: list[Process] = []
        self._stopped = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        processes.end([*self._clients, *self._servers])

    def start_servers(self, deadline_s: float = 15.0) -> None:
        """Start every flow's server, wait until all listen, and suspend them.

        Raises RunError if one ends, DeadlineError that names one that does not listen in time.
        """
        argvs = [server_argv(self._program, flow) for flow in self._flows]
        hosts = [flow.server for flow in self._flows]
        self._servers = processes.start(self._commands("server", hosts, argvs))
        self._await(self._servers, self._listens, "listen", deadline_s)
        for server in self._servers:
            server.signal(signal.SIGSTOP)

    def start_clients(self, deadline_s: float = 30.0) -> None:
        """Start every flow's client, wait until all have connected, then resume all servers at once.

        Otherwise the first flows' traffic would delay the start of the last. Raises CommandError if a client
        cannot start, RunError if one ends, DeadlineError that names one whose connection did not reach its
        server in time.
        """
        wanted = (self._seconds, self._write_bytes)
        argvs = [client_argv(self._program, flow, *wanted) for flow in self._flows]
        hosts = [flow.client for flow in self._flows]
        self._clients = processes.start(self._commands("client", hosts, argvs))
        self._await(self._clients, self._knocked, "reach their servers", deadline_s)
        for server in self._servers:
            server.signal(signal.SIGCONT)

    def check(self) -> None:
        """Raise RunError if an iperf3 process has ended early; call it periodically while flows run."""
        for flow, *ends in zip(self._flows, self._clients, self._servers, strict=True):
            for process in ends:
                if process.poll() is not None:
                    raise RunError(f"{flow} ended early: {_error_of(process)}; {process.describe()}")

    def finish(self, deadline_s: float) -> list[Outcome]:
        """Wait until the flows end on their own, then collect. Raises DeadlineError after `deadline_s`,
        RunError as `stop`."""
        running = processes.wait([*self._clients, *self._servers], deadline_s)
        if running:
            raise DeadlineError(
                f"{len(running)} iperf3 processes did not end within {deadline_s:g} s: "
                f"{running[0].describe()}"
            )
        return self._outcomes()

    def stop(self, grace_s: float = 5.0) -> list[Outcome]:
        """End the flows now, then collect.

        Clients receive SIGTERM and notify their servers. Servers receive SIGTERM too if that notification
        is delayed in a long queue. Raises RunError that names the first flow without data, and why.
        """
        self._stopped = True
        processes.end(self._clients, grace_s)
        processes.wait(self._servers, grace_s)
        processes.end(self._servers, grace_s)
        return self._outcomes()

    def _await(
        self, started: list[Process], ready: Callable[[Iperf3Flow], bool], what: str, deadline_s: float
    ) -> None:
        end_s = time.monotonic() + deadline_s
        waiting = list(zip(self._flows, started, strict=True))
        while waiting:
            for flow, process in waiting:
                if process.poll() is not None:
                    raise RunError(f"{flow}: {_error_of(process)}; {process.describe()}")
            waiting = [(flow, process) for flow, process in waiting if not ready(flow)]
            if not waiting:
                return
            if time.monotonic() > end_s:
                flow, process = waiting[0]
                raise DeadlineError(
                    f"{len(waiting)} of {len(self._flows)} iperf3 did not {what} within {deadline_s:g} s; "
                    f"{flow}: {process.describe()}"
                )
            time.sleep(processes.POLL_S)

    def _listens(self, flow: Iperf3Flow) -> bool:
        return self._sampler.listener(flow.server, flow.server_ip, flow.port) is not None

    def _knocked(self, flow: Iperf3Flow) -> bool:
        """Return whether the control connection waits to be accepted (in the listener's receive queue)."""
        listener = self._sampler.listener(flow.server, flow.server_ip, flow.port)
        return listener is not None and listener.receive_queue > 0

    def _commands(
        self, role: str, hosts: Sequence[HostRef], argvs: Sequence[tuple[str, ...]]
    ) -> list[Command]:
        commands = []
        for flow, host, argv in zip(self._flows, hosts, argvs, strict=True):
            out, err = (self._raw / f"flow-{flow.flow:04d}-{role}.{end}" for end in ("json", "err"))
            env = {**self._env, "LD_PRELOAD": self._library} if flow.mptcp else self._env
            commands.append(Command(host, argv, out, err, env))
        return commands

    def _outcomes(self) -> list[Outcome]:
        ends = zip(self._flows, self._clients, self._servers, strict=True)
        outcomes = [self._outcome(flow, client, server) for flow, client, server in ends]
        empty = [o for o in outcomes if o.received_bytes == 0]
        if empty:
            others = f" (and {len(empty) - 1} others)" if len(empty) > 1 else ""
            raise RunError(
                f"{empty[0].flow}{others} delivered no data: {empty[0].error or 'iperf3 reported no error'}"
            )
        return outcomes

    def _outcome(self, flow: Iperf3Flow, client: Process, server: Process) -> Outcome:
        return outcome(flow, _read(client), _read(server), self._stopped)


def _read(process: Process) -> Report:
    """Return the report of an ended process; if it wrote none, return a report with an error."""
    try:
        return parse_report(process.stdout.read_text())
    except (ValueError, KeyError) as error:
        return Report(0.0, 0, 0, 0, "", "", 0, f"no iperf3 report ({error}); {process.describe()}")


def _error_of(process: Process) -> str:
    report = _read(process)
    return report.error or f"iperf3 finished its test of {report.seconds:.0f} s"


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
