"""Durability: many points in a row, and a sweep that is killed and resumed again and again.

    python tests/soak/soak.py [--points 100] [--every 1] [--kills 50] [--seconds 2] [--warmup 1] [--seed 1]
                              [--json]

Points: that many k=4 points at 10 Mb/s (TCP, 2 and 8 subflows in turn, every one with a seed of its own)
through engine and store in one process, one in `--every` emulated and the others simulated; after each, what
is new in that process (memory, descriptors, threads) and on the machine (processes, namespaces, interfaces,
mounts, files, sockets). Kills: a sweep of four such points is ended by SIGKILL at moments drawn uniformly
over its length from `--seed`, looked at at once, and resumed by the same command; whenever one gets to its
end, its results folder is compared with an undisturbed one's.

Both happen in namespaces of their own, where nothing but their own processes can be seen or killed. 0 leaves
a part out. Exit code 1 when anything was left behind, lost, half written or of another shape. Needs root; the
defaults take about 8 and 12 minutes.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import BusyError, RefabricError, RunError
from engines.emulation.engine import MininetEngine
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.engine import Engine, Silent
from engines.provenance import machine, revision
from engines.simulation.engine import SimulatorEngine
from harness.execute.point import attempt
from harness.results.run_json import Attempt
from harness.results.store import Store
from model.result import Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec
from tests.soak.shape import broken, differences, shape
from tests.support.leftovers import Snapshot, snapshot, wait_until_gone

POINT_S = 30.0
"""The longest that a point may take besides its traffic, on average."""
SUBFLOWS = (1, 2, 8)
HANG_S = 240.0
"""No point takes this long, three attempts and all their deadlines included."""
SETTLED = 10
"""Points after which imports, caches and allocators have settled."""
MAX_KB_A_POINT = 100.0
"""The memory that a point's result takes: growth beyond it is a leak."""


@dataclass(frozen=True)
class Footprint:
    """The driving process after a point: memory, descriptors, threads; and what is new on the machine.

    `kernel_kb` is the kernel's unreclaimable memory, of the whole machine, which frees namespaces when it
    finds time: reported, not judged."""

    point: int
    status: str
    reasons: list[str]
    took_s: float
    rss_kb: int
    kernel_kb: int
    fds: int
    threads: int
    left: list[str]


def points_inside(inside: Inside) -> int:
    """In the sandbox: all points, reporting a Footprint each."""
    request = inside.request
    where = Store.open(Path(tempfile.mkdtemp(prefix="soak-")), "soak")
    engines: dict[str, Engine] = {"mininet": MininetEngine(), "simulator": SimulatorEngine()}
    engines["mininet"].check(spec_of(0, request))  # takes the lock that it keeps from then on
    before = snapshot()
    for number in range(request["points"]):
        faulthandler.dump_traceback_later(HANG_S, exit=True)
        spec = spec_of(number, request)
        found = _one(number, spec, engines[spec.engine], where, before)
        line = (
            f"point {number + 1}/{request['points']}: {spec.engine}, {found.status}, {found.took_s:.1f} s, "
        )
        line += f"{found.rss_kb} kB, {found.fds} descriptors; left behind: {found.left or 'nothing'}"
        inside.report({**asdict(found), "line": line})
    faulthandler.cancel_dump_traceback_later()
    return 0


