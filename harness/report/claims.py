"""A paper's claims as rows of tables: published, simulated and emulated values. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from common.text import counted, joined
from harness.claims.claims import OTHER_SIZE, Claim, Colour, Side
from harness.claims.sentences import OUTCOMES, Outcome, sentences
from harness.claims.verdicts import NOT_MEASURED, SUSPECT, place
from harness.metrics.measures import Measured
from harness.metrics.published import Published
from harness.report import in_short
from harness.report.points import NOTHING
from harness.report.words import plus_minus, with_unit

COLOURS = {
    Colour.GREEN: "agrees with the published value",
    Colour.AMBER: "open: suspect, not measured, judged only on a smaller network or against a recalled "
    "value, not decided by the interval, not comparable, or only one of the simulated and emulated values "
    "differs",
    Colour.RED: "differs from the published value",
}


@dataclass(frozen=True)
class Cell:
    """A value, a note on how it was measured, and the network or links if they are not the claim's own."""

    value: str
    note: str = ""
    where: str = ""

    def short(self) -> str:
        """The cell for a terminal: `67.8 % of optimal (1 seed) at k=4`."""
        return f"{self.value} at {self.where}" if self.where else self.value


@dataclass(frozen=True)
class Row:
    """A claim as a row of a table."""

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
    """Return one row per claim."""
    return [_row(claim) for claim in found]


def score(found: Sequence[Claim]) -> str:
    """Return how many sentences of the paper have each outcome; each counts once. Empty without claims."""
    if not found:
        return ""
    stated = sentences(found)
    count = Counter(sentence.outcome for sentence in stated)
    parts = [
        f"{count[outcome]} {OUTCOMES[outcome][count[outcome] > 1]}" for outcome in Outcome if count[outcome]
    ]
    whole = f"Of {counted(len(stated), 'sentence')} ({counted(len(found), 'claim')}), {joined(parts)}."
    overridden = [claim for claim in found if claim.overrides]
    if not overridden:
        return whole
    what, words = counted(len(overridden), "claim"), [claim.overrides for claim in overridden]
    return f"{whole} {in_short.not_judged(what, len(overridden), words)}"


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
    """The cell of one variant. It shows the link rate of real hosts, which depends on the machine, and marks
    suspect values."""
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
    """Return `91.5 ± 0.8 % of optimal (95 %, 6 seeds)`; fewer than three seeds have no interval."""
    metric = row.metric
    repeats = counted(measured.n, metric.repeats)
    basis = repeats if measured.half is None else f"95 %, {repeats}"
    if measured.unfinished_pct is not None:
        basis += f", {measured.unfinished_pct:.1f} % of the flows unfinished"
    return f"{with_unit(f'{metric.text(measured.value)}{plus_minus(measured)}', metric.unit)} ({basis})"
