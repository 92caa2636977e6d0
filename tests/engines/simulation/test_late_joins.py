"""Further subflows that join late, and a duplicate threshold that stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fabric._core import Simulation
from tests.support.simulated_hosts import MS, PAYLOAD, TWO_PATHS, S, network, stack, tcp


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
