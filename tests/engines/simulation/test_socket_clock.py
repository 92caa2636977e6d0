"""Counters of a simulated socket, against times worked out by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from fabric._core import Simulation
from tests.support.simulated_hosts import (
    ACK_PS,
    MS,
    PACKET_PS,
    PAYLOAD,
    TWO_PATHS,
    S,
    network,
    stack,
    tcp,
    with_rate,
)

DELAY_PS = 20 * MS
ROUND_TRIP_PS = 2 * PACKET_PS + 2 * ACK_PS + 4 * DELAY_PS
"""Of a packet over two links and its acknowledgement, alone."""


def values_at(simulation: Simulation, name: str, at_ps: int) -> list[int]:
    simulation.run_until(at_ps)
    column = simulation.subflows()[name]  # type: ignore[literal-required]
    return [int(value) for value in column]


def test_busy_from_the_first_segment_to_the_last_acknowledgement() -> None:
    simulation = Simulation(network(), stack(receive_buffer=5000), [tcp(pkts=5, start_ps=7 * MS)])
    took_ps = 6 * PACKET_PS + 2 * ACK_PS
    assert values_at(simulation, "busy_ps", 5 * MS) == [0]
    assert values_at(simulation, "busy_ps", 7 * MS + 1000) == [1000]
    assert values_at(simulation, "busy_ps", 7 * MS + took_ps - 1) == [took_ps - 1]
    assert values_at(simulation, "busy_ps", 3 * S) == [took_ps]
    assert values_at(simulation, "rwnd_limited_ps", 3 * S) == [0]


def test_what_the_window_leaves_of_a_file_is_not_sent() -> None:
    simulation = Simulation(network(delay_ps=DELAY_PS), stack(initial_window=2.0), [tcp(pkts=5)])
    assert values_at(simulation, "notsent_bytes", 0) == [3 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS - 1) == [3 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS) == [1 * PAYLOAD]  # two more for the first
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS + PACKET_PS) == [0]
    assert values_at(simulation, "busy_ps", 10 * S) == [2 * ROUND_TRIP_PS + 2 * PACKET_PS]


def test_a_send_buffer_is_full_of_what_is_sent_and_what_is_not() -> None:
    plan = network(delay_ps=DELAY_PS)
    simulation = Simulation(plan, stack(initial_window=2.0, send_buffer=30), [tcp()])
    assert values_at(simulation, "notsent_bytes", 0) == [28 * PAYLOAD]
    assert values_at(simulation, "notsent_bytes", ROUND_TRIP_PS) == [27 * PAYLOAD]  # one gone, two sent
    assert values_at(simulation, "busy_ps", 5 * S) == [5 * S]


def test_limited_by_the_receiver_from_when_the_own_window_has_room() -> None:
    # 4 places: the third acknowledgement, of what left a round trip after the start, opens the window to 5.
    options = stack(initial_window=2.0, receive_buffer=4)
    simulation = Simulation(network(delay_ps=DELAY_PS), options, [tcp()])
    assert values_at(simulation, "rwnd_limited_ps", 2 * ROUND_TRIP_PS) == [0]
    assert values_at(simulation, "rwnd_limited_ps", 2 * ROUND_TRIP_PS + MS) == [MS]
    assert values_at(simulation, "rwnd_limited_ps", 9 * S) == [9 * S - 2 * ROUND_TRIP_PS]
    assert values_at(simulation, "busy_ps", 9 * S) == [9 * S]


def test_of_two_subflows_the_one_without_data_is_idle() -> None:
    simulation = Simulation(network(4), stack(), [tcp(TWO_PATHS, pkts=1)])
    busy = values_at(simulation, "busy_ps", S)
    assert sorted(busy) == [0, 2 * PACKET_PS + 2 * ACK_PS]
    assert values_at(simulation, "notsent_bytes", S) == [0, 0]


@pytest.mark.parametrize("scheduler", ["min_rtt", "round_robin", "burst"])
def test_what_is_busy_holds_something(scheduler: str) -> None:
    """At any instant a subflow has unsent or unacknowledged data and its busy clock runs, or neither."""
    plan = with_rate(network(4, delay_ps=MS), {1: 400_000, 3: 400_000})
    options = stack(scheduler=scheduler, send_buffer=60)
    simulation = Simulation(plan, options, [tcp(TWO_PATHS, pkts=300)])
    found_idle, before, held = 0, np.zeros(2, np.int64), np.zeros(2, bool)
    for step in range(1, 3000):
        simulation.run_until(step * 2 * MS)
        now = simulation.subflows()
        if int(simulation.flows()["completed_ps"][0]) < 60 * S:
            break
        grown = now["busy_ps"] - before
        assert ((grown >= 0) & (grown <= 2 * MS)).all()
        holds = (now["notsent_bytes"] > 0) | (now["unacked_pkts"] > 0)
        assert (grown[held] > 0).all()
        found_idle += int((grown < 2 * MS).sum())
        before, held = now["busy_ps"], holds
        if scheduler != "burst":
            assert not now["notsent_bytes"].any()
    else:
        pytest.fail("300 segments take less than 6 s")
    simulation.run_until(60 * S)
    last = simulation.subflows()
    assert int(simulation.flows()["delivered_bytes"][0]) == 300 * PAYLOAD
    assert not last["notsent_bytes"].any()
    assert (last["busy_ps"] < 60 * S).all()
    assert found_idle > 0


def test_bound_data_waits_in_its_own_subflows_socket() -> None:
    plan = with_rate(network(4, delay_ps=MS), {1: 100_000, 3: 100_000})
    plan = dataclasses.replace(plan, max_packets=1 << 12)
    simulation = Simulation(plan, stack(scheduler="burst", send_buffer=200), [tcp(TWO_PATHS)])
    simulation.run_until(2 * S)
    found = simulation.subflows()
    unsent, unacked = found["notsent_bytes"].astype(int), found["unacked_pkts"].astype(int)
    assert unsent[1] > 0 and (unsent % PAYLOAD == 0).all()
    assert unsent.sum() // PAYLOAD + unacked.sum() <= 200
