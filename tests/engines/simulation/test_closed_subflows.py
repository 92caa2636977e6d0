"""Subflows that are closed while their connection goes on, and opened again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from fabric._core import Simulation
from tests.support.simulated_hosts import MS, PAYLOAD, TWO_PATHS, S, conserved, network, stack, tcp


def on_demand(pkts: int = 0, *, loss: float = 0.0, handshake: bool = True, **more: Any) -> Simulation:
    options = stack(on_demand=True, handshake=handshake, **more)
    plan = network(4, delay_ps=MS, queue_pkts=20, loss=loss)
    return Simulation(plan, options, [tcp(TWO_PATHS, pkts=pkts, cc="lia")])


def toggled(simulation: Simulation, turns: int, *, every_ps: int = 7 * MS, closes: int = 2) -> Iterator[bool]:
    """Open the second subflow each turn but each `closes`-th, in which it is closed; yield whether it was."""
    for turn in range(1, turns):
        simulation.run_until(turn * every_ps)
        yield simulation.open_subflow(1) if turn % closes else simulation.close_subflow(1)


def sent_pkts(simulation: Simulation, nic: int) -> int:
    return int(simulation.ports()["tx_packets"][2 * nic])


def test_a_closed_subflow_sends_nothing_more() -> None:
    simulation = on_demand()
    simulation.run_until(100 * MS)
    assert simulation.open_subflow(1)
    simulation.run_until(S)
    assert simulation.close_subflow(1)
    simulation.run_until(S + 200 * MS)
    before = sent_pkts(simulation, 1), simulation.subflows()["acked_pkts"][1]
    assert before[0] > 100
    simulation.run_until(3 * S)
    assert (sent_pkts(simulation, 1), simulation.subflows()["acked_pkts"][1]) == before
    assert simulation.subflows()["established"].tolist() == [1, 0]


def test_the_others_get_the_rate_that_they_have_alone() -> None:
    """LIA no longer counts the window of the one that has left."""
    rates = []
    for joins in (False, True):
        simulation = on_demand()
        simulation.run_until(100 * MS)
        if joins:
            assert simulation.open_subflow(1)
            simulation.run_until(S)
            assert simulation.close_subflow(1)
        simulation.run_until(4 * S)
        begun = simulation.flows()["delivered_bytes"][0]
        simulation.run_until(8 * S)
        rates.append(float(simulation.flows()["delivered_bytes"][0] - begun))
    assert rates[1] == pytest.approx(rates[0], rel=0.02)


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("reinject", [True, False])
@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("scheduler", ["min_rtt", "burst"])
@pytest.mark.parametrize("loss", [0.0, 0.02])
def test_all_data_arrives_whenever_it_closes(
    sack: bool, reinject: bool, handshake: bool, scheduler: str, loss: float
) -> None:
    """The second subflow comes and goes every few round trips. Nothing is lost with it, and no descriptor."""
    simulation = on_demand(
        1500, loss=loss, handshake=handshake, sack=sack, reinject=reinject, scheduler=scheduler
    )
    assert sum(toggled(simulation, 400)) > 60
    simulation.run_until(30 * S)
    assert simulation.flows()["delivered_bytes"][0] == 1500 * PAYLOAD
    assert simulation.flows()["completed_ps"][0] < 30 * S
    assert conserved(simulation) and simulation.descriptors_in_use() == 0


def test_what_was_given_to_others_is_not_acknowledged() -> None:
    """A close moves no counter of acknowledged segments, and none ever falls."""
    simulation = on_demand(loss=0.01)
    seen = []
    for turn in range(1, 200):
        simulation.run_until(turn * 7 * MS)
        before = simulation.subflows()["acked_pkts"]
        (simulation.open_subflow if turn % 2 else simulation.close_subflow)(1)
        assert np.array_equal(simulation.subflows()["acked_pkts"], before)
        seen.append(before)
    assert (np.diff(np.array(seen).astype(np.int64), axis=0) >= 0).all()


def test_one_that_is_opened_again_begins_anew() -> None:
    """It has its initial window and no round-trip time, and carries as much as before."""
    simulation = on_demand()
    simulation.run_until(100 * MS)
    simulation.open_subflow(1)
    simulation.run_until(2 * S)
    first = int(simulation.subflows()["acked_pkts"][1])
    simulation.close_subflow(1)
    assert simulation.subflows()["srtt_ps"][0] > 0
    simulation.run_until(2100 * MS)
    assert simulation.open_subflow(1)
    simulation.run_until(2101 * MS)
    seen = simulation.subflows()
    assert (seen["srtt_ps"][1], seen["window_pkts"][1]) == (0, 10)
    simulation.run_until(4 * S)
    assert simulation.subflows()["acked_pkts"][1] - first == pytest.approx(first, rel=0.1)


@pytest.mark.parametrize("scheduler", ["min_rtt", "round_robin", "burst"])
def test_a_subflow_that_has_not_joined_holds_nothing_up(scheduler: str) -> None:
    """Alone, the first subflow fills its link, as a connection of one subflow does, before another joins and
    after it has left."""
    alone = Simulation(network(4, delay_ps=MS, queue_pkts=20), stack(handshake=True), [tcp(TWO_PATHS[:1])])
    simulation = on_demand(scheduler=scheduler, send_buffer=2000)
    before, after = [], []
    for each in (alone, simulation):
        each.run_until(3 * S)
        before.append(float(each.flows()["delivered_bytes"][0]))
    simulation.open_subflow(1)
    simulation.run_until(4 * S)
    simulation.close_subflow(1)
    for each in (alone, simulation):
        each.run_until(6 * S)  # by then the first has carried what was bound to the other
        begun = each.flows()["delivered_bytes"][0]
        each.run_until(9 * S)
        after.append(float(each.flows()["delivered_bytes"][0] - begun))
    assert before[1] == pytest.approx(before[0], rel=0.03)
    assert after[1] == pytest.approx(after[0], rel=0.03)


@pytest.mark.parametrize("closes", [False, True])
@pytest.mark.parametrize("scheduler", ["min_rtt", "burst"])
def test_a_subflow_that_times_out_alone_keeps_its_data(scheduler: str, closes: bool) -> None:
    """The receiver's first link is down for a second, while no other subflow has joined, or after the other
    has left. What was bound to the first subflow is sent when the link is back."""
    simulation = on_demand(1200, scheduler=scheduler, send_buffer=2000)
    simulation.run_until(50 * MS)
    if closes:
        assert simulation.open_subflow(1)
    simulation.run_until(150 * MS)
    simulation.set_port_up(2 * 2 + 1, False, 150 * MS)
    simulation.run_until(700 * MS)
    if closes:
        assert simulation.close_subflow(1)
    simulation.run_until(1150 * MS)
    simulation.set_port_up(2 * 2 + 1, True, 1150 * MS)
    simulation.run_until(20 * S)
    assert simulation.flows()["delivered_bytes"][0] == 1200 * PAYLOAD
    assert simulation.descriptors_in_use() == 0


def test_what_cannot_be_closed() -> None:
    """The first subflow, one that is not there, and one of a connection that has ended."""
    simulation = on_demand(100)
    simulation.run_until(50 * MS)
    assert not simulation.close_subflow(0)
    assert not simulation.close_subflow(1)
    assert simulation.open_subflow(1)
    assert simulation.close_subflow(1), "while it shakes hands"
    simulation.run_until(10 * S)
    assert simulation.subflows()["established"].tolist() == [1, 0]
    assert not simulation.close_subflow(1)
    other = Simulation(network(4), stack(), [tcp(TWO_PATHS)])
    with pytest.raises(ValueError, match="on demand"):
        other.close_subflow(1)


def test_closing_is_reproducible() -> None:
    simulations = [on_demand(loss=0.01) for _ in range(2)]
    done = [list(toggled(each, 100, every_ps=13 * MS, closes=3)) for each in simulations]
    first, second = (each.subflows()["acked_pkts"].tolist() for each in simulations)
    assert done[0] == done[1] and first == second
