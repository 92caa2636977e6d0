"""Programs that a user has started beside a run: a controller outside of it, and `refabric watch`."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.soak.cells import CONTROLLER, WATCH

HUB = Path(__file__).parents[1] / "live" / "dataplanes" / "hub.py"
START_S = 30.0
ANSWER_S = 10.0


@dataclass
class Beside:
    """Running programs by name. `port` is the controller's, the same every time, as a user would have it."""

    results: Path
    port: int = 0
    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    url: str = ""

    @contextlib.contextmanager
    def running(self, names: Sequence[str]) -> Iterator[None]:
        """Start these programs; end them in the end, in whatever state they are."""
        try:
            for name in names:
                first = self._start(name)
                if name == CONTROLLER:
                    self.port = int(first)
                else:
                    self.url = json.loads(first)["url"]
            yield
        finally:
            for process in self.processes.values():
                process.kill()
                process.communicate(timeout=START_S)
            self.processes.clear()

    def faults(self, killed: str) -> list[str]:
        """Return what is wrong with the programs that were not killed."""
        found = []
        for name, process in self.processes.items():
            if name != killed and process.poll() is not None:
                found.append(f"{name} ended with {process.returncode}")
            elif name != killed and name == WATCH:
                found += self._unserved()
        return found

    def _start(self, name: str) -> str:
        """Start a program; return its first line, which says that it listens."""
        self.results.mkdir(parents=True, exist_ok=True)
        watch = [str(Path(sys.executable).with_name("refabric")), "watch", str(self.results), "--json"]
        argv = [sys.executable, str(HUB), str(self.port)] if name == CONTROLLER else watch
        process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
        self.processes[name] = process
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], START_S)
        line = process.stdout.readline() if ready else ""
        assert line, f"{name} did not start: {process.poll()}"
        return line

    def _unserved(self) -> list[str]:
        """Ask for the page and the list of points, as a browser would."""
        page, _, token = self.url.partition("?token=")
        asked = urllib.request.Request(f"{page}points", headers={"X-Refabric-Token": token})
        try:
            for request in (urllib.request.Request(self.url), asked):
                with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:
                    answer.read()
        except (OSError, urllib.error.URLError) as error:
            return [f"{WATCH} does not answer: {error}"]
        return []
