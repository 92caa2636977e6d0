"""short-flows: what it runs, and what its summary says."""

from __future__ import annotations

import topos
from experiments.registry import CATALOGUE
from harness.options.options import UserOptions, resolve
from model import tuning
from model.spec import RunSpec

FIGURE = CATALOGUE.find("short-flows").figures[0]


def points(**given: str) -> list[RunSpec]:
    return FIGURE.points(resolve(UserOptions.of(**given), FIGURE.defaults), lambda _: 1000.0)


def test_three_transports_meet_the_same_flows_at_every_load() -> None:
    specs = points()
    transports = [("reno", 1, 0), ("dctcp", 1, 20), ("lia", 4, 0)]
    for load in (20, 40, 60):
        at_load = [spec for spec in specs if spec.workload.params["load"] == load]
        assert [(s.transport.cc, s.transport.subflows, s.link.ecn_pkts) for s in at_load] == transports
        assert len({(s.seed, s.workload.matrix, s.topology.k, s.stack) for s in at_load}) == 1
    assert {spec.engine for spec in specs} == {"simulator"}


def test_sizes_and_loads_are_options() -> None:
    specs = points(workload="poisson:80:sizes=datamining", subflows="8", k="8")
    assert {spec.workload.params["sizes"] for spec in specs} == {"datamining"}
    assert {spec.transport.subflows for spec in specs} == {1, 8}
    assert {spec.topology.k for spec in specs} == {8}


def test_short_flows_beside_long_ones_are_those_of_the_paper() -> None:
    figure = CATALOGUE.find("short-beside-long").figures[0]
    specs = figure.points(resolve(UserOptions(), figure.defaults), lambda _: 100.0)
    assert [(s.transport.cc, s.transport.subflows) for s in specs] == [
        ("reno", 1),
        ("reno", 1),
        ("lia", 8),
        ("ewtcp", 8),
        ("reno", 8),
    ]
    assert {len(topos.build(s.topology.kind, s.topology.params).hosts) for s in specs} == {512}
    assert figure.published
    assert all(any(row.is_on(s.topology) for s in specs) for row in figure.published)
    assert {s.stack.min_rto_ms for s in specs} == {1.0}
    assert {(s.routing, s.stack.dup_threshold) for s in specs} == {("hashed", 0), ("scatter", 19)}


def test_when_further_subflows_join_is_all_that_differs() -> None:
    figure = CATALOGUE.find("short-joins").figures[0]
    specs = figure.points(resolve(UserOptions(), figure.defaults), lambda _: 100.0)
    labels = [tuning.joins(s.transport) for s in specs]
    assert labels == ["", "after 1 MB", "after 100 kB", "after 100 ms", "after 10 ms", "at once"]
    assert len({s.content_hash() for s in specs}) == len(specs)
    assert len({(s.workload.matrix, s.stack, s.link) for s in specs}) == 1
