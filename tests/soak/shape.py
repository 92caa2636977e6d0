"""A results folder's shape, which is everything in it but the numbers; and its faults: a part of soak.py."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common.errors import StoreError
from common.files import TMP_PREFIX
from harness.results import store
from harness.results.run_json import RUN
from harness.results.store import StoredPoint
from model.reasons import AGENT, texts
from model.result import Status


def shape(directory: Path, rows: bool = True) -> dict[str, Any]:
    """Nested dictionaries of names, columns and row counts: equal for two runs of the same sweep.

    Samples leave zeros out and depend on the moment: only whether they have rows counts, and not without
    `rows`, as in a second nothing may happen.
    """
    found = store.scan(directory)
    return {
        "broken": [str(error) for error in found.broken],
        "unfinished": sorted(entry.name for entry in directory.glob(f"{TMP_PREFIX}*")),
        "points": {point.name: _point(point, rows) for point in found.points},
        "charts": sorted(path.name for path in (directory / "charts").iterdir()),
        "summary": _summary(directory / store.SUMMARY),
    }


def _point(point: StoredPoint, rows: bool) -> dict[str, Any]:
    run = json.loads((point.path / RUN).read_text())
    return {
        "finished": point.finished,
        "spec": run["spec"],
        "fields": sorted(run),
        "metrics": sorted(run.get("metrics", ())),
        "provenance": sorted(run.get("provenance", ())),
        "flows": [(flow.flow, flow.src, flow.dst, flow.sport, flow.dport) for flow in point.flows],
        "ports": [(port.port, port.node, port.peer) for port in point.ports],
        "samples": {name: _sample(point, name, rows) for name in point.sample_rows},
        "files": sorted(str(path.relative_to(point.path)) for path in point.path.rglob("*")),
        "tables": _tables(point) if run["spec"]["engine"] == "simulator" else {},
    }


def _tables(point: StoredPoint) -> dict[str, str]:
    """Return a digest of each table, which the simulator writes byte by byte as before."""
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in point.path.glob("*.csv*")}


def _sample(point: StoredPoint, name: str, rows: bool) -> tuple[list[str], bool]:
    table = point.sample(name)
    return list(table.columns), rows and len(table) > 0


def _summary(path: Path) -> dict[str, Any]:
    with path.open(newline="") as file:
        reader = csv.DictReader(file, strict=True)
        rows = list(reader)
    named = ("workload", "subflows", "seed", "hosts", "rate_mbps")
    whole = [all(row.get(name) for name in (*named, "status")) and _has_numbers(row) for row in rows]
    return {
        "columns": list(reader.fieldnames or ()),
        "rows": [{name: row.get(name) for name in named} for row in rows],
        "whole": whole,
    }


def _has_numbers(row: Mapping[str, str]) -> bool:
    """A point that failed, because one of its programs was killed for example, has none."""
    numbers = ("goodput_mbps_mean", "calls_offered_per_s")
    return any(row.get(name) for name in numbers) or row.get("status") == Status.FAILED


def differences(expected: Any, found: Any, where: str = "") -> list[str]:
    """One line for each place where two shapes differ."""
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return [
            line
            for name in sorted({*expected, *found})
            for line in differences(expected.get(name), found.get(name), f"{where}/{name}")
        ]
    return [] if expected == found else [f"{where}: {found} instead of {expected}"]


def broken(directory: Path) -> list[str]:
    """Return what a killed sweep must not leave: points that are not whole, a summary that does not parse."""
    faults = [str(error) for error in store.scan(directory).broken]
    for point in store.scan(directory).points:
        for name in point.sample_rows:
            try:
                point.sample(name)
            except StoreError as error:
                faults.append(str(error))
    try:
        whole = _summary(directory / store.SUMMARY)["whole"]
    except FileNotFoundError:
        whole = []
    except (OSError, ValueError, csv.Error) as error:
        return [*faults, f"reading {directory / store.SUMMARY}: {error}"]
    if not all(whole):
        faults.append(f"reading {directory / store.SUMMARY}: rows without numbers")
    return faults


def finished(directory: Path) -> list[str]:
    """Return the names of points that the same command does not run again."""
    return (
        [point.name for point in store.scan(directory).points if point.finished] if directory.is_dir() else []
    )


def unnoticed(directory: Path, before: Sequence[str]) -> list[str]:
    """Return what is wrong after a program was killed: the first point not in `before` must have failed, or
    be suspect because its agent has ended, and must say so without a traceback."""
    points = [point for point in store.scan(directory).points if point.name not in before]
    faults = [
        f"{point.name} failed with a traceback" for point in points if "Traceback" in texts(point.reasons)
    ]
    for point in sorted(points, key=lambda point: (point.path / RUN).stat().st_mtime)[:1]:
        if point.finished and not any(reason.kind == AGENT for reason in point.reasons):
            faults.append(
                f"{point.name} does not say that a program ended: {texts(point.reasons) or point.status}"
            )
    return faults


def lost_its_agent(directory: Path) -> bool:
    """Return whether a point says that its agent ended. It is finished, but unlike an undisturbed one."""
    return any(reason.kind == AGENT for point in store.scan(directory).points for reason in point.reasons)


def unfinished(directory: Path) -> list[str]:
    """Return what a completed command must not leave: files of dead runs, points that failed."""
    files = [path.name for pattern in (f"{TMP_PREFIX}*", ".old-*") for path in directory.rglob(pattern)]
    return sorted(files) + [
        f"{point.name}, which failed" for point in store.scan(directory).points if not point.finished
    ]
