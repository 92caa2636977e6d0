"""Conversion of a topology, its forwarding tables and link parameters to the arrays of the fabric core.

Port 2i transmits on link i from its `a` end to its `b` end; port 2i+1 transmits the other way. Both engines
build their network here, so a flow with the same 5-tuple and seed takes the same path in both.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Collection, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from ccp.names import is_agents
from common.errors import UsageError
from controllers.groups import EcmpTables, leftmost, rightmost
from controllers.routing import DIGITS, POLICIES, hashed, parse, tables_of
from fabric._core import admission_settings, queue_kinds
from fabric.plan import FRAME_BITS, PS_PER_US, NetworkPlan
from model.links import downlink, link_trace, links_left_out, uplink
from model.spec import IN_ORDER, QUEUES, LinkSpec, RunSpec, sub_seed
from topos import Topology

NO_PORT = 0xFFFFFFFF
MAX_PACKETS = 1 << 20
"""Packets that the core can hold if queues are unbounded: 2 GB of frames."""
QUEUE_NUMBERS = {kind.name: number for number, kind in enumerate(queue_kinds())}


def check_trace(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a trace that cannot be read or followed."""
    if not spec.link.trace:
        return
    link_trace(spec.link.trace)
    if not len(_traced(topology)):
        raise UsageError("--link-trace is about links between switches: choose a network that has some")
    if any(0 < event.share < 1 for event in spec.events):
        raise UsageError("--link-trace: links that follow a trace can be cut but not slowed; omit the shares")


def _traced(topology: Topology) -> npt.NDArray[np.intp]:
    """Return the ports of links between switches."""
    hosts = set(topology.hosts)
    between = [link.a not in hosts and link.b not in hosts for link in topology.links]
    return np.flatnonzero(np.repeat(between, 2))


def by_rank(discipline: str) -> bool:
    """Return whether the discipline sorts packets by the rank that senders give them."""
    return QUEUES[discipline.partition(":")[0]].by_rank


def is_measured(spec: RunSpec) -> bool:
    """Return whether switches write their readings into packets of the point, as its agent asks for them."""
    if not is_agents(spec.transport.cc):
        return False
    from ccp.loading import reads_switches  # noqa: PLC0415 -- with its compilers, which few points need

    return reads_switches(spec.transport.cc, spec.transport.algorithm_text)


def ports_along(topology: Topology, nodes: Sequence[int]) -> list[int]:
    """Return the ports along a path of nodes. Raises UsageError if no link joins two of them."""
    return [_port_towards(topology, here, there) for here, there in pairwise(nodes)]


def port_names(topology: Topology) -> list[tuple[str, str, str]]:
    """Return (transmitting node, peer, layers) of each port; layers are named like `edge-agg`."""
    names = []
    for link in topology.links:
        a, b = topology.nodes[link.a], topology.nodes[link.b]
        names.append((a.name, b.name, f"{a.layer.name.lower()}-{b.layer.name.lower()}"))
        names.append((b.name, a.name, f"{b.layer.name.lower()}-{a.layer.name.lower()}"))
    return names


def port_rates_bps(topology: Topology, link: LinkSpec) -> npt.NDArray[np.int64]:
    """Return the rate of each port, in bit/s; the mean rate of one that follows a trace."""
    speeds = np.array([each.speed for each in topology.links], np.float64)
    rates = np.repeat(np.round(speeds * round(link.rate_mbps * 1e6)).astype(np.int64), 2)
    if link.trace:
        rates[_traced(topology)] = round(link_trace(link.trace).mean_mbps * 1e6)
    return rates


def _by_clocks(
    rates_bps: npt.NDArray[np.int64], topology: Topology, ppm: float, seed: int
) -> npt.NDArray[np.int64]:
    """Return the rates with the error of each node's clock, which is uniform in plus or minus `ppm`."""
    rng = random.Random(sub_seed(seed, "clocks"))
    error = np.array([1 + 1e-6 * ppm * rng.uniform(-1, 1) for _ in topology.nodes])
    sender = [end for each in topology.links for end in (each.a, each.b)]
    of_clocks: npt.NDArray[np.int64] = np.round(rates_bps * error[sender]).astype(np.int64)
    return of_clocks


def plan_for(spec: RunSpec, topology: Topology, cut: Collection[int] = ()) -> NetworkPlan:
    """Return the network of a RunSpec; the path hash uses the sub-seed `routing`. Paths leave out the links
    `cut` between switches."""
    tables = tables_of(topology.without(cut) if cut else topology, spec.routing)
    return network_plan(topology, tables, spec.link, spec.routing, sub_seed(spec.seed, "routing"))


