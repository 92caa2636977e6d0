"""From what was read during a run to its RunResult. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from engines.emulation.dataplane import Reading
from engines.emulation.driver import Delivered
from engines.emulation.flow_table import flow_rows
from engines.emulation.readings import Readings
from engines.emulation.sample_tables import sample_tables, utilisation_pct
from engines.emulation.stalls import stall_error
from engines.emulation.verdict import Evidence, judge, only_stalled
from engines.flows import PlannedFlow
from engines.network_plan import port_names, port_rates_bps
from engines.result import FlowRow, PortRow, RunResult
from engines.robustness import CPU_S_PER_GB
from engines.spec import RunSpec
from engines.steadiness import OVER_CARRIED_PCT
from fabric._core import LATENESS_EDGES_NS
from fabric.errors import RunError
from topos.topology import Topology

LATENESS = {"late_p50_us": 50.0, "late_p99_us": 99.0, "late_p999_us": 99.9}
UNREAD_BYTES = 8 << 20
CLOSING_S = 3.0


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    readings: Readings,
    delivered: Sequence[Delivered],
    timings: Mapping[str, float],
    provenance: Mapping[str, Any],
) -> RunResult:
    """The point's result and verdict. Raises RunError when a flow has no number, StalledFlowError when one
    stood still on a machine that kept up."""
    rows = flow_rows(flows, readings, spec.warmup_s)
    _check_delivery(spec, flows, readings, delivered)
    evidence = _evidence(spec, flows, readings, rows)
    if only_stalled(evidence):
        raise stall_error(flows, readings.stalled, spec.seconds)
    status, reasons = judge(evidence)
    return RunResult(
        status=status,
        reasons=reasons,
        flows=tuple(rows),
        ports=tuple(port_rows(spec, topology, readings)),
        samples=sample_tables(readings, port_rates_bps(topology, spec.link)),
        metrics=_metrics(readings, rows, evidence, timings),
        provenance={**provenance, "counters": _counters(readings), "kernel_counters": dict(readings.kernel)},
    )


def port_rows(spec: RunSpec, topology: Topology, readings: Readings) -> list[PortRow]:
    """What each port carried between the data plane's two readings."""
    rates_bps = port_rates_bps(topology, spec.link)
    opened, closed = readings.opened, readings.closed
    capacity_bytes = rates_bps / 8 * (closed.read_s - opened.read_s)
    packets = closed.tx_packets - opened.tx_packets
    bytes_ = closed.tx_bytes - opened.tx_bytes
    drops = closed.drops - opened.drops
    losses = closed.losses - opened.losses
    marks = closed.marks - opened.marks
    queue = closed.max_queue_pkts
    median = np.median(utilisation_pct(readings, rates_bps)[readings.opened_at :], axis=0)
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
            utilisation_pct=100 * float(bytes_[port] / capacity_bytes[port]),
            utilisation_median_pct=float(median[port]),
            lost=int(losses[port]),
            marked=int(marks[port]),
        )
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]


def _check_delivery(
    spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings, delivered: Sequence[Delivered]
) -> None:
    """What was counted in the window and what the application read in all must be the same transfer.

    They may differ by what was delivered after the window closed, and by what waited unread.
    """
    slack = UNREAD_BYTES + int(spec.link.rate_mbps * 1e6 / 8 * CLOSING_S)
    for flow, end, at_close in zip(flows, delivered, readings.window[-1].received, strict=True):
        who = f"flow {flow.flow} ({flow.src}:{flow.cport} -> {flow.dst} {flow.dst_ip}:{flow.port})"
        if end.error:
            raise RunError(f"{who}: {spec.traffic} says: {end.error}")
        if abs(end.received_bytes - (at_close or 0)) > slack:
            raise RunError(
                f"{who}: {spec.traffic} read {end.received_bytes} bytes in all, "
                f"{at_close} were counted by the end of the window: one of them is wrong"
            )


def _lost(readings: Readings) -> dict[str, int]:
    opened, closed = readings.opened, readings.closed
    return {
        **{place: count - opened.astray[place] for place, count in closed.astray.items()},
        "the kernel's receive backlog": readings.softnet_dropped,
    }


def _evidence(
    spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings, rows: Sequence[FlowRow]
) -> Evidence:
    looks = (readings.before, readings.after)
    present = np.maximum(*(look.counts(len(rows)) for look in looks))
    mptcp = np.maximum(*(look.mptcp_counts(len(rows)) for look in looks))
    fallen_back = [
        row.flow
        for flow, row in zip(flows, rows, strict=True)
        if flow.mptcp and present[row.flow] > 0 and not mptcp[row.flow]
    ]
    return Evidence(
        rate_mbps=spec.link.rate_mbps,
        late_p99_us=lateness_us(readings.opened, readings.closed, 99),
        lost=_lost(readings),
        thread_pct=_thread_pct(readings),
        busy_pct=[sample.cpu.machine.busy_pct for sample in readings.window[1:]],
        flows=rows,
        fallbacks=len(fallen_back),
        cc_asked=[flow.cc for flow in flows],
        stalled=len(readings.stalled),
        waiting=len(readings.waiting),
        joins_late=spec.transport.joins_late,
        cc_losses=readings.congestion.losses,
        cc_repairs=readings.congestion.repairs,
        looks=int(readings.scheduler.get("scheduler_looks", 0)),
        late_looks=int(readings.scheduler.get("scheduler_late", 0)),
    )


