"""A paper's claims as its pages and tables show them: published beside simulated beside emulated. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from analysis.stats import t_quantile
from common.grammar import counted
from harness.claims.claims import OTHER_SIZE, Claim, Colour, Side
from harness.claims.measures import Measured
from harness.claims.published import Published
from harness.claims.verdicts import NOT_MEASURED, SUSPECT, place
from harness.report.points import NOTHING
from harness.report.words import with_unit

LEAST_REPEATS = 6
"""Repetitions from which on an interval says anything."""
COLOURS = {
    Colour.GREEN: "agrees with what was published",
    Colour.AMBER: "open: suspect, not measured, judged on a smaller network alone, beside what is only "
    "recalled of the printed paper, or one of simulated and emulated differs",
    Colour.RED: "differs from what was published",
}


@dataclass(frozen=True)
class Cell:
    """A value, how it was come by, and where: on a network not the claim's own, or between real hosts."""

    value: str
    note: str = ""
    where: str = ""

    def short(self) -> str:
        """For a terminal: `67.8 % of optimal (1 seed) at k=4`."""
        return f"{self.value} at {self.where}" if self.where else self.value


@dataclass(frozen=True)
class Row:
    """A claim as a line of a table."""

    figure: str
    section: str
    statement: str
    about: str
    published: Cell
    simulated: Cell
    emulated: Cell
    colour: Colour
    verdict: str
    tolerance: str
    reasons: tuple[str, ...]


def rows(found: Iterable[Claim]) -> list[Row]:
    """A line for each claim."""
    return [_row(claim) for claim in found]


def score(found: Sequence[Row]) -> str:
    """How many are of which colour, in a sentence."""
    count = {colour: sum(row.colour == colour for row in found) for colour in Colour}
    return (
        f"Of {counted(len(found), 'claim')}, {count[Colour.GREEN]} agree, {count[Colour.AMBER]} are open and "
        f"{count[Colour.RED]} differ."
    )


def _row(claim: Claim) -> Row:
    row = claim.published
    unit = row.metric.unit
    transport = "TCP" if row.subflows == 1 else f"{row.subflows} subflows"
    bound = row.short().replace(">=", "\N{GREATER-THAN OR EQUAL TO}")
    within = with_unit(f"{row.tolerance:g}", unit) if row.tolerance else "none"
    return Row(
        claim.figure.name,
        claim.figure.section,
        row.words,
        f"{row.workload.replace('_', ' ')}, {place(row)}, {transport}",
        Cell(with_unit(bound, unit), row.source),
        _cell(claim.simulated),
        _cell(claim.emulated, real=True),
        claim.colour,
        claim.word,
        f"{within}: {row.because}" if row.because else within,
        tuple(claim.reasons),
    )


def _cell(side: Side | None, real: bool = False) -> Cell:
    """The rate of real hosts' links is told always: it is the machine's choice; and what nobody should
    believe."""
    if side is None:
        return Cell(NOTHING)
    verdict = side.verdict
    if verdict.measured is None:
        return Cell(NOTHING, verdict.why if side.word == NOT_MEASURED else side.word)
    judged = "" if side.word == OTHER_SIZE else side.word
    why = verdict.why if side.word == SUSPECT else ""
    links = verdict.setting.partition(",")[0] if real else ""
    return Cell(
        value(verdict.measured, verdict.published),
        "; ".join(filter(None, (judged, why, verdict.setting))),
        ", ".join(filter(None, (side.elsewhere, links, SUSPECT if side.word == SUSPECT else ""))),
    )


def value(measured: Measured, row: Published) -> str:
    """`91.5 ± 0.8 % of optimal (95 %, 6 seeds)`; no interval for fewer than six."""
    metric = row.metric
    half = interval(measured)
    spread = "" if half is None else f" \N{PLUS-MINUS SIGN} {half:.2g}"
    repeats = counted(measured.n, metric.repeats)
    sure = repeats if half is None else f"95 %, {repeats}"
    return f"{with_unit(f'{metric.text(measured.value)}{spread}', metric.unit)} ({sure})"


def interval(measured: Measured) -> float | None:
    """Half of the 95 % confidence interval of the mean (Student's)."""
    if measured.spread is None or measured.n < LEAST_REPEATS:
        return None
    return t_quantile(0.975, measured.n - 1) * measured.spread / math.sqrt(measured.n)
