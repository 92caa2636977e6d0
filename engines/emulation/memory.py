"""Estimate of an emulated point's memory, before anything is started. Pure: free memory is passed in.

Peaks of whole commands, kernel memory included (memory cgroup, Linux 6.18, FatTrees k=4 and k=8, TCP and 8
subflows, traffic in one process): 176 to 183 MB, of which the kernel's part is 5 to 6 MB with 16 hosts and
36 to 42 MB with 128. The rest are bounds: a packet in a queue is a frame in the core and a copy in its
sender's socket; an unbounded queue holds what the senders' buffers allow, and no more packets than the core
has descriptors; a sample is counted inside, and twice in the command as a row of a table.
"""

from __future__ import annotations

from collections.abc import Sequence

from common.errors import UsageError
from engines.kernel_hosts import samples_bytes, tables_bytes
from fabric.plan import FRAME_BITS
from model.flows import PlannedFlow
from model.network_plan import MAX_PACKETS
from model.spec import LinkSpec, RunSpec
from topos.topology import Topology

MB = 1 << 20
_PROGRAM = 180 * MB
_HOST, _PORT = 350_000, 512
_IPERF3_FLOW = 6 * MB
"""A client and a server, each a process."""
_SUBFLOW = 16_000
"""Two sockets of the kernel, without data."""
_PACKET = 2048 + 64 + 16 + 2304
"""A frame, its descriptor and event in the core; the sender's copy with its sk_buff."""
_SEND_BUFFER_PKTS = (4 << 20) // 1448
"""What the kernel's largest default send buffer holds (tcp_wmem, 4 MB)."""
_LINKS_ON_A_PATH = 6


def estimated_mb(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> float:
    """Return an upper bound of the peak memory in MB, hosts' kernel memory included."""
    subflows = sum(flow.subflows for flow in flows)
    held = (
        _PROGRAM
        + _HOST * len(topology.hosts)
        + 2 * len(topology.links) * _PORT
        + (_IPERF3_FLOW * len(flows) if spec.traffic == "iperf3" else 0)
        + _SUBFLOW * subflows
        + _PACKET * _packets(spec.link, len(flows), subflows)
        + _sampled(spec, topology, subflows)
    )
    return held / MB


def _sampled(spec: RunSpec, topology: Topology, subflows: int) -> float:
    """Return the memory of samples: inside, and in the command as parts of tables and as tables."""
    ports = 2 * len(topology.links)
    return samples_bytes(spec, ports, subflows) + 2 * tables_bytes(spec, ports, subflows)


def check_memory(
    spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], available_mb: float
) -> None:
    """Raise UsageError if the machine has less memory than needed."""
    needed_mb = estimated_mb(spec, topology, flows)
    if needed_mb <= available_mb:
        return
    subflows = sum(flow.subflows for flow in flows)
    sampled_mb = _sampled(spec, topology, subflows) / MB
    raise UsageError(
        f"emulating {topology.kind} with {len(topology.hosts)} hosts and {subflows} subflows takes up to "
        f"{needed_mb:,.0f} MB of memory ({sampled_mb:,.0f} MB of them samples), but only "
        f"{available_mb:,.0f} MB are free: {_advice(spec, sampled_mb > needed_mb / 2)}"
    )


def _advice(spec: RunSpec, mostly_samples: bool) -> str:
    if mostly_samples:
        return "choose fewer --seconds or longer intervals between samples"
    if not _queue_pkts(spec.link):
        return "choose a smaller --k, fewer --subflows or a limit to --queue"
    if spec.traffic == "iperf3":
        return "choose a smaller --k, fewer --subflows or --traffic native"
    return "choose a smaller --k or fewer --subflows"


def _queue_pkts(link: LinkSpec) -> int:
    """Return the limit of a queue in packets; 0 if it is unbounded."""
    return link.queue_bytes * 8 // FRAME_BITS if link.queue_bytes else link.queue_pkts


def _packets(link: LinkSpec, flows: int, subflows: int) -> int:
    sent = subflows * _SEND_BUFFER_PKTS
    if not (queue := _queue_pkts(link)):
        return min(MAX_PACKETS, sent)
    on_wire = 2 * link.rate_mbps * link.delay_us / FRAME_BITS * _LINKS_ON_A_PATH
    return min(MAX_PACKETS, sent, round(flows * (queue * _LINKS_ON_A_PATH + on_wire)) + 4 * subflows)
