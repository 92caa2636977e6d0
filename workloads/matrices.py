"""Traffic matrices: who sends to whom, as pure functions of the topology and an already derived seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fabric.errors import UsageError
from topos.topology import Topology


@dataclass(frozen=True)
class Flow:
    """One flow between two hosts, by node name: `size_bytes` of payload, 0 for as long as the run lasts,
    starting `start_s` after the common start of traffic."""

    src: str
    dst: str
    size_bytes: int = 0
    start_s: float = 0.0


Draw = Callable[[Sequence[str], int], tuple[Flow, ...]]


@dataclass(frozen=True)
class Matrix:
    """A registered matrix: `draw(host names in node order, seed)`, and what it is in a sentence."""

    draw: Draw
    title: str


def one_to_one(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """A random permutation: every host sends one flow and receives one, never to itself.

    As the CS244 2013 reproduction draws it (source: code): hosts are shuffled and split into two halves;
    each half is matched at random to the other. In order of the senders in `hosts`, so that flow numbers
    do not depend on the seed. Raises UsageError for an odd number of hosts, or fewer than two.
    """
    if len(hosts) < 2 or len(hosts) % 2:
        raise UsageError(
            "workload one_to_one pairs two halves of the hosts and needs an even number of them, "
            f"not {len(hosts)}: change k or n"
        )
    rng = random.Random(seed)
    shuffled = rng.sample(hosts, len(hosts))
    half = len(hosts) // 2
    first, second = shuffled[:half], shuffled[half:]
    receiver = dict(zip(first, rng.sample(second, half), strict=True))
    receiver.update(zip(second, rng.sample(first, half), strict=True))
    return tuple(Flow(host, receiver[host]) for host in hosts)


def reference(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """One uncongested flow, from the first host to the last, the farthest apart: what 100 % means.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    if len(hosts) < 2:
        raise UsageError(f"workload reference needs two hosts, not {len(hosts)}: change k or n")
    return (Flow(hosts[0], hosts[-1]),)


MATRICES: dict[str, Matrix] = {
    "one_to_one": Matrix(one_to_one, "random permutation, every host sends one flow and receives one"),
    "reference": Matrix(reference, "one uncongested flow across the network"),
}


def build(matrix: str, topology: Topology, params: Mapping[str, int], seed: int) -> tuple[Flow, ...]:
    """The flows of matrix `matrix` (registry name) on `topology`; equal arguments, equal flows.

    `seed` is a seed of its own, derived by the caller from the run's root seed. Raises UsageError for an
    unknown matrix or parameter, or a topology whose hosts do not suit the matrix.
    """
    if matrix not in MATRICES:
        raise UsageError(f"unknown workload '{matrix}': choose one of {', '.join(MATRICES)}")
    if params:
        raise UsageError(f"workload {matrix} has no parameter '{next(iter(params))}': it takes none")
    return MATRICES[matrix].draw([topology.nodes[host].name for host in topology.hosts], seed)
