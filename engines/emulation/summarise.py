"""From what was read during a run to its RunResult. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from engines.emulation.cpu import CpuSample
from engines.emulation.fabric_dataplane import lateness_us
from engines.emulation.iperf3 import Outcome
from engines.emulation.sock_diag import TcpSocket
from engines.emulation.traffic import PlannedFlow
from engines.emulation.verdict import Evidence, judge
from engines.network_plan import port_names
from engines.result import FlowRow, PortRow, RunResult, Table
from engines.spec import RunSpec
from fabric.errors import RunError, StalledFlowError
from fabric.readings import Snapshot
from topos.topology import Topology

UNREAD_BYTES = 8 << 20
CLOSING_S = 3.0

QueueSamples = tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]


@dataclass(frozen=True)
class Sample:
    """At monotonic second `t_s`: payload bytes each flow has delivered so far, CPU use since the last."""

    t_s: float
    received: Sequence[int | None]
    cpu: CpuSample


@dataclass(frozen=True)
class Readings:
    """`samples[opened_at]` opens the measured window, the last sample closes it. `opened` and `closed` are
    the core's counters `core_seconds` apart; sockets are the senders', one list a flow."""

    samples: Sequence[Sample]
    opened_at: int
    opened: Snapshot
    closed: Snapshot
    core_seconds: float
    sockets_before: Sequence[Sequence[TcpSocket]]
    sockets_after: Sequence[Sequence[TcpSocket]]
    softnet_dropped: int
    kernel: Mapping[str, int]
    """All hosts' TCP and MPTCP counters over the window (netstat.py)."""
    queues: QueueSamples | None
    up_s: Sequence[float]
    """Seconds from the start of traffic until each flow's last subflow was up."""

    @property
    def window(self) -> Sequence[Sample]:
        return self.samples[self.opened_at :]


def sockets_of(flow: PlannedFlow, sockets: Sequence[TcpSocket]) -> list[TcpSocket]:
    """Those of a sender's sockets that carry `flow`: one for TCP, one a subflow for MPTCP."""
    first = next((s for s in sockets if s.path == flow.seen_by_sender), None)
    if first is None:
        return []
    if first.subflow is None:
        return [first]
    token = first.subflow.token
    return [s for s in sockets if s.subflow is not None and s.subflow.token == token]


def check_progress(flows: Sequence[PlannedFlow], samples: Sequence[Sample], seconds: float) -> None:
    """Raises StalledFlowError when a flow delivered nothing in the last `seconds` (if sampled)."""
    last = samples[-1]
    rounding_s = 0.001
    earlier = [sample for sample in samples if sample.t_s <= last.t_s - seconds + rounding_s]
    if not earlier:
        return
    pairs = zip(flows, earlier[-1].received, last.received, strict=True)
    stalled = [flow for flow, before, after in pairs if before is not None and before == after]
    if stalled:
        raise StalledFlowError(
            f"{len(stalled)} of {len(flows)} flows delivered nothing for {seconds:.0f} s although connected, "
            f"the first flow {stalled[0].flow} from {stalled[0].src} to {stalled[0].dst}: "
            "run the point again (docs/kernel.md, stalled connections)"
        )


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    readings: Readings,
    outcomes: Sequence[Outcome],
    timings: Mapping[str, float],
    provenance: Mapping[str, Any],
) -> RunResult:
    """The point's result and verdict. Raises RunError when a flow has no number."""
    rows = flow_rows(spec, flows, readings)
    _check_against_iperf3(spec, rows, readings, outcomes)
    ports = port_rows(spec, topology, readings)
    evidence = _evidence(spec, readings, rows)
    status, reasons = judge(evidence)
    return RunResult(
        status=status,
        reasons=reasons,
        flows=tuple(rows),
        ports=tuple(ports),
        samples=_tables(readings),
        metrics=_metrics(readings, rows, evidence, timings),
        provenance={**provenance, "counters": _counters(readings), "kernel_counters": dict(readings.kernel)},
    )


def flow_rows(spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings) -> list[FlowRow]:
    """Goodput over the window at the receiving socket, retransmits over the window at the sender."""
    first, last = readings.window[0], readings.window[-1]
    seconds = last.t_s - first.t_s
    rows = []
    for flow, start, end, before, after, up in zip(
        flows,
        first.received,
        last.received,
        readings.sockets_before,
        readings.sockets_after,
        readings.up_s,
        strict=True,
    ):
        if start is None or end is None or not after:
            raise RunError(f"flow {flow.flow} ({flow.src} to {flow.dst}) lost its connection while measured")
        retransmits = sum(s.total_retrans for s in after) - sum(s.total_retrans for s in before)
        rows.append(
            FlowRow(
                flow=flow.flow,
                src=flow.src,
                dst=flow.dst,
                src_ip=flow.src_ip,
                dst_ip=flow.dst_ip,
                sport=flow.cport,
                dport=flow.port,
                transport=spec.transport.name,
                subflows_asked=spec.transport.subflows,
                subflows_joined=min(len(before), len(after)),
                cc="/".join(sorted({s.cc for s in after})),
                goodput_mbps=(end - start) * 8 / seconds / 1e6,
                bytes_received=end - start,
                retransmits=max(0, retransmits),
                up_s=up,
            )
        )
    return rows


def port_rows(spec: RunSpec, topology: Topology, readings: Readings) -> list[PortRow]:
    """What each port carried between the core's two snapshots."""
    capacity_bytes = spec.link.rate_mbps * 1e6 / 8 * readings.core_seconds
    packets = readings.closed["tx_packets"] - readings.opened["tx_packets"]
    bytes_ = readings.closed["tx_bytes"] - readings.opened["tx_bytes"]
    drops = readings.closed["drops"] - readings.opened["drops"]
    queue = readings.closed["max_queue_pkts"]
    return [
        PortRow(
            port=port,
            node=node,
            peer=peer,
            layer=layer,
            tx_packets=int(packets[port]),
            tx_bytes=int(bytes_[port]),
            drops=int(drops[port]),
            max_queue_pkts=int(queue[port]),
            utilisation_pct=100 * float(bytes_[port]) / capacity_bytes,
        )
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]


