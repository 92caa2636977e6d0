"""Start programs on hosts and end them by pid: SIGTERM, wait, SIGKILL.

A thread in the host's network namespace starts each program with posix_spawn: no shell, no `mnexec`, one exec
each (about 0.5 ms). Each program has its own process group, so Ctrl-C on the terminal does not reach it
directly.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from common.errors import CommandError
from common.files import is_full, store_error
from engines.emulation.kernel.namespaces import HostRef, map_in_netns

POLL_S = 0.005
NICE = -15


@dataclass
class Process:
    """A program on a host, once it is started a child process: its arguments (an absolute path first), the
    files that it writes to, and its environment.

    `pid` is 0 before its start. `status` is its exit code (negative: the signal that ended it), None while it
    runs.
    """

    host: HostRef
    argv: tuple[str, ...]
    stdout: Path
    stderr: Path
    env: Mapping[str, str]
    pid: int = 0
    status: int | None = None

    def poll(self) -> int | None:
        """Reap the process if it has ended; return its `status`."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal unless the process has ended; its pid cannot be reused before we reap it."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def describe(self) -> str:
        """Return one line: what ran where, how it ended, its last output."""
        words = self.stderr.read_text(errors="replace").strip().splitlines()[-3:]
        ended = "is running" if self.status is None else f"exited with {self.status}"
        return f"`{' '.join(self.argv)}` on {self.host.name} {ended}" + "".join(f"; {w}" for w in words)


def start(programs: Sequence[Process]) -> None:
    """Start all programs in their hosts' network namespaces, in order.

    Raises CommandError if one cannot be started, DiskFullError if the disk has no room for its output.
    Programs that were started before are ended first.
    """
    started: list[Process] = []
    try:
        map_in_netns([(each.host.pid, partial(_spawn, each, started)) for each in programs])
    except BaseException:
        end(started, grace_s=1)
        raise


def _spawn(program: Process, started: list[Process]) -> None:
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(program.stdout), writing, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, str(program.stderr), writing, 0o644),
    ]
    try:
        program.pid = os.posix_spawn(
            program.argv[0],
            program.argv,
            program.env,
            file_actions=files,
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT),
        )
    except OSError as error:
        if is_full(error):
            raise store_error(f"writing {program.stdout}", error) from error
        attempt = f"starting `{' '.join(program.argv)}` on {program.host.name}"
        raise CommandError(f"{attempt}: {error.strerror}") from error
    started.append(program)


def wait(processes: Iterable[Process], deadline_s: float) -> list[Process]:
    """Wait until all have ended, at most `deadline_s` seconds; return those still running."""
    end_s = time.monotonic() + deadline_s
    running = [process for process in processes if process.poll() is None]
    while running and time.monotonic() < end_s:
        time.sleep(POLL_S)
        running = [process for process in running if process.poll() is None]
    return running


def end(processes: Sequence[Process], grace_s: float = 3.0) -> list[Process]:
    """Send SIGTERM, wait `grace_s` seconds, SIGKILL the rest; return those that had to be killed."""
    for process in processes:
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGCONT)  # a stopped process would not handle SIGTERM
    stubborn = wait(processes, grace_s)
    for process in stubborn:
        process.signal(signal.SIGKILL)
    left = wait(stubborn, 5)
    if left:
        raise CommandError(f"SIGKILL did not end {left[0].describe()} within 5 s (pid {left[0].pid})")
    return stubborn


def go_first() -> None:
    """Give this process priority over its future children, which start at nice 0 (sched(7))."""
    os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))
    os.setpriority(os.PRIO_PROCESS, 0, NICE)
