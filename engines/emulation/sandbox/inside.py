"""The first process in the private namespaces that isolation.py makes.

Process 1 of the PID namespace prepares the namespaces and forks the worker. Then it only reaps orphans, and
ends when the worker ends or when the outer process's pipe closes. Before it ends, it sends the files that the
run left in RAW. Its end kills everything in the namespace.
The pipe closes whatever kills the outer process. This covers the time between fork and
prctl(PR_SET_PDEATHSIG) in setpriv(1) and unshare(1). Kernel: kernel/pid_namespace.c, zap_pid_ns_processes().
"""

from __future__ import annotations

import base64
import fcntl
import importlib
import json
import os
import select
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from common.errors import RefabricError
from common.privileges import User
from engines.emulation.kernel.namespaces import MS_BIND, MS_NODEV, MS_NOSUID, MS_REC, attach, mount

PRIVATE_FOLDERS: Mapping[str, str] = {"/tmp": "mode=1777", "/run": "mode=755", "/dev/shm": "mode=1777"}
"""Folders that become a private tmpfs, so that no file of a run outlives it."""

RAW = Path("/tmp/raw")
"""The folder for the output of tools. Its files are sent to the outer process when the run ends."""
WORK = Path("/tmp/workload")
"""The folder in which programs of a workload work. It ends with the run."""
X11 = Path("/tmp/.X11-unix")
OURS = frozenset({RAW.name, WORK.name, X11.name})
"""Names in the private /tmp that root uses: the caller's folder is not attached there."""
SETPRIV, ENV = "/usr/bin/setpriv", "/usr/bin/env"

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 0x1
_REAP_MS = 1000
GONE = 137
"""Exit status where the outer process has ended."""
MAX_FILES_BYTES = 1 << 30