def reroutes(spec: RunSpec, topology: Topology) -> list[tuple[float, NetworkPlan]]:
    """Return when routing changes, in s from the start of traffic, and a plan with its paths from then on."""
    changes = links_left_out(spec, topology)
    plans = {cut: plan_for(spec, topology, cut) for _, cut in changes}
    return [(t_s, plans[cut]) for t_s, cut in changes]


def network_plan(
    topology: Topology, tables: EcmpTables, link: LinkSpec, policy: str, seed: int
) -> NetworkPlan:
    """Return the ports, NICs and forwarding groups of `topology`.

    All links have the parameters `link`, multiplied by their speed, beside their own; hosts' links lose
    nothing at random unless they have a loss of their own.
    If hosts forward packets, their ports behave like switch ports, because other hosts' packets pass them.
    Their NICs then have no ports of their own (NO_PORT). Hosts' own queues are FIFOs, except where
    queues sort by rank or are lossless.
    """
    name, parameters = parse(policy)
    tables, name = _in_core(tables, name)
    ports = 2 * len(topology.links)
    ends = () if topology.hosts_forward else topology.nics
    nic_ports = [uplink(nic.link) for nic in ends]
    queue_pkts, queue_bytes = _queue_limits(topology, link, nic_ports)
    traced = _traced(topology) if link.trace else np.zeros(0, np.intp)
    nominal_bps = port_rates_bps(topology, link)
    rate_bps = _by_clocks(nominal_bps, topology, link.clock_ppm, seed)
    rate_bps[traced] = nominal_bps[traced]
    delay_us = _delays_us(topology, link)
    loss = np.full(ports, link.loss)
    loss[nic_ports] = loss[[downlink(nic.link) for nic in ends]] = 0.0
    loss += (1 - loss) * np.repeat([each.loss for each in topology.links], 2)
    fib, offsets, member_port, member_paths = _port_groups(topology, tables)
    return NetworkPlan(
        rate_bps=rate_bps,
        delay_ps=np.round(delay_us * PS_PER_US).astype(np.int64),
        queue_pkts=queue_pkts,
        queue_bytes=queue_bytes,
        loss=loss,
        admission=_admission(link, ports, nic_ports),
        discipline=_disciplines_of(link, ports, nic_ports, traced),
        far_node=np.array([end for each in topology.links for end in (each.b, each.a)], np.uint32),
        **_nic_columns(topology, tables),
        attachments=len(tables.attach),
        fib=fib,
        fib_rows=tables.rows.astype(np.uint32),
        group_offsets=offsets,
        member_port=member_port,
        member_paths=member_paths,
        policy=name,
        parameters={key: float(value) for key, value in parameters.items()},
        seed=seed,
        max_packets=_max_packets(queue_pkts, rate_bps, delay_us),
        queue_settings={link.queue: link.queue_settings},
        **_listed_paths(topology, tables),
        **_opportunities(link, ports, traced),
    )


def _in_core(tables: EcmpTables, name: str) -> tuple[EcmpTables, str]:
    """Return the groups and the core's policy: fixed choices are hashes over groups of one member."""
    if name == "spanning-tree":
        return leftmost(tables), "hashed"
    if name == DIGITS:
        return rightmost(tables), "hashed"
    return tables, "hashed" if POLICIES[name].walk is hashed else name


def _listed_paths(topology: Topology, tables: EcmpTables) -> dict[str, Any]:
    """Return the columns of lists of paths; none if the paths are the shortest ones."""
    if tables.lists is None:
        return {}
    port_of = {link.ends: uplink(i) for i, link in enumerate(topology.links)}
    port_of |= {link.ends[::-1]: downlink(i) for i, link in enumerate(topology.links)}
    counts, lengths, weights, ports = [0], [0], [], []
    for src in tables.attach:
        for dst in tables.attach:
            listed = tables.lists.between(src, dst) if src != dst else ()
            counts.append(len(listed))
            for weight, nodes in listed:
                weights.append(weight)
                lengths.append(len(nodes) - 1)
                ports += [port_of[hop] for hop in pairwise(nodes)]
    return {
        "list_paths": np.cumsum(counts).astype(np.uint32),
        "list_ports": np.cumsum(lengths).astype(np.uint32),
        "path_weight": np.array(weights, np.uint32),
        "path_port": np.array(ports, np.uint32),
    }


def _queue_limits(
    topology: Topology, link: LinkSpec, nic_ports: Sequence[int]
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint64]]:
    """Return each port's limits in packets and in bytes; 0 means no limit."""
    own = np.repeat(np.array([each.queue_pkts for each in topology.links], np.uint32), 2)
    usual = 0 if link.queue_bytes else link.queue_pkts
    queue_pkts = np.where(own > 0, own, np.uint32(usual)).astype(np.uint32)
    queue_bytes = np.where(own > 0, np.uint64(0), np.uint64(link.queue_bytes)).astype(np.uint64)
    queue_pkts[nic_ports] = link.nic_queue_pkts
    queue_bytes[nic_ports] = 0
    return queue_pkts, queue_bytes


