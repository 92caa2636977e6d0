"""MPTCP path managers: N subflows per connection, in user space on paths chosen by the caller.

When the client side of an accepted connection reports ESTABLISHED, it sends N-1 MPTCP_PM_CMD_SUBFLOW_CREATE.
That event means that first data was acknowledged; before, the kernel returns ENOTCONN. The kernel binds the
given local port, so with fixed client ports all 5-tuples and ECMP choices are identical in every run. Source:
net/mptcp/pm_userspace.c; needs Linux >= 5.19.

`MptcpWatcher` follows the connections of many hosts through kernel events, with one thread and one epoll: one
generic netlink socket per host, in that host's namespace.

`signal_path_manager` is for kernels (5.6 to 5.18) with only the in-kernel path manager. Every server
announces its own address with N-1 further ports (`signal` endpoints), and the peer's kernel joins one
subflow to each. Differences to PathManager: at most 8 further subflows; the kernel chooses client ports, so
ECMP choices differ between runs; all MPTCP connections get subflows, even iperf3's control connection;
failures are not retried. Source: net/mptcp/pm_netlink.c (pm_kernel.c since 6.16), MPTCP_PM_ADDR_MAX.
"""

from __future__ import annotations

import errno
import heapq
import os
import select
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

from common.errors import HostUnfitError, RunError, UsageError
from engines.emulation.kernel import mptcp_genl, netlink
from engines.emulation.kernel.mptcp_genl import EventKind, MptcpEvent, PathManagement
from engines.emulation.kernel.namespaces import HostRef, map_in_netns, set_sysctls
from engines.emulation.kernel.netlink import GenlFamily, resolve_family
from engines.emulation.kernel.proc import reserve_fds
from model.flows import AddressPair

Accept = Callable[[int, int], bool]


@dataclass
class MptcpConnection:
    """One client-side connection, protected by its watcher's condition.

    `requested` includes the initial subflow. `created` counts the subflow commands that the kernel accepted
    (0 for the in-kernel path manager). `open` are the subflows that are established now, or were when the
    connection ended; `ever` are all that were. `errors` are messages, including those of retries. Times are
    monotonic.
    """

    host: HostRef
    token: int
    path: AddressPair
    requested: int
    established_s: float
    created: int = 0
    ended: bool = False
    errors: list[str] = field(default_factory=list)
    open: set[AddressPair] = field(default_factory=set)
    ever: list[AddressPair] = field(default_factory=list)
    up_s: float = 0.0
    """Time from `established_s` to the last subflow that was established."""

    def joined(self, path: AddressPair, now_s: float) -> None:
        """Add a subflow that is established now."""
        self.open.add(path)
        self.ever.append(path)
        self.up_s = now_s - self.established_s


