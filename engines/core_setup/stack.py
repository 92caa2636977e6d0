"""Hosts and flows of a RunSpec as the core's Simulation reads them, and what hosts do not have. Pure."""

from __future__ import annotations

import dataclasses
import functools
import ipaddress
import random
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any

from common.errors import UsageError
from controllers.hashing import PROTO_TCP, PROTO_UDP
from fabric._core import (
    Datagrams,
    Flow,
    Noise,
    TransportOptions,
    congestion_controls,
    flow_hash,
)
from fabric.plan import PS_PER_US
from model.congestion import CONGESTION_CONTROLS, core_name
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.noise import noisy
from model.schedulers import opens_subflows
from model.spec import (
    ELASTIC,
    MAX_RTO_MS,
    OF_ALL,
    OF_FABRIC,
    PORT,
    USUAL,
    RunSpec,
    check_marks,
    sub_seed,
)
from topos.topology import Topology

NO_WAITING = 2**32 - 1
"""Limit in packets for senders that do not wait for room in their host's queue; the queue then drops."""
PS_PER_MS = 1000 * PS_PER_US
PS_PER_S = 1000 * PS_PER_MS
NEVER_PS = 2**63 - 1
SMALLEST_FIRST = frozenset({"pfabric", "pfabric_scheduling"})
"""Disciplines that schedule by rank, in the hosts too."""
NOT_THE_CORES = frozenset({"nic_waits", "replacement", "start_spread_ps"})
"""Fields of a StackSpec that the core's options do not have, by their names there: others follow."""
PS_PER = {"us": PS_PER_US, "ms": PS_PER_MS, "s": PS_PER_S}
SubflowTuple = tuple[int, int, int, int]
"""Source NIC, destination NIC, hash of the 5-tuple, hash of its reverse."""


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError for what simulated hosts do not have. Flows, paths and events have own checks."""
    transport = spec.transport
    of_real_hosts = [
        *(f"--sysctl {name}={value}" for name, value in sorted(transport.sysctls.items())),
        *([f"--write {transport.write_bytes}"] if transport.write_bytes else []),
        *([f"--host-queue {spec.link.host_queue}"] if spec.link.host_queue != PORT else []),
    ]
    if of_real_hosts:
        raise UsageError(
            f"{of_real_hosts[0]}: simulated hosts have no kernel and no programs: choose --engine mininet, "
            "or an option of --stack"
        )
    if spec.stack.acks == "at_once" and _marks(spec):
        raise UsageError(
            "stack acks=at_once with ECN: marks would return before the queue that they describe has "
            "changed; choose acks=routed"
        )
    check_marks(spec)


def check_ccs(ccs: Iterable[str]) -> None:
    """Raise UsageError for a congestion control that simulated hosts do not have."""
    have = congestion_controls()
    for cc in sorted({core_name(cc) for cc in ccs} - set(have)):
        raise UsageError(f"the simulator has no congestion control '{cc}': choose from: {', '.join(have)}")


def in_core_units(part: Any) -> dict[str, Any]:
    """Return the fields of a part of a spec in the core's units: those whose names end in a unit of time are
    in ps, and so are their names."""
    return dict(_in_ps(field.name, getattr(part, field.name)) for field in dataclasses.fields(part))


def _in_ps(name: str, value: Any) -> tuple[str, Any]:
    stem, _, unit = name.rpartition("_")
    return (f"{stem}_ps", round(value * PS_PER[unit])) if unit in PS_PER else (name, value)


def assign(options: TransportOptions, values: Mapping[str, Any]) -> None:
    """Set fields of the core's options. Raises AttributeError and TypeError for one that it does not have."""
    for name, value in values.items():
        now = getattr(options, name)
        setattr(options, name, type(now)[value] if isinstance(now, Enum) else value)


