"""From the readings of a simulation to its RunResult. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from engines.flows import PlannedFlow
from engines.network_plan import port_names, port_rates_bps
from engines.result import NO_VALUE, SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table
from engines.simulation.readings import Reading
from engines.simulation.stack import PS_PER_S
from engines.spec import RunSpec
from topos.topology import Topology

NEVER_PS = 2**63 - 1


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    ideal_s: Sequence[float],
    readings: Sequence[Reading],
    cpu_s: float,
) -> RunResult:
    """The point's result. A simulation keeps up by nature: it is never suspect."""
    opened = next(reading for reading in readings if reading.t_s >= spec.warmup_s)
    closed = readings[-1]
    rows = _flow_rows(spec, flows, ideal_s, opened, closed)
    hops = closed.ports["hops"] - opened.ports["hops"]
    return RunResult(
        status=Status.OK,
        flows=tuple(rows),
        ports=tuple(_port_rows(spec, topology, opened, closed)),
        samples=_samples(spec, topology, rows, readings),
        metrics={
            "packet_hops": hops,
            "packet_hops_per_cpu_s": closed.ports["hops"] / cpu_s,
            "simulation_cpu_s": cpu_s,
            "drops": closed.ports["dropped"] - opened.ports["dropped"],
            "lost": closed.ports["lost"] - opened.ports["lost"],
            "retransmits": sum(row.retransmits for row in rows),
        },
        provenance={"engine": "simulator"},
    )


def _flow_rows(
    spec: RunSpec, flows: Sequence[PlannedFlow], ideal_s: Sequence[float], opened: Reading, closed: Reading
) -> list[FlowRow]:
    received = (closed.flows["delivered_bytes"] - opened.flows["delivered_bytes"]).tolist()
    resent = (closed.subflows["retransmits"] - opened.subflows["retransmits"]).tolist()
    started = closed.flows["started_ps"].tolist()
    completed = closed.flows["completed_ps"].tolist()
    rows, first = [], 0
    for flow, best_s, bytes_received, start_ps, done_ps in zip(
        flows, ideal_s, received, started, completed, strict=True
    ):
        rows.append(
            FlowRow(
                flow=flow.flow,
                src=flow.src,
                dst=flow.dst,
                src_ip=flow.src_ip,
                dst_ip=flow.dst_ip,
                sport=flow.cport,
                dport=flow.port,
                transport="mptcp" if flow.mptcp else "tcp",
                subflows_asked=flow.subflows,
                subflows_joined=flow.subflows,
                cc=flow.cc,
                goodput_mbps=bytes_received * 8 / spec.seconds / 1e6,
                bytes_received=bytes_received,
                retransmits=sum(resent[first : first + flow.subflows]),
                up_s=0.0,
                completed_s=NO_VALUE if done_ps == NEVER_PS else (done_ps - start_ps) / PS_PER_S,
                size_bytes=flow.size_bytes,
                start_s=NO_VALUE if start_ps == NEVER_PS else start_ps / PS_PER_S,
                ideal_s=best_s,
            )
        )
        first += flow.subflows
    return rows


def _port_rows(spec: RunSpec, topology: Topology, opened: Reading, closed: Reading) -> list[PortRow]:
    capacity_bytes = (port_rates_bps(topology, spec.link) / 8 * spec.seconds).tolist()
    names = ("tx_packets", "tx_bytes", "drops", "losses", "marks")
    packets, sent, drops, losses, marks = (
        (closed.ports[name] - opened.ports[name]).tolist()  # type: ignore[literal-required]
        for name in names
    )
    queue = closed.ports["max_queue_pkts"].tolist()
    return [
        PortRow(
            port, node, peer, layer, packets[port], sent[port], drops[port], queue[port],
            100 * sent[port] / capacity_bytes[port], NO_VALUE, losses[port], marks[port],
        )
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]  # fmt: skip


def _samples(
    spec: RunSpec, topology: Topology, rows: Sequence[FlowRow], readings: Sequence[Reading]
) -> dict[str, Table]:
    goodput: list[tuple[float, int, float]] = []
    links: list[tuple[float, int, float]] = []
    rates_bps = port_rates_bps(topology, spec.link)
    for before, after in pairwise(readings):
        seconds, t_s = after.t_s - before.t_s, round(after.t_s - spec.warmup_s, 6)
        mbps = (after.flows["delivered_bytes"] - before.flows["delivered_bytes"]) * 8 / seconds / 1e6
        goodput += [
            (t_s, row.flow, round(value, 5))
            for row, value in zip(rows, mbps.tolist(), strict=True)
            if value or not row.size_bytes
        ]
        sent = (after.ports["tx_bytes"] - before.ports["tx_bytes"]).astype(np.int64)
        used = 100 * sent * 8 / (seconds * rates_bps)
        links += [(t_s, port, round(float(used[port]), 2)) for port in np.nonzero(sent)[0].tolist()]
    return {
        "goodput": Table.from_rows(SAMPLE_COLUMNS["goodput"], goodput),
        "cpu": Table.from_rows(SAMPLE_COLUMNS["cpu"], []),
        "links": Table.from_rows(SAMPLE_COLUMNS["links"], links),
    }