class MptcpWatcher:
    """Follows the connections that `accept(sport, dport)` selects on all `hosts`, until closed.

    `subflows` is the number of subflows per connection, including the initial one. Raises HostUnfitError if
    this kernel has no MPTCP, RunError if a namespace cannot be entered.
    """

    def __init__(self, hosts: Sequence[HostRef], subflows: int, accept: Accept) -> None:
        family = resolve_family(mptcp_genl.FAMILY_NAME)
        if family is None:
            raise HostUnfitError(mptcp_genl.support().advice or "this kernel has no mptcp_pm netlink family")
        self._family: GenlFamily = family
        self._subflows = subflows
        self._accept = accept
        self._changed = threading.Condition()
        self._connections: dict[tuple[int, int], MptcpConnection] = {}
        self._failure: Exception | None = None
        self._stopping = False
        self._sockets = _open_sockets(hosts, family.groups[mptcp_genl.EVENT_GROUP])
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._thread = threading.Thread(target=self._run, name="mptcp-watcher", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop following. Connections continue, but a host with the userspace path manager accepts no new
        subflow when no process listens for events. Idempotent."""
        if self._stopping:
            return
        self._stopping = True
        os.eventfd_write(self._wake, 1)
        self._thread.join(timeout=10)
        for _, sock in self._sockets.values():
            sock.close()
        os.close(self._wake)

    def reports(self) -> tuple[MptcpConnection, ...]:
        """Return copies of all accepted connections so far, in order of appearance. Raises RunError if the
        thread failed."""
        with self._changed:
            self._check()
            return tuple(
                replace(each, errors=[*each.errors], open={*each.open}, ever=[*each.ever])
                for each in self._connections.values()
            )

    def wait_all(self, connections: int, deadline_s: float) -> bool:
        """Wait until `connections` connections are complete, at most `deadline_s` seconds.

        Returns False on timeout. Then `reports()` shows which connections are incomplete; connections
        missing there fell back to TCP or never connected. Raises RunError if the thread failed.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._failure or self._complete() >= connections, deadline_s)
            self._check()
            return self._complete() >= connections

    def _complete(self) -> int:
        return sum(len(c.open) >= c.requested for c in self._connections.values())

    def _check(self) -> None:
        if self._failure is not None:
            raise RunError(f"watching MPTCP events: the thread failed: {self._failure!r}") from self._failure

    # The methods below run on the event thread only.

    def _run(self) -> None:
        try:
            with select.epoll() as poll:
                poll.register(self._wake, select.EPOLLIN)
                for fd in self._sockets:
                    poll.register(fd, select.EPOLLIN)
                while not self._stopping:
                    for fd, _ in poll.poll(self._tick()):
                        if fd == self._wake:
                            os.eventfd_read(self._wake)
                        else:
                            self._drain(*self._sockets[fd])
        except Exception as error:  # _check raises it in waiting threads
            with self._changed:
                self._failure = error
                self._changed.notify_all()

    def _drain(self, host: HostRef, sock: netlink.NetlinkSocket) -> None:
        # Keep the lock until the queue is empty: an event may precede the acknowledgement of its cause,
        # and other threads must see either both or none.
        with self._changed:
            while messages := self._receive(host, sock):
                for message in messages:
                    self._message(host, sock, message)
            self._changed.notify_all()

    def _receive(self, host: HostRef, sock: netlink.NetlinkSocket) -> list[netlink.Message]:
        while True:
            try:
                return sock.receive()
            except OSError as error:
                if error.errno != errno.ENOBUFS:
                    raise
                self._lost_events(host)

    def _lost_events(self, host: HostRef) -> None:
        for connection in self._connections.values():
            if connection.host == host:
                connection.errors.append("the kernel dropped events (ENOBUFS): counts may be too low")

    def _message(self, host: HostRef, sock: netlink.NetlinkSocket, message: netlink.Message) -> None:
        if message.kind == netlink.NLMSG_ERROR:
            self._acknowledged(host, message.seq, netlink.parse_ack(message))
        elif message.kind == self._family.kind:
            event = mptcp_genl.parse_event(message.payload)
            if event is not None:
                self._event(host, sock, event)

    def _event(self, host: HostRef, sock: netlink.NetlinkSocket, event: MptcpEvent) -> None:
        now = time.monotonic()
        if event.kind == EventKind.ESTABLISHED:
            if not event.server_side and self._accept(event.path.lport, event.path.rport):
                connection = MptcpConnection(host, event.token, event.path, self._subflows, now)
                connection.joined(event.path, now)
                self._connections[host.pid, event.token] = connection
                self._established(connection, sock, event)
            return
        known = self._connections.get((host.pid, event.token))
        if known is None:
            return
        if event.kind == EventKind.SUB_ESTABLISHED:
            known.joined(event.path, now)
        elif event.kind == EventKind.SUB_CLOSED:
            known.open.discard(event.path)
            self._subflow_closed(known, event)
        elif event.kind == EventKind.CLOSED:
            known.ended = True

    # Hooks for subclasses. The event thread calls them with the condition held.

    def _tick(self) -> float:
        """Do what is due; return seconds until the next call, or -1 for none."""
        return -1

    def _established(
        self, connection: MptcpConnection, sock: netlink.NetlinkSocket, event: MptcpEvent
    ) -> None:
        """Handle an accepted connection that can take further subflows."""

    def _acknowledged(self, host: HostRef, seq: int, ack: netlink.Ack) -> None:
        """Handle the kernel's answer to a command."""

    def _subflow_closed(self, connection: MptcpConnection, event: MptcpEvent) -> None:
        """Handle a subflow that ended or could not be established."""


def _open_sockets(hosts: Sequence[HostRef], group: int) -> dict[int, tuple[HostRef, netlink.NetlinkSocket]]:
    reserve_fds(len(hosts))
    opened: list[netlink.NetlinkSocket] = []

    def subscribe() -> netlink.NetlinkSocket:
        sock = netlink.NetlinkSocket(netlink.NETLINK_GENERIC)
        opened.append(sock)
        sock.join(group)
        return sock

    try:
        sockets = map_in_netns([(host.pid, subscribe) for host in hosts])
    except BaseException:
        for sock in opened:
            sock.close()
        raise
    return {sock.fileno(): (host, sock) for host, sock in zip(hosts, sockets, strict=True)}


