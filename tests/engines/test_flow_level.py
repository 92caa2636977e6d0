"""Flow-level models: networks worked out by hand, properties of any network, and what they refuse."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import topos
from analysis.shares import bottleneck_share, bottleneck_shares_pct, congested_share, congested_shares_pct
from common.errors import RunError, UsageError
from engines.core_setup import prepared
from engines.engine import Silent
from engines.flow_level.engine import fluid_network
from engines.flow_level.models import FULL, SPARE, FluidNetwork, equilibrium, max_min
from engines.registry import make
from fabric._core import Crossings
from model.flows import planned_flows
from model.result import RunResult
from model.spec import (
    LinkEvent,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    StackSpec,
    TopologySpec,
    TransportSpec,
    WorkloadSpec,
)

MODELS = ("flow-level", "max-min")
PAYLOAD = 1448 / 1514
NO_ACKS = StackSpec(acks="at_once")


def spec(**fields: Any) -> RunSpec:
    """Return MPTCP with four subflows on a k=4 tree, with these fields."""
    usual: dict[str, Any] = {
        "link": LinkSpec(100.0),
        "topology": TopologySpec("fat_tree", {"k": 4}),
        "transport": TransportSpec(4, "lia"),
        "engine": "flow-level",
        "warmup_s": 0.0,
        "seconds": 1.0,
    }
    return RunSpec(**{**usual, **fields})


def run(wanted: RunSpec) -> RunResult:
    engine = make(wanted.engine)
    engine.check(wanted)
    return engine.run(wanted, Silent(), Path("/nowhere"))


def network(
    capacity: Sequence[float], flows: Sequence[tuple[str, Sequence[Sequence[int]]]], ack: float = 0.0
) -> FluidNetwork:
    """Of each flow its congestion control and its subflows' ports; acknowledgements take port 0 back."""
    paths = [path for _, subflows in flows for path in subflows]
    connection = [number for number, (_, subflows) in enumerate(flows) for _ in subflows]
    return FluidNetwork(
        np.array(capacity, float),
        Crossings(paths),
        Crossings([[0]] * len(paths)),
        np.full(len(paths), ack),
        np.array(connection),
        tuple(flows[number][0] for number in connection),
    )


def tcp(*ports: int) -> tuple[str, list[list[int]]]:
    return "reno", [list(ports)]


PARKING_LOT = network([10.0, 10.0, 30.0], [tcp(0, 1), tcp(0), tcp(1), tcp(2)])
"""One flow over two links with a competitor on either, and one elsewhere."""


def test_max_min_shares_a_parking_lot_evenly() -> None:
    rates, _ = max_min(PARKING_LOT)
    assert rates == pytest.approx([5, 5, 5, 30])


def test_max_min_gives_what_one_bottleneck_leaves_to_those_who_can_use_it() -> None:
    """Two flows are held to 2 each on the small link; the third gets the rest of the large one."""
    rates, _ = max_min(network([4.0, 10.0], [tcp(0), tcp(0, 1), tcp(1)]))
    assert rates == pytest.approx([2, 2, 8])


def test_a_coupled_connection_weighs_as_much_as_one_tcp_and_an_uncoupled_one_as_its_subflows() -> None:
    both = [[0], [0], [0]]
    coupled, _ = max_min(network([12.0], [("lia", both), tcp(0)]))
    uncoupled, _ = max_min(network([12.0], [("reno", both), tcp(0)]))
    assert coupled == pytest.approx([2, 2, 2, 6])
    assert uncoupled == pytest.approx([3, 3, 3, 3])


@pytest.mark.parametrize("model", [max_min, equilibrium])
def test_acknowledgements_take_room_and_data_shares_the_rest(model: Any) -> None:
    """Port 0 carries a flow's data and its acknowledgements: x + x / 4 = 10."""
    rates, _ = model(network([10.0], [tcp(0)], ack=0.25))
    assert rates == pytest.approx([8.0], rel=2 * FULL)


def test_reno_gets_less_where_it_crosses_more_bottlenecks() -> None:
    """Both links have the same loss p by symmetry: rates are as 1/sqrt(2 p) to 1/sqrt(p)."""
    rates, _ = equilibrium(PARKING_LOT)
    cross = 10 / (1 + 0.5**0.5)
    assert rates == pytest.approx([10 - cross, cross, cross, 30], rel=2e-3)


def test_flows_on_one_link_share_it_evenly() -> None:
    rates, _ = equilibrium(network([12.0], [tcp(0)] * 4))
    assert rates == pytest.approx([3, 3, 3, 3], rel=2 * FULL)


@pytest.mark.parametrize("cc", ["reno", "ewtcp", "lia", "olia"])
@pytest.mark.parametrize(("first", "second"), [(3, 1), (8, 2)])
def test_two_paths_are_used_as_the_algorithms_fixed_point_says(cc: str, first: int, second: int) -> None:
    competitors = [tcp(0)] * first + [tcp(1)] * second
    rates, _ = equilibrium(network([10.0, 10.0], [(cc, [[0], [1]]), *competitors]))
    assert rates[0] / rates[:2].sum() == pytest.approx(congested_share(cc, first, second), abs=0.003)


