"""Verdicts on published numbers: each statement beside the measured value, claims of a paper with a simulated
and an emulated value, and the score of a paper by its sentences. Pure.

A statement about one size is judged on that size only. Real hosts often run a smaller network: its value is
shown with its size. It counts only if the statement is about a sign, which does not depend on the size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import topos
from common.text import joined, three_digits
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from harness.baseline import is_baseline
from harness.claims.own_settings import OwnSettings
from harness.experiment import Figure
from harness.labels import named, queue_label, workload_label
from harness.metrics.measures import Estimate
from harness.metrics.metrics import itself
from harness.metrics.published import Published, Relation, Source
from harness.results.point_results import PointResult
from model.congestion import COUPLED_DEFAULT
from model.result import Status
from model.spec import RunSpec
from model.transports import algorithm, title

_OF_STATEMENTS = ("topology", "workload", "transport.subflows", "seed")
"""Fields that statements name themselves."""

AGREES, DIFFERS, SUSPECT, NOT_MEASURED = "agrees", "differs", "suspect", "not measured"
UNDECIDED = "undecided"
"""The interval holds values that agree and values that differ: more seeds are needed. Or most flows had not
ended: longer runs are needed."""
MAX_UNFINISHED_PCT = 50.0
"""If more of the flows had not ended, their number is no result."""
WORDS: Mapping[bool | None, str] = {True: AGREES, False: DIFFERS, None: UNDECIDED}
OTHER_SIZE = "another size"
"""Measured on a network of another size, which the statement is not about."""
RECALLED = {
    AGREES: "agrees with what is recalled",
    DIFFERS: "differs from what is recalled",
    UNDECIDED: "undecided",
}
"""Recalled digits were not checked again, so such a verdict proves nothing."""
UNEXPLAINED = "The reason is not known."
INCOMPARABLE = "not comparable"
"""Differs, but the paper says too little about its network for a conclusion."""
MIN_SEEDS = {"simulated": 6, "emulated": 3}
"""A number must have at least this many seeds to settle a sentence."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on one published statement: `word` is one of the five above, `why` a short sentence.

    `measured` is None if nothing was measured; if the word is `suspect`, the number is not to be trusted.
    `setting` gives the links and the duration of the measurement. `overrides` are the settings that keep the
    statement from being judged: the points that it is about have them instead of the figure's.
    """

    published: Published
    measured: Estimate | None
    word: str
    why: str
    setting: str = ""
    overrides: tuple[str, ...] = ()
    network: str = ""
    """The network it was measured on, if that is not the statement's own."""

    @property
    def elsewhere(self) -> bool:
        """Whether the statement is about a size, workload, transport or setting that was not run."""
        return self.word == NOT_MEASURED and not self.setting

    @property
    def unit(self) -> str:
        return self.published.metric.unit


def verdicts(figure: Figure, points: Sequence[PointResult]) -> list[Verdict]:
    """Return a verdict on every published statement of `figure` from its own points.

    Statements about an engine that did not run are left out if another engine ran. A statement is about one
    k and one workload. If these were measured in several settings (other rates, longer runs), the best
    setting counts: a clear verdict first, then more seeds, more points, and longer runs. Points whose
    settings are not the figure's do not count.
    """
    own = OwnSettings([figure])
    ran = {p.spec.engine for p in _usable(points)} or set(figure.defaults["engine"])
    rows = (row for row in figure.published if not row.engine or row.engine in ran)
    return [verdict_of(row, points, own) for row in rows]


def verdict_of(row: Published, points: Sequence[PointResult], own: OwnSettings) -> Verdict:
    """Return the verdict on one statement from the points of its figure, whose settings are `own`."""
    usable = _usable(points)
    verdict = _best(row, [p for p in usable if not own.unlike(row, p.spec)])
    if verdict.word != NOT_MEASURED or verdict.measured is not None:
        return verdict
    about = (p.spec for p in usable if _is_about(row, p.spec) and p.spec.transport.subflows == row.subflows)
    overrides = tuple(dict.fromkeys(words for spec in about for words in own.unlike(row, spec)))
    if not overrides:
        return verdict
    why = f"run with {joined(overrides)}, which it is not about"
    return Verdict(row, None, NOT_MEASURED, why, overrides=overrides)


def _usable(points: Sequence[PointResult]) -> list[PointResult]:
    return [p for p in points if p.status is not Status.FAILED and not is_baseline(p.spec)]


