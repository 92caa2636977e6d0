"""Namespaces: run code in the network namespaces of hosts, make namespaces, and mount in them.

A namespace belongs to a thread, and Python 3.11 has no `os.setns`. Work for hosts runs on temporary threads,
so the caller's namespace never changes, not even if the work fails. Sockets and processes that it creates
stay in that namespace. Needs CAP_SYS_ADMIN. The root helper imports this module, so it imports little.
Source: setns(2), unshare(2), mount(2), mount_setattr(2), open_tree(2), move_mount(2), kernel/nsproxy.c.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from common.errors import HostUnfitError, RunError

T = TypeVar("T")
R = TypeVar("R")

MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_NOSUID = 0x2
MS_NODEV = 0x4
CLONE_NEWNS = 0x00020000
CLONE_NEWIPC = 0x08000000
CLONE_NEWNET = 0x40000000

_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
"""The same on every architecture (include/uapi/asm-generic/unistd.h)."""
_AT_EMPTY_PATH, _OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 0x1000, 1, 4
_AT_RECURSIVE, _MOUNT_ATTR_RDONLY = 0x8000, 1
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, options: str = "") -> None:
    """Mount `source` on `target`. Raises HostUnfitError with the errno's text if the kernel refuses."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode())
    if _libc.mount(*arguments, ctypes.c_ulong(flags), options.encode()) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"mounting {kind} on {target}: {reason}; run as root, outside a container")


def make_read_only() -> None:
    """Make all mounts of this namespace read-only (mount_setattr(2), Linux 5.12). Raises HostUnfitError."""
    attributes = struct.pack("=4Q", _MOUNT_ATTR_RDONLY, 0, 0, 0)
    if _libc.syscall(_SYS_MOUNT_SETATTR, -100, b"/", _AT_RECURSIVE, attributes, len(attributes)) != 0:
        raise HostUnfitError(f"making mounts read-only: {os.strerror(ctypes.get_errno())}; use Linux >= 5.12")


def detached(folder: int) -> int:
    """Return a mount of an open folder that another mount namespace can attach. Raises HostUnfitError."""
    flags = _OPEN_TREE_CLONE | _AT_EMPTY_PATH | os.O_CLOEXEC
    handle: int = _libc.syscall(_SYS_OPEN_TREE, folder, b"", flags)
    if handle < 0:
        raise HostUnfitError(f"opening the current folder: {os.strerror(ctypes.get_errno())}")
    return handle


def attach(handle: int, target: str) -> None:
    """Attach what `detached` returned at a path of this namespace. Raises HostUnfitError."""
    path = os.fsencode(target)
    if _libc.syscall(_SYS_MOVE_MOUNT, handle, b"", -100, path, _MOVE_MOUNT_F_EMPTY_PATH) != 0:
        raise HostUnfitError(f"mounting a folder on {target}: {os.strerror(ctypes.get_errno())}")


def unshare(flags: int) -> None:
    """Give the calling thread its own namespaces. Raises HostUnfitError."""
    if _libc.unshare(flags) != 0:
        reason = os.strerror(ctypes.get_errno())
        raise HostUnfitError(f"making a namespace (unshare {flags:#x}): {reason}; run as root")


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


def in_threads(work: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """Return `[work(item) for item in items]`, computed by a few temporary threads with their own namespaces.

    The first exception stops the remaining work and is raised here.
    """
    results: dict[int, R] = {}
    failures: list[BaseException] = []
    count = max(1, min(os.cpu_count() or 1, 4, len(items) // 16))

    def walk(first: int) -> None:
        try:
            for position in range(first, len(items), count):
                if failures:
                    return
                results[position] = work(items[position])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=walk, args=(first,), name="hosts") for first in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [results[position] for position in range(len(items))]


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
