"""Own settings: a figure's points have its own, and every option that overrides one is found and named."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import pytest

from common.errors import UsageError
from engines.registry import LINUX, MININET, SIMULATOR
from experiments.registry import CATALOGUE, EXPERIMENTS
from harness.claims.claims import AGREES, NOT_MEASURED, Verdict, claims, verdicts
from harness.claims.own_settings import OwnSettings
from harness.experiment import Figure, RateOf
from harness.metrics.published import Published
from harness.metrics.where import ANY
from harness.options.options import SweepOptions, sweeps_of
from harness.options.rates import long_enough
from harness.own_experiment import experiment
from harness.report.sentences import published_goodput
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.spec import RunSpec, Settings
from tests.support.judged_points import judged, stored
from tests.support.options import options_typed
from tests.support.stored_points import EXPERIMENT

ONE_TO_ONE = CATALOGUE.find(EXPERIMENT).figures[0]
AT_ONCE = CATALOGUE.find("htsim-reference").figures[1]
FIGURES = {figure.name: figure for of in EXPERIMENTS.values() for figure in of.figures}
OVERRIDDEN: tuple[tuple[Mapping[str, str | tuple[str, ...]], str], ...] = (
    ({"loss": "1"}, "loss"),
    ({"delay": "1000"}, "1000 us"),
    ({"routing": "ecmp"}, "ecmp"),
    ({"stack": ("min_rto_ms=10",)}, "min_rto_ms=10"),
    ({"random_drop": "3"}, "3 slots"),
    ({"discipline": "priority"}, "priority"),
    ({"scheduler": "first_fit:500"}, "first fit"),
    ({"scheduler": "first_fit:ideal"}, "first fit"),
    ({"event": ("2:p0a0-c0",)}, "p0a0-c0"),
    ({"queue": "20"}, "20-packet"),
    ({"ecn": "20"}, "20 packets"),
    ({"cc": "olia"}, "OLIA"),
    ({"cc": "reno"}, "reno"),
    ({"parts": "2"}, "2 parts"),
)


def points_of(
    figure: Figure, given: Settings, rate_mbps: float = 7.0, coupled_cc: str = COUPLED_DEFAULT
) -> list[RunSpec]:
    """Return what a figure runs with these options."""
    found = []
    for chosen, defaults in figure.variants(given):
        for options in sweeps_of(chosen, defaults, coupled_cc):
            pinned = options.rate_mbps or rate_mbps
            specs = figure.points(options, lambda _network, mbps=pinned: mbps)  # type: ignore[misc]
            found += [long_enough(spec, options.growing) for spec in specs]
    return found


def mptcp_with(figure: Figure, **texts: Any) -> RunSpec:
    """Return a simulated MPTCP point of a figure with these options."""
    specs = points_of(figure, options_typed(engine=SIMULATOR, **texts))
    return next(spec for spec in specs if spec.transport.subflows == 8)


@pytest.mark.parametrize("name", sorted(FIGURES))
@pytest.mark.parametrize("engine", [None, SIMULATOR, MININET, LINUX])
def test_no_point_that_a_figure_makes_by_itself_overrides_it(name: str, engine: str | None) -> None:
    """Points of other seeds and durations share an expansion of the figure."""
    figure = FIGURES[name]
    given = {"seed": 3, "seeds": 1, "profile": "paper"} | ({} if engine is None else {"engine": (engine,)})
    own = OwnSettings([figure])
    for times in ({}, {"seed": 4, "warmup_s": 3.5, "seconds": 7.0}):
        try:
            specs = points_of(figure, given | times)
        except UsageError:  # it does not run in this engine
            return
        assert not {words for spec in specs[:: max(1, len(specs) // 40)] for words in own.overrides(spec)}


@pytest.mark.parametrize(("texts", "words"), OVERRIDDEN)
def test_an_override_is_named_and_keeps_published_numbers_away(
    texts: Mapping[str, str | tuple[str, ...]], words: str
) -> None:
    own, spec = OwnSettings([ONE_TO_ONE]), mptcp_with(ONE_TO_ONE, k="8", **texts)
    (named,) = own.overrides(spec)
    assert words in named
    assert own.published(spec) == [] and published_goodput(spec, own) is None
    assert published_goodput(mptcp_with(ONE_TO_ONE, k="8"), own) is not None


def test_sizes_rates_durations_and_seeds_override_nothing() -> None:
    own = OwnSettings([ONE_TO_ONE])
    for texts in ({"k": "6"}, {"rate": "3"}, {"seconds": "1"}, {"warmup": "1"}, {"seed": "9"}):
        assert own.overrides(mptcp_with(ONE_TO_ONE, **texts)) == ()
    elsewhere_run = mptcp_with(ONE_TO_ONE, topology=("star,8",), workload="stride:4")
    assert own.overrides(elsewhere_run) == ()


def test_a_usual_value_overrides_another_one_that_the_figure_pins() -> None:
    own = OwnSettings([AT_ONCE])
    assert own.overrides(mptcp_with(AT_ONCE)) == ()
    assert own.overrides(mptcp_with(AT_ONCE, stack=("acks=routed",))) == ("stack acks=routed",)
    assert own.overrides(mptcp_with(AT_ONCE, delay="0")) != ()


def test_a_rate_is_a_setting_where_the_figure_pins_it() -> None:
    assert OwnSettings([AT_ONCE]).overrides(mptcp_with(AT_ONCE, rate="10")) == ("10 Mb/s links",)
    assert OwnSettings([ONE_TO_ONE]).overrides(mptcp_with(ONE_TO_ONE, rate="10")) == ()


def test_values_of_two_curves_do_not_make_one() -> None:
    """PacketScatter is TCP over the routing `scatter`: MPTCP over it is no curve of the figure."""
    figure = FIGURES["sigcomm11-congestion-controls"]
    own = OwnSettings([figure])
    scattered = [spec for spec in points_of(figure, {}) if spec.routing == "scatter"]
    assert scattered and all(own.overrides(spec) == () for spec in scattered)
    assert own.overrides(mptcp_with(figure, subflows="8").changed({"routing": "scatter"})) != ()


def test_events_of_another_size_and_duration_are_the_figures_own() -> None:
    figure = FIGURES["robustness-failure"]
    spec = mptcp_with(figure, k="4", seconds="6")
    own = OwnSettings([figure])
    assert spec.events and own.overrides(spec) == ()
    assert own.overrides(dataclasses.replace(spec, events=spec.events[:2])) != ()


def test_only_real_hosts_fall_back_to_uncoupled_subflows() -> None:
    own = OwnSettings([ONE_TO_ONE])
    real = points_of(ONE_TO_ONE, {"engine": (MININET,)}, coupled_cc=BASELINE)
    assert not own.together(real)
    simulated = points_of(ONE_TO_ONE, {"engine": (SIMULATOR,)}, coupled_cc=BASELINE)
    assert own.together(simulated)


def test_a_file_of_the_users_has_settings_of_its_own() -> None:
    """Its curves, pins and axes are the figure's, and options override them."""
    mine = experiment(
        "mine", "Mine", curves=({"routing": "ecmp"},), pins={"link.loss": 0.01, "engine": SIMULATOR},
        axes={"link.queue_pkts": (20, 50), "stack.min_rto_ms": (10.0,)},
    )  # fmt: skip
    (figure,) = mine.figures
    own = OwnSettings([figure])
    points = points_of(figure, {})
    assert {(each.link.queue_pkts, each.stack.min_rto_ms) for each in points} == {(20, 10.0), (50, 10.0)}
    assert not own.together(points)
    assert own.overrides(mptcp_with(figure, queue="70")) == ("70-packet queues",)
    assert own.overrides(mptcp_with(figure, loss="0")) == ("--loss 0",)


