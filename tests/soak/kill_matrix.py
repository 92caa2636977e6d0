"""Kill or stop every kind of process in every phase of a run: what is left, and does the run complete?

    python tests/soak/kill_matrix.py [--kills 20] [--seed 1] [--skip 0] [--only PATTERN] [--json]

The cells of the matrix (cells.py: which run, which process, which phase, which signal) are shuffled by the
seed and gone through in turn, without the first SKIP of them. SIGKILL: the run must end by itself. SIGSTOP:
after `--patience` the user gives up and kills the command. Then nothing may be left, the store must be
readable, and the same command must complete, leave no unfinished or failed point, and have the results of an
undisturbed run: the same files, points, flows, metrics and columns, and simulated tables byte by byte. A run
whose `refabric watch` is killed or stopped must not notice. All of it happens in namespaces of its own. Exit
code 1 when anything was wrong. Needs root.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RefabricError
from common.privileges import ROOT
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from tests.soak.beside import Beside
from tests.soak.cells import BESIDE, CHAIN, MISSED, RUNS, WATCH, WHEN, WORDS, Cell, cells
from tests.soak.shape import broken, differences, finished, lost_its_agent, shape, unfinished, unnoticed
from tests.support.dask_cluster import Lab
from tests.support.leftovers import snapshot, wait_until_gone
from tests.support.scenarios.kills import children, command

PATIENCE_S = 2.0
RUN_S = 240.0
"""The longest that a command may take, whatever is killed in it."""
GONE_S = 15.0
WORKER = ("--nthreads", "1")
ROLE_S = 20.0
ALGORITHMS = {
    "mine.py": """from ccp.algorithms.reno import Reno


class Mine(Reno):
    pass
""",
    "portus.py": """from ccp.portus import PortusAlgorithm


class Mine(PortusAlgorithm):
    command = {argv}
