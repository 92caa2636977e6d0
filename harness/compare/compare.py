"""`refabric compare`: two sets of results side by side, with the uncertainty of every difference.

Repetitions are seeds: the spread over a point's flows says nothing about another permutation. With two or
more seeds on both sides a difference has a 95 % interval, paired by seed if the seeds drew the same
permutation. With one seed it has none; the flows are compared one by one instead. Means leave out suspect
points unless all points are suspect.

`load_sides` reads the folders, `conditions` and `match` say which points belong together, `compare` computes
the differences, and `disagreements` lists what must agree and does not.
"""

from __future__ import annotations

import csv
import dataclasses
import statistics
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import topos
from analysis import stats
from analysis.stats import t_quantile
from common import files
from common.errors import StoreError, UsageError
from engines.registry import VIRTUAL_TIME
from harness import labels
from harness.baseline import baseline_of, is_baseline
from harness.labels import digest, network
from harness.metrics import summary_csv
from harness.metrics.metrics import GOODPUT_MBPS_MEAN, GOODPUT_PCT_MEAN, TABLES, Metric, ShownIn, shown_in
from harness.options.fields import BY_PATH, SpecField
from harness.results import point_results, provenance, store, tables
from harness.results.point_results import PointResult
from harness.results.provenance import NOT_RECORDED
from harness.results.run_json import RUN
from harness.results.store import is_point_name
from model.result import FlowRow, PortRow, Status, under_test
from model.spec import RunSpec, TopologySpec


@dataclass(frozen=True)
class Side:
    """One folder's points, each beside its baseline, the errors of damaged files, and the damaged points that
    are left out, with their errors."""

    path: Path
    points: tuple[PointResult, ...]
    broken: tuple[StoreError, ...]
    damaged: Mapping[str, StoreError] = field(default_factory=dict)

    @property
    def measured(self) -> list[PointResult]:
        """All points except the baselines."""
        return [judged for judged in self.points if not is_baseline(judged.spec)]


METRICS = shown_in(ShownIn.COMPARE, TABLES)
"""The metrics beside the mean goodput."""


@dataclass(frozen=True)
class SeedValues:
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

    def only(self, seeds: Sequence[int]) -> SeedValues:
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

    a: SeedValues
    b: SeedValues
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
class PairDifference:
    """A pair of conditions with the differences of all metrics."""

    pair: ConditionPair
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
    compared: tuple[PairDifference, ...]
    baselines: tuple[PairDifference, ...]
    unmatched: Matching
    provenance: dict[provenance.Fact, tuple[Sequence[str], Sequence[str]]]


def compare(a: Side, b: Side, *, more: Sequence[Metric] = ()) -> Comparison:
    """Compare the conditions of two sides, also by `more` metrics."""
    matching = match(conditions(a.measured), conditions(b.measured))
    networks = {network(side.spec.topology) for pair in matching.pairs for side in (pair.a, pair.b)}
    baselines = match(*(conditions(_baselines(side, networks)) for side in (a, b)))
    return Comparison(
        a,
        b,
        tuple(_compared(pair, more) for pair in matching.pairs),
        tuple(_compared(pair) for pair in baselines.pairs),
        matching,
        provenance.contrasts(a.points, b.points),
    )


def _baselines(side: Side, networks: Collection[str]) -> list[PointResult]:
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


def _compared(pair: ConditionPair, more: Sequence[Metric] = ()) -> PairDifference:
    of_baseline = is_baseline(pair.a.spec)
    pct = difference(pair, GOODPUT_PCT_MEAN)
    metric = GOODPUT_MBPS_MEAN if of_baseline or pct.how is How.NOTHING else GOODPUT_PCT_MEAN
    goodput = pct if metric is GOODPUT_PCT_MEAN else difference(pair, metric)
    others = tuple((other, difference(pair, other)) for other in (*METRICS, *more))
    flows = flow_by_flow(pair, metric) if goodput.how is How.ONE_SEED and not of_baseline else None
    return PairDifference(pair, metric, goodput, others, flows)


