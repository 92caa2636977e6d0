"""One guest: a process of this machine that runs a program under its own Linux kernel in virtual time.

The guest and its processes end with the process that started it (launch.py). Its memory is a file without a
name, and it has no network device of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import errors, programs
from common.errors import HostUnfitError, RefabricError, RunError
from engines.linux.command import (
    COMMANDS,
    FOLDER,
    INIT,
    LIFE_FD,
    REPORT_FD,
    REPORTS,
    REQUEST,
    REQUEST_FD,
    Terminal,
    command,
    script,
)
from engines.linux.launch import ROOT, launcher
from engines.linux.watch import Console, Reports, VirtualClock

OUTPUT, CONSOLE, RAW = "output", "console.txt", "raw"
LOOK_S = 0.05
_SESSION, _TIMES = 3, slice(11, 15)
"""Fields of /proc/PID/stat after the name of the program, from 0 (proc_pid_stat(5))."""
END_S = 10.0
MEMORY_FOLDERS = (Path("/dev/shm"), Path("/tmp"))
_BOOT = (
    "import sys; sys.path.append(sys.argv[1]); from engines.emulation.sandbox.inside import boot; "
    "boot(int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5])"
)


@dataclass(frozen=True)
class Asked:
    """What a guest runs: `target` ("package.module:function") is called with `request`, as
    engines/emulation/sandbox does it. `folder` is the point's own; the guest sees it as FOLDER."""

    kernel: Path
    memory_mb: int
    seed: int
    target: str
    request: object
    folder: Path
    patience_s: float
    """The guest hangs if its clock stands still for this long, in the machine's time."""
    limit_s: float
    """How long the program may take, in the guest's time."""
    terminal: Terminal | None = None
    """If given, the program has this process's stdout, and its stdin where that is a terminal."""
    commands: bytes = b""
    """The program's stdin if its terminal is not live."""


def run(asked: Asked, cpu: int | None, on_report: Callable[[Any], None]) -> float:
    """Run the guest to its end; return the CPU time in seconds that it used on this machine.

    Reports of its program arrive at `on_report`, in this thread. Raises the program's RefabricError;
    DeadlineError for a guest that hangs; RunError for one that ends in another way, with the last lines of
    its console; HostUnfitError if it cannot be started. After an error the folder has the whole console in
    CONSOLE. Whatever happens, the guest has ended.
    """
    work = asked.folder / ".guest"
    work.mkdir()
    try:
        _prepare(asked, work)
        with _started(asked, work, cpu) as process:
            return _Guest(asked, work, process, on_report).converse()
    except (RefabricError, OSError):
        _keep_console(asked.folder, work)
        raise
    finally:
        for path in (work / RAW).glob("*"):
            path.replace(asked.folder / path.name)
        shutil.rmtree(work, ignore_errors=True)


def _prepare(asked: Asked, work: Path) -> None:
    python = [sys.executable, "-P", "-c", _BOOT, str(ROOT)]
    program = [*python, *map(str, (LIFE_FD, REQUEST_FD, REPORT_FD)), asked.target]
    keep = [str(FOLDER), *_python_folders()]
    pulse, raw = asked.terminal is None, str(FOLDER / RAW)
    envelope = {"request": asked.request, "keep": keep, "raw": raw, "pulse": pulse}
    (work / REQUEST).write_text(json.dumps(envelope))
    (work / COMMANDS).write_bytes(asked.commands)
    (work / INIT).write_text(script(program, asked.memory_mb, asked.terminal))
    (work / INIT).chmod(0o755)
    (work / REPORTS).touch()
    (work / RAW).mkdir()


def _python_folders() -> list[str]:
    """Return the folders that Python may import from in the guest."""
    own = [str(ROOT), sys.prefix, sys.base_prefix, str(Path(sys.executable).parent)]
    return [*own, *programs.import_path()]


def memory_folder(needed_mb: float) -> Path:
    """Return where the guest's memory is to be kept. Raises HostUnfitError if no place is large enough."""
    for folder in MEMORY_FOLDERS:
        if folder.is_dir() and shutil.disk_usage(folder).free >> 20 >= needed_mb:
            return folder
    names = " or ".join(map(str, MEMORY_FOLDERS))
    raise HostUnfitError(
        f"a guest's memory needs {needed_mb:.0f} MB free in {names}; free some space, or start the container "
        f"with --shm-size={2 * needed_mb:.0f}m"
    )


