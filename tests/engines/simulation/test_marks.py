"""How senders react to ECN marks."""

from __future__ import annotations

import pytest

from fabric._core import Simulation
from fabric.plan import NetworkPlan
from tests.support.core_networks import with_setting
from tests.support.simulated_hosts import MS, PACKET_PS, PAYLOAD, RATE_BPS, S, network, stack, tcp, with_rate

THRESHOLD = 10


def marking() -> NetworkPlan:
    """Two senders with fast uplinks; the link to the third host marks from ten packets on."""
    plan = with_rate(network(3, delay_ps=MS), {0: 10 * RATE_BPS, 1: 10 * RATE_BPS})
    return with_setting(plan, "ecn_pkts", 5, THRESHOLD)


@pytest.mark.parametrize("delayed", [0, 40 * MS])
@pytest.mark.parametrize("cc", ["reno", "dctcp"])
def test_marks_keep_the_queue_short_and_the_link_full_without_a_loss(cc: str, delayed: int) -> None:
    options = stack(ecn=True, delayed_ack_ps=delayed, ssthresh=10.0)
    simulation = Simulation(marking(), options, [tcp([(0, 2)], cc=cc), tcp([(1, 2)], cc=cc)])
    simulation.run_until(5 * S)
    before = simulation.flows()["delivered_bytes"].astype(float)
    simulation.run_until(25 * S)
    ports, subflows = simulation.ports(), simulation.subflows()
    assert ports["dropped"] == 0
    assert subflows["retransmits"].tolist() == [0, 0]
    assert int(ports["max_queue_pkts"][5]) < 4 * THRESHOLD
    shares = (simulation.flows()["delivered_bytes"] - before) / PAYLOAD / (20 * S / PACKET_PS)
    assert shares.sum() == pytest.approx(1, abs=0.02)
    assert shares.min() > 0.35


def test_dctcp_marks_more_and_reduces_less_than_reno() -> None:
    """Its sawtooth is flatter: more packets are marked, and its window seldom falls far."""
    marks, lowest = {}, {}
    for cc in ("reno", "dctcp"):
        simulation = Simulation(marking(), stack(ecn=True, ssthresh=10.0), [tcp([(0, 2)], cc=cc)])
        windows = []
        for now in range(5 * S, 15 * S, 10 * MS):
            simulation.run_until(now)
            windows.append(float(simulation.subflows()["window_pkts"][0]))
        marks[cc] = int(simulation.ports()["marks"][5])
        lowest[cc] = min(windows) / max(windows)
    assert marks["dctcp"] > 2 * marks["reno"]
    assert lowest["reno"] < 0.6
    assert lowest["dctcp"] > 0.7