@pytest.mark.parametrize("cc", ["reno", "lia", "olia"])
def test_a_flow_beside_one_tcp_has_its_share_of_the_bottleneck(cc: str) -> None:
    rates, _ = equilibrium(network([10.0], [(cc, [[0]] * 4), tcp(0)]))
    assert rates[:4].sum() / rates.sum() == pytest.approx(bottleneck_share(cc, 4), abs=0.002)


@pytest.mark.parametrize("cc", ["reno", "ewtcp", "lia"])
def test_shares_are_theorys_on_whole_topologies_too(cc: str) -> None:
    two = TopologySpec("two_bottlenecks", {"first": 3, "second": 1})
    point = spec(
        topology=two, workload=WorkloadSpec("against_tcp"), transport=TransportSpec(2, cc), stack=NO_ACKS
    )
    assert congested_shares_pct(run(point).ports) == pytest.approx([100 * congested_share(cc, 3, 1)], abs=0.5)
    one = dataclasses.replace(point, topology=TopologySpec("dumbbell", {"n": 2}))
    expected = 50.0 if cc == "ewtcp" else 100 * bottleneck_share(cc, 2)
    assert bottleneck_shares_pct(run(one).flows) == pytest.approx([expected], abs=0.5)


def test_prices_that_do_not_settle_in_time_are_no_result() -> None:
    with pytest.raises(RunError, match=r"equilibrium of olia, reno: no convergence .* choose another --cc"):
        equilibrium(network([10.0, 10.0], [("olia", [[0], [1]]), tcp(0)]), deadline_s=-1.0)


@pytest.mark.parametrize("engine", MODELS)
@pytest.mark.parametrize("subflows", [1, 4])
@pytest.mark.parametrize("cc", ["lia", "reno"])
def test_no_link_carries_more_than_it_can_and_every_flow_has_a_bottleneck(
    engine: str, subflows: int, cc: str
) -> None:
    point = spec(engine=engine, transport=TransportSpec(subflows, cc))
    used = np.array([port.utilisation_pct for port in run(point).ports])
    assert used.max() <= 100 * (1 + 1e-9)
    topology = topos.build("fat_tree", {"k": 4})
    there = fluid_network(point, topology, planned_flows(point, topology)).there
    fullest = -there.least(-used)
    assert fullest.min() >= 100 * (1 - SPARE)


def test_flows_take_the_simulators_paths() -> None:
    point, topology = spec(), topos.build("fat_tree", {"k": 4})
    flows = planned_flows(point, topology)
    simulation = prepared(dataclasses.replace(point, engine="simulator"), topology, flows)
    there = fluid_network(point, topology, flows).there
    assert [there.path(i) for i in range(len(there))] == [simulation.path(i) for i in range(len(there))]
    assert len(there) == sum(flow.subflows for flow in flows)


@pytest.mark.parametrize("engine", MODELS)
def test_one_flow_alone_gets_the_link_less_headers(engine: str) -> None:
    result = run(spec(engine=engine, transport=TransportSpec(), workload=WorkloadSpec("reference")))
    (flow,) = result.flows
    assert flow.goodput_mbps == pytest.approx(100 * PAYLOAD, rel=2 * FULL)
    assert flow.bytes_received == round(flow.goodput_mbps * 1e6 / 8)
    assert max(port.utilisation_pct for port in result.ports) == pytest.approx(100, rel=2 * FULL)


@pytest.mark.parametrize("engine", MODELS)
def test_the_same_spec_gives_the_same_and_another_seed_another_result(engine: str) -> None:
    here, there, other = (run(spec(engine=engine, seed=seed)) for seed in (1, 1, 2))
    assert here.reproducible
    assert (here.flows, here.ports, here.metrics) == (there.flows, there.ports, there.metrics)
    assert here.flows != other.flows


@pytest.mark.parametrize("engine", MODELS)
def test_rates_are_in_proportion_to_the_links(engine: str) -> None:
    slow, fast = (run(spec(engine=engine, link=LinkSpec(rate))) for rate in (10.0, 1000.0))
    for one, other in zip(slow.flows, fast.flows, strict=True):
        assert other.goodput_mbps == pytest.approx(100 * one.goodput_mbps, rel=1e-4)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"link": LinkSpec(100.0, loss=0.01)}, "does not support random loss: leave it out"),
        ({"link": LinkSpec(100.0, ecn_pkts=20)}, "does not support ECN"),
        ({"link": LinkSpec(100.0, random_pkts=3)}, "does not support random drop"),
        ({"events": (LinkEvent(0.1, "p0a0", "c0"),)}, "does not support link events"),
        ({"sampling": SamplingSpec(queues_ms=100)}, "does not support queue samples"),
        ({"routing": "scatter"}, "does not support per-packet routing"),
        ({"workload": WorkloadSpec("poisson", {"load": 20})}, "does not support flows that begin or end"),
        (
            {"transport": TransportSpec(2, "balia")},
            "balia has no flow-level model: choose --cc of reno",
        ),
        (
            {"stack": StackSpec(replacement=False), "routing": "ecmp"},
            "distinct paths",
        ),
        ({"transport": TransportSpec(2, "lia", {"net.ipv4.tcp_sack": "0"})}, "no kernel"),
    ],
)
def test_what_needs_packets_or_time_is_refused(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        make("flow-level").check(spec(**fields))


def test_max_min_has_an_answer_for_any_congestion_control() -> None:
    assert run(spec(engine="max-min", transport=TransportSpec(2, "cubic"))).flows
