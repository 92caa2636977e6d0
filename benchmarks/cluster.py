"""Speed of a sweep on a Dask cluster of this machine, by the number of workers, and the data that it moves.

    python benchmarks/cluster.py [--workers 1,4] [--runs 2] [--json] -- EXPERIMENT --engine simulator ...

Each run has a scheduler and workers of its own, with one thread each, as processes on 127.0.0.1, and an empty
folder for results. The numbers of workers alternate. `points_s` is the time from the line that says how many
points there are to the line of the last point; `seconds` is that of the whole command, charts and report
included. `speed` is one worker's `points_s` over this one's, medians of the runs, if one worker was measured.
`kb_a_point` is what passed the loopback device meanwhile, by number of points: tasks, events and results.
A machine with fewer CPUs than workers has at most the speed of its CPUs.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.other_programs import BusyTime
from benchmarks.stored_results import COMMAND
from engines.provenance import machine
from tests.support.dask_cluster import cluster

LOOPBACK = Path("/sys/class/net/lo/statistics/rx_bytes")
_BEGINS, _LAST = re.compile(r"^(\d+) points?\b"), re.compile(r"^\[(\d+)/\1\]")


@dataclass(frozen=True)
class Sweep:
    """One run of the sweep; `busy_pct` is the CPU use of the whole machine, each CPU 100 %."""

    workers: int
    points: int
    points_s: float
    seconds: float
    busy_pct: float
    kb_a_point: float


def sweep(workers: int, arguments: Sequence[str]) -> Sweep:
    """Run `refabric run ARGUMENTS` on a new cluster. Raises ClickException if it does not run all points."""
    threads = [("--nthreads", "1")] * workers
    with tempfile.TemporaryDirectory() as name, cluster(Path(name), *threads, quiet=False) as lab:
        moved, busy, began = _moved(), BusyTime(), time.monotonic()
        command = [*arguments, "--dask", lab.address, "--insecure", "--results", str(Path(name, "results"))]
        points, points_s = _points(command)
        seconds = time.monotonic() - began
        kb = (_moved() - moved) / 1000
    return Sweep(
        workers, points, round(points_s, 2), round(seconds, 2), round(busy.pct(), 1), round(kb / points, 1)
    )


def _moved() -> int:
    return int(LOOPBACK.read_text())


def _points(arguments: Sequence[str]) -> tuple[int, float]:
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, "run", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    points, began, ended, said = 0, 0.0, 0.0, ""
    with process:
        assert process.stdout is not None
        for line in process.stdout:
            said = line.strip() or said
            if found := _BEGINS.match(line):
                points, began = int(found[1]), time.monotonic()
            elif _LAST.match(line):
                ended = time.monotonic()
    if process.returncode not in (0, 1) or not ended:
        raise click.ClickException(f"refabric run did not run all points: {said}")
    return points, ended - began


def table(sweeps: Sequence[Sweep]) -> list[dict[str, Any]]:
    """Return medians by number of workers, and the speed over one worker's."""
    by_workers: dict[int, list[Sweep]] = {}
    for each in sweeps:
        by_workers.setdefault(each.workers, []).append(each)
    one = statistics.median(each.points_s for each in by_workers[1]) if 1 in by_workers else 0.0
    rows = []
    for workers, of in by_workers.items():
        names = ("points", "points_s", "seconds", "busy_pct", "kb_a_point")
        row = {name: statistics.median(getattr(each, name) for each in of) for name in names}
        rows.append({"workers": workers, **row, "speed": round(one / row["points_s"], 2), "runs": len(of)})
    return rows


@click.command()
@click.option("--workers", "counts", default="1,4", show_default=True, help="Numbers of workers.")
@click.option("--runs", default=2, show_default=True, type=click.IntRange(min=1), help="Runs of each.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def main(counts: str, runs: int, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Measure `refabric run ARGUMENTS` on clusters of this machine."""
    try:
        workers = [int(each) for each in counts.split(",")]
    except ValueError:
        workers = []
    if not workers or min(workers) < 1:
        raise click.UsageError(f"--workers {counts}: give numbers from 1, e.g. 1,4")
    sweeps = [sweep(number, arguments) for _ in range(runs) for number in workers]
    rows = table(sweeps)
    if as_json:
        head = {"benchmark": "cluster", "command": list(arguments), "cpus": len(os.sched_getaffinity(0))}
        click.echo(
            json.dumps({**head, "rows": rows, "sweeps": list(map(asdict, sweeps)), "machine": machine()})
        )
        return
    for row in rows:
        click.echo("  ".join(f"{key} {value}" for key, value in row.items()))


if __name__ == "__main__":
    main()