def spec_of(number: int, request: dict[str, Any]) -> RunSpec:
    """Point `number` (from 0): as in the smoke profile, with a permutation of its own; one in `every` is
    emulated and the others are simulated."""
    return RunSpec(
        engine="simulator" if number % request["every"] else "mininet",
        link=LinkSpec(10.0),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(SUBFLOWS[number // request["every"] % len(SUBFLOWS)]),
        warmup_s=request["warmup"],
        seconds=request["seconds"],
        seed=request["seed"] + number,
        sampling=SamplingSpec(queues_ms=100, sockets_ms=1000, pings_ms=1000),
    )


def _one(number: int, spec: RunSpec, engine: Engine, where: Store, before: dict[str, Any]) -> Footprint:
    began = time.monotonic()
    with where.writing(spec) as writer:
        result = attempt(engine, spec, Silent(), writer.raw)
        took_s = time.monotonic() - began
        stored = writer.commit(result, 16, took_s, [Attempt.of(result, took_s, "")])
    took_s = time.monotonic() - began
    status, reasons = stored.status.value, [reason.text for reason in stored.reasons]
    del result, stored
    gc.collect()
    left = wait_until_gone(before, seconds=5.0)
    return Footprint(number, status, reasons, took_s, *_process(), left)


def _process() -> tuple[int, int, int, int]:
    """rss_kb, kernel_kb, fds, threads."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    meminfo = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    kernel_kb = int(meminfo["SUnreclaim"].split()[0])
    fds = len(list(Path("/proc/self/fd").iterdir()))
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024, kernel_kb, fds, threading.active_count()


def findings_of_points(seen: Sequence[Footprint]) -> dict[str, Any]:
    """Return the growth per point after settling, and every fault in words."""
    settled = seen[min(SETTLED, len(seen) // 2) :]
    rss_kb, kernel_kb, fds = (
        _growth([getattr(f, name) for f in settled]) for name in ("rss_kb", "kernel_kb", "fds")
    )
    faults = [f"point {f.point}: left behind: {line}" for f in seen for line in f.left]
    faults += [f"point {f.point} failed: {'; '.join(f.reasons)}" for f in seen if f.status == Status.FAILED]
    if rss_kb > MAX_KB_A_POINT and len(settled) > SETTLED:
        faults.append(f"memory grows by {rss_kb:.0f} kB per point")
    if settled[-1].fds > settled[0].fds:
        faults.append(f"descriptors grew from {settled[0].fds} to {settled[-1].fds}")
    if settled[-1].threads > settled[0].threads:
        faults.append(f"threads grew from {settled[0].threads} to {settled[-1].threads}")
    return {
        "points": len(seen),
        "status": {status.value: sum(f.status == status for f in seen) for status in Status},
        "point_s_median": round(statistics.median(f.took_s for f in seen), 2),
        "point_s_max": round(max(f.took_s for f in seen), 2),
        "rss_kb": [seen[0].rss_kb, seen[-1].rss_kb],
        "rss_kb_a_point": round(rss_kb, 1),
        "kernel_kb_a_point": round(kernel_kb, 1),
        "fds": [seen[0].fds, seen[-1].fds],
        "fds_a_point": round(fds, 3),
        "threads": [seen[0].threads, seen[-1].threads],
        "left_behind": sum(len(f.left) for f in seen),
        "faults": faults,
    }


def _growth(values: Sequence[float]) -> float:
    """Return the slope of the straight line through the values (least squares), per point."""
    if len(values) < 2:
        return 0.0
    return statistics.linear_regression(range(len(values)), values).slope


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


def kills_inside(inside: Inside) -> int:
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


def findings_of_kills(seen: Sequence[dict[str, Any]]) -> dict[str, Any]:
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


def _inside(target: str, request: dict[str, Any], points: int) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = []

    def hear(report: dict[str, Any]) -> None:
        click.echo(report.pop("line"), err=True)
        reports.append(report)

    deadline_s = 120 + points * (request["seconds"] + request["warmup"] + POINT_S)
    spawn_inside(f"tests.soak.soak:{target}", request, deadline_s=deadline_s, on_report=hear)
    return reports


@click.command()
@click.option("--points", default=100, show_default=True, type=click.IntRange(0))
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Emulate one point of this many."
)
@click.option("--kills", default=50, show_default=True, type=click.IntRange(0))
@click.option("--seconds", default=2.0, show_default=True, help="Measured seconds of a point.")
@click.option("--warmup", default=1.0, show_default=True, help="Seconds of warm-up of a point.")
@click.option(
    "--seed", default=1, show_default=True, help="Of the points' seeds and the moments of the kills."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(
    points: int, every: int, kills: int, seconds: float, warmup: float, seed: int, as_json: bool
) -> None:
    """Run both parts and print what was found."""
    request = {"every": every, "seconds": seconds, "warmup": warmup, "seed": seed}
    found: dict[str, Any] = {"benchmark": "soak", **request, "revision": revision(), "machine": machine()}
    try:
        with emulation_lock(wait_s=60.0):
            if points:
                seen = _inside("points_inside", {**request, "points": points}, points)
                found["points"] = findings_of_points([Footprint(**report) for report in seen])
            if kills:
                seen = _inside("kills_inside", {**request, "kills": kills}, 8 + 4 * kills)
                found["kills"] = findings_of_kills(seen)
    except RefabricError as error:
        click.echo(f"soak: {error}", err=True)
        sys.exit(error.exit_code)
    faults = [fault for part in ("points", "kills") for fault in found.get(part, {}).get("faults", [])]
    if as_json:
        click.echo(json.dumps(found))
    else:
        for part in ("points", "kills"):
            for name, value in found.get(part, {}).items():
                click.echo(f"{part}: {name:22} {value}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
