"""The report's settings, the commands that repeat a run, the tables of points, and missing points. Pure."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import topos
from engines.registry import SIMULATED_HOSTS, engine_words
from harness.claims.own_settings import OwnSettings, asked_k
from harness.experiment import Figure
from harness.load import Shown
from harness.metrics.metric import Metric, ShownIn, shown_in
from harness.metrics.metrics import GOODPUT_PCT_MEAN, JAIN, TABLES
from harness.options.fields import SPEC_FIELDS, exact
from harness.options.options import ENGINE
from harness.plan.sweeps import fat_trees
from harness.points import labels
from harness.points.baseline import is_baseline
from harness.points.labels import network, point_label, queue_label, workload_label
from harness.results import point_results, run_json
from harness.results.point_results import Judged
from model.reasons import texts
from model.result import Status
from model.spec import RunSpec, TopologySpec
from topos import TOPOLOGIES
from workloads.trace import NAME as TRACE

_ALWAYS = [option for option in SPEC_FIELDS if option.always and option.path != "routing"]
"""Without routing, which may differ between the transports of one command (_blocks)."""
NOTHING = "\N{EN DASH}"


def measured_points(points: Iterable[Judged]) -> list[Judged]:
    """Return all points except the baselines."""
    return [judged for judged in points if not is_baseline(judged.spec)]


@dataclass(frozen=True)
class Row:
    """A row of a table: cells under `Points.heads`, and the status for its colour."""

    cells: tuple[str, ...]
    status: str


@dataclass(frozen=True)
class Points:
    """The points of one setting; `baseline` gives the goodput of the baseline, which is 100 %."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[Row, ...]
    baseline: str


METRICS = shown_in(ShownIn.REPORT, TABLES)
OF_TRANSFERS = shown_in(ShownIn.TRANSFERS, TABLES)


def point_tables(
    points: Sequence[Judged], own: OwnSettings, metrics: tuple[Metric, ...] = ()
) -> list[Points]:
    """Return one table per network and workload, of a figure whose settings are `own`."""
    groups: dict[str, list[Judged]] = {}
    for judged in measured_points(points):
        groups.setdefault(labels.family(judged.spec), []).append(judged)
    return [_table(group, own, metrics) for group in groups.values()]


_AGREEMENT = (
    "mean %, emulated", "simulated", "difference", "Jain, emulated", "simulated", "Pearson", "Spearman",
)  # fmt: skip


def agreement_tables(points: Sequence[Judged], own: OwnSettings) -> list[Points]:
    """Return one table per network and workload that two engines ran: their agreement flow by flow."""
    groups: dict[str, list[point_results.Pair]] = {}
    for pair in point_results.pairs(points):
        groups.setdefault(labels.family(pair.simulated.spec), []).append(pair)
    return [_agreement(group, own) for group in groups.values()]


def _agreement(group: Sequence[point_results.Pair], own: OwnSettings) -> Points:
    specs = [pair.emulated.spec for pair in group]
    named = zip(group, labels.names(specs), strict=True)
    return Points(
        f"Flow by flow, emulated and simulated: {labels.setting_title(specs, own.together(specs))}",
        ("transport", "seed", *_AGREEMENT, "status"),
        tuple(Row(_agreeing(pair, name), pair.emulated.status.value) for pair, name in named),
        "percentages are of each engine's own baseline",
    )


def _agreeing(pair: point_results.Pair, name: str) -> tuple[str, ...]:
    here, there = pair.emulated, pair.simulated
    return (
        name,
        str(here.spec.seed),
        _value(GOODPUT_PCT_MEAN, here),
        _value(GOODPUT_PCT_MEAN, there),
        _cell(pair.mean_difference, "{:+.1f}".format),
        _value(JAIN, here),
        _value(JAIN, there),
        _cell(pair.correlation, "{:.2f}".format),
        _cell(pair.rank_correlation, "{:.2f}".format),
        here.state,
    )


