"""The engine `ideal`: completion times of sized flows under pFabric's ideal scheduler, without packets.

Shortest remaining size first over the whole fabric, which is taken for one switch without inner limits
(fabric/flow_level/srpt.hpp; Alizadeh et al., pFabric, SIGCOMM 2013, section 5.2). A flow that never waits has
exactly its ideal time.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from common.errors import UsageError
from engines.core_setup import NEVER_PS, PS_PER_BYTE_AT_1_BPS, PS_PER_S, check_spec, times_alone_s
from engines.engine import Observer, OnePointPerCpu
from engines.provenance import origin
from engines.workload import ByWorkload
from fabric._core import srpt_ends
from model.congestion import COUPLED_DEFAULT
from model.flows import PlannedFlow, drawn_flows, planned_flows
from model.links import check_events
from model.machine import demand
from model.network_plan import port_rates_bps
from model.result import NO_VALUE, SAMPLE_COLUMNS, FlowRow, RunResult, Status, Table
from model.spec import RunSpec, check_tcp
from topos.topology import Topology

NAME = "ideal"
STARTING_S, FLOW_S = 0.5, 3e-4
"""Time of a point and of each of its flows, for plans."""
PROGRAM_MB, FLOW_MB = 60.0, 0.004


def check(spec: RunSpec) -> None:
    """Raise UsageError for a network with inner limits, or flows that have no size."""
    topology = spec.network()
    check_spec(spec)
    check_tcp(spec)
    check_events(spec, topology)
    _check_network(topology)
    if spec.link.trace:
        raise UsageError(
            "--link-trace: the ideal scheduler supports fixed rates only; choose --engine simulator"
        )
    if any(not flow.size_bytes or flow.after is not None for flow in drawn_flows(spec, topology)):
        raise UsageError(
            f"the ideal scheduler needs flows that have a size and an arrival time, which "
            f"{spec.workload.matrix} lacks: choose --workload poisson, or --engine simulator"
        )


def memory_mb(spec: RunSpec) -> float:
    """Return an estimate from the number of flows."""
    return PROGRAM_MB + FLOW_MB * demand(spec).flows


def expected_s(spec: RunSpec) -> float:
    """Return an estimate from the number of flows."""
    return STARTING_S + FLOW_S * demand(spec).flows


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """See `Engine.run`."""
    del raw
    began = time.process_time()
    observer.phase("measure", 0.0)
    topology = spec.network()
    flows = planned_flows(spec, topology)
    alone_s = times_alone_s(spec, topology, flows)
    return RunResult(
        status=Status.OK,
        flows=tuple(_rows(spec, flows, alone_s, _completed_s(spec, topology, flows, alone_s))),
        ports=(),
        samples={name: Table.from_rows(SAMPLE_COLUMNS[name], ()) for name in ("goodput", "cpu", "links")},
        reproducible=True,
        provenance={**origin(), "engine": NAME},
        cost={"simulation_cpu_s": time.process_time() - began},
    )


class IdealEngine(ByWorkload, OnePointPerCpu):
    """An Engine that schedules sized flows as if it knew them all."""

    name = NAME

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: no congestion control runs here."""
        return COUPLED_DEFAULT, ""


def _check_network(topology: Topology) -> None:
    """Raise UsageError unless every switch sends up at least as much as it receives from below."""
    for switch in topology.switches:
        below = above = 0.0
        for link in topology.links:
            below += link.speed if link.b == switch else 0
            above += link.speed if link.a == switch else 0
        if above and above < below:
            raise UsageError(
                f"topology {topology.kind}: the ideal scheduler needs a fabric that is not oversubscribed, "
                f"and {topology.nodes[switch].name} is; choose more uplinks, or --engine simulator"
            )


def _completed_s(
    spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow], alone_s: Sequence[float]
) -> list[float]:
    """Return each flow's completion time: the time alone on its path, and what it waits for others."""
    rate_bps = int(port_rates_bps(topology, spec.link)[2 * topology.nics[0].link])
    number = {topology.nodes[host].name: i for i, host in enumerate(topology.hosts)}
    fluid = []
    for flow in flows:
        packets = -(-flow.size_bytes // spec.stack.payload_bytes)
        wire_bytes = flow.size_bytes + packets * spec.stack.header_bytes
        work_ps = wire_bytes * PS_PER_BYTE_AT_1_BPS // rate_bps
        fluid.append((round(flow.start_s * PS_PER_S), work_ps, number[flow.src], number[flow.dst]))
    limit_ps = round((spec.warmup_s + spec.seconds) * PS_PER_S)
    ends = srpt_ends(fluid, len(number), limit_ps).tolist()
    return [
        NO_VALUE if end == NEVER_PS else alone + (end - start - work) / PS_PER_S
        for end, alone, (start, work, _, _) in zip(ends, alone_s, fluid, strict=True)
    ]


def _rows(
    spec: RunSpec, flows: Sequence[PlannedFlow], alone_s: Sequence[float], completed_s: Sequence[float]
) -> list[FlowRow]:
    """Return the rows; a flow's goodput counts where it ended."""
    done = np.isfinite(completed_s)
    return [
        FlowRow(
            **flow.columns(),
            subflows_joined=flow.subflows,
            cc=flow.cc,
            goodput_mbps=flow.size_bytes * 8 / spec.seconds / 1e6 if done[flow.flow] else 0.0,
            bytes_received=flow.size_bytes if done[flow.flow] else 0,
            retransmits=0,
            up_s=0.0,
            completed_s=completed_s[flow.flow],
            start_s=flow.start_s - spec.warmup_s,
            ideal_s=alone_s[flow.flow],
        )
        for flow in flows
    ]
