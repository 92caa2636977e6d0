"""Isolation: a run lives in private namespaces, so that nothing of it can outlive it.

    outer -- helper -- setpriv(1) -> unshare(1) -- process 1 of a PID namespace -- worker -- hosts, iperf3 ...

(`--` is a fork, `->` an exec.) The outer process is the user's; all others are root's (helper.py). Whichever
of these is killed, at any time, the kernel removes the rest:
* outer dies: its connection closes, which ends helper and unshare; and the `life` pipe closes, which ends
  process 1;
* the helper dies: setpriv's parent-death signal kills unshare; the outer process sees the connection close;
* unshare dies: its --kill-child signal kills process 1; the outer process hears of it and closes the pipe;
* process 1 dies: the kernel kills everything in its PID namespace (pid_namespaces(7));
* the worker dies: process 1 notices and ends.
When the last process ends, the network, mount and IPC namespaces disappear with everything in them.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import errors, files
from common.errors import DeadlineError, HostUnfitError, RefabricError, RunError
from common.lines import LineReader
from engines.emulation.sandbox import client, helper

READY_S = 20.0
KILL_S = 20.0
GRACE_S = 30.0
"""After the deadline and this time the helper kills the sandbox itself."""


def spawn_inside(
    target: str,
    request: object,
    *,
    deadline_s: float,
    on_report: Callable[[Any], None] | None = None,
    raw: Path | None = None,
    give: Sequence[int] = (),
    grace_s: float = 5.0,
) -> int:
    """Run `target` in private namespaces; return the function's int.

    `target` is a name of helper.TARGETS, or "package.module:function" where this process is root itself. The
    function is called with an `inside.Inside`. `request` is any JSON value. Its reports arrive at `on_report`
    in the calling thread. What it leaves in inside.RAW is written to `raw`. Its stdin is /dev/null; the last
    lines of its stdout and stderr appear in error messages. Descriptors in `give` are Inside.given; programs
    that start there do not inherit them. Of /tmp, /run and /dev/shm only the current folder and those that
    Python imports from are visible.

    KeyboardInterrupt ends the run (SIGTERM, `grace_s` seconds, then SIGKILL; a second one at once) and is
    re-raised. Raises the function's RefabricError; HostUnfitError if the namespaces cannot be created;
    DeadlineError after `deadline_s`; RunError if it ended in another way; StoreError if `raw` cannot be
    written.
    """
    with _started(target, request, deadline_s, raw, give) as run:
        run.converse(time.monotonic() + deadline_s, deadline_s, on_report or _ignore, grace_s)
        return run.outcome()


def reported_inside(target: str, request: object, deadline_s: float) -> Any:
    """Return the only report of `target`. Raises as `spawn_inside`, and RunError if there is none."""
    reports: list[Any] = []
    spawn_inside(target, request, deadline_s=deadline_s, on_report=reports.append)
    if not reports:
        raise RunError(f"asking the root helper for {target}: it reported nothing; run it again")
    return reports[-1]


def spawn_interactive(target: str, request: object, *, give: Sequence[int] = ()) -> int:
    """Run `target` as `spawn_inside` does, on the caller's terminal and without a deadline.

    The program inside handles Ctrl-C; this process ignores it until then.
    """
    with _ctrl_c_ignored(), _started(target, request, None, None, give) as run:
        run.converse(float("inf"), 0.0, _ignore, 0.0)
        return run.outcome()


@dataclass
class _Run:
    """One chain of processes as the outer process sees it."""

    link: socket.socket
    """The connection to the helper, which says when the chain has ended."""
    pid: int
    life_fd: int
    reports: LineReader | None
    output: LineReader | None
    """Stdout and stderr of the worker; None if it has the terminal. Both pipes: None after their end."""
    raw: Path | None = None
    code: int | None = None
    """Exit code of the chain once it has ended."""
    ready: bool = False
    status: int | None = None
    error: RefabricError | None = None
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=20))

    def converse(
        self, deadline: float, deadline_s: float, on_report: Callable[[Any], None], grace_s: float
    ) -> None:
        """Serve both pipes until the chain has ended."""
        ready_by = time.monotonic() + READY_S
        try:
            while self._serve(on_report, min(deadline, float("inf") if self.ready else ready_by)):
                if time.monotonic() >= deadline:
                    raise DeadlineError(
                        f"the emulation did not end within {deadline_s:g} s{self._last_lines()}"
                    )
                if not self.ready and time.monotonic() >= ready_by:
                    raise DeadlineError(
                        f"private namespaces were not ready within {READY_S:g} s{self._last_lines()}"
                    )
        except BaseException:
            self._end(grace_s)
            raise

    def outcome(self) -> int:
        """Return the function's result. Raises as `spawn_inside`."""
        if self.error is not None:
            raise self.error
        if self.status is not None:
            return self.status
        if self.code == 130:
            raise KeyboardInterrupt
        if self.code is None:
            raise RunError("the root helper ended, and with it the emulation; run the same command again")
        if not self.ready:
            raise HostUnfitError(
                f"creating private namespaces failed (exit {self.code} of `setpriv ... unshare ...`): "
                f"run as root, not in an unprivileged container{self._last_lines()}"
            )
        raise RunError(f"the emulation ended unexpectedly (exit {self.code}){self._last_lines()}")

    def _serve(self, on_report: Callable[[Any], None], until: float) -> bool:
        """Serve the pipes for up to one second; return False when the chain has ended and they are empty."""
        with selectors.DefaultSelector() as selector:
            for pipe in self._pipes():
                selector.register(pipe.fd, selectors.EVENT_READ)
            if not self._ended:
                selector.register(self.link.fileno(), selectors.EVENT_READ)
            left_s = max(0.0, min(1.0, until - time.monotonic()))
            ready = {key.fd for key, _ in selector.select(left_s)} if selector.get_map() else set()
        if not self._ended and self.link.fileno() in ready:
            self._hear_of_end()
        if self.reports and self.reports.fd in ready:
            self._read_reports(self.reports, on_report)
        if self.output and self.output.fd in ready:
            self._read_output(self.output)
        return not self._ended or bool(self._pipes())

    @property
    def _ended(self) -> bool:
        return self.life_fd < 0 and self.link.fileno() < 0

    def _hear_of_end(self) -> None:
        """Read that the chain has ended, or that the helper has."""
        with suppress(OSError, ValueError):
            received = helper.receive(self.link)
            if received is not None:
                self.code = int(received[0]["ended"])
        self._close_life()
        self.link.close()

    def _pipes(self) -> list[LineReader]:
        return [pipe for pipe in (self.reports, self.output) if pipe is not None]

    def _read_reports(self, reports: LineReader, on_report: Callable[[Any], None]) -> None:
        lines = reports.read()
        if lines is None:
            os.close(reports.fd)
            self.reports = None
        for line in lines or ():
            message = json.loads(line)
            if "report" in message:
                on_report(message["report"])
            elif "file" in message:
                self._keep(message["file"], message["data"])
            elif "error" in message:
                self.error = errors.by_name().get(message["error"], RunError)(message["message"])
            elif "exit" in message:
                self.status = int(message["exit"])
            self.ready = self.ready or "ready" in message

    def _keep(self, name: str, data: str) -> None:
        """Write a file that the run left. Raises StoreError."""
        if self.raw is not None:
            with files.storing(f"writing {self.raw / Path(name).name}"):
                (self.raw / Path(name).name).write_bytes(base64.b64decode(data))

    def _read_output(self, output: LineReader) -> None:
        lines = output.read()
        if lines is None:
            os.close(output.fd)
            self.output = None
        self.tail.extend(line.decode(errors="replace") for line in lines or ())

    def _last_lines(self) -> str:
        return ("; its last lines:\n" + "\n".join(self.tail)) if self.tail else ""

    def _end(self, grace_s: float) -> None:
        """Send SIGTERM to the worker, wait `grace_s`, then SIGKILL everything inside."""
        try:
            if self.life_fd >= 0 and grace_s > 0:
                self._ask_to_end()
                self._drain(grace_s)
        finally:
            self._close_life()
            self._drain(KILL_S)
        if not self._ended:
            self.link.close()  # the helper kills what is left
            raise DeadlineError(f"process {self.pid} did not end within {KILL_S:g} s of SIGKILL")

    def _ask_to_end(self) -> None:
        try:
            os.write(self.life_fd, b"T")
        except BrokenPipeError:
            return  # Process 1 has ended.

    def _drain(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._serve(_ignore, until):
            pass

    def _close_life(self) -> None:
        if self.life_fd >= 0:
            os.close(self.life_fd)
            self.life_fd = -1

    def close(self) -> None:
        """End everything that still runs and close all descriptors."""
        try:
            if not self._ended:
                self._end(0.0)
        finally:
            self._close_life()
            self.link.close()
            for pipe in self._pipes():
                os.close(pipe.fd)


@contextmanager
def _started(
    target: str, request: object, deadline_s: float | None, raw: Path | None, give: Sequence[int]
) -> Iterator[_Run]:
    """Ask the helper for a sandbox; without a deadline it gets the terminal."""
    interactive = deadline_s is None
    asked = {
        "do": "start",
        "what": target,
        "request": request,
        "interactive": interactive,
        "limit_s": None if deadline_s is None else deadline_s + GRACE_S + KILL_S,
        "terminal": {name: os.environ.get(name, "") for name in helper.TERMINAL_VARIABLES},
        "variables": _variables(),
        "path": _current_folder(),
    }
    with ExitStack() as ours:
        link = ours.enter_context(client.connection())
        link.settimeout(READY_S)
        with ExitStack() as theirs:
            life_read, life_write = _pipe(theirs, ours)
            report_read, report_write = _pipe(ours, theirs)
            output_read, output_write = (-1, -1) if interactive else _pipe(ours, theirs)
            streams = (0, 1, 2) if interactive else (_null(theirs), output_write, output_write)
            folder = os.open(".", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            theirs.callback(os.close, folder)
            pid = client.ask(link, asked, [life_read, report_write, *streams, folder, *give])["ok"]
        ours.pop_all()
    output = None if interactive else LineReader(output_read)
    run = _Run(link, pid, life_write, LineReader(report_read), output, raw)
    try:
        yield run
    finally:
        run.close()


def _variables() -> Mapping[str, str]:
    """Return the environment for programs of the user's, as far as it is text."""
    return {name: text for name, text in os.environ.items() if (name + text).isprintable()}


def _current_folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        return "/"  # It was removed.


def _null(stack: ExitStack) -> int:
    fd = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    stack.callback(os.close, fd)
    return fd


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Return both ends of a new pipe; each stack closes its own."""
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


@contextmanager
def _ctrl_c_ignored() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    # Use a handler instead of SIG_IGN, which the programs inside would inherit.
    previous = signal.signal(signal.SIGINT, lambda _signal, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)


def _ignore(_message: Any) -> None:
    pass