def sample(condition: Condition, metric: Metric) -> SeedValues:
    """Return the metric at every seed that may be averaged: the suspect ones only if all are suspect."""
    known = {
        seed: (point, value)
        for seed, point in condition.by_seed().items()
        if (value := metric.at(point)) is not None
    }
    good = {seed: value for seed, (point, value) in known.items() if point.status is Status.OK}
    doubtful = {seed: value for seed, (point, value) in known.items() if point.status is not Status.OK}
    return SeedValues(
        by_seed=good or doubtful,
        suspect=not good and bool(doubtful),
        left_out=len(doubtful) if good else 0,
        lost=len(condition.points) - len(known),
    )


def difference(pair: ConditionPair, metric: Metric) -> Difference:
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


def flow_by_flow(pair: ConditionPair, metric: Metric) -> FlowByFlow | None:
    """Compare the flows of the first seed that both sides have; None if they have no flows in common."""
    if not pair.same_permutation:
        return None
    a, b = sample(pair.a, metric).by_seed, sample(pair.b, metric).by_seed
    for seed in a:
        if seed in b:
            return _flows(pair.a.by_seed()[seed], pair.b.by_seed()[seed], metric)
    return None


def _flows(a: PointResult, b: PointResult, metric: Metric) -> FlowByFlow | None:
    ours, theirs = (
        {
            (flow.flow, flow.src, flow.dst): flow.goodput_mbps * _scale(judged, metric)
            for flow in under_test(judged.flows)
        }
        for judged in (a, b)
    )
    if ours.keys() != theirs.keys() or len(ours) < 2:
        return None
    changes = [theirs[key] - ours[key] for key in ours]
    low, middle, high = statistics.quantiles(changes, n=4, method="inclusive")
    faster = sum(change > 0 for change in changes)
    return FlowByFlow(a.spec.seed, len(changes), faster, metric.short_unit, (low, middle, high))


def _scale(judged: PointResult, metric: Metric) -> float:
    """The factor from Mb/s to the metric's unit."""
    return 100 / judged.baseline_mbps if metric is GOODPUT_PCT_MEAN and judged.baseline_mbps else 1.0


Value = str | float | int
Fields = Mapping[str, Value]
MAX_TEXT = 500
AS_PORTS = "as the ports"
"""The usual length of hosts' own queues: that of all other queues. Then it is not a field."""
_ELSEWHERE = {"topology", "workload", "seed", "sampling"}
PERMUTATION = ("topology", "workload")
"""Prefixes of the fields that determine, with the seed, which hosts communicate."""


def fields_of(spec: RunSpec) -> dict[str, Value]:
    """Return everything that was requested except seed and sampling, flat.

    Names are those of the spec's fields, or of options that set several of them.
    """
    link = spec.link
    nic = AS_PORTS if link.nic_queue_pkts == link.queue_pkts else link.nic_queue_pkts
    return {
        "topology": spec.topology.kind,
        **_parameters(spec.topology),
        "workload": spec.workload.matrix,
        **{f"workload {name}": _brief(value) for name, value in sorted(spec.workload.params.items())},
        **_flat(spec, ""),
        "nic_queue_pkts": nic,
    }


def _flat(part: Any, at: str) -> dict[str, Value]:
    """Return the fields of `part`, which is at the path `at` of a spec, each by its own name."""
    found: dict[str, Value] = {}
    for of in dataclasses.fields(part):
        path, value = f"{at}{of.name}", getattr(part, of.name)
        if path in _ELSEWHERE:
            continue
        if path in BY_PATH and not isinstance(value, str | float | int):
            found |= _typed(BY_PATH[path], value)
        elif dataclasses.is_dataclass(value):
            found |= _flat(value, f"{path}.")
        else:
            found[of.name] = value
    return found


def _typed(option: SpecField, value: Any) -> dict[str, Value]:
    """Return a value that is not a single number or text, in the syntax of the options."""
    if isinstance(value, Mapping):
        return {f"{option.name} {name}": text for name, text in sorted(value.items())}
    text = option.text(value)
    return {option.name: text if isinstance(text, str) else " ".join(text)}