def _nic_columns(topology: Topology, tables: EcmpTables) -> dict[str, Any]:
    """Return the address, the attachment and the ports of each NIC."""
    position = {node: i for i, node in enumerate(tables.attach)}
    attached = [topology.attachment(nic) for nic in topology.nics]
    return {
        "nic_ip": np.array([int(ipaddress.IPv4Address(nic.ip)) for nic in topology.nics], np.uint32),
        "nic_attach_node": np.array(attached, np.uint32),
        "nic_attach": np.array([position[node] for node in attached], np.uint32),
        "nic_uplink": _nic_ports(topology, uplink),
        "nic_downlink": _nic_ports(topology, downlink),
    }


def _disciplines_of(
    link: LinkSpec, ports: int, nic_ports: Sequence[int], traced: npt.NDArray[np.intp]
) -> npt.NDArray[np.uint8]:
    """Return each port's discipline: FIFOs at hosts unless queues sort by rank or are lossless, and on links
    with a trace one that keeps the order."""
    discipline = np.full(ports, QUEUE_NUMBERS[link.queue], np.uint8)
    if not (by_rank(link.discipline) or link.lossless):
        discipline[nic_ports] = 0
    discipline[traced[discipline[traced] == 0]] = QUEUE_NUMBERS[IN_ORDER]
    return discipline


def _delays_us(topology: Topology, link: LinkSpec) -> npt.NDArray[np.float64]:
    delay_us = np.full(2 * len(topology.links), link.delay_us)
    delay_us += np.repeat([each.delay_us for each in topology.links], 2)
    host_links = [port for nic in topology.nics for port in (uplink(nic.link), downlink(nic.link))]
    delay_us[host_links] += link.host_delay_us
    return delay_us


def _opportunities(link: LinkSpec, ports: int, traced: npt.NDArray[np.intp]) -> dict[str, Any]:
    """Return the columns of ports that follow a trace; none without one."""
    if not link.trace:
        return {}
    trace, column = link_trace(link.trace), np.zeros(ports, np.uint8)
    column[traced] = 1
    return {
        "traced": column,
        "opportunities_ps": trace.opportunities_ps(),
        "opportunities_period_ps": trace.period_ps,
    }


def _admission(link: LinkSpec, ports: int, nic_ports: list[int]) -> dict[str, npt.NDArray[np.float64]]:
    """Return the settings of random drop and ECN threshold; each has the name of its field."""
    columns = {}
    for name, in_hosts in admission_settings():
        columns[name] = np.full(ports, float(getattr(link, name)))
        if not in_hosts:
            columns[name][nic_ports] = 0
    return columns


def _nic_ports(topology: Topology, port_of: Callable[[int], int]) -> npt.NDArray[np.uint32]:
    if topology.hosts_forward:
        return np.full(len(topology.nics), NO_PORT, np.uint32)
    return np.array([port_of(nic.link) for nic in topology.nics], np.uint32)


def _port_groups(
    topology: Topology, tables: EcmpTables
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
    """Convert groups of next-hop nodes to groups of ports, which differ from switch to switch."""
    offsets, member_port, member_paths = [0], [], []
    fib = np.full(tables.fib.shape, -1, np.int32)
    for row, node in enumerate(topology.forwarders):
        groups, columns = np.unique(tables.fib[row], return_inverse=True)
        numbers = np.full(len(groups), -1, np.int32)
        for i, group in enumerate(groups):
            if group < 0:
                continue
            numbers[i] = len(offsets) - 1
            for hop in tables.groups[group]:
                member_port.append(_port_towards(topology, node, hop.node))
                member_paths.append(hop.paths)
            offsets.append(len(member_port))
        fib[row] = numbers[columns.ravel()]
    return (
        fib.ravel(),
        np.array(offsets, np.uint32),
        np.array(member_port, np.uint32),
        np.array(member_paths, np.uint32),
    )


def _port_towards(topology: Topology, node: int, neighbour: int) -> int:
    link = topology.link_between(node, neighbour)
    return uplink(link) if topology.links[link].a == node else downlink(link)


def _max_packets(
    queue_pkts: npt.NDArray[np.uint32], rates_bps: npt.NDArray[np.int64], delay_us: npt.NDArray[np.float64]
) -> int:
    """Return enough descriptors for full queues, and for wires full of frames of half the usual size."""
    if not queue_pkts.all():
        return MAX_PACKETS
    on_wire = 2 * float((rates_bps * delay_us).sum()) / 1e6 / FRAME_BITS
    return min(MAX_PACKETS, max(4096, 2 * int(queue_pkts.sum()) + round(on_wire)))
