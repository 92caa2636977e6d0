"""One guest: a process of this machine that runs a program under its own Linux kernel in virtual time.

The guest and its processes end with the process that started it (launch.py). Its memory is a file without a
name, and it has no network device of the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import select
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from common import errors, processes
from common.errors import DeadlineError, HostUnfitError, RefabricError, RunError
from common.lines import Lines
from engines.linux.launch import ROOT, launcher

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
ARCHITECTURE = "x86_64"


def check_machine(machine: str | None = None) -> None:
    """Raise HostUnfitError for a machine of another architecture."""
    found = platform.machine() if machine is None else machine
    if found != ARCHITECTURE:
        raise HostUnfitError(
            f"engine linux: User-Mode Linux runs on {ARCHITECTURE}, this machine is {found}; choose --engine "
            "simulator"
        )


@dataclass(frozen=True)
class GuestSpec:
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


def run(asked: GuestSpec, cpu: int | None, on_report: Callable[[Any], None]) -> float:
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


def _prepare(asked: GuestSpec, work: Path) -> None:
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
    return [*own, *processes.import_path()]


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
def _started(asked: GuestSpec, work: Path, cpu: int | None) -> Iterator[subprocess.Popen[bytes]]:
    live = asked.terminal is not None and asked.terminal.live
    # The kernel's early messages go to its own stdout, not to the terminal's.
    screen = () if asked.terminal is None else (os.dup(1),)
    console = "".join(f"{'fd:0' if live else 'null'},fd:{fd}" for fd in screen) or "null,fd:2"
    # Nor do its errors: that it could open no terminal of its own is one (launch.py).
    argv = command(asked.kernel, asked.memory_mb, asked.seed, console, loglevel=3 if screen else 4)
    memory = memory_folder(asked.memory_mb)
    process = subprocess.Popen(
        launcher(argv, cpu, work, memory),
        stdin=None if live else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=screen,
        cwd=work,
        env=processes.environment(),
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
        self, asked: GuestSpec, work: Path, process: subprocess.Popen[bytes], on_report: Callable[[Any], None]
    ) -> None:
        self._asked, self._work, self._process, self._on_report = asked, work, process, on_report
        self._console, self._reports = Console(), Lines()
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
        for message in map(json.loads, self._reports.take(data)):
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


FOLDER = Path("/run/point")
"""Where the guest has the point's own folder, the only one of the machine that it can write."""
INIT, REQUEST, REPORTS, COMMANDS = "init", "request.json", "reports", "commands"
NO_BYTECODE = "/run/no-bytecode"
"""No such folder: programs compile what they import. With the machine's byte code a point had other bytes
than without, and whether there is any depends on what ran there before."""
LIFE_FD, REQUEST_FD, REPORT_FD = 3, 4, 5
START_NS = 1_700_000_000_000_000_000
"""The guest's time of day at boot, the same in every run."""

_SCRIPT = """\
#!/bin/sh
# Process 1 of the guest: mounts, then the program, and what it ended with.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8
export PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0 SETUPTOOLS_USE_DISTUTILS=stdlib LIBMOUNT_FORCE_MOUNT2=always
export PYTHONPYCACHEPREFIX={no_bytecode}
set -e
ulimit -Hn 1048576  # fs.nr_open; the kernel starts process 1 with 4096
mount -t tmpfs tmpfs /run
mkdir {folder}
mount -t hostfs -o sync,/proc/self/cwd none {folder}
exec >{folder}/output 2>&1
mount -t proc proc /proc
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
echo {tcp_mem} >/proc/sys/net/ipv4/tcp_mem
mkfifo /run/life
exec 3<>/run/life 4<{folder}/{request} 5>>{folder}/{reports}
set +e
{program}
echo "{{\\"halted\\": $?}}" >&5
read -r _ <&3
"""
"""Process 1 must not end: it waits for the outer process, which ends the guest."""


def command(
    kernel: Path, memory_mb: int, seed: int, console: str = "null,fd:2", loglevel: int = 4
) -> list[str]:
    """Return the guest's command line. `seed` (32 bits) decides all random numbers of its kernel.

    `console` are input and output of /dev/tty0, e.g. "fd:0,fd:7".
    """
    return [
        str(kernel),
        f"mem={memory_mb}M",
        *("root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", f"init=/proc/self/cwd/{INIT}"),
        *("time-travel=inf-cpu", f"time-travel-start={START_NS}", f"rng_seed={seed}"),
        *("con=null", f"con0={console}", "con1=null", "ssl=null"),
        *("uml_dir=.", "umid=guest", "panic=-1", f"loglevel={loglevel}"),
    ]


