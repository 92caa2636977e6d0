"""The root helper: the part of refabric that stays root, while everything else becomes an ordinary user.

    refabric (the user) -- socket pair -- helper (root) -- setpriv(1) -> unshare(1) -- process 1 -- worker ...

(`--` is a fork, `->` an exec.) The program starts it before it drops to its user (client.py), and it ends
with that program. Its environment is ENVIRONMENT (where the program stays root, also what that has), its
current folder FOLDER, and it opens no path that a request names.
A message is a length of 4 bytes and JSON; descriptors come with the length (SCM_RIGHTS, unix(7)). Requests:

    connect   [socket]     serve this socket, too: a connection holds one lock or runs one sandbox
    take                   lock this machine for emulation -> {"ok"}, or {"busy": who has it}
    start     [life, report, stdin, stdout, stderr, folder, given ...]
              what         a name of TARGETS
              request      its argument: a spec and how to observe it; at most MAX_BYTES
              limit_s      after this time the sandbox is killed, at most MAX_S
              interactive  whether a shell has the terminal: without a limit, in the session of the caller
              terminal     values of TERMINAL_VARIABLES for it
              variables    the environment of programs that run as the user, inside
              path         the name of `folder`, the caller's current one, for the user's programs
              -> {"ok": pid}, and once it has ended {"ended": exit code}

Anything else gets {"error": words}. The end of a connection kills its sandbox and frees its lock.
The worker's code is the clone's: a target is called by its name in TARGETS, and the spec is read and checked
inside as a stored one is. Other functions can be named where the program stays root: tests and benchmarks do.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import selectors
import signal
import socket
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import HostUnfitError
from common.privileges import ROOT, User
from common.text import one_line
from engines.emulation.kernel.namespaces import detached
from engines.emulation.sandbox.inside import is_attachable

FOLDER = Path("/run/refabric")
LOCK = "lock"
SHELL = "shell"
TARGETS: Mapping[str, str] = {
    "point": "engines.emulation.point:run_point",
    "workload": "engines.emulation.programs:run_point",
    SHELL: "engines.emulation.hosts.shell:inside",
    "noise": "engines.emulation.noise:inside",
    "look": "engines.emulation.machine:inside",
}
MAX_BYTES, MAX_FDS = 64 << 20, 10
MAX_S = 14 * 24 * 3600.0
SPEAK_S, KILL_S = 10.0, 20.0
"""How long a client may take for the rest of a message, and processes to end after SIGKILL."""
ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONDONTWRITEBYTECODE": "1",  # root's could not be removed by the owner of the clone
    "SETUPTOOLS_USE_DISTUTILS": "stdlib",  # the import of its own takes 0.2 s
}
TERMINAL_VARIABLES = ("TERM", "COLORTERM", "DISPLAY", "LINES", "COLUMNS")
_TERMINAL_VALUE = re.compile(r"[A-Za-z0-9._:+/-]{1,80}")
_SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+){1,8}")
_FIXED = 6
"""The descriptors of every `start`, before those that are given."""
_LENGTH, _CREDENTIALS = struct.Struct("!I"), struct.Struct("=iII")
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from engines.emulation.sandbox.inside import boot; "
    "boot(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])"
)
IGNORED = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP, signal.SIGTSTP)
"""Signals of the terminal and of `timeout`: the program acts on them, and ends its helper."""


class RefusedError(Exception):
    """A request that the helper does not carry out."""


def send(to: socket.socket, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> None:
    """Send one message. Raises OSError."""
    data = json.dumps(message).encode()
    if len(data) > MAX_BYTES:
        raise RefusedError(f"a message of {len(data) >> 20} MB is larger than {MAX_BYTES >> 20} MB")
    socket.send_fds(to, [_LENGTH.pack(len(data))], descriptors)
    to.sendall(data)


def receive(of: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Return the next message and its descriptors; None at the end. Raises OSError, ValueError."""
    head, descriptors, _, _ = socket.recv_fds(of, _LENGTH.size, MAX_FDS)
    try:
        if not head:
            return None
        head += _exactly(of, _LENGTH.size - len(head))
        (length,) = _LENGTH.unpack(head)
        if length > MAX_BYTES:
            raise ValueError(f"a message of {length} bytes is too long")
        message = json.loads(_exactly(of, length))
        if not isinstance(message, dict):
            raise ValueError("a message is not an object")
        for fd in descriptors:
            os.set_inheritable(fd, False)
        return message, descriptors
    except BaseException:
        close(descriptors)
        raise