def transport_options(spec: RunSpec) -> TransportOptions:
    """Return the end hosts' options: the fields of the spec's stack, and what follows from the rest of it.

    Raises TypeError unless these are exactly the fields of the core's options.
    """
    stack, link = spec.stack, spec.link
    own = {name: value for name, value in in_core_units(stack).items() if name not in NOT_THE_CORES}
    transport = in_core_units(spec.transport)
    values = own | {
        "initial_rto_ps": PS_PER_S,
        "max_rto_ps": round(MAX_RTO_MS * PS_PER_MS),
        "ecn": _marks(spec),
        "join_after_ps": transport["join_after_ps"],
        "join_after_bytes": transport["join_after_bytes"],
        "nic_queue_pkts": (link.nic_queue_pkts if stack.nic_waits else 0) or NO_WAITING,
        "smallest_first": link.discipline in SMALLEST_FIRST,
        "on_demand": opens_subflows(spec),
        "processing_seed": sub_seed(spec.seed, "processing"),
    }
    options = TransportOptions()
    if differing := values.keys() ^ {name for name in dir(options) if not name.startswith("_")}:
        raise TypeError(f"StackSpec and the core's TransportOptions differ in {', '.join(sorted(differing))}")
    assign(options, values)
    return options


def _marks(spec: RunSpec) -> bool:
    """Return whether queues mark packets, or senders ask for marks."""
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    return bool(spec.link.ecn_pkts) or (cc is not None and cc.ecn)


transport_options(USUAL)
"""Made on import, so that a field that only one of StackSpec and TransportOptions has is an error at once."""


def core_flows(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> list[Flow]:
    """Return the flows in order, without those of constant rate; the sub-seed `start` spreads starts."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    rng = random.Random(sub_seed(spec.seed, "start"))
    out: list[Flow] = []
    for flow in flows:
        if flow.rate_mbps:
            continue
        spread_ms = rng.uniform(0, spec.stack.start_spread_ms) if flow.after is None else 0.0
        start_ps = round((flow.start_s * 1000 + spread_ms) * PS_PER_MS)
        subflows = [subflow_tuple(number, pair) for pair in subflow_pairs(topology, flow)]
        out.append(
            Flow(
                subflows=subflows,
                cc=core_name(flow.cc),
                size_bytes=flow.size_bytes,
                start_ps=start_ps,
                after=flow.after,
                dscp=flow.dscp,
            )
        )
    return out


def core_datagrams(topology: Topology, flows: Sequence[PlannedFlow]) -> list[Datagrams]:
    """Return the flows of constant rate, which come last."""
    number = {nic.ip: i for i, nic in enumerate(topology.nics)}
    constant = [flow for flow in flows if flow.rate_mbps]
    if list(flows[len(flows) - len(constant) :]) != constant:
        raise ValueError("building datagram flows: flows of constant rate must come last in a matrix")
    return [
        Datagrams(
            rate_bps=round(flow.rate_mbps * 1e6),
            start_ps=round(flow.start_s * PS_PER_S),
            path=subflow_tuple(number, flow.seen_by_sender, PROTO_UDP),
            dscp=flow.dscp,
        )
        for flow in constant
    ]


def subflow_tuple(number: dict[str, int], pair: AddressPair, protocol: int = PROTO_TCP) -> SubflowTuple:
    """Return a subflow's tuple; `number` maps addresses to NICs.

    The core computes the same hash as controllers/hashing.py, but fast enough for 65 536 subflows.
    """
    local, remote = _as_number(pair.laddr), _as_number(pair.raddr)
    there = flow_hash(local, remote, protocol, pair.lport, pair.rport)
    back = flow_hash(remote, local, protocol, pair.rport, pair.lport)
    return number[pair.laddr], number[pair.raddr], there, back


@functools.lru_cache(1 << 16)
def _as_number(address: str) -> int:
    return int(ipaddress.IPv4Address(address))


def core_noise(spec: RunSpec) -> Noise | None:
    """Return the stalls of the simulated machine; None without noise."""
    if not noisy(spec):
        return None
    stalls = in_core_units(spec.noise)
    del stalls["where"]
    timers = spec.noise.where != OF_FABRIC
    return Noise(**stalls, seed=sub_seed(spec.seed, "noise"), stalls_timers=timers, elastic=elastic(spec))


def elastic(spec: RunSpec) -> bool:
    """Return whether the simulated network pauses during stalls (fabric/simulation/machine_noise.hpp).

    Stalls of the fabric or of the hosts alone always use the strict clock, so that their full effect shows.
    """
    return spec.clock == ELASTIC and spec.noise.where == OF_ALL
