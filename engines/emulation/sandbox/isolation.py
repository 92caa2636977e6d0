"""Isolation: a run lives in private namespaces, so that nothing of it can outlive it.

    outer -- setpriv(1) -> unshare(1) -- process 1 of the PID namespace -- worker -- hosts, iperf3 ...

(`--` is a fork, `->` an exec.) Whichever of these is killed, at any time, the kernel removes the rest:
* outer dies: setpriv's parent-death signal kills unshare; and the `life` pipe closes, which ends process 1
  even if the signal was not set yet;
* unshare dies: its --kill-child signal kills process 1; the outer process notices and closes the pipe;
* process 1 dies: the kernel kills everything in its PID namespace (pid_namespaces(7));
* the worker dies: process 1 notices and ends.
When the last process ends, the network, mount and IPC namespaces disappear with everything in them.
"""

from __future__ import annotations

import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import errors, programs
from common.errors import DeadlineError, HostUnfitError, RefabricError, RunError
from common.lines import LineReader

ROOT = Path(__file__).resolve().parents[3]
READY_S = 20.0
KILL_S = 20.0
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from engines.emulation.sandbox.inside import boot; "
    "boot(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])"
)


def require_root(command: str) -> None:
    """Raise HostUnfitError with the command to run instead, unless this process is root."""
    if os.geteuid() != 0:
        raise HostUnfitError(
            f"creating network namespaces needs root; run: sudo {command}  # or choose --engine linux: the "
            "same in virtual time, without root"
        )


def spawn_inside(
    target: str,
    request: object,
    *,
    deadline_s: float,
    on_report: Callable[[Any], None] | None = None,
    lend: Path | None = None,
    give: Sequence[int] = (),
    grace_s: float = 5.0,
) -> int:
    """Run `target` ("package.module:function") in private namespaces; return the function's int.

    The function is called with an `inside.Inside`. `request` is any JSON value. Its reports arrive at
    `on_report` in the calling thread. Its stdin is /dev/null; the last lines of its stdout and stderr appear
    in error messages. The folder `lend` is inside.LENT. Descriptors in `give` are open inside under the same
    numbers; programs that start there do not inherit them. Of /tmp, /run and /dev/shm only the current folder
    and those that Python imports from are visible.

    KeyboardInterrupt ends the run (SIGTERM, `grace_s` seconds, then SIGKILL; a second one at once) and is
    re-raised. Raises the function's RefabricError; HostUnfitError if the namespaces cannot be created;
    DeadlineError after `deadline_s`; RunError if it ended in another way. Call it from a thread that lives
    until it returns.
    """
    with _started(target, request, interactive=False, lend=lend, give=give) as run:
        run.converse(time.monotonic() + deadline_s, deadline_s, on_report or _ignore, grace_s)
        return run.outcome()


def spawn_interactive(target: str, request: object, *, give: Sequence[int] = ()) -> int:
    """Run `target` as `spawn_inside` does, on the caller's terminal and without a deadline.

    The program inside handles Ctrl-C; this process ignores it until then.
    """
    with _ctrl_c_ignored(), _started(target, request, interactive=True, give=give) as run:
        run.converse(float("inf"), 0.0, _ignore, 0.0)
        return run.outcome()


@dataclass
class _Run:
    """One chain of processes as the outer process sees it."""

    process: subprocess.Popen[bytes]
    life_fd: int
    reports: LineReader | None
    output: LineReader | None
    """Stdout and stderr of the worker; None if it has the terminal. Both pipes: None after their end."""
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
        code = self.process.returncode
        if code == 130:
            raise KeyboardInterrupt
        if not self.ready:
            argv = " ".join(map(str, self.process.args[:9])) if isinstance(self.process.args, list) else ""
            raise HostUnfitError(
                f"creating private namespaces failed (exit {code} of `{argv} ...`): "
                f"run as root, not in an unprivileged container{self._last_lines()}"
            )
        raise RunError(f"the emulation ended unexpectedly (exit {code}){self._last_lines()}")

    def _serve(self, on_report: Callable[[Any], None], until: float) -> bool:
        """Serve the pipes for up to one second; return False when the chain has ended and they are empty."""
        with selectors.DefaultSelector() as selector:
            pidfd = os.pidfd_open(self.process.pid) if self.process.returncode is None else -1
            try:
                for fd in (pidfd, *(pipe.fd for pipe in self._pipes())):
                    if fd >= 0:
                        selector.register(fd, selectors.EVENT_READ)
                left_s = max(0.0, min(1.0, until - time.monotonic()))
                ready = {key.fd for key, _ in selector.select(left_s)} if selector.get_map() else set()
            finally:
                if pidfd >= 0:
                    os.close(pidfd)
        if pidfd in ready:
            self.process.wait()
            self._close_life()
        if self.reports and self.reports.fd in ready:
            self._read_reports(self.reports, on_report)
        if self.output and self.output.fd in ready:
            self._read_output(self.output)
        return self.process.returncode is None or bool(self._pipes())

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
            elif "error" in message:
                self.error = errors.by_name().get(message["error"], RunError)(message["message"])
            elif "exit" in message:
                self.status = int(message["exit"])
            self.ready = self.ready or "ready" in message

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
            if self.process.returncode is None and self.life_fd >= 0 and grace_s > 0:
                self._ask_to_end()
                self._drain(grace_s)
        finally:
            self._close_life()
            self._drain(KILL_S)
            if self.process.returncode is None:
                self.process.kill()
                self._drain(KILL_S)
        if self.process.returncode is None:
            raise DeadlineError(f"process {self.process.pid} did not end within {KILL_S:g} s of SIGKILL")

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
            if self.process.returncode is None:
                self._end(0.0)
        finally:
            self._close_life()
            for pipe in self._pipes():
                os.close(pipe.fd)


