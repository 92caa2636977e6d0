"""robustness: what it runs, and what its statements are judged on."""

from __future__ import annotations

import pytest

import topos
from experiments.registry import CATALOGUE
from experiments.sigcomm11.robustness import LINK_FAILURE, LOSS_AND_COST
from harness.experiment import Figure
from harness.options.options import UserOptions, resolve
from harness.plan.sweeps import core_failure
from model.links import check_events
from model.spec import RunSpec, TopologySpec


def points(figure: Figure, **given: object) -> list[RunSpec]:
    return figure.points(resolve(UserOptions.of(**given), figure.defaults), lambda _: 100.0)


def test_tcp_is_run_once_beside_both_congestion_controls() -> None:
    made = [(p.transport.cc, p.transport.subflows) for p in points(LOSS_AND_COST)]
    assert made == [("lia", 1), ("lia", 2), ("lia", 4), ("lia", 8), ("reno", 2), ("reno", 4), ("reno", 8)]
    assert {p.engine for p in points(LOSS_AND_COST)} == {"simulator"}


@pytest.mark.parametrize(("k", "switches"), [(4, 1), (6, 2), (8, 4)])
def test_a_quarter_of_the_core_fails_and_comes_back(k: int, switches: int) -> None:
    made = points(LINK_FAILURE, k=str(k), subflows="8")
    (spec,) = made
    assert len(spec.events) == 2 * switches * k
    check_events(spec, topos.build(spec.topology.kind, spec.topology.params))
    cut = [event for event in spec.events if not event.share]
    assert {event.t_s for event in cut} == {6.0}
    assert {event.t_s for event in spec.events if event.share} == {10.0}
    assert {event.b for event in cut} == {f"c{c}" for c in range(switches)}


def test_events_of_ones_own_go_before_the_figures() -> None:
    (spec,) = points(LINK_FAILURE, k="4", subflows="8", event=("3:p0a0-c0",))
    assert [(event.t_s, event.a, event.b) for event in spec.events] == [(3.0, "p0a0", "c0")]


def test_a_network_without_a_core_has_nothing_to_fail() -> None:
    assert core_failure(TopologySpec("star", {"n": 4}), 1.0, 2.0) == ()


def test_statements_are_about_what_is_run() -> None:
    for figure in CATALOGUE.find("robustness").figures:
        specs = points(figure)
        assert figure.published, figure.name
        for row in figure.published:
            assert any(row.is_on(s.topology) and s.transport.subflows == row.subflows for s in specs)
            assert row.source == "recalled", "no digits of the paper are known"
