"""A noisy machine on demand: stall CPUs, as a hypervisor with other guests does, while a command runs.

    python benchmarks/stalls.py --p99 4 [--seed 1] [--cpus 0,1] -- ./run_mptcp.sh 4 --profile smoke

Every CPU stalls independently. A thread at SCHED_FIFO 80 that is due every millisecond is late by `--p99` ms
or more in 1 of 100 cases. Stalls last from half of that to twice that, uniformly, and begin every 33.3 times
that on average (model/noise.py has the arithmetic). With `--p99 4` they last 2 to 8 ms, every 133 ms.

The exit code is the command's, or 128 plus the number of the signal that ended it. SIGINT, SIGTERM and SIGHUP
are passed on to it. A summary is on stderr. Needs root: the threads that stall run at SCHED_FIFO 90.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import UsageError
from fabric._core import StallMaker
from model.noise import lateness_ms, stalls_of
from model.spec import OF_ALL, NoiseSpec

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
CANNOT_RUN = 127
MAX_P99_MS = 100.0
LONGEST_S = 24 * 3600.0


@contextmanager
def stalling(cpus: list[int], noise: NoiseSpec, seed: int) -> Iterator[StallMaker]:
    """Stall each of these CPUs independently. Raises RuntimeError if real-time threads are not allowed."""
    maker = StallMaker(
        cpus,
        every_ms=noise.every_ms,
        least_ms=noise.least_ms,
        most_ms=noise.most_ms,
        seed=seed,
        together=False,
        lasts_s=LONGEST_S,
    )
    maker.start()
    try:
        yield maker
    finally:
        maker.stop()


def run(command: tuple[str, ...]) -> int:
    """Run the command; return its exit code as a shell does."""
    started: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        del frame
        if not started:
            early.append(number)
        elif number != signal.SIGINT or not _typed_to_both():
            started[0].send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in PASSED_ON}
    try:
        started.append(subprocess.Popen(command))
        for number in early:
            started[0].send_signal(number)
        status = started[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status if status >= 0 else 128 - status


def _typed_to_both() -> bool:
    """Return whether the terminal sends Ctrl-C to the command directly."""
    return sys.stdin is not None and sys.stdin.isatty() and os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()


def say(text: str) -> None:
    click.echo(f"stalls: {text}", err=True)


@click.command()
@click.option(
    "--p99", "p99_ms", required=True, type=click.FloatRange(0.1, MAX_P99_MS), help="Lateness in ms."
)
@click.option("--seed", default=1, show_default=True, help="Seed of the times and lengths of stalls.")
@click.option("--cpus", help="CPUs to stall, e.g. 0,1; default: all that the command may use.")
@click.argument("command", nargs=-1, required=True)
def main(p99_ms: float, seed: int, cpus: str | None, command: tuple[str, ...]) -> None:
    """Run COMMAND on CPUs that stall."""
    try:
        noise = stalls_of(OF_ALL, p99_ms)
        chosen = sorted(os.sched_getaffinity(0)) if cpus is None else [int(cpu) for cpu in cpus.split(",")]
    except (UsageError, ValueError) as error:
        raise click.UsageError(f"--p99 {p99_ms:g} --cpus {cpus}: {error}") from error
    say(
        f"CPUs {', '.join(map(str, chosen))} stall for {noise.least_ms:g} to {noise.most_ms:g} ms every "
        f"{noise.every_ms:.0f} ms, each on its own: {100 * noise.share:.2f} % of the time, lateness "
        f"of a random instant {lateness_ms(noise, 0.99):.1f} ms at the 99th percentile"
    )
    try:
        with stalling(chosen, noise, seed) as maker:
            status = run(command)
    except (RuntimeError, ValueError) as error:
        say(f"{error} (needs root)")
        sys.exit(3)
    except OSError as error:
        say(f"running {command[0]}: {error.strerror}")
        sys.exit(CANNOT_RUN)
    say(f"{maker.stalls} stalls, {maker.stalled_ns / 1e9:.2f} s in all")
    sys.exit(status)


if __name__ == "__main__":
    main()