@contextmanager
def _started(
    target: str,
    request: object,
    interactive: bool,
    lend: Path | None = None,
    give: Sequence[int] = (),
) -> Iterator[_Run]:
    require_root(f"{Path(sys.argv[0]).name} {' '.join(sys.argv[1:])}".strip())
    _check_tools()
    kept = [str(path) for path in _needed_folders()]
    envelope = {"request": request, "keep": kept, "lent": _lent(lend), "given": list(give)}
    with ExitStack() as ours:
        with ExitStack() as theirs:
            request_fd = _in_memory(json.dumps(envelope).encode())
            theirs.callback(os.close, request_fd)
            life_read, life_write = _pipe(theirs, ours)
            report_read, report_write = _pipe(ours, theirs)
            output_read, output_write = (-1, -1) if interactive else _pipe(ours, theirs)
            process = subprocess.Popen(
                _argv(life_read, request_fd, report_write, target),
                pass_fds=(life_read, request_fd, report_write, *give),
                stdin=None if interactive else subprocess.DEVNULL,
                stdout=None if interactive else output_write,
                stderr=None if interactive else output_write,
                start_new_session=not interactive,
                env=_environment(),
            )
        ours.pop_all()
    output = None if interactive else LineReader(output_read)
    run = _Run(process, life_write, LineReader(report_read), output)
    try:
        yield run
    finally:
        run.close()


def _in_memory(content: bytes) -> int:
    """Return a descriptor that reads the content from its start."""
    fd = os.memfd_create("refabric-request", os.MFD_CLOEXEC)
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
    except BaseException:
        os.close(fd)
        raise
    return fd


def _pipe(reader: ExitStack, writer: ExitStack) -> tuple[int, int]:
    """Return both ends of a new pipe; each stack closes its own."""
    ends = os.pipe()
    reader.callback(os.close, ends[0])
    writer.callback(os.close, ends[1])
    return ends


def _check_tools() -> None:
    """Raise HostUnfitError if a tool that makes namespaces is missing or cannot be run."""
    path = programs.environment().get("PATH")
    for tool in ("setpriv", "unshare"):
        if shutil.which(tool, path=path) is None:
            raise HostUnfitError(
                f"creating private namespaces: {tool} is missing, or may not be run; "
                "run: sudo apt-get install util-linux"
            )


def _lent(folder: Path | None) -> tuple[str, int, int] | None:
    """Return a folder's name and its identity: device and inode."""
    if folder is None:
        return None
    found = folder.stat()
    return str(folder.resolve()), found.st_dev, found.st_ino


def _argv(life_fd: int, request_fd: int, report_fd: int, target: str) -> list[str]:
    fds = (str(life_fd), str(request_fd), str(report_fd))
    setpriv = ("setpriv", "--pdeathsig", "KILL")
    unshare = ("unshare", "--net", "--mount", "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc")
    return [*setpriv, *unshare, sys.executable, "-P", "-c", _BOOT, str(ROOT), *fds, target]


def _environment() -> dict[str, str]:
    """Return our environment, without setuptools' shim for distutils, whose import takes 0.2 s."""
    if sys.version_info >= (3, 12):
        return programs.environment()  # no distutils but setuptools'
    return {"SETUPTOOLS_USE_DISTUTILS": "stdlib", **programs.environment()}


def _needed_folders() -> list[Path]:
    """Return all folders that Python may import from, and X11's sockets for `xterm` in the shell."""
    folders = [ROOT, Path.cwd(), Path(sys.prefix), Path(sys.base_prefix), Path(sys.executable).parent]
    return folders + [Path(entry) for entry in sys.path if entry] + [Path("/tmp/.X11-unix")]


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