@contextlib.contextmanager
def _started(asked: Asked, work: Path, cpu: int | None) -> Iterator[subprocess.Popen[bytes]]:
    live = asked.terminal is not None and asked.terminal.live
    # The kernel's early messages go to its own stdout, not to the terminal's.
    screen = () if asked.terminal is None else (os.dup(1),)
    console = "".join(f"{'fd:0' if live else 'null'},fd:{fd}" for fd in screen) or "null,fd:2"
    # Nor do its errors: that it could open no terminal of its own is one (landlock.py).
    argv = command(asked.kernel, asked.memory_mb, asked.seed, console, loglevel=3 if screen else 4)
    memory = memory_folder(asked.memory_mb)
    process = subprocess.Popen(
        launcher(argv, cpu, work, memory),
        stdin=None if live else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=screen,
        cwd=work,
        env=programs.environment(),
        start_new_session=True,
    )
    for fd in screen:
        os.close(fd)
    try:
        yield process
    finally:
        _end(process)


def session_cpu_s(session: int) -> float:
    """Return the CPU time in seconds of all processes of a session and of their ended children."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[_SESSION]) == session:
                ticks += sum(map(int, fields[_TIMES]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the guest's parent end it and all of its processes; kill a parent that does not."""
    process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout:
        process.stdout.close()


class _Guest:
    """A running guest as the outer process sees it."""

    def __init__(
        self, asked: Asked, work: Path, process: subprocess.Popen[bytes], on_report: Callable[[Any], None]
    ) -> None:
        self._asked, self._work, self._process, self._on_report = asked, work, process, on_report
        self._console, self._reports = Console(), Reports()
        self._clock = VirtualClock(time.monotonic(), asked.patience_s, asked.limit_s)
        self._error: RefabricError | None = None
        self._ended: int | None = None

    def converse(self) -> float:
        """Read what the guest reports, until its program or the guest itself has ended; return its CPU time
        in seconds."""
        assert self._process.stdout
        console_fd = self._process.stdout.fileno()
        os.set_blocking(console_fd, False)
        poller = select.poll()
        poller.register(console_fd, select.POLLIN)
        with (self._work / REPORTS).open("rb") as reports, (self._work / CONSOLE).open("wb") as kept:
            while self._ended is None and self._process.poll() is None:
                poller.poll(1000 * LOOK_S)
                self._read_console(console_fd, kept)
                self._read_reports(reports.read())
                self._check_clock()
                time.sleep(LOOK_S)
            self._read_reports(reports.read())
            self._read_console(console_fd, kept)
        cpu_s = session_cpu_s(self._process.pid)
        self._outcome()
        return cpu_s

    def _read_console(self, fd: int, kept: Any) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(fd, 1 << 16):
                kept.write(data)
                self._console.take(data)

    def _read_reports(self, data: bytes) -> None:
        for message in self._reports.take(data):
            if "report" in message:
                self._on_report(message["report"])
            elif "now" in message:
                self._clock.read(float(message["now"]), time.monotonic())
            elif "error" in message:
                self._error = errors.by_name().get(message["error"], RunError)(message["message"])
            elif "halted" in message:
                self._ended = int(message["halted"])

    def _check_clock(self) -> None:
        try:
            self._clock.check(time.monotonic())
        except errors.DeadlineError as error:
            raise errors.DeadlineError(f"{error}{self._last_lines()}") from error

    def _outcome(self) -> None:
        """Raise what the program raised, or why there is no result."""
        if self._error is not None:
            raise self._error
        if self._ended == 0:
            return
        code = self._process.returncode if self._ended is None else self._ended
        cause = self._console.cause(self._asked.memory_mb)
        raise RunError(f"the guest failed (exit {code}): {cause}{self._last_lines()}")

    def _last_lines(self) -> str:
        output = self._work / OUTPUT
        if output.exists():
            self._console.take(output.read_bytes()[-1 << 14 :] + b"\n")
        return self._console.last_lines()


def _keep_console(folder: Path, work: Path) -> None:
    """Keep what the kernel and the programs of a failed guest wrote."""
    texts = [path.read_bytes() for path in (work / CONSOLE, work / OUTPUT) if path.exists()]
    (folder / CONSOLE).write_bytes(b"".join(texts))
