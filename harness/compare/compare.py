"""`refabric compare`: two sets of results side by side, with the uncertainty of every difference.

Repetitions are seeds: the spread over a point's flows says nothing about another permutation. With two or
more seeds on both sides a difference has a 95 % interval, paired by seed if the seeds drew the same
permutation. With one seed it has none; the flows are compared one by one instead. Means leave out suspect
points unless all points are suspect.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from analysis import stats
from common.errors import StoreError, UsageError
from harness.compare.match import Condition, Matching, Pair, conditions, match
from harness.metrics.metric import Metric, ShownIn, shown_in
from harness.metrics.metrics import GOODPUT_MBPS_MEAN, GOODPUT_PCT_MEAN, TABLES
from harness.points.baseline import baseline_of, is_baseline
from harness.points.labels import network
from harness.results import point_results, provenance, store
from harness.results.point_results import Judged
from harness.results.run_json import RUN
from harness.results.store import StoredPoint, is_point_name
from model.result import Status, under_test


@dataclass(frozen=True)
class Side:
    """One folder's points, each beside its baseline, the errors of damaged files, and the damaged points that
    are left out, with their errors."""

    path: Path
    points: tuple[Judged, ...]
    broken: tuple[StoreError, ...]
    damaged: Mapping[str, StoreError] = field(default_factory=dict)

    @property
    def stored(self) -> list[StoredPoint]:
        return [judged.point for judged in self.points]

    @property
    def measured(self) -> list[Judged]:
        """All points except the baselines."""
        return [judged for judged in self.points if not is_baseline(judged.spec)]


METRICS = shown_in(ShownIn.COMPARE, TABLES)
"""The metrics beside the mean goodput."""


@dataclass(frozen=True)
class Sample:
    """One metric over a condition's seeds. `suspect`: all seeds are suspect. `left_out`: suspect seeds left
    out of the mean; `lost`: points without a number; `unpaired`: seeds that the other side lacks."""

    by_seed: dict[int, float]
    suspect: bool
    left_out: int
    lost: int
    unpaired: int = 0

    @property
    def mean(self) -> float | None:
        return statistics.fmean(self.by_seed.values()) if self.by_seed else None

    def only(self, seeds: Sequence[int]) -> Sample:
        """Return these seeds only, in their order, so that the means and their difference agree."""
        chosen = {seed: self.by_seed[seed] for seed in seeds}
        return dataclasses.replace(self, by_seed=chosen, unpaired=len(self.by_seed) - len(chosen))


class How(StrEnum):
    """How the uncertainty of a difference is computed."""

    PAIRED = "paired"
    WELCH = "welch"
    ONE_SEED = "one seed: no uncertainty"
    NOTHING = "no number on one side"


@dataclass(frozen=True)
class Difference:
    """B minus A. `interval` is None if it cannot be computed; `pairs` is the number of paired seeds."""

    a: Sample
    b: Sample
    value: float | None
    interval: stats.Interval | None
    how: How
    pairs: int = 0

    @property
    def suspect(self) -> bool:
        return self.a.suspect or self.b.suspect


@dataclass(frozen=True)
class FlowByFlow:
    """The same flows on both sides at one seed: how many are faster in B, and the quartiles of B - A."""

    seed: int
    flows: int
    faster: int
    unit: str
    quartiles: tuple[float, float, float]


@dataclass(frozen=True)
class Compared:
    """A pair of conditions with the differences of all metrics."""

    pair: Pair
    metric: Metric
    """Mean goodput, in percent or in Mb/s."""
    goodput: Difference
    others: tuple[tuple[Metric, Difference], ...]
    flows: FlowByFlow | None

    @property
    def unit(self) -> str:
        return self.metric.short_unit


@dataclass(frozen=True)
class Comparison:
    """Two sides: pairs, conditions without a partner, and the differences in machine and software."""

    a: Side
    b: Side
    compared: tuple[Compared, ...]
    baselines: tuple[Compared, ...]
    unmatched: Matching
    provenance: tuple[provenance.Contrast, ...]


def compare(a: Side, b: Side) -> Comparison:
    """Compare the conditions of two sides."""
    matching = match(conditions(a.measured), conditions(b.measured))
    networks = {network(side.spec.topology) for pair in matching.pairs for side in (pair.a, pair.b)}
    baselines = match(*(conditions(_baselines(side, networks)) for side in (a, b)))
    return Comparison(
        a,
        b,
        tuple(_compared(pair) for pair in matching.pairs),
        tuple(_compared(pair) for pair in baselines.pairs),
        matching,
        tuple(provenance.contrasts(a.stored, b.stored)),
    )


def _baselines(side: Side, networks: Collection[str]) -> list[Judged]:
    """Return the baselines of these networks."""
    of = (judged for judged in side.points if is_baseline(judged.spec))
    return [judged for judged in of if network(judged.spec.topology) in networks]


def load_side(path: Path) -> Side:
    """Load a results/<experiment> folder, a results folder with one experiment, or one point's folder.

    Raises UsageError, one line, for a folder without results.
    """
    if not path.is_dir():
        what = "it is a file" if path.exists() else "there is no such folder"
        raise UsageError(f"comparing {path}: {what}; give results/<experiment>, e.g. results/cs244")
    side = _point_side(path) if (path / RUN).exists() else _folder_side(path)
    if side.measured or side.damaged:
        return side
    raise UsageError(
        f"comparing {path}: it holds {'baselines only' if side.points else 'no points'}; "
        "give a results/<experiment> folder that `refabric run` has written"
    )


def load_sides(a: Path, b: Path) -> tuple[Side, Side]:
    """Load both sides. Two results folders are compared by the one experiment they share.

    Raises UsageError as `load_side` does, for the same folder twice, and for several shared experiments.
    """
    if a.resolve() == b.resolve():
        raise UsageError(f"comparing {a} with itself: give two folders")
    held = [experiments_in(path) for path in (a, b)]
    return load_side(_chosen(a, held[0], b, held[1])), load_side(_chosen(b, held[1], a, held[0]))


def experiments_in(path: Path) -> list[str]:
    """Return the experiments in a results folder; none for the folder of an experiment or a point."""
    if not path.is_dir() or (path / RUN).exists() or has_points(path):
        return []
    return sorted(entry.name for entry in path.iterdir() if entry.is_dir() and has_points(entry))


def has_points(folder: Path) -> bool:
    """Return whether the folder contains point folders, readable or not."""
    return any((entry / RUN).exists() or is_point_name(entry.name) for entry in folder.iterdir())


def _chosen(path: Path, held: Sequence[str], other: Path, held_there: Sequence[str]) -> Path:
    if not held:
        return path
    wanted = set(held_there) or {other.resolve().name}
    fitting = [name for name in held if name in wanted] or list(held)
    if len(fitting) > 1:
        raise UsageError(
            f"comparing {path}: it holds {len(fitting)} experiments ({', '.join(fitting)}); "
            f"name one, e.g. {path / fitting[0]}"
        )
    return path / fitting[0]


def _point_side(path: Path) -> Side:
    """One point, and its baseline if that is beside it."""
    try:
        point = store.load_point(path)
    except StoreError as error:
        return Side(path, (), (error,), {path.resolve().name: error})
    beside = path.resolve().parent / store.point_name(baseline_of(point.spec))
    points, damaged = [point], {}
    if beside.exists() and not is_baseline(point.spec):
        try:
            points.append(store.load_point(beside))
        except StoreError as error:
            damaged[beside.name] = error
    return Side(path, tuple(point_results.judge(points)), tuple(damaged.values()), damaged)


def _folder_side(path: Path) -> Side:
    found = store.scan(path)
    return Side(path, tuple(point_results.judge(found.points)), found.broken, found.lost_points)


def _compared(pair: Pair) -> Compared:
    of_baseline = is_baseline(pair.a.spec)
    pct = difference(pair, GOODPUT_PCT_MEAN)
    metric = GOODPUT_MBPS_MEAN if of_baseline or pct.how is How.NOTHING else GOODPUT_PCT_MEAN
    goodput = pct if metric is GOODPUT_PCT_MEAN else difference(pair, metric)
    others = tuple((other, difference(pair, other)) for other in METRICS)
    flows = flow_by_flow(pair, metric) if goodput.how is How.ONE_SEED and not of_baseline else None
    return Compared(pair, metric, goodput, others, flows)


def sample(condition: Condition, metric: Metric) -> Sample:
    """Return the metric at every seed that may be averaged: the suspect ones only if all are suspect."""
    known = {
        seed: (point, value)
        for seed, point in condition.by_seed().items()
        if (value := metric.at(point)) is not None
    }
    good = {seed: value for seed, (point, value) in known.items() if point.status is Status.OK}
    doubtful = {seed: value for seed, (point, value) in known.items() if point.status is not Status.OK}
    return Sample(
        by_seed=good or doubtful,
        suspect=not good and bool(doubtful),
        left_out=len(doubtful) if good else 0,
        lost=len(condition.points) - len(known),
    )


def difference(pair: Pair, metric: Metric) -> Difference:
    """Return B minus A: paired by seed if two or more seeds drew the same permutation, else Welch's."""
    a, b = sample(pair.a, metric), sample(pair.b, metric)
    if a.mean is None or b.mean is None:
        return Difference(a, b, None, None, How.NOTHING)
    plain = b.mean - a.mean
    common = [seed for seed in a.by_seed if seed in b.by_seed] if pair.same_permutation else []
    if len(common) >= 2:
        a, b = a.only(common), b.only(common)
        interval = stats.paired_difference(list(a.by_seed.values()), list(b.by_seed.values()))
        return Difference(a, b, interval.value, interval, How.PAIRED, len(common))
    if min(len(a.by_seed), len(b.by_seed)) >= 2:
        interval = stats.welch_difference(list(a.by_seed.values()), list(b.by_seed.values()))
        return Difference(a, b, interval.value, interval, How.WELCH)
    return Difference(a, b, plain, None, How.ONE_SEED, len(common))


