"""Claims of a paper: each published statement beside its simulated and its emulated value. Pure.

A statement about one size is judged on that size only. Real hosts often run a smaller network: its value is
shown with its size. It counts only if the statement is about a sign, which does not depend on the size.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import topos
from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS
from harness.claims import verdicts
from harness.claims.noted import MeasureOf, anew
from harness.claims.own_settings import OwnSettings
from harness.claims.verdicts import (
    AGREES,
    DIFFERS,
    NOT_MEASURED,
    SUSPECT,
    UNDECIDED,
    Verdict,
    place,
)
from harness.experiment import Figure
from harness.metrics.published import Published, Relation, Source
from harness.results.point_results import Judged

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


class Colour(StrEnum):
    GREEN = "green"
    AMBER = "amber"
    RED = "red"


@dataclass(frozen=True)
class Side:
    """The verdict of the simulated or emulated variant of a figure. `elsewhere` is the network it was
    measured on, if that is not the statement's own."""

    verdict: Verdict
    elsewhere: str = ""

    @property
    def word(self) -> str:
        return self.verdict.word


@dataclass(frozen=True)
class Claim:
    """A statement with the verdicts of both variants; None for a variant that it is not about."""

    figure: Figure
    published: Published
    simulated: Side | None
    emulated: Side | None

    @property
    def judgement(self) -> tuple[Colour, str]:
        """The colour, and the reason in a few words."""
        sides = {"simulated": self.simulated, "emulated": self.emulated}
        here = {name: side.word for name, side in sides.items() if side and _judged(side, elsewhere=False)}
        there = [side for side in sides.values() if side and _judged(side, elsewhere=True)]
        if here:
            return _at_size(self.published, here, there)
        if there:
            return Colour.AMBER, f"{there[0].word} at {there[0].elsewhere}"
        words = [side.word for side in sides.values() if side]
        if SUSPECT in words:
            return Colour.AMBER, SUSPECT
        sizes = [side.elsewhere for side in sides.values() if side and side.word == OTHER_SIZE]
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
        return tuple(dict.fromkeys(words for side in sides for words in side.verdict.overrides))

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


def _judged(side: Side, elsewhere: bool) -> bool:
    return side.word in {AGREES, DIFFERS, UNDECIDED} and bool(side.elsewhere) == elsewhere


def _at_size(row: Published, here: dict[str, str], there: Sequence[Side]) -> tuple[Colour, str]:
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
        return Colour.AMBER, f"{AGREES}, {DIFFERS} at {against[0].elsewhere}"
    return Colour.GREEN, AGREES


def once(found: Iterable[Claim]) -> list[Claim]:
    """Return each statement once, from the first figure that has it. Some are about MPTCP in one figure and
    about one algorithm in another."""
    first: dict[tuple[object, ...], Claim] = {}
    for claim in found:
        row = claim.published
        key = row.metric, row.topology, row.k, row.shape, row.workload, row.subflows, row.engine
        about = row.algorithm if row.source is Source.RECALLED else ""
        first.setdefault((*key, row.relation, row.value, about), claim)
    return list(first.values())


def claims(figure: Figure, points: Sequence[Judged], measure: MeasureOf = anew) -> list[Claim]:
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
            None if row.engine in LINUX_HOSTS else _side(row, simulated, own, measure),
            _side(row, emulated, own, measure) if has_real and row.engine not in SIMULATED_HOSTS else None,
        )
        for row in figure.published
    ]


def _side(row: Published, points: Sequence[Judged], own: OwnSettings, measure: MeasureOf) -> Side:
    """The verdict on the statement's own network; if there is none, on the largest other one of its kind."""
    verdict = verdicts.judged(row, points, own, measure)
    if verdict.word != NOT_MEASURED:
        return Side(verdict)
    for size in _other_sizes(row, points):
        there = verdicts.judged(dataclasses.replace(row, k=size), points, own, measure)
        if there.measured is None:
            continue
        if not _is_on_any_size(row) and there.word != SUSPECT:
            there = dataclasses.replace(there, word=OTHER_SIZE, why=f"the statement is about {place(row)}")
        return Side(there, place(there.published))
    return Side(verdict)


def _other_sizes(row: Published, points: Sequence[Judged]) -> list[int]:
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


def fields(claim: Claim) -> dict[str, Any]:
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


def _side_fields(side: Side | None) -> dict[str, Any] | None:
    if side is None:
        return None
    measured = side.verdict.measured
    return {
        "verdict": side.word,
        "measured": dataclasses.asdict(measured) if measured else None,
        "network": side.elsewhere or place(side.verdict.published),
        "setting": side.verdict.setting,
        "why": side.verdict.why,
        "overrides": side.verdict.overrides,
    }