""",
}
"""Files of a user; `argv` starts an agent of portus."""


@dataclass
class Attempt:
    """A running command, and the progress that it has reported."""

    process: subprocess.Popen[bytes]
    log: Path
    seen: list[str] = field(default_factory=list)
    _text: bytes = b""

    def until(self, event: str, deadline_s: float, times: int = 1) -> bool:
        """Wait until a progress event has come so often; False if the command ended before."""
        assert self.process.stdout is not None
        end = time.monotonic() + deadline_s
        while self.seen.count(event) < times:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, end - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                return False
            *lines, self._text = (self._text + chunk).split(b"\n")
            self.seen += [
                each.get("phase", each["event"]) for each in map(json.loads, lines) if "event" in each
            ]
        return True

    def role(self, name: str) -> int | None:
        """Return the process of this kind once there is one, or None if there will be none."""
        end = time.monotonic() + ROLE_S
        while time.monotonic() < end and self.process.poll() is None:
            if (pid := self._find(name)) is not None:
                return pid
            time.sleep(0.01)
        return None

    def _find(self, name: str) -> int | None:
        if name in CHAIN:
            pids = [self.process.pid]
            for _ in range(CHAIN.index(name)):
                pids = [child for pid in pids[:1] for child in children(pid)]
            return pids[0] if pids else None
        if name == "worker":
            return next(iter(children(self.process.pid)), None)
        if name == "agent":
            inner = self._find("inner")
            forks = children(inner) if inner else []
            return next((pid for pid in forks if inner and command(pid) == command(inner)), None)
        found = [pid for pid in _pids() if WORDS[name] in command(pid)]
        return found[-1 if name == "SIP worker" else 0] if found else None

    def finish(self, deadline_s: float) -> int | None:
        """Return the exit code, or None if the command had to be killed."""
        try:
            self.process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):  # a child that is left behind holds the pipe
                self.process.communicate(timeout=GONE_S)
            return None
        return self.process.returncode

    def give_up(self, patience_s: float) -> None:
        """Wait as long as a user would, then kill the command."""
        try:
            self.process.communicate(timeout=patience_s)
        except subprocess.TimeoutExpired:
            self.process.kill()

    def words(self) -> str:
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-4:])


class Matrix:
    """One results folder per kind of run, kept over the kills: the same command goes on in it."""

    def __init__(self, request: dict[str, Any], home: Path, lab: Lab) -> None:
        self._request, self._home, self._lab = request, home, lab
        self._rng = random.Random(request["seed"] + request["skip"])
        self.killed: list[Cell] = []
        self._beside = {run: Beside(home / run / "results") for run in RUNS}
        self._undisturbed: dict[str, dict[str, Any]] = {}
        """The shapes of results that no signal has disturbed, by run."""
        agent = (sys.executable, str(ROOT / "tests/support/portus/fake_agent.py"), "/tmp/ccp/portus")
        for name, text in ALGORITHMS.items():
            (home / name).write_text(text.format(argv=agent))

    def start(self, run: str, into: str = "") -> Attempt:
        """Start the command with results and home in a folder `into`, which is the run's by default."""
        folder, chosen = self._home / (into or run), RUNS[run]
        (folder / "home").mkdir(parents=True, exist_ok=True)
        values = {
            "home": self._home, "root": ROOT, "python": sys.executable, "port": self._beside[run].port
        }  # fmt: skip
        argv = [str(Path(sys.executable).with_name("refabric")), "run", chosen.experiment, "--json"]
        argv += [option.format(**values) for option in chosen.options]
        argv += chosen.times
        argv += ["--results", str(folder / "results")]
        if run == "cluster":
            argv += ["--dask", self._lab.address, "--insecure"]
        env = {**os.environ, "HOME": str(folder / "home")}  # the measured rates are kept below it
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, env=env)
        return Attempt(process, folder / "log")

    def kill(self, cell: Cell) -> dict[str, Any]:
        """Kill once. `hit` is False if the process was gone before."""
        if self._is_complete(cell.run):
            shutil.rmtree(self._home / cell.run)
        self.killed.append(cell)
        before = snapshot()
        beside = self._beside[cell.run]
        stored = finished(self._stored(cell.run))
        with beside.running(RUNS[cell.run].beside):
            attempt = self.start(cell.run)
            event, spread_s = WHEN.get(cell.phase, ("", 2.0))
            times = max(1, RUNS[cell.run].points - len(stored)) if cell.phase == "drawing" else 1
            met = not event or attempt.until(event, RUN_S, times)
            pid = self._role(cell, attempt) if met else None
            time.sleep(self._rng.uniform(0.0, spread_s))
            faults = beside.faults("")
            hit = pid is not None and _signal(pid, cell.signal)
            faults += self._end(cell, attempt, hit) + beside.faults(cell.role if hit else "")
        if hit and cell.role in MISSED and cell.signal == "SIGKILL" and cell.phase in ("network", "traffic"):
            faults += unnoticed(self._stored(cell.run), stored)
        if cell.role == "cluster worker" and hit:
            self.renew_workers()
            before = {**before, "processes": snapshot()["processes"]}
        left = wait_until_gone(before, GONE_S)
        faults += [f"left behind: {line}" for line in left] + self._broken(cell.run)
        return {"cell": str(cell), "hit": hit, "faults": [f"{cell}: {fault}" for fault in faults]}

    def _role(self, cell: Cell, attempt: Attempt) -> int | None:
        if cell.role in BESIDE:
            return self._beside[cell.run].processes[cell.role].pid
        return attempt.role(cell.role)

    def _end(self, cell: Cell, attempt: Attempt, hit: bool) -> list[str]:
        undisturbed = cell.role == WATCH
        if cell.signal == "SIGSTOP" and hit and not undisturbed:
            attempt.give_up(self._request["patience"])
        code = attempt.finish(RUN_S)
        if code is None:
            return [f"did not end within {RUN_S:g} s: {attempt.words()}"]
        if "Traceback" in attempt.log.read_text(errors="replace"):
            return [f"ended with a traceback: {attempt.words()}"]
        if undisturbed and code not in (0, 1):
            return [f"ended with {code} because of a program that only watches: {attempt.words()}"]
        return []

    def complete(self, run: str) -> dict[str, Any]:
        """Run the same command again, undisturbed; report what was wrong."""
        faults = [f"{run}: {fault}" for fault in self._completion_faults(run)]
        return {"run": run, "faults": faults, "line": f"{run} completes: {faults or 'yes'}"}

    def _completion_faults(self, run: str) -> list[str]:
        with self._beside[run].running(RUNS[run].beside):
            attempt = self.start(run)
            code = attempt.finish(RUN_S)
            faults = self._broken(run) + self._beside[run].faults("")
        if code == 3 and "does not sustain" in attempt.words():
            return faults  # calibration says so where other programs keep the CPUs busy: an answer, no fault
        if code not in (0, 1):  # 1: suspect points, on a machine with other things to do
            faults.append(f"does not complete: exit code {code}: {attempt.words()}")
        if not self._is_complete(run):
            faults.append(f"is not complete in the end: {attempt.words()}")
        faults += [f"has left {name}" for name in unfinished(self._stored(run))]
        if not faults and RUNS[run].repeats and not lost_its_agent(self._stored(run)):
            found = differences(self._expected(run), shape(self._stored(run), rows=False))
            faults += [f"unlike an undisturbed run: {line}" for line in found]
        return faults

    def _expected(self, run: str) -> dict[str, Any]:
        if run not in self._undisturbed:
            folder = f"{run}-undisturbed"
            with self._beside[run].running(RUNS[run].beside):
                attempt = self.start(run, folder)
                code = attempt.finish(RUN_S)
            assert code in (0, 1), f"an undisturbed run ended with {code}: {attempt.words()}"
            self._undisturbed[run] = shape(self._stored(run, folder), rows=False)
        return self._undisturbed[run]

    def renew_workers(self) -> None:
        """Replace the Dask worker, which may have been stopped or killed."""
        self._lab.have()
        self._lab.have(WORKER)

    def _stored(self, run: str, into: str = "") -> Path:
        return self._home / (into or run) / "results" / RUNS[run].stored

    def _is_complete(self, run: str) -> bool:
        return len(list(self._stored(run).glob("*/run.json"))) == RUNS[run].points

    def _broken(self, run: str) -> list[str]:
        directory = self._stored(run)
        return broken(directory) if directory.exists() else []


