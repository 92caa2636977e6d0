"""Run code inside the network namespaces of hosts.

A network namespace belongs to a thread, and Python 3.11 has no `os.setns`. Jobs run on a temporary worker
thread, so the caller's namespace never changes, not even if a job fails. Sockets and processes that a job
creates stay in that namespace. Needs CAP_SYS_ADMIN. Source: setns(2), kernel/nsproxy.c.
"""

from __future__ import annotations

import ctypes
import os
import resource
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from common.errors import HostUnfitError, RunError

T = TypeVar("T")

CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class HostRef:
    """An emulated host: its name and the pid of a process in its network namespace."""

    name: str
    pid: int


def call_in_netns(pid: int, fn: Callable[[], T]) -> T:
    """Run `fn` in the network namespace of process `pid` and return its result.

    Raises RunError with the errno if the namespace cannot be entered; errors of `fn` pass through.
    """
    return map_in_netns([(pid, fn)])[0]


def map_in_netns(jobs: Sequence[tuple[int, Callable[[], T]]]) -> list[T]:
    """Run every `(pid, fn)` in the namespace of its pid, in order, on one worker thread; return the results.

    Takes about 10 us per namespace, which suits 1024 hosts. The first exception stops the remaining jobs and
    is raised here. Raises RunError if a namespace cannot be entered.
    """
    results: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        try:
            for pid, fn in jobs:
                enter_netns(pid)
                results.append(fn())
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=work, name="netns")
    worker.start()
    worker.join()
    if failure:
        raise failure[0]
    return results


def enter_netns(pid: int) -> None:
    """Move the calling thread into the network namespace of `pid` for the rest of its life.

    Raises RunError with the text of the errno.
    """
    path = f"/proc/{pid}/ns/net"
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise RunError(f"opening {path}: {error.strerror}; the host with pid {pid} may have ended") from error
    try:
        if _libc.setns(fd, CLONE_NEWNET) != 0:
            raise RunError(f"setns into {path}: {os.strerror(ctypes.get_errno())}; run as root")
    finally:
        os.close(fd)


def set_sysctls(hosts: Iterable[HostRef], values: Mapping[str, str]) -> None:
    """Write `values` (sysctl name with dots -> text) in the namespace of every host.

    /proc/sys/net shows the namespace of the thread that opens it (net/sysctl_net.c). Raises RunError that
    names the sysctl and the host.
    """

    def write(host: HostRef) -> None:
        for name, value in values.items():
            try:
                sysctl_path(name).write_text(value)
            except OSError as error:
                attempt = f"setting {name}={value} on {host.name} (pid {host.pid})"
                raise RunError(f"{attempt}: {error.strerror}") from error

    map_in_netns([(host.pid, partial(write, host)) for host in hosts])


def sysctl_path(name: str) -> Path:
    """Return the path of a sysctl: `net.ipv4.ip_forward` -> /proc/sys/net/ipv4/ip_forward."""
    return Path("/proc/sys", *name.split("."))


def reserve_fds(count: int) -> None:
    """Raise the soft RLIMIT_NOFILE, if needed, to allow `count` more open files.

    Raises HostUnfitError if the hard limit is too low.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = count + sum(1 for _ in Path("/proc/self/fd").iterdir()) + 64
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and needed > hard:
        raise HostUnfitError(
            f"{needed} open files are needed but the hard limit is {hard}; run `ulimit -Hn {needed}` as root"
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))
