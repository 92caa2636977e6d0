"""How a connection's data is distributed over its subflows."""

from __future__ import annotations

import pytest

from fabric._core import Simulation, schedulers
from tests.support.simulated_hosts import (
    MS,
    PACKET_PS,
    PAYLOAD,
    RATE_BPS,
    TWO_PATHS,
    S,
    network,
    stack,
    tcp,
    with_delay,
    with_rate,
)


def carried(simulation: Simulation) -> list[int]:
    return [int(n) for n in simulation.subflows()["acked_pkts"]]


def test_where_the_send_buffer_is_the_limit_the_faster_path_is_taken_first() -> None:
    plan = with_delay(network(4), {1: 50 * MS, 3: 50 * MS})
    shares = {}
    for name in ("min_rtt", "round_robin"):
        simulation = Simulation(plan, stack(send_buffer=8, scheduler=name), [tcp(TWO_PATHS)])
        simulation.run_until(20 * S)
        fast, slow = carried(simulation)
        shares[name] = fast / (fast + slow)
    assert shares["min_rtt"] > 0.9
    assert shares["round_robin"] < 0.7


@pytest.mark.parametrize("name", schedulers())
def test_without_limits_every_path_is_filled(name: str) -> None:
    plan = with_rate(network(4, delay_ps=MS), {1: RATE_BPS // 4, 3: RATE_BPS // 4})
    simulation = Simulation(plan, stack(scheduler=name), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    before = carried(simulation)
    simulation.run_until(15 * S)
    fast, slow = (now - then for now, then in zip(carried(simulation), before, strict=True))
    assert fast == pytest.approx(10 * S / PACKET_PS, rel=0.02)
    assert slow == pytest.approx(10 * S / PACKET_PS / 4, rel=0.02)


def test_a_burst_goes_to_the_subflow_that_sends_it_soonest_and_stays_there() -> None:
    """45 segments are bound to the first, whatever its window, the next 45 to the other."""
    options = stack(scheduler="burst", subflow_buffer=0, initial_window=20.0)
    simulation = Simulation(network(4), options, [tcp(TWO_PATHS, pkts=90)])
    simulation.run_until(10 * S)
    assert int(simulation.flows()["delivered_bytes"][0]) == 90 * PAYLOAD
    whole = 65428 // PAYLOAD
    done = Simulation(network(4), options, [tcp(TWO_PATHS, pkts=whole)])
    done.run_until(whole * PACKET_PS // 2)
    assert carried(done)[1] == 0


@pytest.mark.parametrize("name", schedulers())
@pytest.mark.parametrize("subflows", [1, 2])
def test_a_receive_buffer_bounds_goodput_by_one_buffer_per_round_trip(name: str, subflows: int) -> None:
    """20 segments in at least 4 x 25 ms: 200 a second, at whatever rate."""
    plan = network(4, delay_ps=25 * MS)
    options = stack(receive_buffer=20, scheduler=name)
    simulation = Simulation(plan, options, [tcp(TWO_PATHS[:subflows])])
    simulation.run_until(10 * S)
    segments = int(simulation.flows()["delivered_bytes"][0]) / PAYLOAD
    assert 0.9 * 10 / (0.1 + 2 * PACKET_PS / S * 2) * 20 * 0.8 < segments <= 10 / 0.1 * 20


@pytest.mark.parametrize("name", schedulers())
def test_a_path_that_dies_holds_a_connection_up_for_its_timeout_and_no_longer(name: str) -> None:
    simulation = Simulation(network(4, delay_ps=MS), stack(scheduler=name), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    simulation.set_port_up(2 * 3 + 1, False, 5 * S)
    last, longest, stalled_since = -1, 0, 5 * S
    for now in range(5 * S, 15 * S, 10 * MS):
        simulation.run_until(now)
        delivered = int(simulation.flows()["delivered_bytes"][0])
        if delivered != last:
            longest, stalled_since, last = max(longest, now - stalled_since), now, delivered
    # The smoothed round-trip time of a full queue (0.12 s) and its spread, or 200 ms, once.
    assert longest < 700 * MS
    alone = int(simulation.flows()["delivered_bytes"][0])
    simulation.run_until(20 * S)
    rate = (int(simulation.flows()["delivered_bytes"][0]) - alone) / PAYLOAD / 5
    assert rate == pytest.approx(S / PACKET_PS, rel=0.05)


def test_a_dead_path_without_reinjection_stops_the_connection() -> None:
    simulation = Simulation(network(4, delay_ps=MS), stack(reinject=False), [tcp(TWO_PATHS)])
    simulation.run_until(5 * S)
    simulation.set_port_up(2 * 3 + 1, False, 5 * S)
    simulation.run_until(6 * S)
    stuck = int(simulation.flows()["delivered_bytes"][0])
    simulation.run_until(20 * S)
    assert int(simulation.flows()["delivered_bytes"][0]) == stuck


def test_what_another_subflow_has_carried_is_not_carried_twice() -> None:
    """The dead path's window is sent again once, by the other; its own timer adds one segment at a time."""
    simulation = Simulation(network(4, delay_ps=MS), stack(), [tcp(TWO_PATHS, pkts=3000)])
    simulation.run_until(S)
    simulation.set_port_up(2 * 3 + 1, False, S)
    simulation.run_until(S + 180 * MS)  # before the first timeout, after the last acknowledgement
    given = int(simulation.subflows()["unacked_pkts"][1])
    simulation.run_until(60 * S)
    subflows = simulation.subflows()
    assert int(simulation.flows()["delivered_bytes"][0]) == 3000 * PAYLOAD
    by_first = int(subflows["acked_pkts"][0])
    by_second = int(subflows["acked_pkts"][1])
    assert by_first + by_second <= 3000 + given + int(subflows["timeouts"][1])
    assert simulation.descriptors_in_use() == 0
