"""Follow MPTCP connections of many hosts through kernel events, with one thread and one epoll.

`MptcpWatcher` has one generic netlink socket per host, in that host's namespace. It keeps a record of every
client-side connection that `accept` selects, and of its subflows. Subclasses act on them (path_manager.py);
the in-kernel path manager needs no action.
"""

from __future__ import annotations

import errno
import os
import select
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Self

from common.errors import HostUnfitError, RunError
from engines.emulation.kernel import netlink
from engines.emulation.kernel.genetlink import Family, resolve
from engines.emulation.kernel.netns import HostRef, map_in_netns, reserve_fds
from engines.emulation.mptcp import mptcp_genl
from engines.emulation.mptcp.mptcp_genl import Event, EventKind
from model.flows import AddressPair

Accept = Callable[[int, int], bool]


@dataclass(frozen=True)
class SubflowReport:
    """One subflow: its path, and when it was established and closed (monotonic s; None while open)."""

    path: AddressPair
    established_s: float
    closed_s: float | None


@dataclass(frozen=True)
class ConnectionReport:
    """One client-side connection. `requested` and `established` include the initial subflow.

    `established` counts the subflows open now, or when the connection ended. `created` counts the subflow
    commands that the kernel accepted (0 for the in-kernel path manager). `established_s` is monotonic;
    `up_s` is the time from then to the last subflow that was established. `errors` are messages, including
    those of retries.
    """

    host: str
    token: int
    path: AddressPair
    requested: int
    created: int
    established: int
    closed: int
    errors: tuple[str, ...]
    established_s: float
    up_s: float
    ended: bool
    subflows: tuple[SubflowReport, ...]

    @property
    def complete(self) -> bool:
        return self.established >= self.requested


@dataclass
class Connection:
    """The watcher's record of a connection, protected by the watcher's condition."""

    host: HostRef
    token: int
    path: AddressPair
    requested: int
    established_s: float
    created: int = 0
    ended: bool = False
    errors: list[str] = field(default_factory=list)
    opened: dict[AddressPair, float] = field(default_factory=dict)
    closed: list[SubflowReport] = field(default_factory=list)

    def report(self) -> ConnectionReport:
        live = [SubflowReport(path, t_s, None) for path, t_s in self.opened.items()]
        subflows = tuple(sorted([*live, *self.closed], key=lambda s: s.established_s))
        return ConnectionReport(
            host=self.host.name,
            token=self.token,
            path=self.path,
            requested=self.requested,
            created=self.created,
            established=len(live),
            closed=len(self.closed),
            errors=tuple(self.errors),
            established_s=self.established_s,
            up_s=max(s.established_s for s in subflows) - self.established_s,
            ended=self.ended,
            subflows=subflows,
        )


class MptcpWatcher:
    """Follows the connections that `accept(sport, dport)` selects on all `hosts`, until closed.

    `subflows` is the number of subflows per connection, including the initial one. Raises HostUnfitError if
    this kernel has no MPTCP, RunError if a namespace cannot be entered.
    """

    def __init__(self, hosts: Sequence[HostRef], subflows: int, accept: Accept) -> None:
        family = resolve(mptcp_genl.FAMILY_NAME)
        if family is None:
            raise HostUnfitError(mptcp_genl.support().advice or "this kernel has no mptcp_pm netlink family")
        self._family: Family = family
        self._subflows = subflows
        self._accept = accept
        self._changed = threading.Condition()
        self._connections: dict[tuple[int, int], Connection] = {}
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

    def reports(self) -> tuple[ConnectionReport, ...]:
        """Return all accepted connections so far, in order of appearance. Raises RunError if the thread
        failed."""
        with self._changed:
            self._check()
            return tuple(connection.report() for connection in self._connections.values())

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
        return sum(len(c.opened) >= c.requested for c in self._connections.values())

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

    def _event(self, host: HostRef, sock: netlink.NetlinkSocket, event: Event) -> None:
        now = time.monotonic()
        if event.kind == EventKind.ESTABLISHED:
            if not event.server_side and self._accept(event.path.lport, event.path.rport):
                connection = Connection(host, event.token, event.path, self._subflows, now)
                connection.opened[event.path] = now
                self._connections[host.pid, event.token] = connection
                self._established(connection, sock, event)
            return
        known = self._connections.get((host.pid, event.token))
        if known is None:
            return
        if event.kind == EventKind.SUB_ESTABLISHED:
            known.opened[event.path] = now
        elif event.kind == EventKind.SUB_CLOSED:
            if event.path in known.opened:
                known.closed.append(SubflowReport(event.path, known.opened.pop(event.path), now))
            self._subflow_closed(known, event)
        elif event.kind == EventKind.CLOSED:
            known.ended = True

    # Hooks for subclasses. The event thread calls them with the condition held.

    def _tick(self) -> float:
        """Do what is due; return seconds until the next call, or -1 for none."""
        return -1

    def _established(self, connection: Connection, sock: netlink.NetlinkSocket, event: Event) -> None:
        """Handle an accepted connection that can take further subflows."""

    def _acknowledged(self, host: HostRef, seq: int, ack: netlink.Ack) -> None:
        """Handle the kernel's answer to a command."""

    def _subflow_closed(self, connection: Connection, event: Event) -> None:
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
