"""The score of a paper by its sentences: a sentence counts once, with any number of claims. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from engines.registry import SIMULATOR
from harness.claims.claims import Claim, Side
from harness.claims.verdicts import AGREES, DIFFERS
from harness.metrics.published import Source
from harness.options.options import ENGINE

MIN_SEEDS = {SIMULATOR: 6, ENGINE: 3}
"""A number must have at least this many seeds to settle a sentence."""


class Outcome(StrEnum):
    """What is known of a sentence."""

    AGREES = "agrees"
    RECALLED = "agrees with recalled digits"
    SPLIT = "split"
    DIFFERS = "differs"
    INCOMPARABLE = "not comparable"
    OPEN = "open"


OUTCOMES = {
    Outcome.AGREES: ("agrees", "agree"),
    Outcome.RECALLED: (
        "agrees with digits that are only recalled",
        "agree with digits that are only recalled",
    ),
    Outcome.SPLIT: ("is split", "are split"),
    Outcome.DIFFERS: ("differs", "differ"),
    Outcome.INCOMPARABLE: ("is not comparable", "are not comparable"),
    Outcome.OPEN: ("is open", "are open"),
}
"""As verbs of a score, of one sentence and of several, in its order."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a paper, and the claims that speak of it, at least one."""

    words: str
    claims: tuple[Claim, ...]

    @property
    def outcome(self) -> Outcome:
        return self.judgement[0]

    @property
    def judgement(self) -> tuple[Outcome, str]:
        """The outcome, and for a split or open sentence the reason in a few words.

        What was measured in either engine counts. A sentence is split if some of it agrees and some differs.
        It is open if a number has too few seeds, is suspect, is undecided or is missing.
        """
        sides = [(name, side) for claim in self.claims for name, side in _sides(claim)]
        against = [name for name, side in sides if side.word == DIFFERS]
        in_favour = [name for name, side in sides if side.word == AGREES]
        if against and any(claim.published.incomparable for claim in self.claims):
            return Outcome.INCOMPARABLE, ""
        if against and in_favour:
            return Outcome.SPLIT, f"differs {_names(against)}, agrees {_names(in_favour)}"
        if against:
            return Outcome.DIFFERS, _names(against)
        if reason := _unsettled(self.claims):
            return Outcome.OPEN, reason
        recalled = any(claim.published.source is Source.RECALLED for claim in self.claims)
        return (Outcome.RECALLED if recalled else Outcome.AGREES), _names(in_favour)


def sentences(found: Sequence[Claim]) -> list[Sentence]:
    """Return the sentences of claims, in the order of their first claims."""
    by_words: dict[tuple[str, str], list[Claim]] = {}
    for claim in found:
        row = claim.published
        by_words.setdefault((row.paper, row.sentence or row.words), []).append(claim)
    return [Sentence(words, tuple(claims)) for (_, words), claims in by_words.items()]


def _sides(claim: Claim) -> list[tuple[str, Side]]:
    """The variants of a claim that agree or differ."""
    both = (("simulated", claim.simulated), ("emulated", claim.emulated))
    return [(name, side) for name, side in both if side is not None and side.word in {AGREES, DIFFERS}]


def _unsettled(claims: Sequence[Claim]) -> str:
    """Return why claims without a difference do not settle a sentence; empty if they do."""
    for claim in claims:
        agreeing = [(name, side) for name, side in _sides(claim) if side.word == AGREES]
        if not agreeing:
            return claim.word
        enough = [name for name, side in agreeing if _seeds(side) >= _needed(name)]
        if not enough:
            name, side = agreeing[0]
            return f"{name} with {_seeds(side)} of {_needed(name)} seeds"
    return ""


def _seeds(side: Side) -> int:
    return side.verdict.measured.n if side.verdict.measured else 0


def _needed(name: str) -> int:
    return MIN_SEEDS[SIMULATOR if name == "simulated" else ENGINE]


def _names(names: Sequence[str]) -> str:
    return " and ".join(dict.fromkeys(names))
