"""The central flow scheduler in any engine, and that engines take the same paths and count the same bytes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import topos
from common.errors import RunError, UsageError
from controllers.groups import ecmp_groups
from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.routing import DIGITS, path
from controllers.rules import Routes
from controllers.scheduler import Application, FlowCount, FlowRates, Network
from engines.core_setup import PS_PER_S, check_paths, core_flows, plan_of, transport_options
from engines.engine import Silent
from engines.scheduling import FabricNetwork, SimulatedNetwork, numbers
from engines.wire import MOST_ROWS, ResultReader, messages
from fabric._core import Simulation, VirtualFabric
from model.flows import STRIDE, planned_flows
from model.network_plan import network_plan, plan_for, port_names, ports_along
from model.reasons import LATE, OTHER, RTT, Fault, Reason
from model.result import RunResult, Status, Table
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec, sub_seed

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


def _simulation(size_bytes: int = 0) -> tuple[Simulation, SimulatedNetwork]:
    spec = RunSpec(
        LinkSpec(10.0),
        TopologySpec("fat_tree", {"k": 4}),
        TransportSpec(1),
        workload=WorkloadSpec("stride", {"i": 4}),
        stack=StackSpec(acks="at_once"),  # routed ones queue behind the data of others
        seed=2,
    )
    flows = [replace(flow, size_bytes=size_bytes) for flow in planned_flows(spec, FT4)]
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


def test_flows_that_have_completed_run_no_more() -> None:
    simulation, network = _simulation(size_bytes=100_000)
    simulation.run_until(0)
    assert len(network.running()) == len(network.flows()) == 16
    simulation.run_until(30 * PS_PER_S)
    assert not network.running() and not network.flows()


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


@pytest.mark.parametrize("routing", ["hashed", "ecmp", "spanning-tree"])
@pytest.mark.parametrize(("k", "subflows", "seed"), [(4, 1, 1), (4, 8, 2), (8, 8, 1)])
def test_every_simulated_subflow_takes_the_path_of_the_emulators_five_tuple(
    k: int, subflows: int, seed: int, routing: str
) -> None:
    spec = RunSpec(
        LinkSpec(10.0),
        TopologySpec("fat_tree", {"k": k}),
        TransportSpec(subflows),
        routing=routing,
        seed=seed,
    )
    topology = spec.network()
    flows = planned_flows(spec, topology)
    simulation = Simulation(
        plan_of(spec, topology), transport_options(spec), core_flows(spec, topology, flows)
    )
    tables, routing_seed = ecmp_groups(topology), sub_seed(seed, "routing")
    ports = port_names(topology)
    different = set()
    for flow in flows:
        for i in range(subflows):
            five_tuple = FiveTuple(flow.src_ip, flow.dst_ip, PROTO_TCP, flow.cport + i * STRIDE, flow.port)
            nodes = path(topology, tables, routing, routing_seed, five_tuple)
            names = [topology.nodes[node].name for node in nodes]
            taken = [ports[port][:2] for port in simulation.path(flow.flow * subflows + i)]
            assert taken == list(pairwise(names))
            different.add(tuple(taken))
    least = 0.4 * subflows if routing != "spanning-tree" else 1
    assert len(different) >= least * len(flows)


BCUBE = RunSpec(
    LinkSpec(100.0), TopologySpec("bcube", {"n": 3, "k": 2}), TransportSpec(1, "reno"), routing=DIGITS,
    engine="simulator",
)  # fmt: skip


def test_the_core_sends_where_the_policy_digits_says() -> None:
    """BCube's plain TCP takes one path per pair of servers."""
    topology = topos.build(BCUBE.topology.kind, BCUBE.topology.params)
    tables, flows = ecmp_groups(topology), planned_flows(BCUBE, topology)
    simulation = Simulation(
        plan_of(BCUBE, topology), transport_options(BCUBE), core_flows(BCUBE, topology, flows)
    )
    for flow in flows:
        five_tuple = FiveTuple(flow.src_ip, flow.dst_ip, PROTO_TCP, flow.cport, flow.port)
        nodes = path(topology, tables, DIGITS, 1, five_tuple)
        assert list(simulation.path(flow.flow)) == list(ports_along(topology, nodes))
    with pytest.raises(UsageError, match="fat_tree has none"):
        check_paths(replace(BCUBE, topology=TopologySpec("fat_tree", {"k": 4})), topos.build("ft", {"k": 4}))


def test_networks_differ_in_hosts_queues_alone() -> None:
    """In the simulator, senders wait for room in these queues."""
    spec = RunSpec(LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}))
    topology = spec.network()
    emulated, simulated = plan_for(spec, topology), plan_of(spec, topology)
    for name in ("fib", "group_offsets", "member_port", "member_paths", "rate_bps", "delay_ps", "nic_uplink"):
        assert (getattr(emulated, name) == getattr(simulated, name)).all(), name
    assert (emulated.policy, emulated.seed) == (simulated.policy, simulated.seed)
    differing = (emulated.queue_pkts != simulated.queue_pkts).nonzero()[0]
    assert set(differing) <= set(emulated.nic_uplink)


class _Heard:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def phase(self, name: str, seconds: float) -> None:
        self.heard.append((name, seconds))

    def note(self, text: str) -> None:
        self.heard.append(text)


def sent(result: RunResult, parts: Iterable[tuple[str, Table]]) -> tuple[RunResult, list[int]]:
    """Return the result as it arrives, and the lengths of its messages."""
    reader, lengths = ResultReader(Silent()), []
    for message in messages(result, parts):
        text = json.dumps(message)
        lengths.append(len(text))
        reader.take(json.loads(text))
    return reader.result("test"), lengths


def test_a_result_arrives_as_it_was() -> None:
    late = Reason(LATE, "late", Fault.OTHERS, (("late_p99_us", 3000.0),), (RTT,))
    links = Table({"t_s": np.array([0.5, 1.0]), "port": np.array([1, 2])})
    result = RunResult(
        Status.SUSPECT,
        (Reason(OTHER, "busy"), late),
        samples={"links": links, "goodput": Table.from_rows(("t_s", "flow"), ())},
        metrics={"cpu_busy_pct": 70.0},
        provenance={"kernel": "6.18"},
        cautions=(late,),
    )
    assert sent(result, result.samples.items())[0] == result


def test_the_parts_of_a_table_follow_each_other() -> None:
    parts = [("links", Table({"port": np.arange(begin, begin + 3)})) for begin in (0, 3)]
    assert sent(RunResult(Status.OK), parts)[0].samples == {"links": Table({"port": np.arange(6)})}


def test_no_message_is_large() -> None:
    rows = 10 * MOST_ROWS + 1
    large = Table({"t_s": np.linspace(0.0, 1.0, rows), "port": np.arange(rows)})
    result, lengths = sent(RunResult(Status.OK), [("queues", large)])
    assert max(lengths) < 2 * 8 * 2 * MOST_ROWS < sum(lengths) / 5
    assert result.samples == {"queues": large}


def test_phases_and_notes_reach_the_observer_and_an_end_without_a_result_is_an_error() -> None:
    observer = _Heard()
    reader = ResultReader(observer)
    reader.take({"phase": "measure", "seconds": 3.0})
    reader.take({"note": "a flow is slow"})
    assert observer.heard == [("measure", 3.0), "a flow is slow"]
    with pytest.raises(RunError, match="running the guest: it ended without a result; run the point again"):
        reader.result("guest")
