"""The report's settings, the commands that repeat a run, the tables of points, and missing points. Pure."""

from __future__ import annotations

import dataclasses
import shlex
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import topos
from common.text import counted
from engines.registry import SIMULATED_HOSTS, engine_words
from harness import labels
from harness.baseline import is_baseline
from harness.claims.claims import (
    NOT_MEASURED,
    OTHER_SIZE,
    SUSPECT,
    Claim,
    Colour,
    SentenceOutcome,
    Verdict,
    place,
    sentence_judgement,
)
from harness.claims.claims import sentences as sentences_of
from harness.claims.own_settings import OwnSettings, asked_k
from harness.experiment import Figure
from harness.labels import network, point_label, queue_label, workload_label
from harness.load import FigureResults
from harness.metrics.metrics import (
    GOODPUT_PCT_MEAN,
    JAIN,
    TABLES,
    Metric,
    ShownIn,
    of_programs,
    shown_in,
)
from harness.options.fields import SPEC_FIELDS, exact
from harness.options.options import ENGINE
from harness.plan.sweeps import fat_trees
from harness.report import sentences
from harness.results import point_results, run_json
from harness.results.point_results import PointResult
from model.reasons import texts
from model.result import Status
from model.spec import TRANSPORTS, RunSpec, TopologySpec
from topos import TOPOLOGIES
from workloads import matrices
from workloads.trace import NAME as TRACE

_ALWAYS = [option for option in SPEC_FIELDS if option.always and option.path != "routing"]
"""Without routing, which may differ between the transports of one command (_blocks)."""
NOTHING = "\N{EN DASH}"


def measured_points(points: Iterable[PointResult]) -> list[PointResult]:
    """Return all points except the baselines."""
    return [judged for judged in points if not is_baseline(judged.spec)]


