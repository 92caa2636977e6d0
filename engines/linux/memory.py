"""Memory of a guest: how much it may have, and how much of that it is expected to use. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from common.errors import UsageError
from engines.kernel_hosts.sample_memory import samples_bytes, tables_bytes
from model.flows import PlannedFlow
from model.spec import RunSpec
from topos.topology import Topology

KERNEL_MB, HOST_MB, FLOW_MB, SUBFLOW_MB = 550.0, 1.0, 2.0, 0.5
"""What a point uses: kernel, programs and their files; a host's namespace and NICs; a flow's buffers; a
subflow's. At k=8 with 8 subflows 1460 MB were used, and this gives 1446."""
BASE64 = 4 / 3
"""Tables leave the guest as text, which stays in its page cache. Figure 11 of cs244 at k=8 with 8 subflows
and 200 s of samples used 1768 MB, and this gives 1856."""
HEADROOM = 3.0
"""A guest may have this times what it is expected to use. Pages that it never touches cost nothing."""
STEP_MB = 256


def expected_mb(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """Return the memory that the point's guest is expected to use, in MB."""
    subflows = sum(flow.subflows for flow in flows)
    network = KERNEL_MB + HOST_MB * len(topology.hosts) + FLOW_MB * len(flows) + SUBFLOW_MB * subflows
    ports = 2 * len(topology.links)
    sampled = samples_bytes(spec, ports, subflows) + BASE64 * tables_bytes(spec, ports, subflows)
    return network + sampled / 1e6


def guest_mb(expected: float) -> int:
    """Return the memory that the guest has, in MB: a multiple of STEP_MB."""
    return STEP_MB * math.ceil(HEADROOM * expected / STEP_MB)


def check_memory(expected: float, free_mb: float) -> None:
    """Raise UsageError if the machine has less memory than the point is expected to use."""
    if expected > free_mb:
        raise UsageError(
            f"the point's guest needs about {expected:,.0f} MB of memory, but only {free_mb:,.0f} MB are "
            "free: choose a smaller --k, fewer --subflows, fewer flows, or --engine simulator"
        )
