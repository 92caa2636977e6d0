"""The reference of a point: what one uncongested TCP flow reaches on the same links.

Goodput in percent is of this number (the CS244 posts' definition), so that headers and the
stack's own losses cancel. The reference is a point of its own, found by its spec alone.
"""

from __future__ import annotations

import dataclasses

from engines.algorithms import USUAL_ROUTING
from engines.congestion import in_force
from engines.spec import FIFO, RunSpec, SamplingSpec, SchedulerSpec, WorkloadSpec
from topos import LANES

MATRIX = "reference"
MAX_WARMUP_S = 10.0
MAX_SECONDS = 20.0


def is_reference(spec: RunSpec) -> bool:
    """Whether this point is itself a reference."""
    return spec.workload.matrix == MATRIX


def reference_of(spec: RunSpec) -> RunSpec:
    """The reference point of `spec`: same links, stack and data plane, one TCP flow.

    One flow on an idle network settles at once and depends on no permutation and no choice of path, so seed
    and routing are fixed and long sweeps share a reference of at most 20 s; of disjoint lanes one is enough.
    Nothing marks its packets: they would be marked in its own host's queue, where nobody contends. Nothing
    goes before them either, no link fails on it, and there is nothing to schedule. Idempotent.
    """
    params = {name: 1 if name == LANES else size for name, size in spec.topology.params.items()}
    return dataclasses.replace(
        spec,
        link=dataclasses.replace(spec.link, ecn_pkts=0, discipline=FIFO),
        topology=dataclasses.replace(spec.topology, params=params),
        workload=WorkloadSpec(MATRIX),
        routing=USUAL_ROUTING,
        transport=dataclasses.replace(spec.transport, subflows=1, cc=in_force(spec.transport.cc, 1)),
        warmup_s=min(spec.warmup_s, MAX_WARMUP_S),
        seconds=min(spec.seconds, MAX_SECONDS),
        seed=1,
        sampling=SamplingSpec(),
        events=(),
        scheduler=SchedulerSpec(),
    )