def beside(points: Sequence[PointResult], ours: Sequence[PointResult]) -> list[PointResult]:
    """Return the `points` that share a setting with one of `ours`: these, and those of earlier runs."""
    settings = {_setting(judged, itself) for judged in ours}
    return [judged for judged in points if _setting(judged, itself) in settings]


def _best(row: Published, points: Sequence[PointResult]) -> Verdict:
    """The verdict of the best setting.

    A setting keeps its other networks and workloads, because some statements compare them.
    """
    settings: dict[str, list[PointResult]] = {}
    for judged in points:
        settings.setdefault(_setting(judged, row.metric.setting), []).append(judged)
    able = [group for group in settings.values() if any(_is_about(row, p.spec) for p in group)]
    if not able:
        return Verdict(row, None, NOT_MEASURED, _missing(row, points))
    candidates = [(_verdict(row, group), group) for group in able]
    return max(candidates, key=lambda pair: _weight(*pair))[0]


def _weight(verdict: Verdict, group: Sequence[PointResult]) -> tuple[object, ...]:
    seeds = verdict.measured.n if verdict.measured else 0
    rank = {AGREES: 2, DIFFERS: 2, UNDECIDED: 2, SUSPECT: 1, NOT_MEASURED: 0}[verdict.word]
    first = group[0].spec
    papers_own = first.transport.cc == COUPLED_DEFAULT
    return rank, seeds, len(group), first.seconds, papers_own, _setting(group[0], itself)


def _verdict(row: Published, group: Sequence[PointResult]) -> Verdict:
    """The verdict of one setting's points."""
    spec = group[0].spec
    setting = f"{spec.link.rate_mbps:g} Mb/s links, {queue_label(spec)} queues, {spec.seconds:g} s"
    metric = row.metric
    if row.on_cpu_bound:
        measured = metric.measure(group, row)
        if measured is not None and not measured.suspect:
            why = "the machine was not saturated, as this statement requires; give a higher --rate"
            return Verdict(row, measured, NOT_MEASURED, why, setting)
    else:
        measured = metric.measure([p for p in group if p.status is Status.OK], row)
        if measured is None and (dubious := metric.measure(group, row)) is not None:
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


def _unseen(row: Published, group: Sequence[PointResult]) -> str:
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


def _setting(judged: PointResult, compared: Callable[[RunSpec], RunSpec]) -> str:
    """The fields that must agree for a metric: some take points of two engines, or of many loss rates.

    Many statements share a metric's fields, so each point's text is made once."""
    known = judged.settings
    if compared not in known:
        known[compared] = compared(judged.spec).key(ignoring=_OF_STATEMENTS)
    return known[compared]


def _missing(row: Published, points: Sequence[PointResult]) -> str:
    wanted = f"{row.workload} at {place(row)}"
    alike = [p.spec for p in points if workload_label(p.spec) == row.workload]
    have = dict.fromkeys(named(s.topology) for s in alike if s.topology.kind == row.topology)
    if row.algorithm and place(row) in have:
        return f"about {title(row.algorithm)} with {row.subflows} subflows, which was not run"
    return f"about {wanted}, not {', '.join(have)}" if have else f"about {wanted}, which was not run"


def place(row: Published) -> str:
    """Return the network of a statement: `k=8`, `k=8, 4:1`, `star n=16`, `dumbbell n=2`."""
    return named(row.network)


def _reason(row: Published, group: Sequence[PointResult]) -> str:
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


def verdict_fields(figure: Figure, verdict: Verdict) -> dict[str, Any]:
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