def verdicts_on(*specs: RunSpec) -> list[Verdict]:
    return verdicts(ONE_TO_ONE, judged([stored(spec, [2.0, 3.0]) for spec in specs]))


def test_nothing_is_judged_on_overriding_points() -> None:
    own, lossy = mptcp_with(ONE_TO_ONE, k="8"), mptcp_with(ONE_TO_ONE, k="8", loss="1")
    about = [row for row in ONE_TO_ONE.published if row.subflows == 8]
    alone = {verdict.published: verdict for verdict in verdicts_on(lossy)}
    assert all(alone[row].word == NOT_MEASURED and alone[row].overrides for row in about)
    assert all(verdict.elsewhere for verdict in alone.values())
    assert not any(alone[row].overrides for row in ONE_TO_ONE.published if row.subflows == 1)
    together = {verdict.published: verdict for verdict in verdicts_on(own, lossy)}
    assert all(together[row].word != NOT_MEASURED and not together[row].overrides for row in about)
    assert together == {verdict.published: verdict for verdict in verdicts_on(own)}


def test_plain_tcp_is_judged_beside_another_coupled_algorithm() -> None:
    """It runs the same. MPTCP is not measured, and not for want of points."""
    specs = points_of(ONE_TO_ONE, options_typed(engine=SIMULATOR, cc="olia", subflows="1,8", k="8"))
    for verdict in verdicts_on(*specs):
        assert (verdict.word == NOT_MEASURED) == (verdict.published.subflows == 8)
        assert verdict.overrides == (("OLIA",) if verdict.published.subflows == 8 else ())


