"""A paper's claims: which variant of a figure decides on which claim, and the resulting colour."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pytest

from engines.registry import SIMULATOR
from experiments.cs244_2013 import CS244_ONE_TO_ONE
from harness.claims.claims import (
    AGREES,
    DIFFERS,
    NOT_MEASURED,
    OTHER_SIZE,
    SUSPECT,
    Claim,
    Colour,
    SentenceOutcome,
    claim_fields,
    claims,
    once,
    sentence_judgement,
    sentences,
)
from harness.experiment import Figure
from harness.metrics.measures import Estimate
from harness.metrics.metrics import GOODPUT_OVER_TCP, GOODPUT_PCT_MEAN
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, on_real_hosts
from harness.report import tables as shown
from harness.report.sentences import measured_text
from harness.results.point_results import PointResult
from model.congestion import COUPLED_DEFAULT
from model.result import Status
from model.spec import TransportSpec
from tests.support.judged_points import judged, stored
from tests.support.stored_points import spec_of

HIGH, LOW = [4.8, 4.8], [2.0, 2.0]
"""Goodputs in Mb/s: 96 and 40 % of the baseline."""
LEVEL = Published(
    GOODPUT_PCT_MEAN, "fat_tree", 8, "one_to_one", 8, Relation.ABOUT, 95, Source.TEXT, "levels off",
    "paper", "citation", 5.0, "because",
).explained("Simulated paths collide.", "Real subflows run dry.")  # fmt: skip
GAIN = dataclasses.replace(LEVEL, metric=GOODPUT_OVER_TCP, relation=Relation.ABOVE, value=1, tolerance=0)


def figure_of(*known: Published) -> Figure:
    figure = CS244_ONE_TO_ONE.figures[0]
    return dataclasses.replace(
        figure,
        published=known,
        separate_variants=True,
        emulated=on_real_hosts(figure.defaults, {"k": (4,)}),
        section="one",
    )


def point(
    engine: str,
    goodputs: Sequence[float],
    k: int = 8,
    subflows: int = 8,
    status: Status = Status.OK,
    seed: int = 1,
) -> PointResult:
    spec = dataclasses.replace(spec_of(subflows, k=k, seed=seed), engine=engine)
    if engine == SIMULATOR:
        spec = dataclasses.replace(spec, transport=TransportSpec(subflows, COUPLED_DEFAULT))
    return stored(spec, goodputs, status)


def claim_on(row: Published, *points: PointResult) -> Claim:
    (claim,) = claims(figure_of(row), judged(points) if points else [])
    return claim


def simulated(goodputs: Sequence[float], **more: int) -> PointResult:
    return point(SIMULATOR, goodputs, **more)  # type: ignore[arg-type]


def emulated(goodputs: Sequence[float], **more: int) -> PointResult:
    return point(ENGINE, goodputs, **more)  # type: ignore[arg-type]


class TestColours:
    @pytest.mark.parametrize(
        ("points", "colour", "word"),
        [
            ([simulated(HIGH)], Colour.GREEN, AGREES),
            ([simulated(HIGH), emulated(HIGH)], Colour.GREEN, AGREES),
            ([simulated(LOW)], Colour.RED, DIFFERS),
            ([simulated(LOW), emulated(LOW)], Colour.RED, DIFFERS),
            ([simulated(HIGH), emulated(LOW)], Colour.AMBER, "agrees simulated, differs emulated"),
            ([simulated(HIGH), emulated(LOW, k=4)], Colour.GREEN, AGREES),
            ([emulated(HIGH, k=4)], Colour.AMBER, "measured at k=4 only"),
            ([point(SIMULATOR, HIGH, status=Status.SUSPECT)], Colour.AMBER, SUSPECT),
            ([simulated([])], Colour.AMBER, NOT_MEASURED),
            ([], Colour.AMBER, NOT_MEASURED),
        ],
    )
    def test_a_level_is_judged_at_its_own_size_alone(
        self, points: list[PointResult], colour: Colour, word: str
    ) -> None:
        assert claim_on(LEVEL, *points).judgement == (colour, word)

    def test_what_is_recalled_proves_nothing(self) -> None:
        recalled = dataclasses.replace(LEVEL, source=Source.RECALLED)
        for goodputs, word in ((HIGH, "agrees with"), (LOW, "differs from")):
            assert claim_on(recalled, simulated(goodputs)).judgement == (
                Colour.AMBER, f"{word} what is recalled",
            )  # fmt: skip

    def test_a_sign_may_be_judged_on_a_smaller_network(self) -> None:
        small = (emulated(HIGH, k=4), emulated(LOW, k=4, subflows=1))
        assert claim_on(GAIN, *small).judgement == (Colour.AMBER, "agrees at k=4")
        large = (simulated(HIGH), simulated(LOW, subflows=1))
        assert claim_on(GAIN, *small, *large).judgement == (Colour.GREEN, AGREES)
        against = (emulated(LOW, k=4), emulated(HIGH, k=4, subflows=1))
        assert claim_on(GAIN, *against, *large).judgement == (Colour.AMBER, "agrees, differs at k=4")

    def test_an_amount_is_not_judged_at_another_size_even_of_a_ratio(self) -> None:
        twice = dataclasses.replace(GAIN, value=2.0)
        claim = claim_on(twice, emulated(HIGH, k=4), emulated(LOW, k=4, subflows=1))
        assert claim.emulated is not None
        assert (claim.emulated.word, claim.emulated.network) == (OTHER_SIZE, "k=4")

    def test_a_network_of_another_shape_has_nothing_to_say(self) -> None:
        claim = claim_on(LEVEL.on(oversubscription=4), emulated(HIGH, k=4))
        assert claim.judgement == (Colour.AMBER, NOT_MEASURED)


class TestReasons:
    def test_are_given_for_the_variant_that_differs(self) -> None:
        assert claim_on(LEVEL, simulated(HIGH), emulated(HIGH)).reasons == []
        assert claim_on(LEVEL, simulated(LOW)).reasons == ["Simulated paths collide."]
        assert claim_on(LEVEL, simulated(HIGH), emulated(LOW)).reasons == ["Real subflows run dry."]
        assert len(claim_on(LEVEL, simulated(LOW), emulated(LOW)).reasons) == 2

    def test_a_caveat_stands_whatever_the_verdict(self) -> None:
        row = LEVEL.with_caveat("Two emulated runs gave less.")
        for goodputs in (HIGH, LOW):
            assert "Two emulated runs gave less." in claim_on(row, simulated(goodputs)).reasons


class TestShown:
    def test_a_smaller_network_and_the_links_of_real_hosts_are_shown(self) -> None:
        (row,) = shown.claim_rows([claim_on(LEVEL, simulated(HIGH), emulated(LOW, k=4))])
        assert row.simulated.short().startswith("96.0\N{NO-BREAK SPACE}%")
        assert row.emulated.short().startswith("40.0\N{NO-BREAK SPACE}%")
        assert "at k=4, 5 Mb/s" in row.emulated.short() and "100-packet queues" in row.emulated.note

    def test_a_suspect_value_is_never_shown_as_if_it_were_not(self) -> None:
        doubtful = point(ENGINE, LOW, k=4, status=Status.SUSPECT)
        (row,) = shown.claim_rows([claim_on(LEVEL, simulated(HIGH), doubtful)])
        assert row.verdict == AGREES
        assert row.emulated.short().endswith("at k=4, 5 Mb/s links, suspect")

    def test_intervals_need_three_seeds(self) -> None:
        assert Estimate(90.0, 3.0, 2, suspect=False).half is None
        six = Estimate(90.0, 3.0, 6, suspect=False)
        assert six.half == pytest.approx(2.5706 * 3 / 6**0.5, rel=1e-4)
        assert "90.0 \N{PLUS-MINUS SIGN} 3.1" in measured_text(six, LEVEL.metric)
        assert "95 %, 6 seeds" in measured_text(six, LEVEL.metric)

    def test_a_statement_of_two_figures_is_one_claim(self) -> None:
        twice = dataclasses.replace(LEVEL, words="said again", algorithm="lia")
        made: list[PointResult] = judged([simulated(HIGH)])
        found = [*claims(figure_of(LEVEL), made), *claims(figure_of(twice), made)]
        assert [claim.published.words for claim in once(found)] == ["levels off"]

    def test_the_score_counts_a_sentence_once(self) -> None:
        six = [simulated(HIGH, seed=seed) for seed in range(1, 7)]
        other = LEVEL.of("another sentence")
        found = [claim_on(LEVEL, *six), claim_on(GAIN, simulated(HIGH)), claim_on(other, simulated(LOW))]
        assert [words for _, words in sentences(found)] == ["levels off", "another sentence"]
        assert shown.score_of(found) == "2 sentences (3 claims): differs: 1, open: 1."

    def test_a_sentence_needs_seeds_and_engines_that_agree(self) -> None:
        six = [simulated(HIGH, seed=seed) for seed in range(1, 7)]

        def outcome(row: Published, *points: PointResult) -> SentenceOutcome:
            return sentence_judgement([claim_on(row, *points)])[0]

        recalled = dataclasses.replace(LEVEL, source=Source.RECALLED)
        unlike = dataclasses.replace(LEVEL, incomparable="Its wiring is not known.")
        assert outcome(LEVEL, *six) is SentenceOutcome.AGREES
        assert outcome(LEVEL, *six[:5]) is SentenceOutcome.OPEN
        assert outcome(recalled, *six) is SentenceOutcome.RECALLED
        assert outcome(LEVEL, *six, emulated(LOW)) is SentenceOutcome.SPLIT
        assert outcome(LEVEL, simulated(LOW)) is SentenceOutcome.DIFFERS
        assert outcome(unlike, simulated(LOW)) is SentenceOutcome.INCOMPARABLE
        assert outcome(LEVEL) is SentenceOutcome.OPEN

    def test_a_split_sentence_names_its_engines(self) -> None:
        split = sentence_judgement([claim_on(LEVEL, simulated(HIGH), emulated(LOW))])
        assert split == (SentenceOutcome.SPLIT, "differs emulated, agrees simulated")

    def test_json_has_both_variants(self) -> None:
        shown = claim_fields(claim_on(LEVEL, simulated(HIGH), emulated(LOW, k=4)))
        assert (shown["colour"], shown["simulated"]["verdict"]) == ("green", AGREES)
        assert shown["simulated"]["measured"]["value"] == pytest.approx(96)
        assert shown["emulated"]["network"] == "k=4"

    def test_figures_of_one_size_for_all_engines_make_no_claims(self) -> None:
        assert claims(CS244_ONE_TO_ONE.figures[0], judged([simulated(HIGH)])) == []


@pytest.mark.parametrize(
    ("relation", "value", "spread", "n", "agrees"),
    [
        (Relation.ABOVE, 1.2, 0.1, 6, True),
        (Relation.ABOVE, 1.05, 0.1, 6, None),  # the interval holds 1
        (Relation.ABOVE, 0.8, 0.1, 6, False),
        (Relation.ABOVE, 1.05, None, 1, True),  # no interval
        (Relation.BELOW, 0.8, 0.1, 6, True),
        (Relation.BELOW, 0.95, 0.1, 6, None),
        (Relation.AT_LEAST, 0.95, 0.1, 6, None),
        (Relation.ABOUT, 1.04, 0.1, 6, True),
        (Relation.ABOUT, 1.12, 0.1, 6, None),  # touches the band of 0.1
        (Relation.ABOUT, 1.3, 0.1, 6, False),
    ],
)
def test_an_interval_decides_what_it_can(
    relation: Relation, value: float, spread: float | None, n: int, agrees: bool | None
) -> None:
    tolerance = 0.1 if relation is Relation.ABOUT else 0.0
    assert relation.verdict(Estimate(value, spread, n, suspect=False), 1.0, tolerance) is agrees
