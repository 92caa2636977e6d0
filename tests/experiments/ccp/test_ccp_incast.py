"""ccp-incast: what it runs, and how its statements are read off points."""

from __future__ import annotations

import pytest

from experiments.ccp.incast import FIGURE, REPORTS_US
from tests.support.figures import points_of, simulate


def test_reno_is_beside_every_interval_at_both_rates() -> None:
    specs = points_of(FIGURE)
    found = {(s.link.rate_mbps, s.transport.cc, s.agent.report_us) for s in specs}
    agents = {(mbps, "ccp:reno", us) for mbps in (10_000, 40_000) for us in REPORTS_US}
    assert found == agents | {(10_000, "reno", 0), (40_000, "reno", 0)}
    assert {s.agent.delay_us for s in specs if s.transport.cc != "reno"} == {20.0}


def test_options_go_before() -> None:
    specs = points_of(FIGURE, rate="25000", report_interval="70", agent_delay="5", cc="ccp:cubic", seeds="1")
    agents = {(s.link.rate_mbps, s.transport.cc, s.agent.delay_us, s.agent.report_us) for s in specs}
    assert agents == {(25_000, "reno", 280, 0), (25_000, "ccp:cubic", 5, 70)}


@pytest.mark.parametrize("report_us", [0, 500])
def test_ten_packets_are_one_window_so_no_agent_matters(report_us: int) -> None:
    specs = [
        s
        for s in points_of(FIGURE, seeds="1")
        if s.workload.params["packets"] == 10 and s.link.rate_mbps == 10_000
    ]
    plain = simulate(next(s for s in specs if s.transport.cc == "reno"))
    agents = simulate(next(s for s in specs if s.agent.report_us == (report_us or REPORTS_US[0])))
    took = [[flow.completed_s for flow in result.flows] for result in (plain, agents)]
    assert took[0] == pytest.approx(took[1], rel=1e-6)
    least_s = 50 * 10 * 1514 * 8 / 10e9
    assert least_s < max(took[0]) < 1.2 * least_s