@dataclass(frozen=True)
class Terminal:
    """The stdin of a guest's program: a terminal of this size, or the file COMMANDS. Its output goes to the
    terminal in both cases."""

    live: bool
    rows: int = 24
    columns: int = 80

    def around(self, program: str) -> str:
        """Return the shell text that runs `program` with this terminal.

        It first waits for a second of the guest's time: before that, ping treats every packet as its first
        and does not wait between them.
        """
        if not self.live:
            return f"sleep 1\nstty -opost </dev/tty0\n{program} <{FOLDER}/{COMMANDS} >/dev/tty0 2>&1"
        size = f"sleep 1\nstty rows {self.rows} columns {self.columns} </dev/tty0"
        return f"{size}\nTERM=linux setsid --ctty --wait {program} </dev/tty0 >/dev/tty0 2>&1"


def script(program: Sequence[str], memory_mb: int, terminal: Terminal | None = None) -> str:
    """Return the text of the guest's process 1, which runs `program`, with a terminal or without."""
    line = shlex.join(program)
    return _SCRIPT.format(
        folder=FOLDER,
        no_bytecode=NO_BYTECODE,
        request=REQUEST,
        reports=REPORTS,
        program=terminal.around(line) if terminal else line,
        tcp_mem=shlex.quote(tcp_mem(memory_mb)),
    )


def tcp_mem(memory_mb: int) -> str:
    """Return the kernel's limits on the memory of all TCP sockets together, in pages: half of the guest's.

    By default they are 9 % of it (net/ipv4/tcp.c, tcp_init_mem), shared by all hosts: with 4 GB, 25 of 128
    flows with 8 subflows stood still.
    """
    pages = memory_mb * 256
    return f"{3 * pages // 8} {pages // 2} {pages // 2}"


LAST_LINES = 20
_OUT_OF_MEMORY = ("Out of memory", "out of memory", "deadlocked on memory")
_NOT_MAPPED = "UML ran out of memory on the host side"
"""The machine refused to map a page of the guest into one of its processes (arch/um/kernel/tlb.c)."""
_PANIC = "Kernel panic - not syncing: "
_TRACE = " [<"


@dataclass
class Console:
    """The last lines of the guest's kernel and programs."""

    tail: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    _lines: Lines = field(default_factory=Lines)
    panic: str = ""
    out_of_memory: bool = False
    not_mapped: bool = False

    def take(self, data: bytes) -> None:
        """Read further output."""
        for raw in self._lines.take(data):
            line = raw.decode(errors="replace").rstrip()
            self.panic = self.panic or line.partition(_PANIC)[2]
            if _NOT_MAPPED in line:
                self.not_mapped = True
            elif any(text in line for text in _OUT_OF_MEMORY):
                self.out_of_memory = True
            if line and not line.startswith(_TRACE):
                self.tail.append(line)

    def cause(self, memory_mb: int) -> str:
        """Return why the guest ended, in a few words."""
        if self.out_of_memory:
            return f"it ran out of its {memory_mb} MB of memory"
        if self.not_mapped:
            return "the machine maps no more of its memory: vm.max_map_count is reached, or no memory is free"
        return f"its kernel panicked: {self.panic}" if self.panic else "it ended without a result"

    def last_lines(self) -> str:
        """Return the end of an error message."""
        return ("; its last lines:\n" + "\n".join(self.tail)) if self.tail else ""


@dataclass
class VirtualClock:
    """The guest's clock, seen from the machine's. It must go on: within `patience_s` of the machine's time at
    each step, and to the end of the point by `limit_s` of the guest's.

    `began_s` is the machine's time when the guest started.
    """

    began_s: float
    patience_s: float
    limit_s: float
    now_s: float = 0.0
    _first_s: float | None = None
    _moved_s: float = 0.0

    def __post_init__(self) -> None:
        self._moved_s = self.began_s

    def read(self, guest_s: float, machine_s: float) -> None:
        """Note that the guest's clock shows `guest_s`."""
        if self._first_s is None:
            self._first_s = guest_s
        if guest_s > self.now_s:
            self.now_s, self._moved_s = guest_s, machine_s

    def check(self, machine_s: float) -> None:
        """Raise DeadlineError if the guest's clock stands still, or has gone past its limit."""
        still_s = machine_s - self._moved_s
        if still_s > self.patience_s:
            raise DeadlineError(
                f"the guest hangs: its clock has shown {self.now_s:.0f} s for {still_s:.0f} s of real time"
            )
        ran_s = self.now_s - (self._first_s or 0.0)
        if ran_s > self.limit_s:
            raise DeadlineError(f"the emulation did not end within {self.limit_s:g} s of the guest's time")


CPU_CLAIM = "refabric-guest-cpu"


@contextmanager
def claimed_cpu(name: str = CPU_CLAIM) -> Iterator[int | None]:
    """Yield a CPU of this process that no other guest has; None if all are taken."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
        for cpu in sorted(os.sched_getaffinity(0)):
            try:
                claim.bind(f"\0{name}-{cpu}")
            except OSError:
                continue
            yield cpu
            return
    yield None
