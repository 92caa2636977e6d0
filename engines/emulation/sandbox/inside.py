"""The inner half of isolation.py: the first process in the private namespaces.

Process 1 of the PID namespace prepares the namespaces and forks the worker. Then it only reaps orphans, and
ends when the worker ends or when the outer process's pipe closes. Its end kills everything in the namespace.
The pipe closes whatever kills the outer process. This covers the time between fork and
prctl(PR_SET_PDEATHSIG) in setpriv(1) and unshare(1). Kernel: kernel/pid_namespace.c, zap_pid_ns_processes().
"""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from common.errors import HostUnfitError, RefabricError
from engines.emulation.sandbox.mounts import MS_BIND, MS_NODEV, MS_NOSUID, MS_REC, mount

PRIVATE_FOLDERS: Mapping[str, str] = {"/tmp": "mode=1777", "/run": "mode=755", "/dev/shm": "mode=1777"}
"""Folders that become a private tmpfs, so that no file of a run outlives it."""

LENT = Path("/tmp/lent")
"""Where a run writes into a folder of the outside. The folder itself is mounted, whatever is at its name."""

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_REAP_MS = 1000


@dataclass(frozen=True)
class Inside:
    """Argument of the function that runs inside: the request, and `report` for the outer process."""

    request: Any
    _report_fd: int
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def report(self, message: object) -> None:
        """Send one JSON value to the outer process's `on_report`. Threads may call it concurrently."""
        self._send({"report": message})

    def _send(self, envelope: Mapping[str, object]) -> None:
        data = json.dumps(envelope).encode() + b"\n"
        with self._lock:
            while data:
                data = data[os.write(self._report_fd, data) :]


def boot(life_fd: int, request_fd: int, report_fd: int, target: str) -> NoReturn:
    """Run process 1. Never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for fd in (life_fd, request_fd, report_fd):
        os.set_inheritable(fd, False)
    with os.fdopen(request_fd) as file:
        envelope = json.load(file)
    for fd in envelope.get("given", ()):
        os.set_inheritable(fd, False)
    inside = Inside(envelope["request"], report_fd)
    try:
        _make_private(envelope["keep"], envelope["lent"])
    except (OSError, RefabricError) as error:
        inside._send({"error": "HostUnfitError", "message": f"preparing private namespaces: {error}"})
        os._exit(1)
    inside._send({"ready": True})
    worker = os.fork()
    if worker == 0:
        os.close(life_fd)
        _work(inside, target)
    if not envelope.get("pulse"):
        os.close(report_fd)
        os._exit(_watch(worker, life_fd, _no_pulse))
    os._exit(_watch(worker, life_fd, lambda: inside._send({"now": time.monotonic()})))


def _no_pulse() -> None:
    """Send nothing: the outer process shares this one's clock."""


def _watch(worker: int, life_fd: int, pulse: Callable[[], None]) -> int:
    """Reap orphans until the worker ends; return its exit status, or 137 if the outer process is gone.

    `pulse` is called about once a second.
    """
    poller = select.poll()
    pidfd = os.pidfd_open(worker)
    poller.register(life_fd, select.POLLIN)
    poller.register(pidfd, select.POLLIN)
    while True:
        ready = {fd for fd, _ in poller.poll(_REAP_MS)}
        pulse()
        if life_fd in ready:
            if not os.read(life_fd, 1):
                return 137
            _terminate(worker)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 1
            if pid == 0:
                break
            if pid == worker:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def _terminate(worker: int) -> None:
    try:
        os.kill(worker, signal.SIGTERM)
    except ProcessLookupError:
        return  # It has just ended; the next iteration reaps it.


def _work(inside: Inside, target: str) -> NoReturn:
    """Run the target in the worker process and exit with its status."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, _interrupt)
    status = 1
    try:
        status = _resolve(target)(inside)
        inside._send({"exit": status})
    except RefabricError as error:
        status = error.exit_code
        inside._send({"error": type(error).__name__, "message": str(error)})
    except KeyboardInterrupt:
        status = 130
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


def _interrupt(_signal: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            continue  # The reader of this stream is gone.


def _resolve(target: str) -> Callable[[Inside], int]:
    module, _, name = target.partition(":")
    function: Callable[[Inside], int] = getattr(importlib.import_module(module), name)
    return function


def _make_private(keep: Sequence[str], lent: Sequence[Any] | None) -> None:
    """Make /tmp, /run, /dev/shm and bpffs private, mount the namespace's /sys, loopback up, IPv6 off."""
    held = _hold(keep)
    if lent:
        held.append((LENT, _borrowed(*lent)))
    for folder, options in PRIVATE_FOLDERS.items():
        if Path(folder).is_dir():
            mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, options)
    for path, fd in held:
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{fd}", str(path), flags=MS_BIND | MS_REC)
        os.close(fd)
    mount("sysfs", "/sys", "sysfs")
    if Path("/sys/fs/bpf").is_dir():
        mount("bpf", "/sys/fs/bpf", "bpf")
    for scope in ("all", "default"):
        disable = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if disable.exists():
            disable.write_text("1")
    _loopback_up()


def _borrowed(path: str, device: int, inode: int) -> int:
    """Open the lent folder if it is still the one that was lent. Raises OSError, HostUnfitError."""
    handle = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(handle)
    if (found.st_dev, found.st_ino) != (device, inode):
        raise HostUnfitError(f"writing below {path}: somebody has put another folder there; run it again")
    return handle


def _hold(keep: Sequence[str]) -> list[tuple[Path, int]]:
    """Open the folders that must stay visible although they are below a private folder, e.g. in /tmp."""
    held: list[tuple[Path, int]] = []
    for path in sorted({Path(p).resolve() for p in keep}):
        below = any(Path(folder) in path.parents for folder in PRIVATE_FOLDERS)
        covered = any(outer in path.parents for outer, _ in held)
        if below and not covered and path.is_dir():
            held.append((path, os.open(path, os.O_PATH | os.O_CLOEXEC)))
    return held


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
