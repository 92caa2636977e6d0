"""Subflows that open by a handshake, close before the flow ends, and belong to several flows at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from engines.core_setup import PS_PER_S
from fabric._core import Simulation
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.scenarios.divided_networks import all_bytes, made
from tests.support.simulated_hosts import (
    ACK_PS,
    MS,
    PAYLOAD,
    TWO_PATHS,
    S,
    conserved,
    lose_downlink,
    network,
    stack,
    tcp,
)


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


ROUND_TRIP = 4 * ACK_PS + 20 * MS


def completed(simulation: Simulation) -> int:
    simulation.run_until(100 * S)
    return int(simulation.flows()["completed_ps"][0])


def test_a_handshake_takes_one_exchange() -> None:
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
def test_subflows_join_when_their_time_has_come(
    options: dict[str, Any], before: int | None, after: int
) -> None:
    simulation = Simulation(network(4, delay_ps=5 * MS), stack(**options), [tcp(TWO_PATHS)])
    if before is not None:
        simulation.run_until(before)
        assert established(simulation) == [0]
        assert bool(simulation.ports()["tx_packets"][2]) == options.get("handshake", False)
    simulation.run_until(after)
    assert established(simulation) == [0, 1]


def test_subflows_join_when_enough_was_acknowledged() -> None:
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


STEPS_PS = [round(step * 0.02 * PS_PER_S) for step in range(1, 26)]
MPTCP = RunSpec(
    LinkSpec(20.0, 10.0, random_pkts=20, loss=0.001),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(4, "lia"),
    WorkloadSpec("beside_constant_rate"),
    stack=StackSpec(scheduler="burst", recovery="linux", send_buffer=200, start_spread_ms=20.0),
)
SCATTERED = RunSpec(
    LinkSpec(40.0, 5.0, queue_pkts=30, ecn_pkts=10, discipline="priority"),
    TopologySpec("fat_tree", {"k": 4}),
    TransportSpec(1, "dctcp"),
    WorkloadSpec("short_and_long", {"gap_ms": 20, "dscp": 46}),
    routing="scatter",
    seed=2,
)


def alone(spec: RunSpec) -> list[dict[str, bytes]]:
    simulation, found = made(spec), []
    for t_ps in STEPS_PS:
        simulation.run_until(t_ps)
        found.append(all_bytes(simulation))
    return found


def test_simulations_in_turns_do_not_change_each_other() -> None:
    specs = (MPTCP, SCATTERED, MPTCP)
    simulations = [made(spec) for spec in specs]
    found: list[list[dict[str, bytes]]] = [[], [], []]
    for t_ps in STEPS_PS:
        for simulation, steps in zip(simulations, found, strict=True):
            simulation.run_until(t_ps)
            steps.append(all_bytes(simulation))
    assert found == [alone(spec) for spec in specs]
    assert found[0][-1] != found[1][-1]
    assert all(int(np.frombuffer(steps[-1]["hops"], np.int64)[0]) > 10_000 for steps in found)


def test_simulations_in_threads_do_not_change_each_other() -> None:
    """The core releases Python's lock while it simulates: both run at once where there are two CPUs."""
    found: dict[int, list[dict[str, bytes]]] = {}

    def in_thread(number: int, spec: RunSpec) -> Callable[[], None]:
        return lambda: found.__setitem__(number, alone(spec))

    threads = [threading.Thread(target=in_thread(i, spec)) for i, spec in enumerate((MPTCP, SCATTERED))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [found[0], found[1]] == [alone(MPTCP), alone(SCATTERED)]
