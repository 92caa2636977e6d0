"""A lock for one emulation at a time per machine, because two would compete for the CPUs.

The lock is a listening socket in Linux's abstract AF_UNIX namespace. It leaves no file and disappears with
its owner, even after `kill -9`. A process that finds the name in use reads the owner's pid from the kernel
(SO_PEERCRED, unix(7)). Abstract names belong to a network namespace: take the lock in the machine's namespace
before entering private ones. The descriptor is close-on-exec, so no child extends the lock.
"""

from __future__ import annotations

import errno
import select
import socket
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.errors import BusyError

NAME = "refabric-emulation"
SILENT_S = 2.0
POLL_S = 0.01
_UCRED = struct.Struct("=iII")


@dataclass(frozen=True)
class Owner:
    """The process that holds the lock; pid 0 if it is unknown."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"pid {self.pid} ({self.command})" if self.pid else "a process that could not be identified"

    @property
    def remedy(self) -> str:
        """What a user can do. A process of another PID namespace, such as a container's, has no pid here."""
        how = f", or `kill {self.pid}` if it is yours" if self.pid else "; it may be in another container"
        return f"wait for it to end{how}"


@contextmanager
def emulation_lock(
    wait_s: float = 0.0, on_wait: Callable[[Owner], None] | None = None, name: str = NAME
) -> Iterator[None]:
    """Hold the machine's emulation lock during the `with` block.

    If another process holds it, wait up to `wait_s` seconds; `on_wait` is called once with the owner. Raises
    BusyError that names the owner's pid and command.
    """
    listener = _acquire(time.monotonic() + wait_s, wait_s, on_wait, name)
    try:
        yield
    finally:
        listener.close()


def owner(name: str = NAME) -> Owner | None:
    """Return the current owner of the lock; None if it is free."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        return _ask(probe, name)


def _acquire(
    deadline: float, wait_s: float, on_wait: Callable[[Owner], None] | None, name: str
) -> socket.socket:
    reported = False
    silent_since = time.monotonic()
    while True:
        listener = _try_listen(name)
        if listener is not None:
            return listener
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            holder = _ask(probe, name)
            if holder is None:
                _check_silence(silent_since, name)
                time.sleep(POLL_S)
                continue
            silent_since = time.monotonic()
            if time.monotonic() >= deadline:
                waited = f" after waiting {wait_s:g} s" if wait_s else ""
                raise BusyError(f"another emulation is running{waited}: {holder}; {holder.remedy}")
            if on_wait is not None and not reported:
                on_wait(holder)
                reported = True
            _wait_for_end(probe, deadline)


def _check_silence(since: float, name: str) -> None:
    """Raise BusyError if a socket that does not listen has held the name for long.

    An owner listens within microseconds after taking the name; between two owners it is free for a moment.
    """
    if time.monotonic() - since > SILENT_S:
        raise BusyError(
            f"locking this machine for emulation: another process holds the name @{name} and does not listen "
            f"on it, so it is no emulation; find it with `ss -xlp`, and end it"
        )


def _try_listen(name: str) -> socket.socket | None:
    """Return the lock, or None if another process holds it."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"\0{name}")
        listener.listen(4096)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise
    return listener


def _ask(probe: socket.socket, name: str) -> Owner | None:
    try:
        probe.connect(f"\0{name}")
    except ConnectionRefusedError:
        return None
    except BlockingIOError:
        return Owner(0, "")  # So many processes are waiting that its backlog is full.
    credentials = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid = _UCRED.unpack(credentials)[0]
    return Owner(pid, _command(pid))


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "already ended"
    return b" ".join(words).decode(errors="replace").strip()[:200]


def _wait_for_end(probe: socket.socket, deadline: float) -> None:
    """Wait until the owner ends, for at most half a second, or until the deadline.

    The owner never accepts connections. Its end resets them, which wakes all waiting processes at once.
    """
    poller = select.poll()
    poller.register(probe, select.POLLIN)
    left_s = min(0.5, deadline - time.monotonic())
    poller.poll(max(0, round(left_s * 1000)))