def test_a_point_belongs_to_the_figure_that_it_is_most_similar_to() -> None:
    figures = CATALOGUE.find("cs244").figures
    own = OwnSettings(figures)
    for figure in figures:
        specs = points_of(figure, {"engine": (MININET,)})
        assert not own.together(specs)
        assert all(set(figure.published) <= set(own.published(spec)) for spec in specs)


def stating(where: Mapping[str, Any], subflows: int = 8) -> Published:
    """Return a statement on the goodput of MPTCP at k=8 that names settings of its own."""
    row = next(row for row in ONE_TO_ONE.published if row.subflows == subflows)
    return dataclasses.replace(row, where=where)


@pytest.mark.parametrize(
    ("where", "about", "not_about"),
    [
        ({"link.loss": 0.01}, [{"loss": "1"}], [{}, {"loss": "2"}, {"loss": "1", "routing": "ecmp"}]),
        ({"link.queue_pkts": [20, 50]}, [{"queue": "20"}, {"queue": "50"}], [{}, {"queue": "30"}]),
        ({"link.queue_pkts": ANY}, [{}, {"queue": "30"}], [{"queue": "30", "loss": "1"}]),
        ({"scheduler": "first_fit:10"}, [{"scheduler": "first_fit:10"}], [{}, {"scheduler": "first_fit"}]),
        ({"stack.sack": False}, [{"stack": ("sack=off",)}], [{}, {"stack": ("sack=off", "acks=at_once")}]),
        ({"link.rate_mbps": 10}, [{"rate": "10"}], [{"rate": "20"}]),
        ({"transport.cc": "olia"}, [{"cc": "olia"}], [{}]),
        ({"seconds": 5}, [{"seconds": "5"}], [{"seconds": "6"}]),
    ],
)  # fmt: skip
def test_a_statement_is_about_the_settings_that_it_names(
    where: Mapping[str, Any], about: list[dict[str, Any]], not_about: list[dict[str, Any]]
) -> None:
    row = stating(where)
    own = OwnSettings([dataclasses.replace(ONE_TO_ONE, published=(row,))])
    for texts in about:
        spec = mptcp_with(ONE_TO_ONE, k="8", **texts)
        assert own.unlike(row, spec) == () and own.published(spec) == [row]
    for texts in not_about:
        spec = mptcp_with(ONE_TO_ONE, k="8", **texts)
        assert own.unlike(row, spec) and own.published(spec) == []


