"""ccp-completion and ccp-incast: their points, and what their metrics read."""

from __future__ import annotations

import pytest

from experiments.ccp import completion, incast
from experiments.ccp.completion import SERVERS
from experiments.ccp.incast import REPORTS_US
from model.spec import sub_seed
from tests.support.figures import points_of, simulate
from workloads import matrices
from workloads.flow import Traffic


def test_reno_is_beside_every_interval_at_both_rates() -> None:
    specs = points_of(incast.FIGURE)
    found = {(s.link.rate_mbps, s.transport.cc, s.agent.report_us) for s in specs}
    agents = {(mbps, "ccp:reno", us) for mbps in (10_000, 40_000) for us in REPORTS_US}
    assert found == agents | {(10_000, "reno", 0), (40_000, "reno", 0)}
    assert {s.agent.delay_us for s in specs if s.transport.cc != "reno"} == {20.0}


def test_options_go_before() -> None:
    specs = points_of(
        incast.FIGURE, rate="25000", report_interval="70", agent_delay="5", cc="ccp:cubic", seeds="1"
    )
    agents = {(s.link.rate_mbps, s.transport.cc, s.agent.delay_us, s.agent.report_us) for s in specs}
    assert agents == {(25_000, "reno", 280, 0), (25_000, "ccp:cubic", 5, 70)}


@pytest.mark.parametrize("report_us", [0, 500])
def test_ten_packets_are_one_window_so_no_agent_matters(report_us: int) -> None:
    specs = [
        s
        for s in points_of(incast.FIGURE, seeds="1")
        if s.workload.params["packets"] == 10 and s.link.rate_mbps == 10_000
    ]
    plain = simulate(next(s for s in specs if s.transport.cc == "reno"))
    agents = simulate(next(s for s in specs if s.agent.report_us == (report_us or REPORTS_US[0])))
    took = [[flow.completed_s for flow in result.flows] for result in (plain, agents)]
    assert took[0] == pytest.approx(took[1], rel=1e-6)
    least_s = 50 * 10 * 1514 * 8 / 10e9
    assert least_s < max(took[0]) < 1.2 * least_s


def test_both_get_the_same_flows() -> None:
    first, second, *_ = specs = points_of(completion.FIGURE)
    assert (first.transport.cc, second.transport.cc) == ("reno", "ccp:reno")
    assert first.neutral("transport.cc") == second.neutral("transport.cc")
    assert len({spec.seed for spec in specs}) == 6


def test_a_hundred_thousand_flows_fill_half_of_the_link() -> None:
    spec = points_of(completion.FIGURE, profile="paper")[0]
    network = spec.network()
    seconds = spec.warmup_s + spec.seconds
    seed = sub_seed(spec.seed, "workload")
    flows = matrices.build(
        spec.workload.matrix, network, spec.workload.params, seed, Traffic(seconds, spec.link.rate_mbps)
    )
    assert len(flows) == pytest.approx(100_000, rel=0.05)
    assert len({flow.src for flow in flows}) == SERVERS
    assert 4 * spec.link.delay_us == 100_000


def test_flows_of_one_window_take_the_same_time() -> None:
    results = [
        simulate(spec) for spec in points_of(completion.FIGURE, seeds="1", seconds="2", warmup="0.5")[:2]
    ]
    small = [
        {f.flow: f.completed_s for f in result.flows if 0 < f.size_bytes < 2000 and f.start_s >= 0}
        for result in results
    ]
    known = [number for number in small[0] if small[0][number] < 10 and small[1][number] < 10]
    assert len(known) > 50
    alike = sum(small[0][number] == pytest.approx(small[1][number], rel=0.05) for number in known)
    assert alike > 0.9 * len(known)
