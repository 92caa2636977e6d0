"""A userspace MPTCP path manager: N subflows per connection, on paths chosen by the caller.

When the client side of an accepted connection reports ESTABLISHED, it sends N-1
MPTCP_PM_CMD_SUBFLOW_CREATE. That event means that first data was acknowledged; before, the kernel returns
ENOTCONN. The kernel binds the given local port, so with fixed client ports all 5-tuples and ECMP choices are
identical in every run. Source: net/mptcp/pm_userspace.c; needs Linux >= 5.19.
"""

from __future__ import annotations

import errno
import heapq
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from common.errors import HostUnfitError
from engines.emulation.kernel import netlink
from engines.emulation.kernel.netns import HostRef, set_sysctls
from engines.emulation.mptcp import mptcp_genl
from engines.emulation.mptcp.mptcp_genl import Event, PathManagement
from engines.emulation.mptcp.mptcp_watch import Accept, Connection, MptcpWatcher
from model.flows import AddressPair

PathPolicy = Callable[[Event], Sequence[AddressPair]]

RETRY_FIRST_S = 0.1
RETRY_PORT_STEP = 251
MAX_ADDRESS_ID = 255


def ndiffports(subflows: int, stride: int = 1000) -> PathPolicy:
    """Return the policy of SIGCOMM'11: `subflows` - 1 further paths over the connection's address pair.

    Local ports are cport + i * stride; keep them out of ip_local_port_range (32768-60999).
    """

    def pairs(event: Event) -> list[AddressPair]:
        first = event.path
        return [replace(first, lport=first.lport + i * stride) for i in range(1, subflows)]

    return pairs


@dataclass(frozen=True)
class _Attempt:
    """A subflow to open. `number` is its position among `pairs`, from 1."""

    connection: Connection
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
        self._closing: dict[tuple[int, int], Connection] = {}
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

    def _established(self, connection: Connection, sock: netlink.NetlinkSocket, event: Event) -> None:
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

    def _destroyed(self, connection: Connection, ack: netlink.Ack) -> None:
        """Record a refusal, unless the subflow or its connection has ended by itself."""
        if ack.code not in (0, errno.ESRCH) and "token" not in ack.describe():
            connection.errors.append(f"closing a subflow: {ack.describe()}")

    def _subflow_closed(self, connection: Connection, event: Event) -> None:
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


def _other_port(port: int) -> int:
    # The old port may be in TIME_WAIT. Port 0 does not help: the kernel treats all paths with local port 0
    # of an address as the same path ("did not match address and id").
    return 1024 + (port - 1024 + RETRY_PORT_STEP) % (65536 - 1024)
