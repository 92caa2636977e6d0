"""The way to the root helper (helper.py): start it, drop to the user, take the machine, open a connection.

A program calls `separate` first of all. It starts the helper and drops for good to the user for whom it was
started. Where it stays root, which only root's own clone allows, the helper is started when it is needed.
"""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import privileges, processes
from common.errors import BusyError, HostUnfitError, RunError
from engines.emulation.sandbox import helper

VARIABLE = "REFABRIC_HELPER"
"""Names the descriptor of a connection that a parent process opened for this one."""
ANSWER_S = 30.0
POLL_S = 0.2
_PROGRAM = (
    "import json, sys; sys.path.append(sys.argv[1]); from engines.emulation.sandbox.helper import main; "
    "main(int(sys.argv[2]), json.loads(sys.argv[3]), sys.argv[4] == 'shell')"
)


class _Client:
    """This process's own connection, over which it asks for others. Threads share it."""

    def __init__(self, link: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        link.settimeout(ANSWER_S)
        self.link, self.process, self._lock, self._pid = link, process, threading.Lock(), os.getpid()

    @property
    def usable(self) -> bool:
        """Whether it is this process's and the helper lives; a fork has the descriptor, too."""
        return self._pid == os.getpid() and (self.process is None or self.process.poll() is None)

    def connection(self) -> socket.socket:
        """Return a new connection. Raises RunError if the helper has ended."""
        ours, theirs = socket.socketpair()
        with theirs, self._lock:
            ask(self.link, {"do": "connect"}, [theirs.fileno()])
        return ours


_client: _Client | None = None


def separate(needed: bool = True, shell: bool = False) -> None:
    """Become the user for whom root started this process, after starting the helper if that is `needed`.

    With `shell` the helper also opens a shell, whose user is root. No effect without root, or where root
    stays root. Raises HostUnfitError, UsageError.
    """
    global _client  # noqa: PLW0603 -- there is one per process, as there is one user
    if os.geteuid() != 0:
        return
    user = privileges.invoking_user(os.environ)
    if user is None:
        privileges.check_private(f"the clone {privileges.ROOT}", privileges.ROOT)
        return
    if needed:
        _client = _started(user, shell)
    try:
        user.become()
    except OSError as error:
        raise HostUnfitError(f"becoming user {user.uid}: {error}") from error
    variables = user.environment(os.environ)
    os.environ.clear()
    os.environ.update(variables)


def available() -> bool:
    """Return whether this process can start real hosts: it is root, or has a helper."""
    return os.geteuid() == 0 or _client is not None or VARIABLE in os.environ


def require(command: str) -> None:
    """Raise HostUnfitError with the command to run instead, unless real hosts can be started."""
    if not available():
        raise HostUnfitError(
            f"creating network namespaces needs root; run: sudo {command}  # or choose --engine linux: the "
            "same in virtual time, without root"
        )


def connection() -> socket.socket:
    """Return a new connection to the helper, which is started if this process is root and has none.

    Raises HostUnfitError without root, RunError if the helper has ended.
    """
    global _client  # noqa: PLW0603 -- see `separate`
    require(f"{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".strip())
    if _client is None or not _client.usable:
        if VARIABLE in os.environ:
            _client = _Client(socket.socket(fileno=int(os.environ.pop(VARIABLE))))
        elif os.geteuid() == 0:
            _client = _started(None)
        else:
            raise RunError("the root helper has ended; run the same command again")
    return _client.connection()


@contextmanager
def passed_on(needed: bool) -> Iterator[tuple[Sequence[int], Mapping[str, str]]]:
    """Yield what a child process needs to start real hosts, if it is to: descriptors to inherit, and
    variables."""
    if not (needed and available()):
        yield (), {}
        return
    with connection() as link:
        yield (link.fileno(),), {VARIABLE: str(link.fileno())}


def ask(link: socket.socket, message: Mapping[str, object], descriptors: Sequence[int] = ()) -> Any:
    """Return what the helper answers. Raises HostUnfitError if it refuses, RunError if it has ended."""
    try:
        helper.send(link, message, descriptors)
        answer = helper.receive(link)
    except helper.RefusedError as error:
        raise HostUnfitError(str(error)) from error
    except OSError as error:
        raise RunError(f"asking the root helper: {error}; run the same command again") from error
    if answer is None:
        raise RunError("the root helper has ended; run the same command again")
    if "error" in answer[0]:
        raise HostUnfitError(str(answer[0]["error"]))
    return answer[0]


@contextmanager
def emulation_lock(wait_s: float = 0.0, on_wait: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold the machine's emulation lock during the `with` block: two emulations would compete for the CPUs.

    If another process holds it, wait up to `wait_s` seconds; `on_wait` is called once with who has it. Raises
    BusyError that names the owner's pid and command, HostUnfitError.
    """
    until_s, told = time.monotonic() + wait_s, False
    with connection() as link:
        link.settimeout(ANSWER_S)
        while "busy" in (answer := ask(link, {"do": "take"})):
            owner = answer["busy"]
            if time.monotonic() >= until_s:
                waited = f" after waiting {wait_s:g} s" if wait_s else ""
                raise BusyError(f"another emulation is running{waited}: {owner}; wait for it to end")
            if on_wait is not None and not told:
                on_wait(owner)
            told = True
            time.sleep(POLL_S)
        yield


def _started(user: privileges.User | None, shell: bool = False) -> _Client:
    """Start the helper. It ends when its connection does; where this process stays root, also with the
    thread that starts it, so that not even a stopped helper is left. Raises HostUnfitError."""
    about = None if user is None else dataclasses.asdict(user)
    ending = processes.ending_with_us() if user is None else ()
    ours, theirs = socket.socketpair()
    with theirs:
        fd = theirs.fileno()
        argv = [
            *ending,
            sys.executable,
            "-I",
            "-B",
            "-c",
            _PROGRAM,
            str(privileges.ROOT),
            str(fd),
            json.dumps(about),
        ]
        argv += [helper.SHELL if shell else ""]
        try:
            process = subprocess.Popen(
                argv, pass_fds=[fd], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd="/",
                env={**(processes.environment() if user is None else {}), **helper.ENVIRONMENT},
            )  # fmt: skip
        except OSError as error:
            raise HostUnfitError(f"starting the root helper: {error}") from error
    return _Client(ours, process)