def flow_by_flow(pair: Pair, metric: Metric) -> FlowByFlow | None:
    """Compare the flows of the first seed that both sides have; None if they have no flows in common."""
    if not pair.same_permutation:
        return None
    a, b = sample(pair.a, metric).by_seed, sample(pair.b, metric).by_seed
    for seed in a:
        if seed in b:
            return _flows(pair.a.by_seed()[seed], pair.b.by_seed()[seed], metric)
    return None


def _flows(a: Judged, b: Judged, metric: Metric) -> FlowByFlow | None:
    ours, theirs = (
        {
            (flow.flow, flow.src, flow.dst): flow.goodput_mbps * _scale(judged, metric)
            for flow in under_test(judged.point.flows)
        }
        for judged in (a, b)
    )
    if ours.keys() != theirs.keys() or len(ours) < 2:
        return None
    changes = [theirs[key] - ours[key] for key in ours]
    low, middle, high = statistics.quantiles(changes, n=4, method="inclusive")
    faster = sum(change > 0 for change in changes)
    return FlowByFlow(a.spec.seed, len(changes), faster, metric.short_unit, (low, middle, high))


def _scale(judged: Judged, metric: Metric) -> float:
    """The factor from Mb/s to the metric's unit."""
    return 100 / judged.baseline_mbps if metric is GOODPUT_PCT_MEAN and judged.baseline_mbps else 1.0