@dataclass(frozen=True)
class PointTable:
    """The points of one setting: of each the cells under `heads`, and the status for the row's colour.
    `baseline` gives the goodput of the baseline, which is 100 %."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[tuple[str, ...], str], ...]
    baseline: str


METRICS = shown_in(ShownIn.REPORT, TABLES)
OF_TRANSFERS = shown_in(ShownIn.TRANSFERS, TABLES)


def point_tables(
    points: Sequence[PointResult], own: OwnSettings, metrics: tuple[Metric, ...] = ()
) -> list[PointTable]:
    """Return one table per network and workload, of a figure whose settings are `own`."""
    groups: dict[str, list[PointResult]] = {}
    for judged in measured_points(points):
        groups.setdefault(labels.family(judged.spec), []).append(judged)
    axes = labels.shared([judged.spec for group in groups.values() for judged in group]).axes
    return [_table(group, own, axes, metrics) for group in groups.values()]


_AGREEMENT = (
    "mean %, emulated", "simulated", "difference", "Jain, emulated", "simulated", "Pearson", "Spearman",
)  # fmt: skip


def agreement_tables(points: Sequence[PointResult], own: OwnSettings) -> list[PointTable]:
    """Return one table per network and workload that two engines ran: their agreement flow by flow."""
    groups: dict[str, list[point_results.EnginePair]] = {}
    for pair in point_results.pairs(points):
        groups.setdefault(labels.family(pair.simulated.spec), []).append(pair)
    return [_agreement(group, own) for group in groups.values()]


def _agreement(group: Sequence[point_results.EnginePair], own: OwnSettings) -> PointTable:
    specs = [pair.emulated.spec for pair in group]
    named = zip(group, labels.names(specs), strict=True)
    return PointTable(
        f"Flow by flow, emulated and simulated: {labels.setting_title(specs, own.together(specs))}",
        ("transport", "seed", *_AGREEMENT, "status"),
        tuple((_agreeing(pair, name), pair.emulated.status.value) for pair, name in named),
        "percentages are of each engine's own baseline",
    )


def _agreeing(pair: point_results.EnginePair, name: str) -> tuple[str, ...]:
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


def _table(
    group: Sequence[PointResult], own: OwnSettings, axes: Sequence[str], more: tuple[Metric, ...]
) -> PointTable:
    baselines = {j.baseline_mbps for j in group if j.baseline_mbps}
    percent = "; ".join(f"100 % is {mbps:.4g} Mb/s" for mbps in sorted(baselines))
    specs = [judged.spec for judged in group]
    named = zip(group, labels.names(specs), strict=True)
    again = any(len(judged.attempts) > 1 for judged in group)
    shown = OF_TRANSFERS if all(judged.all_sized for judged in group) else METRICS
    known = (each for each in shown if any(each.at(judged) is not None for judged in group))
    metrics = (*known, *of_programs(group, ("mean", "p99")), *more)
    return PointTable(
        labels.setting_title(specs, own.together(specs), axes),
        ("transport", "seed", *map(_head, metrics), *(["attempt"] if again else []), "status"),
        tuple((_cells(judged, name, again, metrics), judged.status.value) for judged, name in named),
        percent or "there is no usable baseline, so there are no percentages",
    )


def _head(metric: Metric) -> str:
    return f"{metric.head} {metric.short_unit}".strip()


def _cells(judged: PointResult, name: str, again: bool, metrics: tuple[Metric, ...]) -> tuple[str, ...]:
    return (
        name,
        str(judged.spec.seed),
        *(_value(metric, judged) for metric in metrics),
        *([run_json.attempt_words(judged.attempts).removeprefix("attempt ") or "1 of 1"] if again else []),
        judged.state,
    )


def _value(metric: Metric, judged: PointResult) -> str:
    return _cell(metric.at(judged), metric.cell)


def _cell(value: float | None, show: Callable[[float], str]) -> str:
    return NOTHING if value is None else show(value)


OptionList = tuple[tuple[str, str], ...]
"""One setting of a figure as names and values of options."""


def option_lists(points: Sequence[PointResult]) -> list[OptionList]:
    """Return the options of the points: one list per setting, ignoring k, workload, transport and seed."""
    groups: dict[tuple[str, ...], list[PointResult]] = {}
    for judged in measured_points(points):
        groups.setdefault(_options(judged.spec), []).append(judged)
    return [_option_list(group) for group in groups.values()]


def _option_list(group: Sequence[PointResult]) -> OptionList:
    spec, link = group[0].spec, group[0].spec.link
    specs = [judged.spec for judged in group]
    how = _each(filter(None, (judged.rate_choice for judged in group)))
    return (
        ("network", _each(network(s.topology) for s in specs)),
        ("workload", _each(workload_label(s) for s in specs)),
        ("transports", _each(labels.names(specs))),
        ("congestion control", labels.congestion(specs)),
        ("link rate", f"{link.rate_mbps:g} Mb/s ({how or 'not recorded how chosen'})"),
        ("queues", queue_label(spec)),
        ("delay", f"{link.delay_us:g} \N{MICRO SIGN}s per link{_own_delays(spec.topology)}"),
        ("time", f"{spec.seconds:g} s measured after {spec.warmup_s:g} s of warm-up"),
        ("seeds", _each(str(s.seed) for s in sorted(specs, key=lambda s: s.seed))),
        *(() if spec.engine in SIMULATED_HOSTS else (("traffic", spec.traffic),)),
        ("engine", f"{engine_words(spec.engine, spec.dataplane)}, {labels.routing(specs)}"),
        *((("other options", shlex.join(extras)),) if (extras := _extras(spec)) else ()),
    )


def _own_delays(topology: TopologySpec) -> str:
    """Return words on the delays that links of the network have of their own; empty if none has any."""
    delayed = any(link.delay_us for link in topos.build(topology.kind, topology.params).links)
    return ", more on links that have a delay of their own" if delayed else ""


def _each(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def commands(
    figure: Figure, points: Sequence[PointResult], taken: Collection[str] | None = None
) -> list[str]:
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
    qmon = not figure.defaults["sampling"].queues_ms and any(p.spec.sampling.queues_ms for p in points)
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
        text = matrices.label(spec.workload.matrix, spec.workload.params, whole=True)
        workload = () if own else ("--workload", text)
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
    which = ["--seed", str(block.seeds[0]), "--seeds", str(len(block.seeds))]
    ccs = [cc for cc in block.ccs if cc not in TRANSPORTS]
    which += ["--cc", ",".join(ccs)] if ccs else []
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


def missing(shown: FigureResults) -> list[str]:
    """Return sentences on points that usually belong to this figure and were not run."""
    points = measured_points(shown.points)
    name = shown.figure.name
    if not points:
        return [f"No point of this figure was run yet: sudo .venv/bin/refabric run {name}"]
    usual = shown.figure.defaults
    own = bool(shown.figure.file)
    sizes = usual["k"] if shown.figure.sized or not own else ()
    workloads = () if own and usual["workload"] == (TRACE,) else usual["workload"]
    absent = [
        *_lacking("k=", sizes, {asked_k(shown.figure, j.spec.topology) for j in points}),
        *_lacking("", workloads, {workload_label(j.spec) for j in points}),
        *_lacking("subflows ", usual["transport.subflows"], {j.spec.transport.subflows for j in points}),
    ]
    engines, ran = usual["engine"], point_results.engines(points)
    lacking = [each for each in engines if each not in ran] if len(engines) > 1 else []
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


def _holes(points: Sequence[PointResult], own: OwnSettings) -> list[str]:
    """Return transports and seeds that some points of a setting have and others lack."""
    holes = []
    for table in point_tables(points, own):
        there = {cells[:2] for cells, _ in table.rows}
        transports, seeds = ([*dict.fromkeys(cells[n] for cells, _ in table.rows)] for n in (0, 1))
        holes += [
            f"{transport} seed {seed} ({table.title})"
            for transport in transports
            for seed in seeds
            if (transport, seed) not in there
        ]
    return holes


def failures(points: Iterable[PointResult]) -> list[str]:
    """Return failed points with their reasons."""
    return [f"{point_label(j.spec)}: {texts(j.reasons)}" for j in points if j.status is Status.FAILED]


COLOURS = {
    Colour.GREEN: "agrees with the published value",
    Colour.AMBER: "open: suspect, not measured, judged only on a smaller network or against a recalled "
    "value, not decided by the interval, not comparable, or only one of the simulated and emulated values "
    "differs",
    Colour.RED: "differs from the published value",
}


@dataclass(frozen=True)
class ClaimCell:
    """A value, a note on how it was measured, and the network or links if they are not the claim's own."""

    value: str
    note: str = ""
    where: str = ""

    def short(self) -> str:
        """The cell for a terminal: `67.8 % of optimal (1 seed) at k=4`."""
        return f"{self.value} at {self.where}" if self.where else self.value


