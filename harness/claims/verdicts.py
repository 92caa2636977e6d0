"""Verdicts: each published statement of a figure beside the measured value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.text import joined, three_digits
from harness.claims.noted import MeasureOf, anew
from harness.claims.own_settings import OwnSettings
from harness.experiment import Figure
from harness.metrics.measures import Measured
from harness.metrics.published import Published
from harness.points.baseline import is_baseline
from harness.points.labels import named, queue_label, workload_label
from harness.results.point_results import Judged
from model.congestion import COUPLED_DEFAULT
from model.result import Status
from model.spec import RunSpec, TopologySpec, WorkloadSpec
from model.transports import algorithm, title

AGREES, DIFFERS, SUSPECT, NOT_MEASURED = "agrees", "differs", "suspect", "not measured"
UNDECIDED = "undecided"
"""The interval holds values that agree and values that differ: more seeds are needed. Or most flows had not
ended: longer runs are needed."""
MAX_UNFINISHED_PCT = 50.0
"""If more of the flows had not ended, their number is no result."""
WORDS: Mapping[bool | None, str] = {True: AGREES, False: DIFFERS, None: UNDECIDED}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one published statement: `word` is one of the five above, `why` a short sentence.

    `measured` is None if nothing was measured; if the word is `suspect`, the number is not to be trusted.
    `setting` gives the links and the duration of the measurement. `overrides` are the settings that keep the
    statement from being judged: the points that it is about have them instead of the figure's.
    """

    published: Published
    measured: Measured | None
    word: str
    why: str
    setting: str = ""
    overrides: tuple[str, ...] = ()

    @property
    def elsewhere(self) -> bool:
        """Whether the statement is about a size, workload, transport or setting that was not run."""
        return self.word == NOT_MEASURED and not self.setting

    @property
    def unit(self) -> str:
        return self.published.metric.unit


def verdicts(figure: Figure, points: Sequence[Judged], measure: MeasureOf = anew) -> list[Verdict]:
    """Return a verdict on every published statement of `figure` from its own points.

    Statements about an engine that did not run are left out if another engine ran. A statement is about one
    k and one workload. If these were measured in several settings (other rates, longer runs), the best
    setting counts: a clear verdict first, then more seeds, more points, and longer runs. Points whose
    settings are not the figure's do not count.
    """
    own = OwnSettings([figure])
    ran = {p.spec.engine for p in _usable(points)} or set(figure.defaults.engines)
    rows = (row for row in figure.published if not row.engine or row.engine in ran)
    return [judged(row, points, own, measure) for row in rows]


def judged(row: Published, points: Sequence[Judged], own: OwnSettings, measure: MeasureOf = anew) -> Verdict:
    """Return the verdict on one statement from the points of its figure, whose settings are `own`."""
    usable = _usable(points)
    verdict = _best(row, [p for p in usable if not own.overrides(p.spec)], measure)
    if verdict.word != NOT_MEASURED or verdict.measured is not None:
        return verdict
    about = (p.spec for p in usable if _is_about(row, p.spec) and p.spec.transport.subflows == row.subflows)
    overrides = own.together(about)
    if not overrides:
        return verdict
    why = f"run with {joined(overrides)} instead of the figure's settings"
    return Verdict(row, None, NOT_MEASURED, why, overrides=tuple(overrides))


def _usable(points: Sequence[Judged]) -> list[Judged]:
    return [p for p in points if p.status is not Status.FAILED and not is_baseline(p.spec)]


def beside(points: Sequence[Judged], ours: Sequence[Judged]) -> list[Judged]:
    """Return the `points` that share a setting with one of `ours`: these, and those of earlier runs."""
    settings = {_key(judged.spec) for judged in ours}
    return [judged for judged in points if _key(judged.spec) in settings]


def _best(row: Published, points: Sequence[Judged], measure: MeasureOf) -> Verdict:
    """The verdict of the best setting.

    A setting keeps its other networks and workloads, because some statements compare them.
    """
    settings: dict[str, list[Judged]] = {}
    for judged in points:
        settings.setdefault(_setting(row, judged), []).append(judged)
    able = [group for group in settings.values() if any(_is_about(row, p.spec) for p in group)]
    if not able:
        return Verdict(row, None, NOT_MEASURED, _missing(row, points))
    candidates = [(_verdict(row, group, measure), group) for group in able]
    return max(candidates, key=lambda pair: _weight(*pair))[0]


def _weight(verdict: Verdict, group: Sequence[Judged]) -> tuple[object, ...]:
    seeds = verdict.measured.n if verdict.measured else 0
    rank = {AGREES: 2, DIFFERS: 2, UNDECIDED: 2, SUSPECT: 1, NOT_MEASURED: 0}[verdict.word]
    first = group[0].spec
    return rank, seeds, len(group), first.seconds, _coupled_by_default(first), _key(first)


