"""A stored point for the page: its scene, its means, and its steps from the samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from analysis.live_page import View, encode, longest, short_floats, stored, used
from common.errors import StoreError
from harness.results.store import StoredPoint
from harness.watch.scene import Scene, point_json
from model.reasons import texts
from model.result import Table

MAX_POINT_BYTES = 4_000_000
_NEEDED = ("links", "goodput")
TABLES = (*_NEEDED, "ports", "queues", "sockets")


def stored_json(point: StoredPoint, scene: Scene, most_bytes: int = MAX_POINT_BYTES) -> dict[str, Any]:
    """Return everything that a page shows of a stored point, in about `most_bytes` at most.

    A point without samples has no steps, and a note that says so; its means are still there.
    """
    shown, about = scene.shown, point_json(scene)
    fixed = sum(map(len, map(str, about["paths"]))) + 100 * len(about["flows"]) + 20_000
    most = max(1, (most_bytes - fixed) // shown.step_bytes)
    tables, notes = _tables(point)
    steps = stored(tables, shown, most) if all(name in tables for name in _NEEDED) else []
    goodput = {flow.flow: flow.goodput_mbps for flow in point.flows}
    return {
        **about,
        "id": point.name,
        "state": str(point.status),
        "reasons": texts(point.reasons),
        "notes": [*about["notes"], *notes, *_lacking(tables, len(steps))],
        "goodput": short_floats(np.array([goodput.get(i, np.nan) for i in range(shown.flows)])),
        "mean": short_floats(_mean(point, shown)),
        "longest": short_floats(_longest(point, shown)),
        "steps": [encode(step) for step in steps],
        "running": False,
    }


def _tables(point: StoredPoint) -> tuple[dict[str, Table], list[str]]:
    """Return the samples that can be read, and what is wrong with the others."""
    tables, notes = {}, []
    for name in TABLES:
        if name in point.sample_rows:
            try:
                tables[name] = point.sample(name)
            except StoreError as error:
                notes.append(f"Samples left out: {error}")
    return tables, notes


def _lacking(tables: dict[str, Table], steps: int) -> list[str]:
    if not steps:
        return ["This point has no samples over time: links show their mean over the whole window."]
    lacking = []
    if not {"ports", "queues"} & tables.keys():
        lacking.append("Queues and drops over time were not sampled: this point is from an older version.")
    if "sockets" not in tables:
        lacking.append("Windows of subflows were not sampled.")
    return lacking


def _mean(point: StoredPoint, shown: View) -> Any:
    """Return the mean use of each half in the whole window."""
    bps = np.zeros(len(shown.half_of))
    for row in point.ports:
        if 0 <= row.port < len(bps) and np.isfinite(row.utilisation_pct):
            bps[row.port] = row.utilisation_pct / 100 * shown.rates_bps[row.port]
    return used(shown, bps)


def _longest(point: StoredPoint, shown: View) -> Any:
    pkts = np.zeros(len(shown.half_of))
    for row in point.ports:
        if 0 <= row.port < len(pkts):
            pkts[row.port] = row.max_queue_pkts
    return longest(shown, pkts)