PathPolicy = Callable[[MptcpEvent], Sequence[AddressPair]]

RETRY_FIRST_S = 0.1
RETRY_PORT_STEP = 251
MAX_ADDRESS_ID = 255


def ndiffports(subflows: int, stride: int = 1000) -> PathPolicy:
    """Return the policy of SIGCOMM'11: `subflows` - 1 further paths over the connection's address pair.

    Local ports are cport + i * stride; keep them out of ip_local_port_range (32768-60999).
    """

    def pairs(event: MptcpEvent) -> list[AddressPair]:
        first = event.path
        return [replace(first, lport=first.lport + i * stride) for i in range(1, subflows)]

    return pairs


@dataclass(frozen=True)
class _Attempt:
    """A subflow to open. `number` is its position among `pairs`, from 1."""

    connection: MptcpConnection
    number: int
    sock: netlink.NetlinkSocket
    path: AddressPair
    until_s: float
    tries: int = 0
    local_id: int = 0


class PathManager(MptcpWatcher):
    """Opens the further subflows of every connection that `accept(sport, dport)` selects.

    `pairs(event)` returns the paths; the default is `ndiffports(subflows)`. Both run on the event thread and
    must be fast. Create the manager before any MPTCP socket on the hosts, because a connection keeps the path
    manager that was active when it was created. A subflow that is refused, reset or lost later is retried
    from another port, until `retry_s` seconds after the connection was established. With `late`, subflows
    join at the times given to `join_at`, or one by one by `open_subflow`; `close_subflow` closes one.

    Raises HostUnfitError on a kernel without userspace path management.
    """

    def __init__(
        self,
        hosts: Sequence[HostRef],
        subflows: int,
        accept: Accept,
        pairs: PathPolicy | None = None,
        retry_s: float = 10.0,
        late: bool = False,
    ) -> None:
        available = mptcp_genl.support()
        if available.level is not PathManagement.USERSPACE or available.sysctl is None:
            raise HostUnfitError(available.advice)
        name, value = available.sysctl
        set_sysctls(hosts, {name: value, **mptcp_genl.resilience_sysctls()})
        self._pairs = pairs or ndiffports(subflows)
        self._retry_s = retry_s
        self._late = late
        self._held: dict[tuple[str, int], dict[int, _Attempt]] = {}
        self._wanted: dict[tuple[str, int], dict[int, _Attempt]] = {}
        self._closing: dict[tuple[int, int], MptcpConnection] = {}
        self._next_id: dict[int, int] = {}
        self._commands: dict[tuple[int, int], _Attempt] = {}
        self._pending: dict[tuple[int, int], _Attempt] = {}
        self._retries: list[tuple[float, int, _Attempt]] = []
        self._retry_count = 0
        super().__init__(hosts, subflows, accept)

    def join_at(self, due_s: Mapping[tuple[str, int], float]) -> None:
        """Set when further subflows join, in monotonic seconds, by client address and port. Connections that
        have ended by then are skipped."""
        with self._changed:
            for client, due in due_s.items():
                for attempt in self._held.pop(client, {}).values():
                    self._plan(due, replace(attempt, until_s=due + self._retry_s))
        os.eventfd_write(self._wake, 1)

    def open_subflow(self, client: tuple[str, int], number: int, lport: int | None = None) -> bool:
        """Open subflow `number` of a `late` connection now, by client address and port; from local port
        `lport` if its usual one may still be in TIME_WAIT.

        Returns False if the connection has ended or is not known, or if that subflow is open.
        """
        with self._changed:
            held = self._held.get(client, {})
            if number not in held or held[number].connection.ended:
                return False
            attempt = held.pop(number)
            path = attempt.path if lport is None else replace(attempt.path, lport=lport)
            now = time.monotonic()
            opening = replace(attempt, path=path, until_s=now + self._retry_s, tries=0)
            opening.connection.requested += 1
            self._wanted.setdefault(client, {})[number] = opening
            self._plan(now, opening)
        os.eventfd_write(self._wake, 1)
        return True

    def close_subflow(self, client: tuple[str, int], number: int) -> bool:
        """Close a subflow that `open_subflow` has opened. It is not retried, and can be opened again.

        The kernel gives what it had not delivered to the others, and ends it as TCP ends a connection.
        Returns False if the connection has ended or if that subflow is not open.
        """
        with self._changed:
            wanted = self._wanted.get(client, {})
            if number not in wanted or wanted[number].connection.ended:
                return False
            attempt = wanted.pop(number)
            attempt.connection.requested -= 1
            self._held.setdefault(client, {})[number] = attempt
            self._retries = [each for each in self._retries if not _is_same(each[2], attempt)]
            heapq.heapify(self._retries)
            for key, pending in list(self._pending.items()):
                if _is_same(pending, attempt):
                    del self._pending[key]
                    self._destroy(pending)
        return True

    def _destroy(self, attempt: _Attempt) -> None:
        connection = attempt.connection
        command = mptcp_genl.subflow_destroy(connection.token, attempt.path)
        seq = attempt.sock.send(self._family.kind, netlink.NLM_F_ACK, command)
        self._closing[connection.host.pid, seq] = connection

    def _plan(self, due_s: float, attempt: _Attempt) -> None:
        self._retry_count += 1
        heapq.heappush(self._retries, (due_s, self._retry_count, attempt))

    def _established(
        self, connection: MptcpConnection, sock: netlink.NetlinkSocket, event: MptcpEvent
    ) -> None:
        until_s = connection.established_s + self._retry_s
        pairs = enumerate(self._pairs(event), 1)
        attempts = [_Attempt(connection, number, sock, path, until_s) for number, path in pairs]
        self._next_id[connection.token] = 1
        if self._late:
            connection.requested = 1
            self._held[event.path.laddr, event.path.lport] = {each.number: each for each in attempts}
            return
        connection.requested = 1 + len(attempts)
        for attempt in attempts:
            self._create(attempt)

    def _create(self, planned: _Attempt) -> None:
        connection = planned.connection
        local_id = self._next_id[connection.token]
        if local_id > MAX_ADDRESS_ID:
            connection.errors.append(f"all {MAX_ADDRESS_ID} address ids are in use: no further attempts")
            return
        self._next_id[connection.token] = local_id + 1
        attempt = replace(planned, tries=planned.tries + 1, local_id=local_id)
        self._pending[connection.token, local_id] = attempt
        command = mptcp_genl.subflow_create(connection.token, attempt.path, local_id)
        seq = attempt.sock.send(self._family.kind, netlink.NLM_F_ACK, command)
        self._commands[connection.host.pid, seq] = attempt

    def _acknowledged(self, host: HostRef, seq: int, ack: netlink.Ack) -> None:
        closing = self._closing.pop((host.pid, seq), None)
        if closing is not None:
            self._destroyed(closing, ack)
            return
        attempt = self._commands.pop((host.pid, seq))
        if ack.code == 0:
            attempt.connection.created += 1
        else:
            self._failed(attempt, ack.code, ack.describe())

    def _destroyed(self, connection: MptcpConnection, ack: netlink.Ack) -> None:
        """Record a refusal, unless the subflow or its connection has ended by itself."""
        if ack.code not in (0, errno.ESRCH) and "token" not in ack.describe():
            connection.errors.append(f"closing a subflow: {ack.describe()}")

    def _subflow_closed(self, connection: MptcpConnection, event: MptcpEvent) -> None:
        attempt = self._pending.get((connection.token, event.local_id))
        if attempt is not None:
            self._failed(attempt, event.error, os.strerror(event.error) if event.error else "closed")

    def _failed(self, attempt: _Attempt, code: int, reason: str) -> None:
        """Record the failure, and schedule a retry unless the connection or its time has ended."""
        connection = attempt.connection
        self._pending.pop((connection.token, attempt.local_id), None)
        if attempt.number in self._held.get((connection.path.laddr, connection.path.lport), {}):
            return  # it was closed
        connection.errors.append(f"subflow from port {attempt.path.lport}: {reason}")
        due = time.monotonic() + RETRY_FIRST_S * attempt.tries
        if connection.ended or due > attempt.until_s:
            return
        if code != errno.ENOTCONN:
            attempt = replace(attempt, path=replace(attempt.path, lport=_other_port(attempt.path.lport)))
        self._plan(due, attempt)

    def _tick(self) -> float:
        with self._changed:
            now = time.monotonic()
            while self._retries and self._retries[0][0] <= now:
                attempt = heapq.heappop(self._retries)[2]
                if not attempt.connection.ended:
                    self._create(attempt)
            return max(0.0, self._retries[0][0] - now) if self._retries else -1


