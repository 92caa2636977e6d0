"""The dctcp experiment: three transports over one bottleneck, at a threshold that theory requires."""

from __future__ import annotations

import dataclasses

import pytest

import topos
from common.errors import UsageError
from experiments import dctcp
from fabric.plan import FRAME_BITS
from harness.baseline import baseline_of
from model import tuning
from model.spec import RunSpec, sub_seed
from tests.support.figures import figure_of, points_of
from workloads import matrices


def specs(**given: object) -> list[RunSpec]:
    return points_of(figure_of("dctcp"), **given)


def test_three_transports_differ_in_what_they_do_about_marks_alone() -> None:
    found = specs()
    assert [(s.transport.cc, s.link.ecn_pkts) for s in found] == [("reno", 0), ("reno", 20), ("dctcp", 20)]
    first = found[0]
    assert all(dataclasses.replace(s, link=first.link, transport=first.transport) == first for s in found)


@pytest.mark.parametrize("senders", [4, 8, 16])
def test_every_host_but_one_sends_to_that_one(senders: int) -> None:
    for spec in specs(k=str(senders)):
        network = topos.build(spec.topology.kind, spec.topology.params)
        seed = sub_seed(spec.seed, "workload")
        flows = matrices.build(spec.workload.matrix, network, spec.workload.params, seed)
        assert len(flows) == len({flow.src for flow in flows}) == senders
        assert len({flow.dst for flow in flows}) == 1


def test_the_threshold_is_where_theory_lets_dctcp_and_not_reno_fill_the_link() -> None:
    link = specs()[0].link
    ways = 4 * link.delay_us / 1e6  # two links there, two back
    packets_s = link.rate_mbps * 1e6 / FRAME_BITS
    holds = packets_s * ways
    threshold = dctcp.DEFAULTS.ecn_pkts or 0
    assert holds / 7 < threshold < holds
    lowest = threshold + dctcp.SENDERS - (2 * dctcp.SENDERS * (holds + threshold)) ** 0.5 / 2
    assert lowest > 0, "section 3.3 of the paper: the queue never runs empty"


def test_what_cannot_show_it_is_refused() -> None:
    with pytest.raises(UsageError, match="--ecn 0"):
        specs(ecn=0)
    with pytest.raises(UsageError, match="choose their number with --k"):
        specs(workload="one_to_one")


def test_the_baseline_is_not_marked() -> None:
    assert {baseline_of(spec).link.ecn_pkts for spec in specs()} == {0}


def test_three_transports_meet_the_same_flows_at_every_load() -> None:
    specs = points_of(figure_of("short-flows"))
    transports = [("reno", 1, 0), ("dctcp", 1, 20), ("lia", 4, 0)]
    for load in (20, 40, 60):
        at_load = [spec for spec in specs if spec.workload.params["load"] == load]
        assert [(s.transport.cc, s.transport.subflows, s.link.ecn_pkts) for s in at_load] == transports
        assert len({(s.seed, s.workload.matrix, s.topology.k, s.stack) for s in at_load}) == 1
    assert {spec.engine for spec in specs} == {"simulator"}


def test_sizes_and_loads_are_options() -> None:
    specs = points_of(figure_of("short-flows"), workload="poisson:80:sizes=datamining", subflows="8", k="8")
    assert {spec.workload.params["sizes"] for spec in specs} == {"datamining"}
    assert {spec.transport.subflows for spec in specs} == {1, 8}
    assert {spec.topology.k for spec in specs} == {8}


def test_short_flows_beside_long_ones_are_those_of_the_paper() -> None:
    specs = points_of(figure_of("short-beside-long"))
    transports = [("reno", 1), ("reno", 1), ("lia", 8), ("ewtcp", 8), ("reno", 8)]
    assert [(s.transport.cc, s.transport.subflows) for s in specs] == transports
    assert {len(topos.build(s.topology.kind, s.topology.params).hosts) for s in specs} == {512}
    assert {s.stack.min_rto_ms for s in specs} == {1.0}
    assert {(s.routing, s.stack.dup_threshold) for s in specs} == {("hashed", 0), ("scatter", 19)}


def test_when_further_subflows_join_is_all_that_differs() -> None:
    specs = points_of(figure_of("short-joins"))
    labels = [tuning.joins(s.transport) for s in specs]
    assert labels == ["", "after 1 MB", "after 100 kB", "after 100 ms", "after 10 ms", "at once"]
    assert len({(s.workload.matrix, s.stack, s.link) for s in specs}) == 1