def _table(group: Sequence[Judged], own: OwnSettings, more: tuple[Metric, ...]) -> Points:
    baselines = {j.baseline_mbps for j in group if j.baseline_mbps}
    percent = "; ".join(f"100 % is {mbps:.4g} Mb/s" for mbps in sorted(baselines))
    specs = [judged.spec for judged in group]
    named = zip(group, labels.names(specs), strict=True)
    again = any(len(judged.point.attempts) > 1 for judged in group)
    shown = OF_TRANSFERS if all(judged.point.numbers.all_sized for judged in group) else METRICS
    metrics = (*(each for each in shown if any(each.at(judged) is not None for judged in group)), *more)
    return Points(
        labels.setting_title(specs, own.together(specs)),
        ("transport", "seed", *map(_head, metrics), *(["attempt"] if again else []), "status"),
        tuple(Row(_cells(judged, name, again, metrics), judged.status.value) for judged, name in named),
        percent or "there is no usable baseline, so there are no percentages",
    )


def _head(metric: Metric) -> str:
    return f"{metric.head} {metric.short_unit}".strip()


def _cells(judged: Judged, name: str, again: bool, metrics: tuple[Metric, ...]) -> tuple[str, ...]:
    return (
        name,
        str(judged.spec.seed),
        *(_value(metric, judged) for metric in metrics),
        *(
            [run_json.attempt_words(judged.point.attempts).removeprefix("attempt ") or "1 of 1"]
            if again
            else []
        ),
        judged.state,
    )


def _value(metric: Metric, judged: Judged) -> str:
    return _cell(metric.at(judged), metric.cell)


def _cell(value: float | None, show: Callable[[float], str]) -> str:
    return NOTHING if value is None else show(value)


@dataclass(frozen=True)
class Asked:
    """One setting of a figure as names and values of options."""

    fields: tuple[tuple[str, str], ...]


def asked(points: Sequence[Judged]) -> list[Asked]:
    """Return the options of the points: one entry per setting, ignoring k, workload, transport and seed."""
    groups: dict[tuple[str, ...], list[Judged]] = {}
    for judged in measured_points(points):
        groups.setdefault(_options(judged.spec), []).append(judged)
    return [_asked(group) for group in groups.values()]


def _asked(group: Sequence[Judged]) -> Asked:
    spec, link = group[0].spec, group[0].spec.link
    specs = [judged.spec for judged in group]
    how = dict.fromkeys(str(j.point.provenance.get("rate_choice", "")) for j in group)
    return Asked(
        (
            ("network", _each(network(s.topology) for s in specs)),
            ("workload", _each(workload_label(s) for s in specs)),
            ("transports", _each(labels.names(specs))),
            ("congestion control", labels.congestion(specs)),
            (
                "link rate",
                f"{link.rate_mbps:g} Mb/s ({_each(h for h in how if h) or 'not recorded how chosen'})",
            ),
            ("queues", queue_label(spec)),
            ("delay", f"{link.delay_us:g} \N{MICRO SIGN}s per link{_own_delays(spec.topology)}"),
            ("time", f"{spec.seconds:g} s measured after {spec.warmup_s:g} s of warm-up"),
            ("seeds", _each(str(s.seed) for s in sorted(specs, key=lambda s: s.seed))),
            *(() if spec.engine in SIMULATED_HOSTS else (("traffic", spec.traffic),)),
            ("engine", f"{engine_words(spec.engine, spec.dataplane)}, {labels.routing(specs)}"),
            *((("other options", shlex.join(extras)),) if (extras := _extras(spec)) else ()),
        )
    )


def _own_delays(topology: TopologySpec) -> str:
    """Return words on the delays that links of the network have of their own; empty if none has any."""
    delayed = any(link.delay_us for link in topos.build(topology.kind, topology.params).links)
    return ", more on links that have a delay of their own" if delayed else ""