def _coupled_by_default(spec: RunSpec) -> bool:
    """Whether its MPTCP uses the paper's own congestion control."""
    return spec.transport.cc == COUPLED_DEFAULT


def _verdict(row: Published, group: Sequence[Judged], measure: MeasureOf) -> Verdict:
    """The verdict of one setting's points."""
    setting = _shown(group[0].spec)
    metric = row.metric
    if row.on_cpu_bound:
        measured = measure(metric, group, row)
        if measured is not None and not measured.suspect:
            why = "the machine was not saturated, as this statement requires; give a higher --rate"
            return Verdict(row, measured, NOT_MEASURED, why, setting)
    else:
        measured = measure(metric, [p for p in group if p.status is Status.OK], row)
        if measured is None and (dubious := measure(metric, group, row)) is not None:
            return Verdict(row, dubious, SUSPECT, _reason(row, group), setting)
    if measured is None:
        return Verdict(row, None, NOT_MEASURED, _unseen(row, group), setting)
    unfinished = measured.unfinished_pct or 0.0
    if unfinished > MAX_UNFINISHED_PCT:
        why = f"{unfinished:.0f} % of the flows had not ended: give more --seconds"
        return Verdict(row, measured, UNDECIDED, why, setting)
    agrees = row.relation.verdict(measured, row.value, row.tolerance)
    why = _explained(row, measured.value)
    return Verdict(row, measured, WORDS[agrees], why, setting)


def _unseen(row: Published, group: Sequence[Judged]) -> str:
    """Why a setting's points have no value for the statement."""
    if row.subflows and all(p.spec.transport.subflows != row.subflows for p in group):
        transport = "TCP" if row.subflows == 1 else f"MPTCP with {row.subflows} subflows"
        return f"no point of {transport} has a result"
    return f"these points do not show {row.metric.about}"


def _is_about(row: Published, spec: RunSpec) -> bool:
    running = algorithm(spec.transport.cc, spec.transport.subflows, spec.routing)
    alone = spec.transport.subflows == row.subflows or not row.algorithm
    here = row.is_on(spec.topology) and row.workload == workload_label(spec)
    return here and alone and row.is_of(running) and row.engine in {"", spec.engine}


def _setting(row: Published, judged: Judged) -> str:
    """The fields that must agree for this metric: some take points of two engines, or of many loss rates.

    Many statements share a metric's fields, so each point's text is made once."""
    known, compared = judged.point.settings, row.metric.setting
    if compared not in known:
        known[compared] = _key(compared(judged.spec))
    return known[compared]


def _key(spec: RunSpec) -> str:
    """The same for points that differ only in network, workload, subflows and seed."""
    return dataclasses.replace(
        spec.as_tcp(),
        topology=TopologySpec("any"),
        workload=WorkloadSpec("any"),
        seed=0,
    ).canonical()


def _shown(spec: RunSpec) -> str:
    return f"{spec.link.rate_mbps:g} Mb/s links, {queue_label(spec)} queues, {spec.seconds:g} s"


def _missing(row: Published, points: Sequence[Judged]) -> str:
    wanted = f"{row.workload} at {place(row)}"
    alike = [p.spec for p in points if workload_label(p.spec) == row.workload]
    have = dict.fromkeys(named(s.topology) for s in alike if s.topology.kind == row.topology)
    if row.algorithm and place(row) in have:
        return f"about {title(row.algorithm)} with {row.subflows} subflows, which was not run"
    return f"about {wanted}, not {', '.join(have)}" if have else f"about {wanted}, which was not run"


def place(row: Published) -> str:
    """Return the network of a statement: `k=8`, `k=8, 4:1`, `star n=16`, `dumbbell n=2`."""
    return named(row.network)


def _reason(row: Published, group: Sequence[Judged]) -> str:
    """Why a statement's points are suspect; those with its own number of subflows come first."""
    suspect = [p for p in group if p.status is Status.SUSPECT and _is_about(row, p.spec)]
    suspect.sort(key=lambda p: p.spec.transport.subflows != row.subflows)
    reasons = (reason.text for p in suspect for reason in p.reasons)
    return next(reasons, "a point behind it is suspect")


def _explained(row: Published, value: float) -> str:
    """How far the value is off if it does not agree by itself, and what counts as agreement."""
    tolerance = f"tolerance {row.tolerance:g}: " if row.tolerance else ""
    if row.relation.holds(value, row.value, row.tolerance):
        return f"{tolerance}{row.because}"
    return f"{three_digits(abs(value - row.value))} off; {tolerance}{row.because}"


def fields(figure: Figure, verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as flat fields for JSON."""
    measured = dataclasses.asdict(verdict.measured) if verdict.measured else None
    return {
        "figure": figure.name,
        **verdict.published.as_json(),
        "unit": verdict.unit,
        "measured": measured,
        "verdict": verdict.word,
        "why": verdict.why,
        "setting": verdict.setting,
        "overrides": verdict.overrides,
    }