def _exactly(of: socket.socket, length: int) -> bytes:
    parts, left = [], length
    while left:
        part = of.recv(min(left, 1 << 20))
        if not part:
            raise ConnectionResetError("the connection ended within a message")
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def close(descriptors: Sequence[int]) -> None:
    """Close each descriptor."""
    for fd in descriptors:
        with contextlib.suppress(OSError):
            os.close(fd)


@dataclass
class _Connection:
    """A connection: what it holds. `pid` is the process that made it."""

    socket: socket.socket
    pid: int
    lock: int = -1
    process: subprocess.Popen[bytes] | None = None
    pidfd: int = -1
    kill_at_s: float = float("inf")


class Helper:
    """Serves connections until the first one ends. `user` is whom the user's programs inside become.

    Only the helper of `refabric shell` opens a shell, whose user is root inside.
    """

    def __init__(self, first: socket.socket, user: User | None, shell: bool) -> None:
        self._user, self._shell, self._selector = user, shell, selectors.DefaultSelector()
        self._connections: list[_Connection] = []
        self._first = self._add(first)

    def serve(self) -> None:
        """Serve until the first connection ends; then everything that was started has ended."""
        try:
            while self._first in self._connections:
                for key, _ in self._selector.select(self._left_s()):
                    connection: _Connection = key.data
                    if connection not in self._connections:
                        continue
                    if key.fileobj is connection.socket:
                        self._hear(connection)
                    else:
                        self._reap(connection)
                for late in [each for each in self._connections if time.monotonic() > each.kill_at_s]:
                    self._kill(late)
        finally:
            for connection in list(self._connections):
                self._drop(connection)

    def _left_s(self) -> float | None:
        until_s = min(each.kill_at_s for each in self._connections)
        return None if until_s == float("inf") else max(0.0, until_s - time.monotonic())

    def _add(self, link: socket.socket) -> _Connection:
        credentials = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        link.settimeout(SPEAK_S)
        connection = _Connection(link, _CREDENTIALS.unpack(credentials)[0])
        self._selector.register(link, selectors.EVENT_READ, connection)
        self._connections.append(connection)
        return connection

    def _hear(self, connection: _Connection) -> None:
        """Carry out the next request and answer it."""
        descriptors: list[int] = []
        try:
            received = receive(connection.socket)
            if received is None:
                self._drop(connection)
                return
            message, descriptors = received
            try:
                answer = self._carry_out(connection, message, descriptors)
            except (RefusedError, HostUnfitError, OSError) as error:
                answer = {"error": str(error)}
            send(connection.socket, answer)
        except (OSError, ValueError, RecursionError):  # it ended, or does not keep to the protocol
            self._drop(connection)
        finally:
            close(descriptors)

    def _carry_out(
        self, connection: _Connection, message: Mapping[str, Any], descriptors: list[int]
    ) -> Mapping[str, object]:
        what = message.get("do")
        if what == "connect" and len(descriptors) == 1:
            link = socket.socket(fileno=os.dup(descriptors[0]))
            if (link.family, link.type) != (socket.AF_UNIX, socket.SOCK_STREAM):
                link.close()
                raise RefusedError("`connect` needs one end of a pair of stream sockets")
            self._add(link)
            return {"ok": True}
        if what == "take":
            return self._take(connection)
        if what == "start":
            return {"ok": self._start(connection, message, descriptors)}
        raise RefusedError(f"the root helper does not know the request {what!r:.40}")

    def _take(self, connection: _Connection) -> Mapping[str, object]:
        """Lock the machine. The kernel frees the lock when the connection or this process ends."""
        if connection.lock >= 0:
            return {"ok": True}
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(FOLDER / LOCK, flags, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            text = os.read(handle, 400).decode(errors="replace")
            os.close(handle)
            return {"busy": one_line(text) or "a process that has just begun"}
        os.ftruncate(handle, 0)
        os.write(handle, f"pid {connection.pid} ({_command(connection.pid)})".encode())
        connection.lock = handle
        return {"ok": True}

    def _start(self, connection: _Connection, asked: Mapping[str, Any], descriptors: list[int]) -> int:
        """Start a sandbox and return the pid of unshare(1)."""
        if connection.process is not None:
            raise RefusedError("this connection runs a sandbox already")
        _check_descriptors(descriptors)
        if asked.get("what") == SHELL and not self._shell:
            raise RefusedError("this program's helper opens no shell")
        interactive = asked.get("interactive") is True and asked.get("what") == SHELL
        limit_s = float("inf") if interactive else _number(asked.get("limit_s"))
        life, report, stdin, stdout, stderr, folder, *given = descriptors
        path = _path(asked.get("path"))
        if is_attachable(Path(path)):
            descriptors.append(folder := detached(folder))
        envelope = {
            "request": _checked(asked.get("request")),
            "keep": [str(each) for each in _imported_from()],
            "user": None if self._user is None else dataclasses.asdict(self._user),
            "variables": _texts(asked.get("variables")),
            "folder": folder,
            "path": path,
            "given": given,
        }
        target = _target(asked.get("what"), any_function=self._user is None)
        with open(_in_memory(json.dumps(envelope).encode()), "rb") as request:
            try:
                connection.process = subprocess.Popen(
                    _argv(life, request.fileno(), report, target),
                    pass_fds=(life, request.fileno(), report, folder, *given),
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    cwd="/",
                    start_new_session=not interactive,
                    env={**os.environ, **(_terminal(asked.get("terminal")) if interactive else {})},
                )
            except OSError as error:
                raise RefusedError(
                    f"creating private namespaces: {error.filename or 'setpriv'} is missing, or may not be "
                    "run; run: sudo apt-get install util-linux"
                ) from error
        connection.kill_at_s = time.monotonic() + limit_s
        connection.pidfd = os.pidfd_open(connection.process.pid)
        self._selector.register(connection.pidfd, selectors.EVENT_READ, connection)
        return connection.process.pid

    def _reap(self, connection: _Connection) -> None:
        """Say that a sandbox has ended."""
        assert connection.process is not None
        code = connection.process.wait(KILL_S)
        self._forget(connection)
        with contextlib.suppress(OSError):
            send(connection.socket, {"ended": code})

    def _forget(self, connection: _Connection) -> None:
        self._selector.unregister(connection.pidfd)
        os.close(connection.pidfd)
        connection.process, connection.pidfd, connection.kill_at_s = None, -1, float("inf")

    def _kill(self, connection: _Connection) -> None:
        """Kill unshare(1); its --kill-child kills process 1, whose end kills everything inside."""
        assert connection.process is not None
        connection.process.kill()
        connection.kill_at_s = float("inf")

    def _drop(self, connection: _Connection) -> None:
        """Kill the connection's sandbox, free its lock, and forget it."""
        if connection.process is not None:
            self._kill(connection)
            with contextlib.suppress(subprocess.TimeoutExpired):
                connection.process.wait(KILL_S)
            self._forget(connection)
        if connection.lock >= 0:
            os.close(connection.lock)
        self._selector.unregister(connection.socket)
        connection.socket.close()
        self._connections.remove(connection)


def _check_descriptors(descriptors: Sequence[int]) -> None:
    """Raise RefusedError unless these are two pipes, three streams, a folder, and perhaps sockets."""
    kinds = [stat.S_IFMT(os.fstat(fd).st_mode) for fd in descriptors]
    pipes, folder, given = kinds[:2], kinds[_FIXED - 1 : _FIXED], kinds[_FIXED:]
    if pipes != [stat.S_IFIFO] * 2 or folder != [stat.S_IFDIR] or set(given) - {stat.S_IFSOCK}:
        raise RefusedError("`start` needs two pipes, three streams, a folder, and else only sockets")


def _number(value: object) -> float:
    if not isinstance(value, (int, float)) or not 0 < value <= MAX_S:
        raise RefusedError(f"limit_s must be above 0 and at most {MAX_S:g}, not {value!r:.40}")
    return float(value)


def _target(name: object, any_function: bool) -> str:
    if isinstance(name, str) and name in TARGETS:
        return TARGETS[name]
    if any_function and isinstance(name, str) and ":" in name:
        return name
    raise RefusedError(f"the root helper starts {', '.join(TARGETS)}, not {name!r:.40}")


def _checked(request: Any) -> Any:
    """Return the request, if its sysctls are those of a network namespace: others are the machine's."""
    spec = request.get("spec") if isinstance(request, dict) else None
    transport = spec.get("transport") if isinstance(spec, dict) else None
    sysctls = transport.get("sysctls") if isinstance(transport, dict) else None
    for name in sysctls if isinstance(sysctls, dict) else ():
        if not _SYSCTL.fullmatch(name):
            raise RefusedError(f"sysctl {name!r:.80} is not one of a network namespace (net.*)")
    return request


def _texts(value: object) -> dict[str, str]:
    found = value if isinstance(value, dict) else {}
    if not all(isinstance(text, str) and "\0" not in name + text for name, text in found.items()):
        raise RefusedError("variables must be texts")
    return found


def _terminal(value: object) -> dict[str, str]:
    found = _texts(value)
    return {n: found[n] for n in TERMINAL_VARIABLES if _TERMINAL_VALUE.fullmatch(found.get(n, ""))}


def _path(value: object) -> str:
    """Return an absolute path without `..`: where the caller's folder may be bound inside a private /tmp."""
    if isinstance(value, str) and value.startswith("/") and "\0" not in value:
        parts = value.split("/")
        if ".." not in parts and len(value) < 4096:
            return value
    return "/"


def _imported_from() -> list[Path]:
    """Return the folders that Python imports from, which must stay visible though they may be below /tmp."""
    own = [ROOT, Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent]
    return own + [Path(entry) for entry in sys.path if entry]


def _argv(life: int, request: int, report: int, target: str) -> list[str]:
    setpriv = ("setpriv", "--pdeathsig", "KILL")
    unshare = ("unshare", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
    fds = (str(life), str(request), str(report))
    return [*setpriv, *unshare, sys.executable, "-P", "-c", _BOOT, str(ROOT), *fds, target]


def _in_memory(content: bytes) -> int:
    """Return a descriptor that reads the content from its start."""
    fd = os.memfd_create("refabric-request", os.MFD_CLOEXEC)
    left = memoryview(content)
    while left:
        left = left[os.write(fd, left) :]
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _command(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return "already ended"
    return one_line(b" ".join(words).decode(errors="replace").strip()[:200])


def main(handle: int, user: Mapping[str, Any] | None, shell: bool) -> None:
    """Serve on the descriptor `handle` until its other end closes."""
    for number in IGNORED:
        signal.signal(number, lambda _number, _frame: None)  # not SIG_IGN, which what it starts would inherit
    os.umask(0o077)
    FOLDER.mkdir(mode=0o700, exist_ok=True)
    found = FOLDER.lstat()
    if found.st_uid or not stat.S_ISDIR(found.st_mode):
        sys.exit(f"refabric's root helper: {FOLDER} is not a folder of root's; remove it")
    FOLDER.chmod(0o700)
    os.chdir(FOLDER)
    os.umask(0o022)  # for what runs inside
    Helper(socket.socket(fileno=handle), User.from_json(user), shell or user is None).serve()
