"""Points in a row in one process, and what each leaves behind there and on the machine: a part of soak.py."""

from __future__ import annotations

import faulthandler
import gc
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engines.emulation.engine import MininetEngine
from engines.emulation.sandbox.inside import Inside
from engines.engine import Engine, Silent
from engines.simulation.engine import SimulatorEngine
from harness.execute.point import attempt
from harness.results.run_json import Attempt
from harness.results.store import Store
from model.result import Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec
from tests.support.leftovers import snapshot, wait_until_gone

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


def inside(inside: Inside) -> int:
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


def findings(seen: Sequence[Footprint]) -> dict[str, Any]:
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
