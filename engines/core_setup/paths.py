"""Paths of subflows that the routing policy does not choose independently.

In BCube servers have several NICs and forward packets. There MPTCP's subflows are source routed: subflow i
takes the parallel path of NIC i. In other topologies a connection's subflows can be given distinct paths (no
replacement).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from common.errors import UsageError
from controllers.hashing import mix
from controllers.routing import DIGITS, POLICIES, check_routing, parallel_path
from engines.core_setup.stack import SubflowTuple, subflow_tuple
from fabric._core import Simulation
from model.flows import PlannedFlow, subflow_pairs
from model.network_plan import ports_along
from model.spec import RunSpec, sub_seed
from topos import bcube
from topos.topology import Topology

AT_SOURCE = "hashed"
"""The policy that chooses whole paths at the source by a hash, and thus allows distinct paths."""


def check_paths(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a choice of paths that does not suit the topology or the policy."""
    if not spec.stack.replacement and spec.routing != AT_SOURCE:
        others = ", ".join(name for name in POLICIES if name != AT_SOURCE)
        raise UsageError(
            f"distinct paths for a connection's subflows are not possible with routing {others}: "
            f"choose --routing {AT_SOURCE}"
        )
    check_routing(spec.routing, topology)


def choose_paths(
    simulation: Simulation, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]
) -> None:
    """Set the paths of subflows before anything is sent, where the router does not choose them."""
    if spec.routing not in (AT_SOURCE, DIGITS):
        return
    seed = sub_seed(spec.seed, "routing")
    if topology.kind == bcube.KIND:
        _in_parallel(simulation, topology, flows, seed)
    elif not spec.stack.replacement:
        _distinct(simulation, topology, flows, seed)


def _in_parallel(simulation: Simulation, topology: Topology, flows: Sequence[PlannedFlow], seed: int) -> None:
    for flow, first, subflows in _numbered(topology, flows):
        src, dst = topology.index(flow.src), topology.index(flow.dst)
        nics = len(topology.nics_of(src))
        for i, (_, _, h, _) in enumerate(subflows if flow.mptcp else ()):
            nodes = parallel_path(topology, src, dst, i % nics, mix(h, seed))
            simulation.set_path(first + i, ports_along(topology, nodes), ports_along(topology, nodes[::-1]))


def _distinct(simulation: Simulation, topology: Topology, flows: Sequence[PlannedFlow], seed: int) -> None:
    """Draw path ranks without replacement for each pair of NICs; start again when all are drawn."""
    for _, first, subflows in _numbered(topology, flows):
        drawn: dict[tuple[int, int], tuple[Iterator[int], Iterator[int]]] = {}
        for i, (source, destination, h, back_h) in enumerate(subflows):
            if (source, destination) not in drawn:
                there, back = simulation.path_count(first + i)
                drawn[source, destination] = _ranks(there, mix(h, seed)), _ranks(back, mix(back_h, seed))
            ranks = drawn[source, destination]
            simulation.set_path_ranks(first + i, next(ranks[0]), next(ranks[1]))


def _ranks(count: int, seed: int) -> Iterator[int]:
    rng = random.Random(seed)
    while True:
        yield from rng.sample(range(count), count)


def _numbered(
    topology: Topology, flows: Sequence[PlannedFlow]
) -> Iterator[tuple[PlannedFlow, int, list[SubflowTuple]]]:
    """Yield each flow, the number of its first subflow, and its subflows."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    first = 0
    for flow in flows:
        subflows = [subflow_tuple(number, pair) for pair in subflow_pairs(topology, flow)]
        yield flow, first, subflows
        first += len(subflows)