def test_two_statements_on_two_values_of_an_axis_are_judged_by_their_own_points() -> None:
    rows = [dataclasses.replace(stating({"link.queue_pkts": pkts}), value=float(pkts)) for pkts in (20, 50)]
    figure = dataclasses.replace(ONE_TO_ONE, published=tuple(rows))
    specs = [mptcp_with(ONE_TO_ONE, k="8", queue=pkts) for pkts in ("20", "50")]
    points = judged([stored(spec, [mbps]) for spec, mbps in zip(specs, (1.0, 2.5), strict=True)])
    found = [verdict.measured.value for verdict in verdicts(figure, points) if verdict.measured]
    assert found == [20.0, 50.0]
    (first, second) = verdicts(figure, [p for p in points if p.spec.link.queue_pkts != 50])
    assert first.word == AGREES
    assert (second.word, second.overrides) == (NOT_MEASURED, ("20-packet queues",))


def test_a_claim_says_which_setting_keeps_it_from_being_judged_at_any_size() -> None:
    figure = FIGURES["sigcomm11-throughput"]
    spec = mptcp_with(figure, k="4", scheduler="first_fit:ideal")
    found = claims(figure, judged([stored(spec, [2.0, 3.0])]))
    about = [claim for claim in found if claim.published.subflows == 8]
    assert about and all(claim.overrides == ("ideal first fit",) for claim in about)
    assert all(claim.simulated and claim.simulated.measured is None for claim in about)


@pytest.mark.parametrize(
    ("where", "problem"),
    [
        ({"link.queue": 20}, "link.queue_pkts"),
        ({"topology": "star"}, "no such setting"),
        ({"link.queue_pkts": 2.5}, "2.5"),
        ({"link.queue_pkts": -1}, "at least 0"),
        ({"stack.min_rto_ms": "soon"}, "soon"),
        ({"link.discipline": "fif"}, "fifo"),
        ({"transport.cc": "rono"}, "reno"),
        ({"scheduler": 3}, "scheduler"),
    ],
)
def test_a_statement_names_settings_and_values_that_exist(where: Mapping[str, Any], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        stating(where)


def test_settings_of_a_statement_survive_a_change_and_are_plain_json() -> None:
    row = stating({"scheduler": "first_fit:10", "link.queue_pkts": [20, 50], "link.loss": ANY})
    assert dataclasses.replace(row, value=1.0).where == row.where
    assert json.loads(json.dumps(row.as_json()))["where"]["link.queue_pkts"] == [20, 50]
    assert all(word in row.setting for word in ("first_fit:10", "20 or 50", "any"))


def test_a_figure_is_expanded_once_for_all_that_ask() -> None:
    expansions: list[object] = []

    def counted(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        expansions.append(options)
        return ONE_TO_ONE.points(options, rate_of)

    figure = dataclasses.replace(ONE_TO_ONE, points=counted)
    spec = mptcp_with(ONE_TO_ONE, k="8")
    first = OwnSettings([figure]).overrides(spec)
    count = len(expansions)
    assert OwnSettings([figure]).overrides(spec) == first and len(expansions) == count > 0
    assert OwnSettings([dataclasses.replace(figure)]).overrides(spec) == first and len(expansions) > count


def test_no_figure_is_expanded_for_a_point_with_the_settings_of_another() -> None:
    def refused(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        raise AssertionError(f"expanded with {options} and {rate_of}")

    later = dataclasses.replace(ONE_TO_ONE, points=refused)
    assert OwnSettings([ONE_TO_ONE, later]).overrides(mptcp_with(ONE_TO_ONE, k="8")) == ()
    with pytest.raises(AssertionError, match="expanded"):
        OwnSettings([ONE_TO_ONE, later]).overrides(mptcp_with(ONE_TO_ONE, k="8", loss="1"))
