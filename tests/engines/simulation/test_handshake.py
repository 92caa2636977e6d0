"""Connections that begin with a handshake, and further subflows that join late."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric._core import Simulation
from tests.support.simulated_hosts import (
    ACK_PS,
    MS,
    PAYLOAD,
    TWO_PATHS,
    S,
    lose_downlink,
    network,
    stack,
    tcp,
)

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


def established(simulation: Simulation) -> list[int]:
    return np.flatnonzero(simulation.subflows()["established"]).tolist()


@pytest.mark.parametrize(
    ("options", "before", "after"),
    [
        ({}, None, 1),
        ({"join_after_ps": 100 * MS}, 100 * MS - 1, S),
        ({"join_after_ps": 100 * MS, "handshake": True}, 140 * MS, 150 * MS),
    ],
)
def test_they_join_when_their_time_has_come(options: dict[str, Any], before: int | None, after: int) -> None:
    simulation = Simulation(network(4, delay_ps=5 * MS), stack(**options), [tcp(TWO_PATHS)])
    if before is not None:
        simulation.run_until(before)
        assert established(simulation) == [0]
        assert bool(simulation.ports()["tx_packets"][2]) == options.get("handshake", False)
    simulation.run_until(after)
    assert established(simulation) == [0, 1]


def test_they_join_when_enough_was_acknowledged() -> None:
    wanted = 50 * PAYLOAD
    simulation = Simulation(network(4, delay_ps=MS), stack(join_after_bytes=wanted), [tcp(TWO_PATHS)])
    acked = []
    for now in range(0, S, MS):
        simulation.run_until(now)
        acked.append((int(simulation.subflows()["acked_pkts"][0]), len(established(simulation))))
    assert {joined for pkts, joined in acked if pkts < 50} == {1}
    assert {joined for pkts, joined in acked if pkts >= 50} == {2}


@pytest.mark.parametrize("late", [{"join_after_bytes": 11 * PAYLOAD}, {"join_after_ps": S}])
def test_a_short_flow_ends_as_it_began(late: dict[str, int]) -> None:
    simulation = Simulation(network(4), stack(**late), [tcp(TWO_PATHS, pkts=10)])
    alone = Simulation(network(4), stack(), [tcp(TWO_PATHS[:1], pkts=10)])
    for one in (simulation, alone):
        one.run_until(10 * S)
    assert established(simulation) == [0]
    assert simulation.flows()["completed_ps"][0] == alone.flows()["completed_ps"][0]
    assert simulation.descriptors_in_use() == 0