class Colour(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True)
class Claim:
    """A statement with the verdicts of both variants; None for a variant that it is not about."""

    figure: Figure
    published: Published
    simulated: Verdict | None
    emulated: Verdict | None

    @property
    def judgement(self) -> tuple[Colour, str]:
        """The colour, and the reason in a few words."""
        sides = {"simulated": self.simulated, "emulated": self.emulated}
        here = {name: side.word for name, side in sides.items() if side and _judged(side, elsewhere=False)}
        there = [side for side in sides.values() if side and _judged(side, elsewhere=True)]
        if here:
            return _at_size(self.published, here, there)
        if there:
            return Colour.AMBER, f"{there[0].word} at {there[0].network}"
        words = [side.word for side in sides.values() if side]
        if SUSPECT in words:
            return Colour.AMBER, SUSPECT
        sizes = [side.network for side in sides.values() if side and side.word == OTHER_SIZE]
        return Colour.AMBER, f"measured at {sizes[0]} only" if sizes else NOT_MEASURED

    @property
    def colour(self) -> Colour:
        return self.judgement[0]

    @property
    def word(self) -> str:
        return self.judgement[1]

    @property
    def overrides(self) -> tuple[str, ...]:
        """The settings that keep it from being judged; empty if it was judged or nothing of it was run."""
        sides = [side for side in (self.simulated, self.emulated) if side]
        if any(side.word != NOT_MEASURED for side in sides):
            return ()
        return tuple(dict.fromkeys(words for side in sides for words in side.overrides))

    @property
    def reasons(self) -> list[str]:
        """Why the measured value differs, for each variant in which it does, and what else must be known."""
        row = self.published
        differing = [side is not None and side.word == DIFFERS for side in (self.simulated, self.emulated)]
        known = [row.differs if differing[0] else "", row.emulated_differs if differing[1] else ""]
        if differing == [False, True] and not row.emulated_differs:
            known = [row.differs]
        if any(differing) and not any(known):
            known = [UNEXPLAINED]
        return [reason for reason in dict.fromkeys([row.incomparable, *known, row.caveat]) if reason]


def _judged(side: Verdict, elsewhere: bool) -> bool:
    return side.word in {AGREES, DIFFERS, UNDECIDED} and bool(side.network) == elsewhere


def _at_size(row: Published, here: dict[str, str], there: Sequence[Verdict]) -> tuple[Colour, str]:
    """The judgement if a variant was judged on the statement's own network."""
    if len(set(here.values())) > 1:
        return Colour.AMBER, ", ".join(f"{word} {name}" for name, word in here.items())
    (word,) = set(here.values())
    if row.source is Source.RECALLED:
        return Colour.AMBER, RECALLED[word]
    if word == DIFFERS:
        return (Colour.AMBER, INCOMPARABLE) if row.incomparable else (Colour.RED, DIFFERS)
    if word == UNDECIDED:
        return Colour.AMBER, UNDECIDED
    against = [side for side in there if side.word == DIFFERS]
    if against:
        return Colour.AMBER, f"{AGREES}, {DIFFERS} at {against[0].network}"
    return Colour.GREEN, AGREES


def once(found: Iterable[Claim]) -> list[Claim]:
    """Return each statement once, from the first figure that has it. Some are about MPTCP in one figure and
    about one algorithm in another."""
    first: dict[tuple[object, ...], Claim] = {}
    for claim in found:
        row = claim.published
        key = row.metric, row.topology, row.k, row.shape, row.workload, row.subflows, row.engine, row.setting
        about = row.algorithm if row.source is Source.RECALLED else ""
        first.setdefault((*key, row.relation, row.value, about), claim)
    return list(first.values())


def claims(figure: Figure, points: Sequence[PointResult]) -> list[Claim]:
    """Return every statement of a figure with simulated and emulated variants; none of another figure."""
    if not figure.has_variants:
        return []
    own = OwnSettings([figure])
    emulated = [p for p in points if p.spec.engine in LINUX_HOSTS]
    simulated = [p for p in points if p.spec.engine not in LINUX_HOSTS]
    has_real = figure.emulated is not None or bool(emulated)
    return [
        Claim(
            figure,
            row,
            None if row.engine in LINUX_HOSTS else _side(row, simulated, own),
            _side(row, emulated, own) if has_real and row.engine not in SIMULATED_HOSTS else None,
        )
        for row in figure.published
    ]


def _side(row: Published, points: Sequence[PointResult], own: OwnSettings) -> Verdict:
    """The verdict on the statement's own network; if there is none, on the largest other one of its kind."""
    verdict = verdict_of(row, points, own)
    if verdict.word != NOT_MEASURED:
        return verdict
    for size in _other_sizes(row, points):
        there = verdict_of(dataclasses.replace(row, k=size), points, own)
        if there.measured is None:
            verdict = verdict if verdict.overrides else dataclasses.replace(there, published=row)
            continue
        if not _is_on_any_size(row) and there.word != SUSPECT:
            there = dataclasses.replace(there, word=OTHER_SIZE, why=f"the statement is about {place(row)}")
        return dataclasses.replace(there, network=place(there.published))
    return verdict


