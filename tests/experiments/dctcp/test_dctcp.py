"""The dctcp experiment: three transports over one bottleneck, at a threshold that theory requires."""

from __future__ import annotations

import dataclasses

import pytest

import topos
from common.errors import UsageError
from experiments import dctcp
from fabric.plan import FRAME_BITS
from harness.baseline import baseline_of
from harness.options.options import UserOptions, resolve
from model.spec import RunSpec, sub_seed
from workloads import matrices


def specs(**given: object) -> list[RunSpec]:
    options = resolve(UserOptions.of(**given), dctcp.DEFAULTS)
    return dctcp.points(options, lambda _: options.rate_mbps or 1.0)


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