def _is_same(one: _Attempt, other: _Attempt) -> bool:
    """Return whether these are attempts to open the same subflow."""
    return one.connection is other.connection and one.number == other.number


def port_after(port: int, step: int) -> int:
    """Return the port `step` after `port`; after 65535 comes 1024."""
    return 1024 + (port - 1024 + step) % (65536 - 1024)


def _other_port(port: int) -> int:
    # The old port may be in TIME_WAIT. Port 0 does not help: the kernel treats all paths with local port 0
    # of an address as the same path ("did not match address and id").
    return port_after(port, RETRY_PORT_STEP)


MAX_EXTRA_SUBFLOWS = 8
FIRST_PORT = 9001
"""The first port at which servers of additional subflows listen."""


def signal_path_manager(
    hosts: Sequence[HostRef],
    subflows: int,
    accept: Accept,
    servers: Mapping[HostRef, str],
) -> MptcpWatcher:
    """Let the kernel join subflows, and return the watcher of connections: where `support()` returns
    IN_KERNEL there is no PathManager.

    `servers` maps hosts that accept connections to their IPv4 address. Ports FIRST_PORT ..
    FIRST_PORT + subflows - 2 must be free there. A host that is client and server also announces on the
    connections it opened, and its servers join to it. `limits` then stop both sides at N-1, but a race may
    leave a connection with fewer.

    Raises UsageError above 9 subflows, HostUnfitError without MPTCP, RunError if the kernel refuses an
    endpoint.
    """
    extra = subflows - 1
    if not 0 <= extra <= MAX_EXTRA_SUBFLOWS:
        raise UsageError(
            f"{subflows} subflows: without userspace path management (Linux >= 5.19) only "
            f"1 to {MAX_EXTRA_SUBFLOWS + 1} are possible; choose fewer --subflows"
        )
    set_sysctls(hosts, _sysctls())
    family = netlink.resolve_family(mptcp_genl.FAMILY_NAME)
    if family is None:
        raise HostUnfitError(mptcp_genl.support().advice or "this kernel has no mptcp_pm netlink family")
    watcher = MptcpWatcher(hosts, subflows, accept)
    try:
        configure_signal(family, hosts, servers, range(FIRST_PORT, FIRST_PORT + extra))
    except BaseException:
        watcher.close()
        raise
    return watcher


