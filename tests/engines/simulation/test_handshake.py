"""Connections that begin with a handshake."""

from __future__ import annotations

from fabric._core import Simulation
from tests.support.simulated_hosts import ACK_PS, MS, TWO_PATHS, S, lose_downlink, network, stack, tcp

ROUND_TRIP = 4 * ACK_PS + 20 * MS


def completed(simulation: Simulation) -> int:
    simulation.run_until(100 * S)
    return int(simulation.flows()["completed_ps"][0])


def test_it_takes_one_exchange() -> None:
    plan = network(delay_ps=5 * MS)
    plain = completed(Simulation(plan, stack(), [tcp(pkts=5)]))
    greeted = completed(Simulation(plan, stack(handshake=True), [tcp(pkts=5)]))
    assert greeted - plain == ROUND_TRIP


def test_a_lost_syn_costs_a_second() -> None:
    plan = network(delay_ps=5 * MS)
    simulation = Simulation(plan, stack(handshake=True), [tcp(pkts=1)])
    lose_downlink(simulation, 1, 8 * MS)
    assert int(simulation.ports()["dropped"]) == 0
    alone = completed(Simulation(plan, stack(handshake=True), [tcp(pkts=1)]))
    assert completed(simulation) - alone == S
    assert int(simulation.subflows()["timeouts"][0]) == 1
    assert simulation.descriptors_in_use() == 0


def test_further_subflows_join_an_exchange_later() -> None:
    simulation = Simulation(network(4, delay_ps=5 * MS), stack(handshake=True), [tcp(TWO_PATHS)])
    sent = {}
    for now in (ROUND_TRIP - 1, ROUND_TRIP, 2 * ROUND_TRIP - 1, 2 * ROUND_TRIP):
        simulation.run_until(now)
        sent[now] = [bool(n) for n in simulation.subflows()["unacked_pkts"]]
    assert list(sent.values()) == [[False, False], [True, False], [True, False], [True, True]]