def _thread_pct(readings: Readings) -> float:
    """Percent of the window in which the one thread that forwards all was busy; 0 where there is none."""
    who = readings.closed.alone
    if not who:
        return 0.0
    return 100 * (readings.closed.cpu_s[who] - readings.opened.cpu_s[who]) / readings.core_seconds


def _metrics(
    readings: Readings, rows: Sequence[FlowRow], evidence: Evidence, timings: Mapping[str, float]
) -> dict[str, float]:
    opened, closed = readings.opened, readings.closed
    share = 100 / readings.core_seconds
    return {
        "cpu_busy_pct": float(np.mean(evidence.busy_pct)),
        "cpu_busy_max_pct": max(evidence.busy_pct),
        **{f"{who}_cpu_pct": share * (now - opened.cpu_s[who]) for who, now in closed.cpu_s.items()},
        **_lateness(opened, closed),
        "packet_hops": closed.hops - opened.hops,
        "packet_hops_per_s": (closed.hops - opened.hops) / readings.core_seconds,
        "drops": int((closed.drops - opened.drops).sum()),
        "lost": int((closed.losses - opened.losses).sum()),
        "marked": int((closed.marks - opened.marks).sum()),
        "retransmits": sum(row.retransmits for row in rows),
        "astray": sum(_lost(readings).values()),
        "cc_acks": readings.congestion.acks,
        "cc_losses": readings.congestion.losses,
        "cc_repairs": readings.congestion.repairs,
        "startup_s": max(row.up_s for row in rows),
        "subflow_idle_pct": float(np.mean(readings.after.idle_pct_since(readings.before))),
        **_cpu_s_per_gb(readings, rows, evidence),
        **_over_carried(readings, rows),
        **readings.scheduler,
        **timings,
    }


def _over_carried(readings: Readings, rows: Sequence[FlowRow]) -> dict[str, float]:
    """Of MPTCP's flows without end that kept their subflows; nothing where there are none."""
    kept = readings.after.counts(len(rows)) >= readings.before.counts(len(rows))
    judged = [row for row in rows if row.transport == "mptcp" and not row.size_bytes and kept[row.flow]]
    carried_bytes = sum(int(readings.acked_bytes[row.flow]) for row in judged)
    delivered_bytes = sum(row.bytes_received for row in judged)
    return {OVER_CARRIED_PCT: 100 * delivered_bytes / carried_bytes} if carried_bytes else {}


def _cpu_s_per_gb(readings: Readings, rows: Sequence[FlowRow], evidence: Evidence) -> dict[str, float]:
    """Of the whole machine: hosts' kernels, traffic's processes and the data plane."""
    delivered_gb = sum(row.bytes_received for row in rows) / 1e9
    cpus = len(readings.window[-1].cpu.cpus)
    busy_s = float(np.mean(evidence.busy_pct)) / 100 * cpus * readings.core_seconds
    return {CPU_S_PER_GB: busy_s / delivered_gb} if delivered_gb else {}


def _lateness(opened: Reading, closed: Reading) -> dict[str, float]:
    """Percentiles, where the data plane knows."""
    found = {name: lateness_us(opened, closed, p) for name, p in LATENESS.items()}
    return {name: late_us for name, late_us in found.items() if late_us is not None}


def lateness_us(before: Reading, after: Reading, percentile: float) -> float | None:
    """This percentile of the frames' lateness between two readings, in microseconds; 0 when none came, None
    from a data plane that does not know.

    Resolution is 1/16; the upper edge of the histogram's bin is given, so it is never flattering.
    """
    if before.lateness is None or after.lateness is None:
        return None
    counts = after.lateness - before.lateness
    total = int(counts.sum())
    if total == 0:
        return 0.0
    bin_ = int(np.searchsorted(np.cumsum(counts), np.ceil(total * percentile / 100)))
    return float(LATENESS_EDGES_NS[min(bin_ + 1, len(LATENESS_EDGES_NS) - 1)]) / 1000


def _counters(readings: Readings) -> dict[str, dict[str, float]]:
    """The data plane's scalar counters before and after the window."""
    return {"before": dict(readings.opened.scalars), "after": dict(readings.closed.scalars)}