def _signal(pid: int, name: str) -> bool:
    try:
        os.kill(pid, signal.Signals[name])
    except ProcessLookupError:
        return False
    return True


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


@contextlib.contextmanager
def _lab(home: Path, needed: bool) -> Iterator[Lab]:
    lab = Lab(home)
    try:
        if needed:
            lab.have(WORKER)
        yield lab
    finally:
        lab.stop()


def inside(inside: Inside) -> int:
    """In the sandbox: kills until there have been enough, then every command to its end."""
    request = inside.request
    wanted = [cell for cell in cells() if re.search(request["only"], str(cell))]
    random.Random(request["seed"]).shuffle(wanted)
    home = Path(tempfile.mkdtemp(prefix="matrix-"))
    (home / "dask").mkdir()
    with _lab(home / "dask", any(cell.run == "cluster" for cell in wanted)) as lab:
        matrix = Matrix(request, home, lab)
        hits = tried = 0
        while hits < request["kills"] and tried < 2 * request["kills"] + 4:
            cell = wanted[(request["skip"] + tried) % len(wanted)]
            tried += 1
            report = matrix.kill(cell)
            hits += report["hit"]
            state = "; ".join(report["faults"]) or ("nothing left" if report["hit"] else "came too late")
            inside.report({**report, "line": f"kill {hits}/{request['kills']}: {cell}: {state}"})
            if cell.phase == "publishing" or tried % 10 == 0:
                inside.report(matrix.complete(cell.run))
        for run in sorted({cell.run for cell in matrix.killed}):
            inside.report(matrix.complete(run))
    return 0


def findings(seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of all kills."""
    kills = [report for report in seen if "cell" in report]
    return {
        "kills": sum(report["hit"] for report in kills),
        "came_too_late": sum(not report["hit"] for report in kills),
        "cells": sorted({report["cell"] for report in kills if report["hit"]}),
        "completed": sum(not report["faults"] for report in seen if "run" in report),
        "faults": [fault for report in seen for fault in report["faults"]],
    }


def go_through(
    kills: int, seed: int, only: str = "", skip: int = 0, patience: float = PATIENCE_S
) -> dict[str, Any]:
    """Kill and inspect, in private namespaces. Raises RefabricError."""
    seen: list[dict[str, Any]] = []

    def hear(report: dict[str, Any]) -> None:
        click.echo(report.pop("line"), err=True)
        seen.append(report)

    request = {"kills": kills, "seed": seed, "only": only, "skip": skip, "patience": patience}
    spawn_inside("tests.soak.kill_matrix:inside", request, deadline_s=600 + 120 * kills, on_report=hear)
    return findings(seen)


@click.command()
@click.option("--kills", default=20, show_default=True, type=click.IntRange(1))
@click.option("--seed", default=1, show_default=True)
@click.option("--skip", default=0, show_default=True, help="Leave out this many cells at the beginning.")
@click.option("--only", default="", metavar="PATTERN", help="Run only cells whose name contains PATTERN.")
@click.option("--patience", default=PATIENCE_S, show_default=True, help="Seconds from SIGSTOP to a kill.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(kills: int, seed: int, skip: int, only: str, patience: float, as_json: bool) -> None:
    """Go through the matrix and print what was found."""
    try:
        found = go_through(kills, seed, only, skip, patience)
    except RefabricError as error:
        click.echo(f"kill_matrix: {error}", err=True)
        sys.exit(error.exit_code)
    click.echo(json.dumps(found) if as_json else "\n".join(f"{name}: {found[name]}" for name in found))
    sys.exit(1 if found["faults"] else 0)


if __name__ == "__main__":
    main()
