"""An application moves flows on the fabric, in the core's virtual time and between simulated hosts."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

import topos
from common.errors import UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.rules import Routes
from controllers.scheduler import Application, FlowCount, FlowRates, Network
from engines.core_setup.setup import plan_of
from engines.core_setup.stack import PS_PER_S, core_flows, transport_options
from engines.scheduling import FabricNetwork, SimulatedNetwork, numbers
from fabric._core import Simulation, VirtualFabric
from model.flows import planned_flows
from model.network_plan import network_plan, ports_along
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec

FT4 = topos.build("ft", {"k": 4})
FLOW = FiveTuple("10.0.0.2", "10.3.1.3", 6, 40000, 5001)


class FirstFit:
    """Give every flow in turn the path that shares the fewest links with those before it."""

    def tick(self, network: Network, now_s: float) -> None:
        del now_s
        taken: Counter[tuple[str, str]] = Counter()
        for each in network.flows():
            ends = [FT4.index(each.path[0]), FT4.index(each.path[-1])]
            paths = [tuple(FT4.nodes[node].name for node in nodes) for nodes in FT4.shortest_paths(*ends)]
            best = min([each.path, *paths], key=lambda path: sum(taken[hop] for hop in pairwise(path)))
            taken.update(pairwise(best))
            if best != each.path:
                network.set_path(each.flow, best)


def _simulation() -> tuple[Simulation, SimulatedNetwork]:
    spec = RunSpec(
        LinkSpec(10.0),
        TopologySpec("fat_tree", {"k": 4}),
        TransportSpec(1),
        workload=WorkloadSpec("stride", {"i": 4}),
        stack=StackSpec(acks="at_once"),  # routed ones queue behind the data of others
        seed=2,
    )
    flows = planned_flows(spec, FT4)
    simulation = Simulation(plan_of(spec, FT4), transport_options(spec), core_flows(spec, FT4, flows))
    return simulation, SimulatedNetwork(spec, FT4, flows, simulation)


def _goodput_mbps(simulation: Simulation, network: Network, from_s: float, to_s: float) -> float:
    rates = FlowRates()
    simulation.run_until(round(from_s * PS_PER_S))
    assert rates.update(network.flows(), from_s) == {}
    simulation.run_until(round(to_s * PS_PER_S))
    found = rates.update(network.flows(), to_s)
    return sum(found.values()) / len(found)


def test_an_application_that_takes_flows_apart_fills_a_fat_tree() -> None:
    """Under stride(4) all 16 flows change pods: hashed they collide, and a schedule gives each its own links
    (Al-Fares et al., NSDI 2010, section 4)."""
    simulation, network = _simulation()
    hashed = _goodput_mbps(simulation, network, 1, 4)
    application: Application = FirstFit()
    application.tick(network, 4.0)
    scheduled = _goodput_mbps(simulation, network, 8, 12)
    assert hashed < 8
    assert 9 < scheduled < 10
    used = Counter(hop for each in network.flows() for hop in pairwise(each.path))
    assert max(used.values()) == 1


def test_a_simulated_flow_returns_to_its_path() -> None:
    simulation, network = _simulation()
    assert network.flows() == [], "nothing has begun"
    simulation.run_until(0)
    first = network.flows()[0]
    paths = FT4.shortest_paths(FT4.index(first.path[0]), FT4.index(first.path[-1]))
    named = [tuple(FT4.nodes[node].name for node in nodes) for nodes in paths]
    usual_back = simulation.back_path(0)
    other = next(
        path
        for path, nodes in zip(named, paths, strict=True)
        if path != first.path and ports_along(FT4, nodes[::-1]) != usual_back
    )
    network.set_path(first.flow, other)
    assert network.flows()[0].path == other
    network.clear_path(first.flow)
    assert network.flows()[0].path == first.path
    network.clear_path(first.flow)
    reverse = FiveTuple(first.flow.dst, first.flow.src, 6, first.flow.dport, first.flow.sport)
    network.set_path(reverse, other[::-1])
    assert simulation.back_path(0) != usual_back and network.flows()[0].path == first.path


def test_on_the_core_flows_counters_and_paths_are_those_of_the_network() -> None:
    fabric = VirtualFabric(network_plan(FT4, ecmp_groups(FT4), LinkSpec(10.0), "hashed", 5))
    sent = {FLOW: 0}
    network = FabricNetwork(FT4, Routes(FT4, "hashed", 5), fabric, lambda: sent, fabric.counters)
    [before] = network.flows()
    middle = {"p0a0": ("p0a1", "c3", "p3a1"), "p0a1": ("p0a0", "c0", "p3a0")}[before.path[2]]
    chosen = (*before.path[:2], *middle, *before.path[5:])
    network.set_path(FLOW, chosen)
    fabric.inject(0, 0, 1000, numbers(FLOW))
    fabric.run_until(10**12)
    sent[FLOW] = 1000
    [after] = network.flows()
    assert (after.octets, after.path) == (1000, chosen)
    carried = {(port.node, port.peer) for port in network.ports() if port.packets}
    assert carried == set(pairwise(after.path))
    network.clear_path(FLOW)
    assert network.flows()[0].path == before.path
    with pytest.raises(UsageError, match="no node called"):
        network.set_path(FLOW, ["nowhere"])
    with pytest.raises(UsageError, match="must begin"):
        network.set_path(FLOW, before.path[1:])


def test_rates_from_a_known_beginning_need_one_look() -> None:
    rates = FlowRates(begun_s=0.0)
    assert rates.update([FlowCount(FLOW, 250_000, ())], 2.0) == {FLOW: 1.0}
    assert rates.update([FlowCount(FLOW, 250_000, ())], 3.0) == {FLOW: 0.0}


def test_rates_need_two_looks_and_a_new_flow_counts_from_nothing() -> None:
    rates, first = FlowRates(), FlowCount(FLOW, 250_000, ())
    new = FlowCount(FiveTuple("10.0.0.3", "10.3.1.3", 6, 1, 2), 500_000, ())
    assert rates.update([FlowCount(FLOW, 0, ())], 1.0) == {}
    assert rates.update([first, new], 3.0) == {FLOW: 1.0, new.flow: 2.0}
    assert rates.update([first, new], 3.0) == {}