def _each(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def commands(figure: Figure, points: Sequence[Judged], taken: Collection[str] | None = None) -> list[str]:
    """Return commands that run exactly these points at their rates.

    `taken` are the options of an experiment that fixes all others; None if it takes all.
    """
    blocks: dict[_Block, list[int]] = {}
    specs_asked = [judged.spec for judged in measured_points(points)]
    if taken is not None:
        specs_asked = _longest(specs_asked)
    for (options, k), specs in _by_size(figure, specs_asked).items():
        for block in _blocks(figure, options, specs):
            ks = blocks.setdefault(_only(block, taken), [])
            ks += [k] if k not in ks else []
    qmon = not figure.defaults.sampling.queues_ms and any(p.spec.sampling.queues_ms for p in points)
    qmon = qmon and (taken is None or "qmon" in taken)
    return [
        _command(figure.file or figure.name, block, ks if figure.sized else (), qmon)
        for block, ks in blocks.items()
    ]


def _longest(specs: Sequence[RunSpec]) -> list[RunSpec]:
    """Return the specs with the durations of the longest of their engine: other durations are fixed in the
    figure."""
    return [
        dataclasses.replace(
            spec,
            seconds=max(other.seconds for other in specs if other.engine == spec.engine),
            warmup_s=max(other.warmup_s for other in specs if other.engine == spec.engine),
        )
        for spec in specs
    ]


def _only(block: _Block, taken: Collection[str] | None) -> _Block:
    """Return the block without options that the experiment does not take."""
    if taken is None:
        return block
    pairs = zip(block.options[::2], block.options[1::2], strict=True)
    kept = (pair for pair in pairs if pair[0].removeprefix("--").replace("-", "_") in taken)
    return dataclasses.replace(block, options=tuple(part for pair in kept for part in pair))


@dataclass(frozen=True)
class _Block:
    """Points that one command runs: every combination of these at each of its k."""

    options: tuple[str, ...]
    subflows: tuple[int, ...]
    seeds: tuple[int, ...]
    ccs: tuple[str, ...]


def _network(figure: Figure, topology: TopologySpec) -> tuple[str, ...]:
    """Return the `--topology` that selects this network, if no `--k` does."""
    if figure.topologies is not fat_trees or topology.kind == "fat_tree":
        return ()
    family = TOPOLOGIES[topology.kind]
    if family.size.text:
        return "--topology", f"file:{topology.params['name']}"
    return "--topology", ",".join(
        [family.alias, *(f"{name}={value}" for name, value in topology.params.items())]
    )


def _by_size(figure: Figure, specs: Iterable[RunSpec]) -> dict[tuple[tuple[str, ...], int], list[RunSpec]]:
    found: dict[tuple[tuple[str, ...], int], list[RunSpec]] = {}
    for spec in specs:
        own = figure.file and spec.workload.params.get("name") == figure.name
        workload = () if own else ("--workload", workload_label(spec))
        key = (*_network(figure, spec.topology), *workload, *_options(spec))
        found.setdefault((key, asked_k(figure, spec.topology)), []).append(spec)
    return found


def _blocks(figure: Figure, options: tuple[str, ...], specs: Sequence[RunSpec]) -> list[_Block]:
    """Return the blocks. Congestion controls with the same points share a command, which also runs a figure's
    baselines."""
    alike: dict[tuple[str, tuple[int, ...], tuple[int, ...]], list[str]] = {}
    asked = [spec for spec in specs if spec.transport.subflows > 1] if figure.baselines else specs
    settings: dict[tuple[str, str], list[RunSpec]] = {}
    for spec in asked:
        settings.setdefault((spec.routing, spec.transport.cc), []).append(spec)
    for (routing, cc), group in settings.items():
        for subflows, seeds in _products(group):
            alike.setdefault((routing, subflows, seeds), []).append(cc)
    return [
        _Block((*options, "--routing", routing), subflows, seeds, tuple(ccs))
        for (routing, subflows, seeds), ccs in alike.items()
    ]


def _products(specs: Sequence[RunSpec]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return pairs of subflow counts and consecutive seeds whose combinations are exactly these specs."""
    by_seed: dict[int, set[int]] = {}
    for spec in specs:
        by_seed.setdefault(spec.seed, set()).add(spec.transport.subflows)
    found: list[tuple[tuple[int, ...], list[int]]] = []
    for seed in sorted(by_seed):
        counts = tuple(sorted(by_seed[seed]))
        if found and found[-1][0] == counts and found[-1][1][-1] == seed - 1:
            found[-1][1].append(seed)
        else:
            found.append((counts, [seed]))
    return [(counts, tuple(seeds)) for counts, seeds in found]


def _options(spec: RunSpec) -> tuple[str, ...]:
    """Return every option that all transports of a command share, even at its default, which may change."""
    return (
        *_extras(spec),
        *("--engine", spec.engine, "--rate", exact(spec.link.rate_mbps)),
        *(part for option in _ALWAYS for part in option.argv(spec)),
        *("--seconds", exact(spec.seconds), "--warmup", exact(spec.warmup_s)),
    )


def _extras(spec: RunSpec) -> list[str]:
    """Return the options that most commands do not need."""
    return [part for option in SPEC_FIELDS if not option.always for part in option.argv(spec)]


def _command(figure: str, block: _Block, ks: Sequence[int], qmon: bool) -> str:
    root = ["sudo"] if ENGINE in block.options else []
    sizes = [] if not ks or "--topology" in block.options else ["--k", ",".join(map(str, sorted(ks)))]
    what = [*sizes, "--subflows", ranges(block.subflows)]
    which = ["--seed", str(block.seeds[0]), "--seeds", str(len(block.seeds)), "--cc", ",".join(block.ccs)]
    more = [*block.options, *(["--qmon"] if qmon else [])]
    return shlex.join([*root, ".venv/bin/refabric", "run", figure, *what, *which, *more])


def ranges(numbers: Sequence[int]) -> str:
    """Return increasing numbers as --subflows takes them: `1-4,6`."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ",".join(f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs)


def missing(shown: Shown) -> list[str]:
    """Return sentences on points that usually belong to this figure and were not run."""
    points = measured_points(shown.points)
    name = shown.figure.name
    if not points:
        return [f"No point of this figure was run yet: sudo .venv/bin/refabric run {name}"]
    usual = shown.figure.defaults
    own = bool(shown.figure.file)
    sizes = usual.ks if shown.figure.sized or not own else ()
    workloads = () if own and usual.workloads == (TRACE,) else usual.workloads
    absent = [
        *_lacking("k=", sizes, {asked_k(shown.figure, j.spec.topology) for j in points}),
        *_lacking("", workloads, {workload_label(j.spec) for j in points}),
        *_lacking("subflows ", usual.subflows, {j.spec.transport.subflows for j in points}),
    ]
    lacking = (
        [e for e in usual.engines if e not in point_results.engines(points)] if len(usual.engines) > 1 else []
    )
    sentences = [f"Usually part of this figure and not run: {', '.join(absent)}."] if absent else []
    sentences += [
        f"Engine {engine} has run none of it, so there is nothing to compare: "
        f"{'as root, ' if engine == ENGINE else ''}run the same command again for what is missing."
        for engine in lacking
    ]
    holes = _holes(points, OwnSettings([shown.figure]))
    if holes:
        more = f" and {len(holes) - 12} more" if len(holes) > 12 else ""
        sentences.append(f"Run for some settings and not for others: {'; '.join(holes[:12])}{more}.")
    return sentences


def _lacking(what: str, usual: Iterable[object], here: set[object]) -> list[str]:
    lacking = [str(value) for value in usual if value not in here]
    return [f"{what}{', '.join(lacking)}"] if lacking else []


def _holes(points: Sequence[Judged], own: OwnSettings) -> list[str]:
    """Return transports and seeds that some points of a setting have and others lack."""
    holes = []
    for table in point_tables(points, own):
        there = {(row.cells[0], row.cells[1]) for row in table.rows}
        transports, seeds = ([*dict.fromkeys(row.cells[n] for row in table.rows)] for n in (0, 1))
        holes += [
            f"{transport} seed {seed} ({table.title})"
            for transport in transports
            for seed in seeds
            if (transport, seed) not in there
        ]
    return holes


def failures(points: Iterable[Judged]) -> list[str]:
    """Return failed points with their reasons."""
    return [f"{point_label(j.spec)}: {texts(j.reasons)}" for j in points if j.status is Status.FAILED]