def configure_signal(
    family: GenlFamily, hosts: Sequence[HostRef], servers: Mapping[HostRef, str], ports: range
) -> None:
    """Set limits to len(ports) on all `hosts`, and announce `ports` on `servers`, replacing earlier
    announcements."""

    def configure(host: HostRef) -> None:
        count = struct.pack("=I", len(ports))
        limits = [
            netlink.attr(kind, count) for kind in (mptcp_genl.ATTR_RCV_ADD_ADDRS, mptcp_genl.ATTR_SUBFLOWS)
        ]
        commands = [
            netlink.genl_message(mptcp_genl.CMD_FLUSH_ADDRS, mptcp_genl.VERSION),
            netlink.genl_message(mptcp_genl.CMD_SET_LIMITS, mptcp_genl.VERSION, *limits),
        ]
        for port in ports if host in servers else ():
            address = mptcp_genl.address_attr(
                mptcp_genl.ATTR_ADDR, servers[host], port, flags=mptcp_genl.ADDR_FLAG_SIGNAL
            )
            commands.append(netlink.genl_message(mptcp_genl.CMD_ADD_ADDR, mptcp_genl.VERSION, address))
        with netlink.NetlinkSocket(netlink.NETLINK_GENERIC) as sock:
            for command in commands:
                sock.request(family.kind, command)

    def job(host: HostRef) -> None:
        try:
            configure(host)
        except OSError as error:
            raise RunError(f"announcing MPTCP ports {ports} on {host.name}: {error.strerror}") from error

    map_in_netns([(host.pid, partial(job, host)) for host in hosts])


def _sysctls() -> dict[str, str]:
    # The kernel repeats a lost announcement after add_addr_timeout, by default 120 s.
    values = {"net.mptcp.add_addr_timeout": "1", **mptcp_genl.resilience_sysctls()}
    choice = mptcp_genl.userspace_sysctl()
    if choice is not None:
        in_kernel = {mptcp_genl.SYSCTL_BY_NAME: "kernel", mptcp_genl.SYSCTL_BY_NUMBER: "0"}
        values[choice[0]] = in_kernel[choice[0]]
    return values
