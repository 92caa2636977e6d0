"""A network in parts behaves as the undivided one, up to the order of what is due at the same instant."""

from __future__ import annotations

import dataclasses
import math
import os
import statistics
from typing import Any

import numpy as np
import pytest

import topos
from common.errors import UsageError
from engines.core_setup import plan_of, transport_options
from engines.registry import make
from fabric._core import Flow, Simulation
from model.flows import planned_flows
from model.noise import parse_stalls
from model.schedulers import parse_scheduler
from model.spec import LinkEvent, LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.scenarios.divided_networks import HTSIM, LINUX, all_bytes, made, point, run
from topos.topology import parts_of

TRANSFERS, TCP = WorkloadSpec("transfers", {"kb": 200}), TransportSpec(1, "reno")
SIZED = point(8, 8, workload=TRANSFERS, transport=TCP, stack=HTSIM)


@pytest.mark.parametrize("stack", [HTSIM, LINUX], ids=["htsim", "linux"])
@pytest.mark.parametrize("subflows", [1, 8])
def test_goodputs_agree_with_the_undivided_network(stack: StackSpec, subflows: int) -> None:
    """Means over eight seeds differ by no more than three standard errors of their differences."""
    cc = "lia" if subflows > 1 else "reno"
    means: dict[int, list[float]] = {1: [], 4: []}
    for seed in range(1, 9):
        for parts, found in means.items():
            spec = point(parts=parts, transport=TransportSpec(subflows, cc), stack=stack, seed=seed)
            found.append(float(run(made(spec), 0.3).flows()["delivered_bytes"].mean()))
    differences = [divided - whole for divided, whole in zip(means[4], means[1], strict=True)]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    assert abs(statistics.mean(differences)) <= 3 * error + 0.001 * statistics.mean(means[1])


@pytest.mark.parametrize("threads", [1, 3])
def test_every_packet_is_delivered_or_dropped(threads: int) -> None:
    simulation = run(made(SIZED, threads), 3.0)
    assert (simulation.flows()["completed_ps"] < 2**63 - 1).all()
    ports = simulation.ports()
    assert ports["injected"] == ports["delivered"] + ports["dropped"] > 10_000
    assert not ports["queued_pkts"].any()
    assert simulation.descriptors_in_use() == 0, "alarms that nothing cancelled have rung by now"
    wanted = [flow.size_bytes for flow in planned_flows(SIZED, topos.build("fat_tree", {"k": 8}))]
    assert simulation.flows()["delivered_bytes"].tolist() == wanted


def test_descriptors_return_to_where_they_are_needed() -> None:
    """All data goes from one pod to another, which sends fewer acknowledgements: its part would run out."""
    spec, topology, each = point(8, 8, stack=LINUX), topos.build("fat_tree", {"k": 8}), 22_000
    plan = dataclasses.replace(plan_of(spec, topology), max_packets=8 * each)
    flows = [Flow(subflows=[(host, 16 + host, 7919 * host, host)], cc="reno") for host in range(16)]
    simulation = run(Simulation(plan, transport_options(spec), flows, threads=2), 1.0, steps=10)
    data = sum(simulation.subflows()["acked_pkts"].tolist())
    assert data / 2 > 1.5 * each, "half of the descriptors end with the receivers"


def test_one_part_is_the_undivided_network() -> None:
    spec = point(parts=1)
    assert all_bytes(run(made(spec), 0.02)) == all_bytes(run(made(spec, threads=4), 0.02))


def test_the_plan_must_fit() -> None:
    spec = point()
    topology = topos.build("fat_tree", {"k": 4})
    parts = np.array(parts_of(topology, 4), np.uint16)
    with pytest.raises(ValueError, match="one partition for each node"):
        made(spec, partition=parts[:-1])
    with pytest.raises(ValueError, match="256 partitions at most"):
        made(spec, partition=np.where(parts == 3, 300, parts).astype(np.uint16))
    with pytest.raises(ValueError, match="at least one thread"):
        made(spec, threads=0)


@pytest.mark.parametrize(
    ("kind", "params", "pods"),
    [("fat_tree", {"k": 8}, 8), ("leaf_spine", {"leaves": 5}, 5), ("vl2", {"da": 4, "di": 4}, 0)],
)
def test_parts_are_whole_pods(kind: str, params: dict[str, int], pods: int) -> None:
    topology = topos.build(kind, params)
    parts = parts_of(topology, 64)
    assert len(parts) == len(topology.nodes)
    if pods:
        assert len(set(parts)) == pods
    assert set(parts) == set(range(max(parts) + 1)), "no part is empty"
    for nic in topology.nics:
        assert parts[nic.host] == parts[nic.switch]
    two = parts_of(topology, 2)
    assert set(two) == {0, 1}
    sizes = np.bincount([two[host] for host in topology.hosts])
    assert abs(int(sizes[0]) - int(sizes[1])) <= len(topology.hosts) // 4


def test_networks_without_pods_have_no_parts() -> None:
    for kind, params in (("star", {"n": 4}), ("bcube", {"n": 4, "k": 1})):
        assert parts_of(topos.build(kind, params), 8) == ()


def test_other_points_and_engines_refuse_parts() -> None:
    calls = RunSpec(
        LinkSpec(100.0), TopologySpec("star", {"n": 8}), workload=WorkloadSpec("sip"), seconds=5.0, parts=2
    )
    with pytest.raises(UsageError, match="--parts: workload sip has no TCP flows"):
        make("simulator").check(dataclasses.replace(calls, engine="simulator", warmup_s=0.0))
    with pytest.raises(UsageError, match=r"does not support networks in parts \(--parts\)"):
        make("flow-level").check(point(engine="flow-level", stack=StackSpec()))


@pytest.mark.parametrize(("k", "threads"), [(8, 1), (16, 2)])
def test_small_networks_have_one_thread(k: int, threads: int) -> None:
    cpus = len(os.sched_getaffinity(0))
    assert make("simulator").cpus(point(k, 2)) == min(threads, cpus)
    assert make("simulator").cpus(point(k, 1)) == 1


@pytest.mark.parametrize(
    ("fields", "what"),
    [
        ({"events": (LinkEvent(1.0, "p0a0", "c0"),)}, "link events"),
        ({"link": LinkSpec(100.0, 10.0, loss=0.01)}, "random loss"),
        ({"noise": parse_stalls("all:100:2-6")}, "CPUs that stall"),
        ({"transport": TransportSpec(1, "ccp:reno")}, "agents"),
        ({"scheduler": parse_scheduler("responsive:100")}, "subflows on demand"),
        ({"stack": StackSpec(acks="at_once")}, "acknowledgements at once"),
        ({"routing": "scatter"}, "per-packet routing"),
        ({"routing": "drill:2:1"}, "per-packet routing"),
        ({"link": LinkSpec(100.0, discipline="priority")}, "queues that choose packets on links without"),
        ({"topology": TopologySpec("star", {"n": 8})}, "no pods"),
    ],
)
def test_what_only_an_undivided_network_has_is_refused(fields: dict[str, Any], what: str) -> None:
    spec: RunSpec = point(**fields)
    with pytest.raises(UsageError) as refused:
        make("simulator").check(spec)
    assert what in str(refused.value) and "--parts 4" in str(refused.value)
    assert "\n" not in str(refused.value)
    make("simulator").check(dataclasses.replace(spec, parts=1))
