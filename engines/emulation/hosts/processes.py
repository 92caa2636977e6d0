"""Starting programs inside hosts, and ending them: TERM, wait, KILL, each by its own pid.

Programs are started by posix_spawn from a thread already in the host's network namespace: no shell, no
`mnexec`, one exec each (about 0.5 ms). They get a process group of their own, so Ctrl-C on the
terminal reaches them through us and not before us.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from common.errors import CommandError
from engines.emulation.kernel.netns import HostRef, map_in_netns
from engines.emulation.sandbox import disk

POLL_S = 0.005


@dataclass
class Process:
    """A child of ours. `status` is its exit code (negative: the signal that ended it), None while it
    runs. `stdout` and `stderr` are the files it writes to."""

    argv: tuple[str, ...]
    host: HostRef
    pid: int
    stdout: Path
    stderr: Path
    status: int | None = field(default=None)

    def poll(self) -> int | None:
        """Reap it if it has ended; its `status`."""
        if self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
        return self.status

    def signal(self, number: signal.Signals) -> None:
        """Send a signal unless it has ended (its pid is ours until reaped, so nobody else's)."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def describe(self) -> str:
        """One line: what was run where, how it ended, its last words."""
        words = self.stderr.read_text(errors="replace").strip().splitlines()[-3:]
        ended = "is running" if self.status is None else f"ended with {self.status}"
        return f"`{' '.join(self.argv)}` on {self.host.name} {ended}" + "".join(f"; {w}" for w in words)


@dataclass(frozen=True)
class Command:
    """What to start: on which host, the program's absolute path first, where its output goes, and its
    environment."""

    host: HostRef
    argv: tuple[str, ...]
    stdout: Path
    stderr: Path
    env: Mapping[str, str]


def start(commands: Sequence[Command]) -> list[Process]:
    """Start all `commands` in their hosts' network namespaces, in order.

    Raises CommandError when one cannot be started, StoreError when its output has no room, after ending
    those that were.
    """
    started: list[Process] = []
    try:
        map_in_netns([(c.host.pid, partial(_spawn, c, started)) for c in commands])
    except BaseException:
        end(started, grace_s=1)
        raise
    return started


def _spawn(command: Command, started: list[Process]) -> None:
    writing = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    files = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, str(command.stdout), writing, 0o644),
        (os.POSIX_SPAWN_OPEN, 2, str(command.stderr), writing, 0o644),
    ]
    try:
        pid = os.posix_spawn(
            command.argv[0],
            command.argv,
            command.env,
            file_actions=files,
            setpgroup=0,
            setsigmask=(),
            setsigdef=(signal.SIGPIPE, signal.SIGINT),
        )
    except OSError as error:
        if error.errno in disk.FULL:
            raise disk.full(command.stdout, error) from error
        attempt = f"starting `{' '.join(command.argv)}` on {command.host.name}"
        raise CommandError(f"{attempt}: {error.strerror}") from error
    started.append(Process(command.argv, command.host, pid, command.stdout, command.stderr))


def wait(processes: Iterable[Process], deadline_s: float) -> list[Process]:
    """Wait until all have ended, at most `deadline_s` seconds; those still running then."""
    end_s = time.monotonic() + deadline_s
    running = [process for process in processes if process.poll() is None]
    while running and time.monotonic() < end_s:
        time.sleep(POLL_S)
        running = [process for process in running if process.poll() is None]
    return running


def end(processes: Sequence[Process], grace_s: float = 3.0) -> list[Process]:
    """TERM what runs, wait `grace_s` seconds, KILL the rest; those that had to be killed."""
    for process in processes:
        process.signal(signal.SIGTERM)
        process.signal(signal.SIGCONT)  # one that is stopped would not see TERM
    stubborn = wait(processes, grace_s)
    for process in stubborn:
        process.signal(signal.SIGKILL)
    left = wait(stubborn, 5)
    if left:
        raise CommandError(f"KILL did not end {left[0].describe()} within 5 s (pid {left[0].pid})")
    return stubborn
