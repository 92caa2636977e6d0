"""Further subflows that join late, and a duplicate threshold that stays."""

from __future__ import annotations

import numpy as np
import pytest

from fabric._core import Simulation
from tests.support.simulated_hosts import (
    MS,
    PAYLOAD,
    TWO_PATHS,
    S,
    network,
    stack,
    tcp,
)


def established(simulation: Simulation) -> list[int]:
    return np.flatnonzero(simulation.subflows()["established"]).tolist()


def test_they_join_when_their_time_has_come() -> None:
    simulation = Simulation(network(4, delay_ps=MS), stack(join_after_ps=100 * MS), [tcp(TWO_PATHS)])
    simulation.run_until(100 * MS - 1)
    assert established(simulation) == [0]
    assert not simulation.ports()["tx_packets"][2]
    simulation.run_until(S)
    assert established(simulation) == [0, 1]
    assert simulation.ports()["tx_packets"][2]


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


def test_late_ones_shake_hands_too() -> None:
    of = stack(join_after_ps=100 * MS, handshake=True)
    simulation = Simulation(network(4, delay_ps=5 * MS), of, [tcp(TWO_PATHS)])
    simulation.run_until(140 * MS)
    assert established(simulation) == [0]
    simulation.run_until(150 * MS)
    assert established(simulation) == [0, 1]


def test_what_is_not_asked_to_wait_joins_at_once() -> None:
    simulation = Simulation(network(4), stack(), [tcp(TWO_PATHS)])
    simulation.run_until(1)
    assert established(simulation) == [0, 1]
