"""The wrapper that makes a machine noisy ends as its command does, and leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fabric._core import StallMaker
from tests.support.waiting import until

WRAPPER = [sys.executable, str(Path(__file__).parents[2] / "benchmarks" / "stalls.py"), "--p99", "1"]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="real-time threads need root")
CPUS = sorted(os.sched_getaffinity(0))


def wrapped(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*WRAPPER, "--", *command], capture_output=True, text=True, timeout=30, check=False)


@needs_root
@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("true", 0), ("kill -TERM $$", 143)])
def test_the_exit_code_is_the_commands(script: str, status: int) -> None:
    run = wrapped("sh", "-c", script)
    assert run.returncode == status, run.stderr
    assert "every 33 ms" in run.stderr


@needs_root
def test_a_command_that_is_not_there_is_named() -> None:
    run = wrapped("no-such-command")
    assert run.returncode == 127
    assert "no-such-command" in run.stderr


@needs_root
def test_signals_are_passed_on() -> None:
    script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done"
    command = [*WRAPPER, "--", "sh", "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=10) == 9


@needs_root
def test_stalls_take_the_time_they_should_and_end_at_once() -> None:
    """2 to 4 ms every 20 ms are 15 % of the time on each CPU."""
    maker = StallMaker(CPUS, every_ms=20, least_ms=2, most_ms=4, seed=1, together=True)
    began_s = time.monotonic()
    maker.start()
    until(lambda: maker.stalls >= 30 * len(CPUS), 20.0, "30 stalls on each CPU")
    asked_s = time.monotonic()
    maker.stop()
    stopped_s = time.monotonic()
    assert stopped_s - asked_s < 5.0, "without an end of their own they would go on for ever"
    stalled_s = maker.stalled_ns / 1e9 / len(CPUS)
    assert 0.05 < stalled_s / (stopped_s - began_s) < 0.3
    assert 2e6 * 0.5 < maker.stalled_ns / maker.stalls <= 4e6 + 1e5
    time.sleep(0.05)
    assert maker.stalled_ns / 1e9 / len(CPUS) == stalled_s


@needs_root
def test_stalls_end_by_themselves() -> None:
    maker = StallMaker(CPUS, every_ms=10, least_ms=1, most_ms=1, seed=1, lasts_s=0.1)
    maker.start()
    time.sleep(0.25)
    done = maker.stalls
    assert 0 < done <= 0.1 / 0.001 * len(CPUS)
    time.sleep(0.1)
    assert maker.stalls == done
    maker.stop()


@pytest.mark.parametrize(
    ("every_ms", "least_ms", "most_ms", "says"),
    [(5, 2, 4, "half of the time"), (100, 0, 4, "above 0"), (100, 4, 2, "longest"), (9000, 1, 900, "500 ms")],
)
def test_laws_that_would_take_the_machine_are_refused(
    every_ms: float, least_ms: float, most_ms: float, says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        StallMaker(CPUS, every_ms=every_ms, least_ms=least_ms, most_ms=most_ms, seed=1)


def test_a_cpu_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="no CPU"):
        StallMaker([], every_ms=10, least_ms=1, most_ms=1, seed=1)
    with pytest.raises((RuntimeError, OSError), match="CPU 1000"):
        StallMaker([1000], every_ms=10, least_ms=1, most_ms=1, seed=1).start()
