"""A sweep killed at random moments and resumed until it is done, again and again: a part of soak.py."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import BusyError, RunError
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from tests.soak.shape import broken, differences, shape
from tests.support.leftovers import Snapshot, snapshot, wait_until_gone

EXPERIMENT = "cs244-one-to-one"
POINTS = 4
"""The baseline, TCP, 2 and 8 subflows."""
GONE_S = 10.0
START_S = 60.0


@dataclass(frozen=True)
class Sweep:
    """One results folder, and the command that works on it."""

    results: Path
    request: dict[str, Any]

    @property
    def directory(self) -> Path:
        return self.results / EXPERIMENT

    def start(self) -> subprocess.Popen[bytes]:
        """The user's own command; its words go to a file beside the results."""
        options = ("--profile", "smoke", "--qmon", "--results", str(self.results))
        times = ("--seconds", str(self.request["seconds"]), "--warmup", str(self.request["warmup"]))
        program = Path(sys.executable).with_name("refabric")
        with self.log.open("wb") as log:
            return subprocess.Popen(
                [str(program), "run", EXPERIMENT, *options, *times], stdout=log, stderr=subprocess.STDOUT
            )

    @property
    def log(self) -> Path:
        return self.results.with_suffix(".log")

    @property
    def deadline_s(self) -> float:
        traffic_s: float = self.request["seconds"] + self.request["warmup"]
        return START_S + POINTS * (traffic_s + START_S)

    def finish(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for its end. Raises RunError with its last words when it did not do its work."""
        try:
            status = process.wait(self.deadline_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(GONE_S)
            raise RunError(f"a sweep did not end in {self.deadline_s:g} s: {self._words()}") from None
        if status not in (0, 1):  # 1: suspect points, on a machine with other things to do
            raise RunError(f"a sweep ended with {status}: {self._words()}")

    def _words(self) -> str:
        return " / ".join(self.log.read_text(errors="replace").splitlines()[-5:])


def inside(inside: Inside) -> int:
    """In the sandbox: an undisturbed sweep, then kills until there have been enough."""
    request = inside.request
    home = Path(tempfile.mkdtemp(prefix="soak-"))
    rng = random.Random(request["seed"])
    calm = Sweep(home / "undisturbed", request)
    began = time.monotonic()
    calm.finish(calm.start())
    length_s = time.monotonic() - began
    expected = shape(calm.directory)
    inside.report({"length_s": length_s, "line": f"an undisturbed sweep takes {length_s:.1f} s"})
    killed, number = 0, 0
    while killed < request["kills"]:
        number += 1
        sweep = Sweep(home / f"sweep-{number}", request)
        while not (report := _run(sweep, rng.uniform(0.0, length_s), killed < request["kills"]))["ended"]:
            killed += 1
            what = f"after {report['at_s']:.1f} s, {report['points']} points stored"
            left = report["faults"] or "nothing"
            inside.report({**report, "line": f"kill {killed}/{request['kills']} {what}; left behind: {left}"})
        differs = differences(expected, shape(sweep.directory))
        line = f"sweep {number} done; unlike the undisturbed one: {differs or 'nothing'}"
        inside.report({"ended": True, "faults": differs, "line": line})
    return 0


def _run(sweep: Sweep, at_s: float, kill: bool) -> dict[str, Any]:
    """Run the command, to its end unless `kill`: then until `at_s`, if it lasts so long."""
    before = snapshot()
    process = sweep.start()
    if not kill:
        sweep.finish(process)
        return {"ended": True}
    try:
        process.wait(at_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(GONE_S)
        faults = _after_kill(sweep, before)
        points = len(list(sweep.directory.glob("k4-*")))
        return {"ended": False, "at_s": round(at_s, 3), "points": points, "faults": faults}
    sweep.finish(process)
    return {"ended": True}


def _after_kill(sweep: Sweep, before: Snapshot) -> list[str]:
    """Return what is still there `GONE_S` after a kill, and must not be."""
    faults = [f"left behind: {line}" for line in wait_until_gone(before, GONE_S)]
    try:
        with emulation_lock():
            pass
    except BusyError as error:
        faults.append(f"the lock is held: {error}")
    return faults + broken(sweep.directory)


def findings(seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the summary of all kills and sweeps."""
    kills = [report for report in seen if report.get("ended") is False]
    sweeps = [report for report in seen if report.get("ended") is True]
    return {
        "kills": len(kills),
        "at_s": [report["at_s"] for report in kills],
        "points_stored_at_kill": [report["points"] for report in kills],
        "sweep_s": round(next(report["length_s"] for report in seen if "length_s" in report), 1),
        "sweeps_completed": len(sweeps),
        "sweeps_equal_in_shape": sum(not report["faults"] for report in sweeps),
        "faults": [fault for report in (*kills, *sweeps) for fault in report["faults"]],
    }
