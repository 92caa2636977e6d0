"""Programs of a build: every line goes to a log, silence has a deadline, and no program outlives this one."""

from __future__ import annotations

import collections
import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from common.errors import CommandError, DeadlineError
from common.processes import environment

SILENT_S = 1200.0
"""How long a program may print nothing. Linking on a busy machine takes a minute."""
QUICK_S = 60.0
LAST_LINES = 8
_STOP_S = 5.0


def output(argv: Sequence[str], may_fail: bool = False) -> str:
    """Return what a quick program prints. Raises CommandError if it fails and may not, or takes a minute."""
    try:
        done = subprocess.run(
            argv, capture_output=True, text=True, timeout=QUICK_S, check=False, env=environment()
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CommandError(f"running `{' '.join(argv)}`: {error}") from error
    if done.returncode and not may_fail:
        said = done.stderr.strip().splitlines()[-1:] or [""]
        raise CommandError(f"`{' '.join(argv)}` failed with exit code {done.returncode}: {said[0]}")
    return done.stdout


def run(
    argv: Sequence[str],
    cwd: Path,
    on_line: Callable[[str], None],
    changes: Mapping[str, str] | None = None,
    silent_s: float = SILENT_S,
) -> None:
    """Run a program in `cwd`; `on_line` gets each line of its output and errors.

    The program and its children end when this process does, however that ends, or when `on_line` raises.
    Raises CommandError with the last lines if it fails, DeadlineError if it prints nothing for `silent_s`.
    """
    last: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
    with _started(argv, cwd, changes) as process:
        for line in _lines(process, " ".join(argv), silent_s):
            last.append(line)
            on_line(line)
        code = process.wait(timeout=QUICK_S)
    if code:
        raise CommandError(f"`{' '.join(argv)}` failed with exit code {code}: {' | '.join(last)}")


@contextlib.contextmanager
def _started(
    argv: Sequence[str], cwd: Path, changes: Mapping[str, str] | None
) -> Iterator[subprocess.Popen[bytes]]:
    """Yield a process in a session of its own, whose whole group ends with the context."""
    try:
        process = subprocess.Popen(
            ("setpriv", "--pdeathsig", "TERM", *argv),
            cwd=cwd,
            env=environment(changes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"starting `{' '.join(argv)}`: {error.strerror}") from error
    try:
        yield process
    finally:
        _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_S)
                break
    if process.stdout is not None:
        process.stdout.close()


def _lines(process: subprocess.Popen[bytes], what: str, silent_s: float) -> Iterator[str]:
    if process.stdout is None:
        return
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        until = time.monotonic() + silent_s
        while True:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise DeadlineError(f"`{what}` printed nothing for {silent_s:g} s; it was ended")
            data = os.read(process.stdout.fileno(), 1 << 16)
            until = time.monotonic() + silent_s
            if not data:
                break
            *whole, rest = (rest + data).split(b"\n")
            yield from (line.decode(errors="replace") for line in whole)
    if rest:
        yield rest.decode(errors="replace")