@dataclass(frozen=True)
class ClaimRow:
    """A claim as a row of a table."""

    figure: str
    section: str
    statement: str
    about: str
    published: ClaimCell
    simulated: ClaimCell
    emulated: ClaimCell
    colour: Colour
    verdict: str
    tolerance: str
    reasons: tuple[str, ...]


def claim_rows(found: Iterable[Claim]) -> list[ClaimRow]:
    """Return one row per claim."""
    return [_claim_row(claim) for claim in found]


def score_of(found: Sequence[Claim]) -> str:
    """Return how many sentences of the paper have each outcome; each counts once. Empty without claims."""
    if not found:
        return ""
    stated = sentences_of(found)
    count = Counter(sentence_judgement(of)[0] for of in stated.values())
    parts = ", ".join(f"{outcome}: {count[outcome]}" for outcome in SentenceOutcome if count[outcome])
    whole = f"{counted(len(stated), 'sentence')} ({counted(len(found), 'claim')}): {parts}."
    overridden = [claim for claim in found if claim.overrides]
    if not overridden:
        return whole
    words = (claim.overrides for claim in overridden)
    return f"{whole} {sentences.not_judged(counted(len(overridden), 'claim'), words)}"


def _claim_row(claim: Claim) -> ClaimRow:
    row = claim.published
    transport = "TCP" if row.subflows == 1 else f"{row.subflows} subflows"
    return ClaimRow(
        claim.figure.name,
        claim.figure.section,
        row.words,
        ", ".join(filter(None, (row.workload.replace("_", " "), place(row), transport, row.setting))),
        ClaimCell(sentences.published_text(row), row.source),
        _claim_cell(claim.simulated),
        _claim_cell(claim.emulated, real=True),
        claim.colour,
        claim.word,
        sentences.tolerance_text(row),
        tuple(claim.reasons),
    )


def _claim_cell(verdict: Verdict | None, real: bool = False) -> ClaimCell:
    """The cell of one variant. It shows the link rate of real hosts, which depends on the machine, and marks
    suspect values."""
    if verdict is None:
        return ClaimCell(NOTHING)
    if verdict.measured is None:
        return ClaimCell(NOTHING, verdict.why if verdict.word == NOT_MEASURED else verdict.word)
    judged = "" if verdict.word == OTHER_SIZE else verdict.word
    suspect = verdict.word == SUSPECT
    links = verdict.setting.partition(",")[0] if real else ""
    return ClaimCell(
        sentences.measured_text(verdict.measured, verdict.published.metric),
        "; ".join(filter(None, (judged, verdict.why if suspect else "", verdict.setting))),
        ", ".join(filter(None, (verdict.network, links, SUSPECT if suspect else ""))),
    )