def _other_sizes(row: Published, points: Sequence[PointResult]) -> list[int]:
    """The sizes of networks that differ from the statement's only in size, the largest first."""
    name = topos.TOPOLOGIES[row.topology].size.name
    alike = (
        p.spec.topology.number(name)
        for p in points
        if p.spec.topology.kind == row.topology
        and topos.shape(row.topology, p.spec.topology.params) == row.shape
    )
    return sorted(set(alike) - {row.k}, reverse=True)


def _is_on_any_size(row: Published) -> bool:
    """Whether the statement is about a sign, or about the side of 1 that a ratio is on."""
    sign = row.relation in {Relation.ABOVE, Relation.BELOW} and row.value in {0, 1}
    return sign and row.metric.on_any_size


def claim_fields(claim: Claim) -> dict[str, Any]:
    """Return a claim as fields for JSON."""
    return {
        "figure": claim.figure.name,
        "section": claim.figure.section,
        "published": claim.published.as_json(),
        "network": place(claim.published),
        "unit": claim.published.metric.unit,
        "simulated": _side_fields(claim.simulated),
        "emulated": _side_fields(claim.emulated),
        "colour": claim.colour,
        "verdict": claim.word,
        "reasons": claim.reasons,
    }


def _side_fields(side: Verdict | None) -> dict[str, Any] | None:
    if side is None:
        return None
    measured = side.measured
    return {
        "verdict": side.word,
        "measured": dataclasses.asdict(measured) if measured else None,
        "network": side.network or place(side.published),
        "setting": side.setting,
        "why": side.why,
        "overrides": side.overrides,
    }


class SentenceOutcome(StrEnum):
    """What is known of a sentence."""

    AGREES = "agrees"
    RECALLED = "agrees with recalled digits"
    SPLIT = "split"
    DIFFERS = "differs"
    INCOMPARABLE = "not comparable"
    OPEN = "open"


def sentence_judgement(about: Sequence[Claim]) -> tuple[SentenceOutcome, str]:
    """Return the outcome of a sentence, and for a split or open one the reason in a few words.

    `about` are the claims that it is behind, at least one. What was measured in either engine counts. A
    sentence is split if some of it agrees and some differs. It is open if a number has too few seeds, is
    suspect, is undecided or is missing.
    """
    sides = [(name, side) for claim in about for name, side in _sides(claim)]
    against = [name for name, side in sides if side.word == DIFFERS]
    in_favour = [name for name, side in sides if side.word == AGREES]
    if against and any(claim.published.incomparable for claim in about):
        return SentenceOutcome.INCOMPARABLE, ""
    if against and in_favour:
        return SentenceOutcome.SPLIT, f"differs {_names(against)}, agrees {_names(in_favour)}"
    if against:
        return SentenceOutcome.DIFFERS, _names(against)
    if reason := _unsettled(about):
        return SentenceOutcome.OPEN, reason
    recalled = any(claim.published.source is Source.RECALLED for claim in about)
    return (SentenceOutcome.RECALLED if recalled else SentenceOutcome.AGREES), _names(in_favour)


def sentences(found: Sequence[Claim]) -> dict[tuple[str, str], list[Claim]]:
    """Return the claims by paper and sentence, in the order of their first claims."""
    by_words: dict[tuple[str, str], list[Claim]] = {}
    for claim in found:
        row = claim.published
        by_words.setdefault((row.paper, row.sentence or row.words), []).append(claim)
    return by_words


def _sides(claim: Claim) -> list[tuple[str, Verdict]]:
    """The variants of a claim that agree or differ."""
    both = (("simulated", claim.simulated), ("emulated", claim.emulated))
    return [(name, side) for name, side in both if side is not None and side.word in {AGREES, DIFFERS}]


def _unsettled(claims: Sequence[Claim]) -> str:
    """Return why claims without a difference do not settle a sentence; empty if they do."""
    for claim in claims:
        agreeing = [(name, side) for name, side in _sides(claim) if side.word == AGREES]
        if not agreeing:
            return claim.word
        seeds = [(name, side.measured.n if side.measured else 0) for name, side in agreeing]
        if all(count < MIN_SEEDS[name] for name, count in seeds):
            name, count = seeds[0]
            return f"{name} with {count} of {MIN_SEEDS[name]} seeds"
    return ""


def _names(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))
