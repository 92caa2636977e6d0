"""Estimate of a simulated point's memory, before it is built. Pure: the caller passes in the free memory.

The core's records are counted; Python's memory for a topology and its flows was measured. Packets in flight
are mostly in queues: a flow keeps one queue on its path full, and a subflow has a window of a few packets at
least. Where slow start has no end but a loss, the subflows of a long flow first fill about three. Unbounded
queues may hold as many packets as there are descriptors.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import UsageError
from engines.core_setup.setup import ALARMS_A_SUBFLOW, MIN_PACKETS, PACKETS_A_SUBFLOW
from fabric.plan import FRAME_BITS
from model.flows import subflow_counts
from model.spec import LinkSpec, RunSpec
from topos.topology import Topology
from workloads.flow import Flow

MB = 1 << 20
_PROGRAM = 40 * MB
_PORT, _SUBFLOW, _PACKET, _BLOCKS = 320, 940, 104, 24
"""Bytes in the core: per port; per subflow with its data in flight; per packet with segment and event;
per packet with selective acknowledgements."""
_TABLE_ENTRY = 8
"""Bytes per entry of the forwarding table, in the plan and in the core."""
_LINK_IN_PYTHON, _FLOW_IN_PYTHON = 700, 700
_MIN_WINDOW, _FILLED_IN_SLOW_START = 4, 3
_PART = 5 * MB
"""Each further part of a network adds 2 to 5 MB, from 128 to 8192 hosts."""
_RING_ENTRY, _PLACES_IN_PORT, _UNLIMITED_QUEUE = 2, 128, 128


def estimated_mb(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> float:
    """Return the peak memory in MB, within 30 % of measurements on FatTrees of 128 to 8192 hosts."""
    ports = 2 * len(topology.links)
    queue = _queue_pkts(spec.link) or _UNLIMITED_QUEUE
    attachments = len({nic.switch for nic in topology.nics})
    counts = subflow_counts(spec, flows)
    subflows = sum(counts)
    held = (
        _PROGRAM
        + _PART * (spec.parts - 1)
        + ports * (_PORT + (_RING_ENTRY * queue if queue > _PLACES_IN_PORT else 0))
        + _TABLE_ENTRY * len(topology.forwarders) * attachments
        + _LINK_IN_PYTHON * len(topology.links)
        + _FLOW_IN_PYTHON * len(flows)
        + _SUBFLOW * subflows
        + (_PACKET + (_BLOCKS if spec.stack.sack else 0)) * _packets(spec, flows, counts)
    )
    return held / MB


def check_memory(spec: RunSpec, topology: Topology, flows: Sequence[Flow], available_mb: float) -> None:
    """Raise UsageError if the machine has less memory than needed."""
    needed = estimated_mb(spec, topology, flows)
    if needed <= available_mb:
        return
    subflows = sum(subflow_counts(spec, flows))
    bound = "" if _queue_pkts(spec.link) else " or a limit to --queue"
    raise UsageError(
        f"simulating {topology.kind} with {len(topology.hosts)} hosts and {subflows} "
        f"subflows takes about {needed:,.0f} MB of memory, but only {available_mb:,.0f} MB are free: "
        f"choose a smaller --k, fewer --subflows{bound}"
    )


def _queue_pkts(link: LinkSpec) -> int:
    """Return the limit of a queue in packets; 0 if it is unbounded."""
    return link.queue_bytes * 8 // FRAME_BITS if link.queue_bytes else link.queue_pkts


def _packets(spec: RunSpec, flows: Sequence[Flow], counts: Sequence[int]) -> int:
    subflows = sum(counts)
    most = MIN_PACKETS + (ALARMS_A_SUBFLOW + PACKETS_A_SUBFLOW) * subflows
    queue = _queue_pkts(spec.link)
    if queue == 0:
        return most
    on_wire = spec.link.rate_mbps * spec.link.delay_us / FRAME_BITS * 2 * 6
    slow_start_ends = bool(spec.stack.ssthresh)
    filled = sum(
        1 if slow_start_ends or flow.size_bytes else max(1, min(count, _FILLED_IN_SLOW_START))
        for flow, count in zip(flows, counts, strict=True)
    )
    return min(most, round(filled * (queue + on_wire)) + _MIN_WINDOW * subflows)