def _brief(value: Value) -> Value:
    """Return a value, or a digest of a long text: data of a user's file."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"#{digest(value)}"
    return value


def _parameters(topology: TopologySpec) -> dict[str, Value]:
    """Return size, replicas and parameters that differ from their defaults, independent of how they were
    given."""
    family = topos.TOPOLOGIES[topology.kind]
    shape = {family.size.name: topology.k, **dict(topos.shape(topology.kind, topology.params))}
    if topos.LANES in topology.params:
        shape[topos.LANES] = topology.number(topos.LANES)
    if family.size.text:
        return {f"topology {name}": _brief(value) for name, value in sorted(topology.params.items())}
    return {f"topology {name}": value for name, value in sorted(shape.items())}


@dataclass(frozen=True)
class Condition:
    """What was requested, and the points that ran it, with one or more seeds."""

    fields: Fields
    points: tuple[PointResult, ...]

    @property
    def spec(self) -> RunSpec:
        """The spec of the first seed."""
        return self.points[0].spec

    def by_seed(self) -> dict[int, PointResult]:
        return {point.spec.seed: point for point in self.points}


@dataclass(frozen=True)
class ConditionPair:
    """Two conditions to compare, and the fields in which they differ."""

    a: Condition
    b: Condition

    @property
    def differing(self) -> tuple[str, ...]:
        names = dict.fromkeys((*self.a.fields, *self.b.fields))
        return tuple(name for name in names if self.a.fields.get(name) != self.b.fields.get(name))

    @property
    def same_permutation(self) -> bool:
        """Whether equal seeds mean equal pairs of hosts."""
        return not any(name.startswith(PERMUTATION) for name in self.differing)


@dataclass(frozen=True)
class Matching:
    """Every condition of both sides, exactly once.

    `ambiguous` are conditions of A and of B that agree in everything that both sides have in common, so that
    more than one pairing is possible."""

    pairs: tuple[ConditionPair, ...]
    ambiguous: tuple[tuple[list[Condition], list[Condition]], ...]
    only_a: tuple[Condition, ...]
    only_b: tuple[Condition, ...]


def conditions(points: Iterable[PointResult]) -> list[Condition]:
    """Group points by what was requested, in their order."""
    groups: dict[tuple[tuple[str, Value], ...], list[PointResult]] = {}
    for point in points:
        groups.setdefault(_key(fields_of(point.spec)), []).append(point)
    return [Condition(dict(key), tuple(group)) for key, group in groups.items()]


def match(a: Sequence[Condition], b: Sequence[Condition]) -> Matching:
    """Pair the conditions of two sides, network by network if both have the same networks.

    Link rates are chosen per network, so k=4 may agree when k=8 does not.
    """
    shared = {_network(one.fields) for one in a} & {_network(one.fields) for one in b}
    if not shared:
        return _match(a, b)
    parts = [
        _match(*([c for c in side if _network(c.fields) == network] for side in (a, b)))
        for network in sorted(shared, key=str)
    ]
    return Matching(
        tuple(pair for part in parts for pair in part.pairs),
        tuple(open_ for part in parts for open_ in part.ambiguous),
        (*(c for part in parts for c in part.only_a), *_elsewhere(a, shared)),
        (*(c for part in parts for c in part.only_b), *_elsewhere(b, shared)),
    )


def _match(a: Sequence[Condition], b: Sequence[Condition]) -> Matching:
    about = contested(a, b)
    of_a, of_b = _grouped(a, about), _grouped(b, about)
    keys = dict.fromkeys((*of_a, *of_b))
    both = [(of_a[key], of_b[key]) for key in keys if key in of_a and key in of_b]
    single = [(ours, theirs) for ours, theirs in both if len(ours) == len(theirs) == 1]
    return Matching(
        tuple(ConditionPair(ours[0], theirs[0]) for ours, theirs in single),
        tuple((ours, theirs) for ours, theirs in both if len(ours) + len(theirs) > 2),
        tuple(c for key in keys if key not in of_b for c in of_a[key]),
        tuple(c for key in keys if key not in of_a for c in of_b[key]),
    )


def contested(a: Sequence[Condition], b: Sequence[Condition]) -> set[str]:
    """Return the fields for which the two sides have no value in common: the subject of the comparison."""
    names = {name for condition in (*a, *b) for name in condition.fields}
    return {name for name in names if not {c.fields.get(name) for c in a} & {c.fields.get(name) for c in b}}


def _grouped(side: Sequence[Condition], without: set[str]) -> dict[tuple[object, ...], list[Condition]]:
    groups: dict[tuple[object, ...], list[Condition]] = {}
    for condition in side:
        kept = {name: value for name, value in condition.fields.items() if name not in without}
        groups.setdefault(_key(kept), []).append(condition)
    return groups


def _key(fields: Fields) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(fields.items()))


def _network(fields: Fields) -> tuple[tuple[str, Value], ...]:
    return _key({name: value for name, value in fields.items() if name.startswith("topology")})


def _elsewhere(side: Sequence[Condition], shared: set[tuple[tuple[str, Value], ...]]) -> list[Condition]:
    return [condition for condition in side if _network(condition.fields) not in shared]


SIGNIFICANCE = 0.05
MAX_SUMMARY_BYTES = 1 << 28


class DisagreementKind(StrEnum):
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

    kind: DisagreementKind
    side: str
    point: str
    what: str


def disagreements(comparison: Comparison) -> list[Disagreement]:
    """Return everything in which the two sides, or the files of one side, disagree."""
    sides = (("A", comparison.a), ("B", comparison.b))
    found = [
        *(
            Disagreement(DisagreementKind.DAMAGED, name, point, str(error))
            for name, side in sides
            for point, error in side.damaged.items()
        ),
        *(one for name, side in sides for one in _summary(name, side)),
        *_missing(comparison),
        *_unequal(comparison),
        *_changed(comparison),
    ]
    return list({(one.kind, one.side, one.point or one.what): one for one in found}.values())


def reproducible(comparison: Comparison) -> list[tuple[PointResult, PointResult]]:
    """Return the pairs of points in virtual time with the same spec: what must be equal."""
    there = {judged.name: judged for judged in comparison.b.points}
    return [
        (judged, there[judged.name])
        for judged in comparison.a.points
        if judged.spec.engine in VIRTUAL_TIME and judged.name in there
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
        yield Disagreement(DisagreementKind.SUMMARY, name, "", f"{store.SUMMARY} cannot be read: {error}")
        return
    known = {judged.name: judged for judged in side.points}
    for line in lines:
        point = line.get("point") or ""
        if point in known:
            cells = summary_csv.cells(side.path.name, known[point])
            off = [
                f"{column} is {line[column]}, its files give {cells[column]}"
                for column in ("status", *summary_csv.METRICS)
                if line.get(column) is not None and cells[column] and line[column] != cells[column]
            ]
            if off:
                yield Disagreement(
                    DisagreementKind.SUMMARY, name, point, f"in {store.SUMMARY}, {'; '.join(off)}"
                )
        elif point and point not in side.damaged:
            yield Disagreement(
                DisagreementKind.MISSING, name, point, f"{store.SUMMARY} lists it, and it is not there"
            )


def _missing(comparison: Comparison) -> Iterator[Disagreement]:
    """Yield the points of A without a partner in B."""
    unmatched = comparison.unmatched
    alone = [point for condition in unmatched.only_a for point in condition.points]
    for one in comparison.compared:
        alone += _seeds_alone(one.pair)
    damaged = comparison.b.damaged
    for judged in alone:
        if judged.name not in damaged:
            yield _lacking(judged, "B has no such point")
    for ours, _ in unmatched.ambiguous:
        for condition in ours:
            yield from (_lacking(judged, "B has no single partner for it") for judged in condition.points)
    paired = [point.spec for one in comparison.compared for point in one.pair.b.points]
    wanted = {store.point_name(baseline_of(spec)) for spec in paired}
    held = {judged.name for judged in comparison.b.points}
    for judged in comparison.a.points:
        name = judged.name
        if is_baseline(judged.spec) and name in wanted and name not in held and name not in damaged:
            yield _lacking(judged, "B has no such baseline")


def _seeds_alone(pair: ConditionPair) -> list[PointResult]:
    """Return the points of A whose seed B lacks.

    Other seeds throughout are what is compared, as two samples, unless results must be equal.
    """
    of_a, of_b = pair.a.by_seed(), pair.b.by_seed()
    must_be_equal = not pair.differing and pair.a.spec.engine in VIRTUAL_TIME
    if not must_be_equal and not of_a.keys() & of_b.keys():
        return []
    return [point for seed, point in of_a.items() if seed not in of_b]


def _lacking(judged: PointResult, what: str) -> Disagreement:
    return Disagreement(DisagreementKind.MISSING, "B", judged.name, what)


def _unequal(comparison: Comparison) -> Iterator[Disagreement]:
    for a, b in reproducible(comparison):
        try:
            differences = list(_differences(a, b))
        except StoreError as error:
            yield Disagreement(DisagreementKind.DAMAGED, "", a.name, str(error))
            continue
        if differences:
            yield Disagreement(
                DisagreementKind.UNEQUAL, "", a.name, f"{'; '.join(differences)} ({_revisions(a, b)})"
            )


def _differences(a: PointResult, b: PointResult) -> Iterator[str]:
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
    common = (name for name in a.samples if name in b.samples)
    if names := [name for name in common if a.sample(name) != b.sample(name)]:
        yield f"samples {', '.join(names)}"


def _row_differences(kind: type[Any], name: str, a: Sequence[Any], b: Sequence[Any]) -> Iterator[str]:
    if a == b:
        return
    here, there = (tables.rows_bytes(kind, rows).splitlines() for rows in (a, b))
    if len(here) != len(there):
        yield f"{len(a)} {name}s in A, {len(b)} in B"
    elif off := sum(x != y for x, y in zip(here, there, strict=True)):
        yield f"{off} of {len(a)} {name}s differ"


def _changed_names(a: dict[str, float], b: dict[str, float]) -> list[str]:
    return [name for name in dict.fromkeys((*a, *b)) if a.get(name) != b.get(name)]


def _revisions(a: PointResult, b: PointResult) -> str:
    of_a, of_b = (str(point.provenance.get("revision", NOT_RECORDED)) for point in (a, b))
    return f"both of revision {of_a}" if of_a == of_b else f"revision {of_a} in A, {of_b} in B"


def _changed(comparison: Comparison) -> Iterator[Disagreement]:
    """Yield the equal settings in real time whose mean goodput differs by more than chance explains."""
    judged = [one for one in comparison.compared if _is_chance(one)]
    for one in judged:
        interval = one.goodput.interval
        if interval and abs(interval.value) > _widened(one, len(judged)) * interval.half:
            spec = one.pair.a.spec
            change = f"changed by {interval.value:+.{one.metric.decimals}f} {one.unit}"
            setting = f"{labels.names([spec])[0]}, {labels.setting_title([spec])}"
            yield Disagreement(DisagreementKind.CHANGED, "", "", f"mean goodput {change}: {setting}")


def _is_chance(one: PairDifference) -> bool:
    """Whether chance alone may make the two sides differ, and by a known amount."""
    real_time = one.pair.a.spec.engine not in VIRTUAL_TIME
    return (
        real_time and not one.pair.differing and not one.goodput.suspect and one.goodput.interval is not None
    )


def _widened(one: PairDifference, intervals: int) -> float:
    """Return by what to multiply half of a 95 % interval, so that all intervals hold with 95 %."""
    difference = one.goodput
    freedom = min(len(difference.a.by_seed), len(difference.b.by_seed)) - 1
    return t_quantile(1 - SIGNIFICANCE / 2 / intervals, freedom) / t_quantile(1 - SIGNIFICANCE / 2, freedom)
