"""A Dask cluster of separate processes on 127.0.0.1: a scheduler and workers, each ended by its id."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engines.engine import Observer
from harness.baseline import is_baseline
from model.result import RunResult
from model.spec import RunSpec
from tests.support.fake_engine import FakeEngine

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0
_QUIET = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "DASK_DISTRIBUTED__WORKER__MEMORY__MONITOR_INTERVAL": "1s",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__GIL__ENABLED": "False",
    "DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL": "5s",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "500ms",
}
"""Dask's processes watch themselves, which takes 2 % of a CPU for each one that has nothing to do."""


class Deadly(FakeEngine):
    """Kills the worker that runs the point with 4 subflows."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        if spec.transport.subflows == 4:
            os.kill(os.getppid(), signal.SIGKILL)
        return super().run(spec, observer, raw)


class Endless(FakeEngine):
    """Ends no point but the baseline before the test does. A simulation would take all CPUs meanwhile."""

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        self.sleep_s = 0.0 if is_baseline(spec) else 4 * DEADLINE_S
        return super().run(spec, observer, raw)


ENDLESS = """
from engines import registry
import tests.support.dask_cluster as here
registry.ENGINES["fake"] = lambda: here.Endless(parallel=2)
from refabric.command import main
main()
"""
"""The command with this engine."""


@dataclass
class Lab:
    """A scheduler and its workers; their ports are the system's choice.

    Each process has a log and each worker a folder of its own, numbered in the order in which they started.
    `quiet` processes do not watch themselves.
    """

    folder: Path
    address: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    quiet: bool = True
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)
    scheduler: subprocess.Popen[bytes] | None = None
    workers: dict[int, tuple[str, ...]] = field(default_factory=dict)
    """The options of the workers that run, or were killed meanwhile, by their numbers."""

    def have(self, *wanted: tuple[str, ...]) -> None:
        """Make this cluster one with a worker for each of these tuples of options, and no other.

        Workers that fit stay, others are killed; so is everything if the scheduler is gone. Workers are new
        where a test has killed some.
        """
        if self.scheduler is None or self.scheduler.poll() is not None:
            self.stop()
            self.start_scheduler()
        missing = list(wanted)
        for number, options in list(self.workers.items()):
            if options in missing and self.processes[number].poll() is None:
                missing.remove(options)
            else:
                self._end_worker(number)
        for options in missing:
            self.start_worker(*options)
        self.wait_for_workers()

    def start_scheduler(self) -> None:
        """Start a scheduler; return once it listens."""
        path = self.folder / f"scheduler{len(self.processes)}.json"
        self.scheduler = self._start(
            "scheduler", "--host", self.host, "--port", "0", "--no-dashboard", "--scheduler-file", str(path)
        )
        text = self._appears(path, self.scheduler)
        self.address = text.partition('"address": "')[2].partition('"')[0]

    def start_worker(self, *options: str) -> None:
        """Start a worker without a nanny, so that it stays dead when killed. It registers a little later: see
        `wait_for_workers`."""
        number = len(self.processes)
        self._start(
            "worker", self.address, "--no-nanny", "--host", self.host, "--no-dashboard",
            "--local-directory", str(self._folder_of(number)), *options,
        )  # fmt: skip
        self.workers[number] = options

    def worker_at(self, address: str) -> subprocess.Popen[bytes]:
        """Return the worker that has this address."""
        (number,) = (number for number in self.workers if self._address_of(number) == address)
        return self.processes[number]

    @property
    def scratch(self) -> Path:
        """The folder in which workers keep temporary files."""
        return self.folder / "scratch"

    def left(self) -> list[Path]:
        """Return the folders of points that workers still have; some may vanish meanwhile."""
        found = (Path(top, name) for top, folders, files in os.walk(self.scratch) for name in folders + files)
        return [path for path in found if path.name.startswith("refabric-")]

    def wait_for_workers(self) -> None:
        """Wait until all workers that were started have registered."""
        started = list(self.workers)
        self._until(lambda: all("Registered to" in self._log("worker", number) for number in started))

    def logs(self) -> str:
        """Return the logs of all processes."""
        return "\n".join(log.read_text() for log in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """Kill all processes that still run: no test is about how Dask's processes end."""
        for process in reversed(self.processes):
            process.kill()
        for process in self.processes:
            process.wait()
        self.scheduler = None
        self.workers.clear()

    def _end_worker(self, number: int) -> None:
        """Kill a worker and remove its folder; return once the scheduler knows."""
        address = self._address_of(number)
        self.processes[number].kill()
        self.processes[number].wait()
        del self.workers[number]
        scheduler = self.processes.index(self.scheduler) if self.scheduler else 0
        self._until(lambda: f"Remove worker addr: {address}" in self._log("scheduler", scheduler))
        shutil.rmtree(self._folder_of(number), ignore_errors=True)

    def _folder_of(self, number: int) -> Path:
        return self.scratch / str(number)

    def _log(self, what: str, number: int) -> str:
        return (self.folder / f"{what}{number}.log").read_text()

    def _address_of(self, number: int) -> str:
        found = re.search(r"Start worker at: +(\S+)", self._log("worker", number))
        assert found, self.logs()
        return found[1]

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{what}{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
            env={
                **os.environ, **(_QUIET if self.quiet else {}), **self.env, "PYTHONPATH": str(ROOT),
                "DASK_TEMPORARY_DIRECTORY": str(self.scratch),
            },
        )  # fmt: skip
        log.close()
        self.processes.append(process)
        return process

    def _appears(self, path: Path, process: subprocess.Popen[bytes]) -> str:
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline and process.poll() is None:
            if path.exists() and (text := path.read_text()).rstrip().endswith("}"):
                return text
            time.sleep(0.05)
        raise AssertionError(f"no {path.name}: {self.logs()}")

    def _until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)


@contextlib.contextmanager
def cluster(
    folder: Path,
    *workers: tuple[str, ...],
    env: Mapping[str, str] | None = None,
    host: str = "127.0.0.1",
    quiet: bool = True,
) -> Iterator[Lab]:
    """Yield a lab with a scheduler and one worker for each tuple of options."""
    lab = Lab(folder, env=env or {}, host=host, quiet=quiet)
    try:
        lab.have(*workers)
        yield lab
    finally:
        lab.stop()