@dataclass(frozen=True)
class Caller:
    """The user who asked for the run. Programs of the user's run inside as that user, not as root.

    `user` is None where the outer process is root itself, and in a guest, whose root is the user.
    """

    user: User | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    """The user's environment."""
    folder: int = -1
    """The user's current folder, open."""

    def start(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start a program of the user's, as subprocess.Popen does, in the user's folder and environment.

        Raises OSError.
        """
        env = {**os.environ, **self.variables, **options.pop("env", {})}
        options.setdefault("cwd", f"/proc/self/fd/{self.folder}" if self.folder >= 0 else None)
        if self.user is None:
            return subprocess.Popen(argv, env=env, **options)
        return subprocess.Popen(self.confined(argv, env), env=dict(os.environ), **options)

    def confined(self, argv: Sequence[str], env: Mapping[str, str]) -> list[str]:
        """Return the command that becomes the user, without capabilities, and runs `argv` with this
        environment, which counts only once setpriv(1) has done so."""
        given = [f"{name}={text}" for name, text in env.items() if name and "=" not in name]
        ids: list[str] = []
        if self.user:
            groups = ",".join(map(str, self.user.groups))
            ids = ["--reuid", str(self.user.uid), "--regid", str(self.user.gid), "--groups", groups]
        rights = ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--")
        return [SETPRIV, *ids, *rights, ENV, "-i", *given, *argv]


NOBODY = Caller()
"""Where the outer process is root itself, and in a guest."""


@dataclass(frozen=True)
class Inside:
    """Argument of the function that runs inside: the request, and `report` for the outer process.

    `given` are the descriptors that the outer process passed on, `raw` is the folder for the output of tools.
    """

    request: Any
    _report_fd: int
    caller: Caller = NOBODY
    given: tuple[int, ...] = ()
    raw: Path = RAW
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
    given, folder = tuple(envelope.get("given", ())), envelope.get("folder", -1)
    for fd in (*given, folder):
        if fd >= 0:
            os.set_inheritable(fd, False)
    caller = Caller(User.from_json(envelope.get("user")), envelope.get("variables", {}), folder)
    inside = Inside(envelope["request"], report_fd, caller, given, Path(envelope.get("raw", RAW)))
    try:
        _make_private(envelope["keep"], folder, envelope.get("path", "/"))
    except (OSError, RefabricError) as error:
        inside._send({"error": "HostUnfitError", "message": f"preparing private namespaces: {error}"})
        os._exit(1)
    inside._send({"ready": True})
    worker = os.fork()
    if worker == 0:
        os.close(life_fd)
        _work(inside, target)
    pulse = (lambda: inside._send({"now": time.monotonic()})) if envelope.get("pulse") else _no_pulse
    status = _watch(worker, life_fd, pulse)
    if status != GONE:
        _send_files(inside)
    os._exit(status)


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
                return GONE
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


def _send_files(inside: Inside) -> None:
    """Send the regular files in RAW, up to MAX_FILES_BYTES in all."""
    left = MAX_FILES_BYTES
    for path in sorted(RAW.iterdir()) if RAW.is_dir() else ():
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(handle, "rb") as file:
            about = os.fstat(handle)
            left -= about.st_size
            if stat.S_ISREG(about.st_mode) and left >= 0:
                inside._send({"file": path.name, "data": base64.b64encode(file.read()).decode()})


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


def _make_private(keep: Sequence[str], folder: int, named: str) -> None:
    """Make /tmp, /run, /dev/shm and bpffs private, mount the namespace's /sys, loopback up, IPv6 off.

    The open `folder` of the caller becomes visible at its name again if that is in one of these.
    """
    held = _hold(keep)
    for private, options in PRIVATE_FOLDERS.items():
        if Path(private).is_dir():
            mount("tmpfs", private, "tmpfs", MS_NOSUID | MS_NODEV, options)
    theirs = Path(named)
    apart = not any(path == theirs or path in theirs.parents or theirs in path.parents for path, _ in held)
    if folder >= 0 and is_attachable(theirs) and apart:
        theirs.mkdir(parents=True)
        attach(folder, named)
    for path, fd in held:
        path.mkdir(parents=True, exist_ok=True)
        mount(f"/proc/self/fd/{fd}", str(path), flags=MS_BIND | MS_REC)
        os.close(fd)
    RAW.mkdir(mode=0o700, exist_ok=True)
    mount("sysfs", "/sys", "sysfs")
    if Path("/sys/fs/bpf").is_dir():
        mount("bpf", "/sys/fs/bpf", "bpf")
    for scope in ("all", "default"):
        disable = Path(f"/proc/sys/net/ipv6/conf/{scope}/disable_ipv6")
        if disable.exists():
            disable.write_text("1")
    _loopback_up()


def is_private(path: Path) -> bool:
    """Return whether a run has another folder at this path, below one of its own."""
    return any(Path(folder) in path.parents for folder in PRIVATE_FOLDERS)


def is_attachable(path: Path) -> bool:
    """Return whether the caller's folder may be attached here: below /tmp, and at no name that root uses."""
    return path.parts[:2] == ("/", "tmp") and len(path.parts) > 2 and path.parts[2] not in OURS


def _hold(keep: Sequence[str]) -> list[tuple[Path, int]]:
    """Open the folders that must stay visible although they are below a private folder, e.g. in /tmp, and
    X11's sockets for `xterm` in the shell, if their folder is root's own."""
    held: list[tuple[Path, int]] = []
    for path in sorted({Path(p).resolve() for p in keep}):
        covered = any(outer in path.parents for outer, _ in held)
        if is_private(path) and not covered and path.is_dir():
            held.append((path, os.open(path, os.O_PATH | os.O_CLOEXEC)))
    try:
        handle = os.open(X11, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return held  # no X server here, or a link of somebody's
    if os.fstat(handle).st_uid == 0:
        held.append((X11, handle))
    else:
        os.close(handle)
    return held


def _loopback_up() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(control, _SIOCGIFFLAGS, request), 16)
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | _IFF_UP))
