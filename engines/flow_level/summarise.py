"""The RunResult of a point from steady rates. Pure.

Counts cover the spec's window at these rates. There are no queues, drops, retransmitted segments, round-trip
times or samples.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.flow_level.network import Floats, FluidNetwork
from model.flows import PlannedFlow
from model.network_plan import port_names
from model.result import (
    SAMPLE_COLUMNS,
    FlowRow,
    PortRow,
    RunResult,
    Status,
    Table,
)
from model.spec import RunSpec, StackSpec
from topos.topology import Topology


def payload_share(stack: StackSpec, flow: PlannedFlow) -> float:
    """Return the application's share of a full segment's bytes on the wire."""
    payload = stack.payload_bytes - (stack.mptcp_bytes if flow.mptcp else 0)
    return payload / (stack.payload_bytes + stack.header_bytes)


def ack_share(stack: StackSpec, flow: PlannedFlow) -> float:
    """Return bytes of acknowledgements per byte of data on the wire; 0 if they take no path.

    Delayed acknowledgements are one per two segments (RFC 5681, section 4.2). MPTCP acknowledges data beyond
    a gap of the connection at once, which is nearly all data.
    """
    if stack.acks == "at_once":
        return 0.0
    segments = 2 if stack.delayed_ack_ms and not (stack.ack_gaps and flow.mptcp) else 1
    size = stack.ack_bytes + (stack.mptcp_ack_bytes if flow.mptcp else 0)
    return size / (segments * (stack.payload_bytes + stack.header_bytes))


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    network: FluidNetwork,
    rates: Floats,
    rounds: int,
) -> RunResult:
    """Return the point's result for rates in Mb/s."""
    ports = _port_rows(spec, topology, network, rates)
    return RunResult(
        status=Status.OK,
        flows=tuple(_flow_rows(spec, flows, np.bincount(network.connection, rates).tolist())),
        ports=tuple(ports),
        samples={name: Table.from_rows(SAMPLE_COLUMNS[name], ()) for name in ("goodput", "cpu", "links")},
        metrics={"rounds": rounds},
    )


def _flow_rows(spec: RunSpec, flows: Sequence[PlannedFlow], of_connection: Sequence[float]) -> list[FlowRow]:
    rows = []
    for flow, wire_mbps in zip(flows, of_connection, strict=True):
        received = round(wire_mbps * payload_share(spec.stack, flow) * 1e6 / 8 * spec.seconds)
        rows.append(
            FlowRow(
                **flow.columns(),
                subflows_joined=flow.subflows,
                cc=flow.cc,
                goodput_mbps=received * 8 / spec.seconds / 1e6,
                bytes_received=received,
                retransmits=0,
                up_s=0.0,
            )
        )
    return rows


def _port_rows(spec: RunSpec, topology: Topology, network: FluidNetwork, rates: Floats) -> list[PortRow]:
    stack = spec.stack
    acks = network.ack_loads(rates)
    data = network.data_loads(rates)
    of_mbps = spec.seconds * 1e6 / 8
    sent = ((data + acks) * of_mbps).round().astype(np.int64).tolist()
    segment = stack.payload_bytes + stack.header_bytes
    packets = (data / segment + acks / stack.ack_bytes) * of_mbps
    used = (100 * (data + acks) / network.capacity).tolist()
    return [
        PortRow(port, node, peer, layer, round(packets[port]), sent[port], 0, 0, used[port], used[port])
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]
