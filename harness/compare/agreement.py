"""What two folders must agree in, so that a course can grade by the exit code of `refabric compare`.

* Points in virtual time of the same spec have the same rows, metrics and samples on every machine. Another
  revision of refabric may change them; that is a disagreement too, and its text names both revisions.
* Points in real time of the same setting may differ as far as chance explains it. The level is 95 % for all
  intervals together (Bonferroni), so that many comparisons do not make a difference.
* Every point of A has a partner in B; B may have more.
* No point is damaged, and summary.csv has the numbers of the points beside it.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from analysis.stats import t_quantile
from common import files
from common.errors import StoreError
from engines.registry import VIRTUAL_TIME
from harness.compare.compare import Compared, Comparison, Side
from harness.compare.match import Pair
from harness.metrics.columns import METRICS, Rows
from harness.points import labels
from harness.points.baseline import baseline_of, is_baseline
from harness.results import store, tables
from harness.results.point_results import Judged
from harness.results.provenance import NOT_RECORDED
from harness.results.store import StoredPoint
from model.result import FlowRow, PortRow

SIGNIFICANCE = 0.05
MAX_SUMMARY_BYTES = 1 << 28


class Kind(StrEnum):
    """The kinds of disagreement."""

    DAMAGED = "damaged"
    SUMMARY = "summary"
    MISSING = "missing"
    UNEQUAL = "unequal"
    CHANGED = "changed"


@dataclass(frozen=True)
class Disagreement:
    """One reason for exit code 1. `side` is A or B, empty where it is about both; `point` is the name of a
    point, empty where it is about several."""

    kind: Kind
    side: str
    point: str
    what: str


def disagreements(comparison: Comparison) -> list[Disagreement]:
    """Return everything in which the two sides, or the files of one side, disagree."""
    sides = (("A", comparison.a), ("B", comparison.b))
    found = [
        *(
            Disagreement(Kind.DAMAGED, name, point, str(error))
            for name, side in sides
            for point, error in side.damaged.items()
        ),
        *(one for name, side in sides for one in _summary(name, side)),
        *_missing(comparison),
        *_unequal(comparison),
        *_changed(comparison),
    ]
    return list({(one.kind, one.side, one.point or one.what): one for one in found}.values())


def reproducible(comparison: Comparison) -> list[tuple[StoredPoint, StoredPoint]]:
    """Return the pairs of points in virtual time with the same spec: what must be equal."""
    there = {judged.point.name: judged.point for judged in comparison.b.points}
    return [
        (judged.point, there[judged.point.name])
        for judged in comparison.a.points
        if judged.spec.engine in VIRTUAL_TIME and judged.point.name in there
    ]


def _summary(name: str, side: Side) -> Iterator[Disagreement]:
    """Compare summary.csv, where there is one, with the points beside it.

    Numbers that cannot be computed any more, such as those of samples that were not exported, do not count.
    """
    try:
        text = files.read_bytes(side.path / store.SUMMARY, MAX_SUMMARY_BYTES).decode()
        lines = list(csv.DictReader(text.splitlines()))
    except FileNotFoundError:
        return
    except (OSError, ValueError, csv.Error) as error:
        yield Disagreement(Kind.SUMMARY, name, "", f"{store.SUMMARY} cannot be read: {error}")
        return
    known = {judged.point.name: judged for judged in side.points}
    rows = Rows()
    for line in lines:
        point = line.get("point") or ""
        if point in known:
            cells = rows.of(side.path.name, known[point])
            off = [
                f"{column} is {line[column]}, its files give {cells[column]}"
                for column in ("status", *METRICS)
                if line.get(column) is not None and cells[column] and line[column] != cells[column]
            ]
            if off:
                yield Disagreement(Kind.SUMMARY, name, point, f"in {store.SUMMARY}, {'; '.join(off)}")
        elif point and point not in side.damaged:
            yield Disagreement(Kind.MISSING, name, point, f"{store.SUMMARY} lists it, and it is not there")


def _missing(comparison: Comparison) -> Iterator[Disagreement]:
    """Yield the points of A without a partner in B."""
    unmatched = comparison.unmatched
    alone = [point for condition in unmatched.only_a for point in condition.points]
    for one in comparison.compared:
        alone += _seeds_alone(one.pair)
    damaged = comparison.b.damaged
    for judged in alone:
        if judged.point.name not in damaged:
            yield _lacking(judged, "B has no such point")
    for open_ in unmatched.ambiguous:
        for condition in open_.a:
            yield from (_lacking(judged, "B has no single partner for it") for judged in condition.points)
    paired = [point.spec for one in comparison.compared for point in one.pair.b.points]
    wanted = {store.point_name(baseline_of(spec)) for spec in paired}
    held = {judged.point.name for judged in comparison.b.points}
    for judged in comparison.a.points:
        name = judged.point.name
        if is_baseline(judged.spec) and name in wanted and name not in held and name not in damaged:
            yield _lacking(judged, "B has no such baseline")


def _seeds_alone(pair: Pair) -> list[Judged]:
    """Return the points of A whose seed B lacks.

    Other seeds throughout are what is compared, as two samples, unless results must be equal.
    """
    of_a, of_b = pair.a.by_seed(), pair.b.by_seed()
    must_be_equal = not pair.differing and pair.a.spec.engine in VIRTUAL_TIME
    if not must_be_equal and not of_a.keys() & of_b.keys():
        return []
    return [point for seed, point in of_a.items() if seed not in of_b]


def _lacking(judged: Judged, what: str) -> Disagreement:
    return Disagreement(Kind.MISSING, "B", judged.point.name, what)


def _unequal(comparison: Comparison) -> Iterator[Disagreement]:
    for a, b in reproducible(comparison):
        try:
            differences = list(_differences(a, b))
        except StoreError as error:
            yield Disagreement(Kind.DAMAGED, "", a.name, str(error))
            continue
        if differences:
            yield Disagreement(Kind.UNEQUAL, "", a.name, f"{'; '.join(differences)} ({_revisions(a, b)})")


def _differences(a: StoredPoint, b: StoredPoint) -> Iterator[str]:
    """Say in what two results of the same spec differ. Raises StoreError for damaged samples."""
    if a.status is not b.status:
        yield f"status {a.status} in A, {b.status} in B"
    yield from _row_differences(FlowRow, "flow", a.flows, b.flows)
    if a.goodput_mbps != b.goodput_mbps and a.goodput_mbps and b.goodput_mbps:
        yield f"mean goodput {a.goodput_mbps.mean:.6g} Mb/s in A, {b.goodput_mbps.mean:.6g} in B"
    yield from _row_differences(PortRow, "port", a.ports, b.ports)
    values = [{n: v for n, v in side.metrics.items() if n not in side.cost} for side in (a, b)]
    if names := _changed_names(*values):
        yield f"metrics {', '.join(names)}"
    common = (name for name in a.sample_rows if name in b.sample_rows)
    if names := [name for name in common if a.sample(name) != b.sample(name)]:
        yield f"samples {', '.join(names)}"


def _row_differences(kind: type[Any], name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[str]:
    here, there = (tables.rows_bytes(kind, rows).splitlines() for rows in (a, b))
    if len(here) != len(there):
        yield f"{len(a)} {name}s in A, {len(b)} in B"
    elif off := sum(x != y for x, y in zip(here, there, strict=True)):
        yield f"{off} of {len(a)} {name}s differ"


def _changed_names(a: dict[str, float], b: dict[str, float]) -> list[str]:
    return [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]


def _revisions(a: StoredPoint, b: StoredPoint) -> str:
    of_a, of_b = (str(point.provenance.get("revision", NOT_RECORDED)) for point in (a, b))
    return f"both of revision {of_a}" if of_a == of_b else f"revision {of_a} in A, {of_b} in B"


def _changed(comparison: Comparison) -> Iterator[Disagreement]:
    """Yield the equal settings in real time whose mean goodput differs by more than chance explains."""
    judged = [one for one in comparison.compared if _is_judged(one)]
    for one in judged:
        interval = one.goodput.interval
        if interval and abs(interval.value) > _widened(one, len(judged)) * interval.half:
            spec = one.pair.a.spec
            change = f"changed by {interval.value:+.{one.metric.decimals}f} {one.unit}"
            setting = f"{labels.names([spec])[0]}, {labels.setting_title([spec])}"
            yield Disagreement(Kind.CHANGED, "", "", f"mean goodput {change}: {setting}")


def _is_judged(one: Compared) -> bool:
    """Whether chance alone may make the two sides differ, and by a known amount."""
    real_time = one.pair.a.spec.engine not in VIRTUAL_TIME
    return (
        real_time and not one.pair.differing and not one.goodput.suspect and one.goodput.interval is not None
    )


def _widened(one: Compared, intervals: int) -> float:
    """Return by what to multiply half of a 95 % interval, so that all intervals hold with 95 %."""
    difference = one.goodput
    freedom = min(len(difference.a.by_seed), len(difference.b.by_seed)) - 1
    return t_quantile(1 - SIGNIFICANCE / 2 / intervals, freedom) / t_quantile(1 - SIGNIFICANCE / 2, freedom)