def _check_against_iperf3(
    spec: RunSpec, rows: Sequence[FlowRow], readings: Readings, outcomes: Sequence[Outcome]
) -> None:
    """The kernel's count and the application's must tell of the same transfer.

    They may differ by what was delivered after the window closed, and by what waited unread.
    """
    slack = UNREAD_BYTES + int(spec.link.rate_mbps * 1e6 / 8 * CLOSING_S)
    for row, outcome in zip(rows, outcomes, strict=True):
        if outcome.error:
            raise RunError(f"{outcome.flow}: iperf3 says: {outcome.error}")
        at_close = readings.window[-1].received[row.flow] or 0
        if abs(outcome.received_bytes - at_close) > slack:
            raise RunError(
                f"{outcome.flow}: iperf3 read {outcome.received_bytes} bytes in all, "
                f"the kernel delivered {at_close} by the end of the window: one of them is wrong"
            )


def _lost(readings: Readings) -> dict[str, int]:
    opened, closed = readings.opened, readings.closed
    return {
        "the fabric's receive ring": closed["ring_drops"] - opened["ring_drops"],
        "the fabric's transmission (refused by the kernel)": closed["send_refused"] - opened["send_refused"],
        "the fabric for want of descriptors": closed["no_memory"] - opened["no_memory"],
        "the fabric because they held several segments": closed["oversized"] - opened["oversized"],
        "the kernel's receive backlog": readings.softnet_dropped,
    }


def _evidence(spec: RunSpec, readings: Readings, rows: Sequence[FlowRow]) -> Evidence:
    fallbacks = 0
    if spec.transport.subflows > 1:
        fallbacks = sum(all(s.subflow is None for s in sockets) for sockets in readings.sockets_after)
    return Evidence(
        rate_mbps=spec.link.rate_mbps,
        late_p99_us=lateness_us(readings.opened, readings.closed, 99),
        lost=_lost(readings),
        busy_pct=[sample.cpu.machine.busy_pct for sample in readings.window[1:]],
        flows=rows,
        fallbacks=fallbacks,
        cc_asked=spec.transport.cc,
        cc_found=[cc for row in rows for cc in row.cc.split("/")],
    )


def _metrics(
    readings: Readings, rows: Sequence[FlowRow], evidence: Evidence, timings: Mapping[str, float]
) -> dict[str, float]:
    opened, closed = readings.opened, readings.closed
    return {
        "cpu_busy_pct": float(np.mean(evidence.busy_pct)),
        "cpu_busy_max_pct": max(evidence.busy_pct),
        "fabric_cpu_pct": 100 * (closed["cpu_s"] - opened["cpu_s"]) / readings.core_seconds,
        "late_p50_us": lateness_us(opened, closed, 50),
        "late_p99_us": evidence.late_p99_us,
        "late_p999_us": lateness_us(opened, closed, 99.9),
        "packet_hops": closed["hops"] - opened["hops"],
        "packet_hops_per_s": (closed["hops"] - opened["hops"]) / readings.core_seconds,
        "drops": closed["dropped"] - opened["dropped"],
        "retransmits": sum(row.retransmits for row in rows),
        "ring_drops": closed["ring_drops"] - opened["ring_drops"],
        "startup_s": max(row.up_s for row in rows),
        **timings,
    }


def _counters(readings: Readings) -> dict[str, dict[str, float]]:
    """The core's scalar counters before and after the window."""

    def scalars(snapshot: Snapshot) -> dict[str, float]:
        return {name: value for name, value in snapshot.items() if isinstance(value, int | float)}

    return {"before": scalars(readings.opened), "after": scalars(readings.closed)}


def _tables(readings: Readings) -> dict[str, Table]:
    zero = readings.window[0].t_s
    tables = {"goodput": _goodput_table(readings, zero), "cpu": _cpu_table(readings, zero)}
    if readings.queues is not None:
        tables |= _queue_tables(readings.queues, readings.opened["now_s"])
    return tables


def _queue_tables(queues: QueueSamples, zero: float) -> dict[str, Table]:
    times, lengths = queues
    t_s = np.round(times - zero, 4)
    when, port = np.nonzero(lengths)
    return {
        "queues": Table({"t_s": t_s[when], "port": port, "pkts": lengths[when, port].astype(np.int64)}),
        "queue_times": Table({"t_s": t_s}),
    }


def _goodput_table(readings: Readings, zero: float) -> Table:
    rows: list[tuple[float, int, float]] = []
    for before, after in zip(readings.samples, readings.samples[1:], strict=False):
        seconds = after.t_s - before.t_s
        for flow, (start, end) in enumerate(zip(before.received, after.received, strict=True)):
            if start is not None and end is not None:
                rows.append((round(after.t_s - zero, 3), flow, round((end - start) * 8 / seconds / 1e6, 5)))
    return Table.from_rows(("t_s", "flow", "mbps"), rows)


def _cpu_table(readings: Readings, zero: float) -> Table:
    columns = ("t_s", "busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct")
    rows = []
    for sample in readings.samples:
        use = sample.cpu.machine
        parts = (use.busy_pct, use.user_pct, use.system_pct, use.softirq_pct, use.steal_pct)
        rows.append((round(sample.t_s - zero, 3), *(round(part, 2) for part in parts)))
    return Table.from_rows(columns, rows)
