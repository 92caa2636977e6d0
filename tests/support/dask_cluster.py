"""A Dask cluster of separate processes on 127.0.0.1: a scheduler and workers, each ended by its id."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engines.engine import Observer
from engines.fake import FakeEngine
from model.result import RunResult
from model.spec import RunSpec

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


@dataclass
class Lab:
    """A scheduler and the workers started so far; their ports are the system's choice."""

    folder: Path
    address: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    host: str = "127.0.0.1"
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        """Start a scheduler; return once it listens."""
        path = self.folder / f"scheduler{len(self.processes)}.json"
        process = self._start(
            "scheduler", "--host", self.host, "--port", "0", "--no-dashboard", "--scheduler-file", str(path)
        )
        text = self._appears(path, process)
        self.address = text.partition('"address": "')[2].partition('"')[0]
        return process

    def start_worker(self, *options: str) -> subprocess.Popen[bytes]:
        """Start a worker without a nanny, so that it stays dead when killed. It registers a little later: see
        `wait_for_workers`."""
        return self._start(
            "worker", self.address, "--no-nanny", "--host", self.host, "--no-dashboard",
            "--local-directory", str(self.scratch), *options,
        )  # fmt: skip

    def worker_at(self, address: str) -> subprocess.Popen[bytes]:
        """Return the worker that has this address."""
        (log,) = (log for log in self.folder.glob("worker*.log") if address in log.read_text())
        return self.processes[int(log.stem.removeprefix("worker"))]

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
        deadline = time.monotonic() + DEADLINE_S
        logs = list(self.folder.glob("worker*.log"))
        while not all("Registered to" in log.read_text() for log in logs):
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        log = (self.folder / f"{what}{len(self.processes)}.log").open("wb")
        process = subprocess.Popen(
            [sys.executable, "-m", "dask", what, *options],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=ROOT,
            env={
                **os.environ, **_QUIET, **self.env, "PYTHONPATH": str(ROOT),
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

    def logs(self) -> str:
        """Return the logs of all processes."""
        return "\n".join(log.read_text() for log in sorted(self.folder.glob("*.log")))

    def stop(self) -> None:
        """End all processes that still run."""
        for process in reversed(self.processes):
            process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cluster(
    folder: Path, *workers: tuple[str, ...], env: Mapping[str, str] | None = None, host: str = "127.0.0.1"
) -> Iterator[Lab]:
    """Yield a lab with a scheduler and one worker for each tuple of options."""
    lab = Lab(folder, env=env or {}, host=host)
    try:
        lab.start_scheduler()
        for options in workers:
            lab.start_worker(*options)
        lab.wait_for_workers()
        yield lab
    finally:
        lab.stop()
