"""The RunResult and the sample tables from the readings of a run. Pure."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.plausibility import OVER_CARRIED_PCT, deadlock
from analysis.quantities import CPU_S_PER_GB
from analysis.stats import Floats, spread_by_flow
from common.errors import RunError
from engines.core_setup import times_alone_s
from engines.emulation.dataplanes.dataplane import FABRIC, PlaneReading
from engines.emulation.measure.observing import Readings, Sample
from engines.emulation.measure.path_pings import PingReadings
from engines.emulation.measure.socket_table import SocketReadings
from engines.emulation.measure.verdict import CpuLoad, Evidence, judge, only_stalled, stall_error
from engines.emulation.traffic.driver import Delivered, flow_name
from engines.kernel_hosts import on_the_wire
from fabric._core import LATENESS_EDGES_NS
from model.congestion import kernel_name, name_of
from model.flows import PlannedFlow
from model.links import changes_in_window
from model.machine import queue_delay_us
from model.network_plan import port_names, port_rates_bps
from model.result import FlowRow, PortRow, RunResult, Status, Table
from model.schedulers import opens_subflows
from model.spec import ELASTIC, FIFO, VIRTUAL, RunSpec
from topos.topology import Topology

LATENESS = {"late_p50_us": 50.0, "late_p99_us": 99.0, "late_p999_us": 99.9}
UNREAD_BYTES = 8 << 20
CLOSING_S = 3.0
MIN_HALVED = 9
"""Minimum number of samples (one per second) for comparing the halves of a window in real time. In virtual
time nothing but the network makes them differ."""
MIN_VIRTUAL_HALVED = 3


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    readings: Readings,
    delivered: Sequence[Delivered],
    timings: Mapping[str, float],
    provenance: Mapping[str, Any],
) -> RunResult:
    """Return the point's result with its verdict, without the sample tables.

    Raises RunError if a flow has no number, StalledFlowError if a flow delivered nothing although the
    machine kept up.
    """
    alone = dataclasses.replace(spec, stack=on_the_wire(spec))
    rows = flow_rows(flows, readings, spec.warmup_s, times_alone_s(alone, topology, flows))
    _check_delivery(spec, flows, readings, delivered)
    evidence = _evidence(spec, flows, readings, rows)
    if only_stalled(evidence):
        raise stall_error(flows, readings.stalled, spec.seconds)
    (reasons, cautions), totals = judge(evidence), readings.totals
    deadlocks = deadlock(totals.closed.deadlocked, port_names(topology))
    return RunResult(
        status=Status.SUSPECT if reasons else Status.OK,
        reasons=reasons,
        cautions=(*deadlocks, *cautions),
        flows=tuple(rows),
        ports=tuple(port_rows(spec, topology, readings)),
        metrics=_metrics(spec, readings, rows, evidence, timings),
        provenance={
            **provenance,
            "counters": {"before": dict(totals.opened.scalars), "after": dict(totals.closed.scalars)},
            "kernel_counters": dict(totals.kernel),
        },
    )


def port_rows(spec: RunSpec, topology: Topology, readings: Readings) -> list[PortRow]:
    """Return what each port carried between the data plane's two readings."""
    rates_bps = port_rates_bps(topology, spec.link)
    opened, closed = readings.totals.opened, readings.totals.closed
    capacity_bytes = rates_bps / 8 * (closed.read_s - opened.read_s)
    packets = closed.tx_packets - opened.tx_packets
    bytes_ = closed.tx_bytes - opened.tx_bytes
    drops = closed.drops - opened.drops
    losses = closed.losses - opened.losses
    marks = closed.marks - opened.marks
    early = closed.early_drops - opened.early_drops
    frames = closed.pause_frames - opened.pause_frames
    paused_s = closed.paused_port_s - opened.paused_port_s
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
            early_drops=int(early[port]),
            pause_frames=int(frames[port]),
            paused_s=float(paused_s[port]),
        )
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]


def _check_delivery(
    spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings, delivered: Sequence[Delivered]
) -> None:
    """Check that the bytes counted in the window agree with what the applications read in total.

    They may differ by what arrived after the window closed, and by data that was not read yet.
    """
    slack = UNREAD_BYTES + int(spec.link.rate_mbps * 1e6 / 8 * CLOSING_S)
    for flow, end, at_close in zip(flows, delivered, readings.window[-1].received, strict=True):
        who = flow_name(flow)
        if end.error:
            raise RunError(f"{who}: {spec.traffic} failed: {end.error}")
        if abs(end.received_bytes - (at_close or 0)) > slack:
            raise RunError(
                f"{who}: {spec.traffic} read {end.received_bytes} bytes in total, but {at_close} were "
                "counted by the end of the window: one of the counts is wrong"
            )


def _lost(readings: Readings) -> dict[str, int]:
    opened, closed = readings.totals.opened, readings.totals.closed
    return {
        **{place: count - opened.astray[place] for place, count in closed.astray.items()},
        "the kernel's receive backlog": readings.totals.softnet_dropped,
    }


def _evidence(
    spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings, rows: Sequence[FlowRow]
) -> Evidence:
    looks = (readings.totals.before, readings.totals.after)
    present = np.maximum(*(look.counts(len(rows)) for look in looks))
    mptcp = np.maximum(*(look.mptcp_counts(len(rows)) for look in looks))
    fallen_back = [
        row.flow
        for flow, row in zip(flows, rows, strict=True)
        if flow.mptcp and present[row.flow] > 0 and not mptcp[row.flow]
    ]
    totals, clock = readings.totals, _clock(readings)
    opened, closed, alone = totals.opened, totals.closed, totals.closed.alone
    return Evidence(
        late_p99_us=lateness_us(opened, closed, 99),
        queue_us=queue_delay_us(spec.link),
        lost=_lost(readings),
        load=_load(readings, clock, spec.dataplane == FABRIC, spec.clock == VIRTUAL),
        elastic=spec.clock == ELASTIC and spec.dataplane == FABRIC,
        stretch_pct=clock["clock_stretch_pct"],
        stretch_longest_ms=clock["clock_stretch_longest_ms"],
        unheld_pct=clock["clock_unheld_pct"],
        over_carried_pct=_over_carried(readings, rows).get(OVER_CARRIED_PCT, 100.0),
        halves_pct=_halves_pct(spec, flows, readings),
        warmup_s=spec.warmup_s,
        round_trip_s=_settling_round_trip_s(spec, flows, readings),
        thread_pct=100 * (closed.cpu_s[alone] - opened.cpu_s[alone]) / totals.core_seconds if alone else 0.0,
        flows=rows,
        fallbacks=len(fallen_back),
        cc_asked=[flow.cc for flow in flows],
        stalled=len(readings.stalled),
        waiting=len(readings.waiting),
        joins_late=spec.transport.joins_late,
        granted=readings.granted,
        cc_losses=totals.congestion.losses,
        cc_repairs=totals.congestion.repairs,
        looks=int(readings.scheduler.get("scheduler_looks", 0)),
        late_looks=int(readings.scheduler.get("scheduler_late", 0)),
    )


def _load(readings: Readings, clock: Mapping[str, float], by_cpu: bool, virtual: bool) -> CpuLoad:
    """Return the machine's load. Open vSwitch's thread polls, so its CPU is always full and is left out. In
    virtual time there is no load."""
    cpus = readings.window[-1].cpu.cpus if by_cpu else ()
    seconds = readings.window[1:]
    if virtual:
        return CpuLoad(busy_pct=[0.0] * len(seconds))
    return CpuLoad(
        busy_pct=[sample.cpu.machine.busy_pct for sample in seconds],
        cpus_pct={cpu: [sample.cpu.cpus[cpu].busy_pct for sample in seconds] for cpu in cpus},
        steal_pct=clock["steal_pct"],
        others_pct=readings.totals.others_pct,
        jitter_p99_us=clock.get("idle_jitter_p99_us", 0.0),
    )


def _halves_pct(
    spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings
) -> tuple[float, float] | None:
    """Return mean goodput of flows without a size in each half of the window, in percent of the link rate.

    Returns None if links change in the window, if flows have a size, or if the window is too short.
    """
    window = readings.window
    least = MIN_VIRTUAL_HALVED if spec.clock == VIRTUAL else MIN_HALVED
    if changes_in_window(spec) or any(flow.size_bytes for flow in flows) or len(window) < least or not flows:
        return None
    middle = len(window) // 2
    parts = ((window[0], window[middle]), (window[middle], window[-1]))
    first, second = (100 * _mean_mbps(before, after) / spec.link.rate_mbps for before, after in parts)
    return first, second


def _settling_round_trip_s(spec: RunSpec, flows: Sequence[PlannedFlow], readings: Readings) -> float:
    """Return the mean smoothed round trip at the start of the window of the subflows that should be steady
    by then: those of flows without a size. 0 in real time, where the rate decides how long a point runs
    (harness/options/rates.py), and where a controller or a link event changes the flows in the window."""
    settle = np.array([flow.subflows > 1 and not flow.size_bytes for flow in flows])
    if spec.clock != VIRTUAL or spec.events or opens_subflows(spec) or not settle.any():
        return 0.0
    srtt_us = readings.totals.before.srtt_us[settle[readings.totals.before.flow]]
    return float(srtt_us.mean()) / 1e6 if len(srtt_us) else 0.0


def _mean_mbps(before: Sample, after: Sample) -> float:
    pairs = zip(before.received, after.received, strict=True)
    received = [end - start for start, end in pairs if start is not None and end is not None]
    return float(np.mean(received)) * 8e-6 / after.seconds_since(before) if received else 0.0


def _metrics(
    spec: RunSpec,
    readings: Readings,
    rows: Sequence[FlowRow],
    evidence: Evidence,
    timings: Mapping[str, float],
) -> dict[str, float]:
    opened, closed = readings.totals.opened, readings.totals.closed
    late_us = {name: lateness_us(opened, closed, percentile) for name, percentile in LATENESS.items()}
    chosen_drops = {
        "pushed_out": closed.scalars.get("pushed_out", 0) - opened.scalars.get("pushed_out", 0),
        "early_drops": int((closed.early_drops - opened.early_drops).sum()),
    }  # dropped packets that made room for others, and those that left a queue with room
    return {
        **({} if spec.clock == VIRTUAL else _machine(readings, rows, evidence)),
        **{name: us for name, us in late_us.items() if us is not None},
        "packet_hops": closed.hops - opened.hops,
        "packet_hops_per_s": (closed.hops - opened.hops) / readings.totals.core_seconds,
        "drops": int((closed.drops - opened.drops).sum()),
        "lost": int((closed.losses - opened.losses).sum()),
        "marked": int((closed.marks - opened.marks).sum()),
        "retransmits": sum(row.retransmits for row in rows),
        "astray": sum(_lost(readings).values()),
        "cc_acks": readings.totals.congestion.acks,
        "cc_losses": readings.totals.congestion.losses,
        "cc_repairs": readings.totals.congestion.repairs,
        **(_of_subflows(readings, rows) if rows else {}),
        **_over_carried(readings, rows),
        **({} if spec.link.discipline == FIFO and not spec.link.random_pkts else chosen_drops),
        **(
            {"pause_frames": int((closed.pause_frames - opened.pause_frames).sum())}
            if spec.link.lossless
            else {}
        ),
        **readings.scheduler,
        **timings,
    }


def _of_subflows(readings: Readings, rows: Sequence[FlowRow]) -> dict[str, float]:
    idle_pct = readings.totals.after.idle_pct_since(readings.totals.before)
    return {"startup_s": max(row.up_s for row in rows), "subflow_idle_pct": float(np.mean(idle_pct))}


def _machine(readings: Readings, rows: Sequence[FlowRow], evidence: Evidence) -> dict[str, float]:
    """Return the use of CPUs and the pauses of the clock; neither exists in virtual time."""
    opened, closed = readings.totals.opened, readings.totals.closed
    share = 100 / readings.totals.core_seconds
    delivered_gb = sum(row.bytes_received for row in rows) / 1e9
    cpus = len(readings.window[-1].cpu.cpus)
    busy_s = float(np.mean(evidence.load.busy_pct)) / 100 * cpus * readings.totals.core_seconds
    return {
        "cpu_busy_pct": float(np.mean(evidence.load.busy_pct)),
        "cpu_busy_max_pct": max(evidence.load.busy_pct),
        "busiest_cpu_pct": evidence.load.busiest[1],
        "others_pct": evidence.load.others_pct,
        **{f"{who}_cpu_pct": share * (now - opened.cpu_s[who]) for who, now in closed.cpu_s.items()},
        **_clock(readings),
        **({CPU_S_PER_GB.name: busy_s / delivered_gb} if delivered_gb else {}),
    }


def _over_carried(readings: Readings, rows: Sequence[FlowRow]) -> dict[str, float]:
    """Return OVER_CARRIED_PCT over MPTCP flows without a size that kept all subflows; {} without any."""
    kept = readings.totals.after.counts(len(rows)) >= readings.totals.before.counts(len(rows))
    judged = [row for row in rows if row.transport == "mptcp" and not row.size_bytes and kept[row.flow]]
    carried_bytes = sum(int(readings.acked_bytes[row.flow]) for row in judged)
    delivered_bytes = sum(row.bytes_received for row in judged)
    return {OVER_CARRIED_PCT: 100 * delivered_bytes / carried_bytes} if carried_bytes else {}


def _clock(readings: Readings) -> dict[str, float]:
    """Return how long the data plane's clock was paused in the window, and how late CPUs woke up."""
    opened, closed = readings.totals.opened, readings.totals.closed
    paused_s = closed.paused_s - opened.paused_s
    late_us = [percentile_us(counts - opened.wakeups[cpu], 99) for cpu, counts in closed.wakeups.items()]
    return {
        "clock_stretch_ms": 1000 * paused_s,
        "clock_stretch_pct": 100 * paused_s / readings.totals.core_seconds,
        "clock_stretch_longest_ms": 1000 * closed.longest_pause_s,
        "clock_unheld_pct": 100 * (closed.unheld_s - opened.unheld_s) / readings.totals.core_seconds,
        "steal_pct": float(np.mean([sample.cpu.machine.steal_pct for sample in readings.window[1:]])),
        **({"idle_jitter_p99_us": max(late_us)} if late_us else {}),
    }


def lateness_us(before: PlaneReading, after: PlaneReading, percentile: float) -> float | None:
    """Return a percentile of the frames' lateness between two readings, in microseconds.

    Returns 0 without frames, None if the data plane does not measure lateness. The value is the upper edge
    of the histogram's bin (resolution 1/16), so lateness is never underestimated.
    """
    if before.lateness is None or after.lateness is None:
        return None
    return percentile_us(after.lateness - before.lateness, percentile)


def percentile_us(counts: npt.NDArray[np.uint64], percentile: float) -> float:
    """Return a percentile, in microseconds, of a histogram over `LATENESS_EDGES_NS`; 0 if it is empty."""
    total = int(counts.sum())
    if total == 0:
        return 0.0
    bin_ = int(np.searchsorted(np.cumsum(counts), np.ceil(total * percentile / 100)))
    return float(LATENESS_EDGES_NS[min(bin_ + 1, len(LATENESS_EDGES_NS) - 1)]) / 1000


def flow_rows(
    flows: Sequence[PlannedFlow], readings: Readings, warmup_s: float, alone_s: Sequence[float]
) -> list[FlowRow]:
    """Return goodput in the window at the receiver, retransmits at the sender, and RTTs of each flow.

    `alone_s` is what each flow would take alone on its path.

    Raises RunError that names a flow that lost its connection.
    """
    seconds = readings.window[-1].seconds_since(readings.window[0])
    count, totals = len(flows), readings.totals
    joined = _joined(readings, ~np.isnan(np.array(readings.completed_s, float)))
    received = [_received(flow, i, joined, readings) for i, flow in enumerate(flows)]
    ended_s = [start + took for start, took in zip(readings.started_s, readings.completed_s, strict=True)]
    within = [None if math.isnan(end) else end > warmup_s for end in ended_s]
    retransmitted = retransmits(totals.before, totals.after, readings.retransmitted, within)
    cc = _congestion_controls(totals.after, flows)
    srtt_mean, srtt_std = spread_by_flow(*_srtts(readings), count)
    ping_mean, ping_std, sent, lost = _pings(readings, count)
    return [
        FlowRow(
            **flow.columns(),
            subflows_joined=int(joined[i]),
            cc=cc[i],
            goodput_mbps=received[i] * 8 / seconds / 1e6,
            bytes_received=received[i],
            retransmits=retransmitted[i],
            up_s=readings.up_s[i],
            srtt_ms_mean=float(srtt_mean[i]),
            srtt_ms_std=float(srtt_std[i]),
            ping_ms_mean=float(ping_mean[i]),
            ping_ms_std=float(ping_std[i]),
            pings_sent=int(sent[i]),
            pings_lost=int(lost[i]),
            completed_s=readings.completed_s[i],
            start_s=readings.started_s[i] - warmup_s,
            ideal_s=alone_s[i],
        )
        for i, flow in enumerate(flows)
    ]


def _received(flow: PlannedFlow, i: int, joined: npt.NDArray[np.int64], readings: Readings) -> int:
    """Return the bytes that the flow, number `i`, received in the window. Raises RunError if it lost its
    connection."""
    start, end = readings.window[0].received[i], readings.window[-1].received[i]
    finished = not math.isnan(readings.completed_s[i])
    if start is None or end is None or (not joined[i] and not finished):
        raise RunError(
            f"measuring flow {flow.flow} ({flow.src} to {flow.dst}): it lost its connection; "
            "run the point again"
        )
    return end - start


def retransmits(
    before: SocketReadings,
    after: SocketReadings,
    in_all: Sequence[int | None],
    ended_within: Sequence[bool | None],
) -> list[int]:
    """Return the segments that each flow retransmitted between two readings of the senders' sockets.

    The sockets of a completed flow are gone. Then its sender's count at its last byte, `in_all`, is used.
    `ended_within` says whether a flow ended after the first reading; None if it has not ended.
    """
    count = len(in_all)
    earlier: list[int] = before.retransmitted(count).tolist()
    counted: list[int] = after.retransmits_since(before, count).tolist()
    for i, (known, within) in enumerate(zip(in_all, ended_within, strict=True)):
        if known is not None and within is not None:
            counted[i] = max(0, known - earlier[i]) if within else 0
    return counted


def _joined(readings: Readings, finished: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of subflows that each flow had at both ends of the window, or at its end where a
    controller opens them.

    The subflows of a completed flow are gone. It had as many as were seen at any time, and at least one.
    """
    count, before, after = len(finished), readings.totals.before, readings.totals.after
    within = after.counts(count)
    if readings.granted is None:
        within = np.minimum(before.counts(count), within)
    looks = [look.counts(count) for look in (*readings.sockets, before, after)]
    ever = np.max([np.array(readings.opened_subflows), finished, *looks], axis=0)
    return np.where(finished, ever, within)


def _congestion_controls(sockets: SocketReadings, flows: Sequence[PlannedFlow]) -> list[str]:
    """Return the congestion controls of each flow's sockets; under an agent, the datapath's name."""
    count = len(flows)
    found: list[set[str]] = [set() for _ in range(count)]
    for flow, cc in zip(sockets.flow.tolist(), sockets.cc.tolist(), strict=True):
        kernel = sockets.cc_names[cc]
        asked = flows[flow].cc
        found[flow].add(asked if kernel_name(asked) == kernel else name_of(kernel))
    return ["/".join(sorted(names)) for names in found]


def _srtts(readings: Readings) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return flow and srtt in ms of every subflow sample in the window."""
    looks = [look for look in readings.sockets if look.t_s >= readings.zero_s]
    if not looks:
        return np.empty(0, np.int64), np.empty(0)
    flow = np.concatenate([look.flow for look in looks])
    return flow, np.concatenate([look.srtt_us for look in looks]) / 1000


def _pings(readings: Readings, count: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean and deviation in ms, pings sent and lost, for each flow's pings sent in the window."""
    pings = readings.pings
    if pings is None:
        none = np.full(count, np.nan)
        return none, none, np.zeros(count), np.zeros(count)
    inside = (pings.sent_s >= readings.zero_s) & (pings.sent_s <= readings.window[-1].t_s)
    flow, rtt = pings.flow[inside].astype(np.int64), pings.rtt_ms[inside]
    back = ~np.isnan(rtt)
    mean, deviation = spread_by_flow(flow[back], rtt[back], count)
    sent = np.bincount(flow, minlength=count).astype(float)
    return mean, deviation, sent, np.bincount(flow[~back], minlength=count).astype(float)


PART_ROWS = 1 << 17
STANDSTILL_S = 0.001
"""Intervals in which the data plane's clock advanced less give no goodput."""
CPU_PARTS = ("busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct")


def sample_parts(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> Iterator[tuple[str, Table]]:
    """Yield names and rows of all tables; t_s counts from the start of the window.

    Large tables come in parts of about PART_ROWS rows. `rates_bps` holds the rate of each port.
    """
    yield "goodput", _goodput_table(readings)
    yield "cpu", _cpu_table(readings)
    yield "links", _links_table(readings, rates_bps)
    if all(len(sample.drops) for sample in readings.samples):
        yield "ports", _ports_table(readings)
    if readings.queues is not None:
        yield from _queues_table(readings, *readings.queues)
    if readings.sockets:
        step = max(1, PART_ROWS // max(1, len(readings.sockets[-1])))
        for begin in range(0, len(readings.sockets), step):
            yield "sockets", _sockets_table(readings.sockets[begin : begin + step], readings.zero_s)
    if readings.pings is not None:
        yield "pings", _pings_table(readings.pings, readings.zero_s)


def utilisation_pct(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the use of every port in every interval (intervals x ports), in percent of its rate."""
    times = np.array([sample.read_s for sample in readings.samples])
    sent = np.array([sample.tx_bytes for sample in readings.samples]).astype(np.int64)
    bits, room = np.diff(sent, axis=0) * 8.0, np.diff(times, axis=0) * rates_bps
    share: npt.NDArray[np.float64] = np.divide(bits, room, out=np.zeros_like(bits), where=room > 0)
    return 100 * share


def _goodput_table(readings: Readings) -> Table:
    rows: list[tuple[float, int, float]] = []
    for before, after in zip(readings.samples, readings.samples[1:], strict=False):
        seconds, t_s = after.seconds_since(before), round(after.t_s - readings.zero_s, 3)
        if seconds < STANDSTILL_S:
            continue
        for flow, (start, end) in enumerate(zip(before.received, after.received, strict=True)):
            if start is not None and end is not None:
                rows.append((t_s, flow, round((end - start) * 8 / seconds / 1e6, 5)))
    return Table.from_rows(("t_s", "flow", "mbps"), rows)


def _cpu_table(readings: Readings) -> Table:
    rows = []
    for sample in readings.samples:
        parts = (getattr(sample.cpu.machine, part) for part in CPU_PARTS)
        rows.append((round(sample.t_s - readings.zero_s, 3), *(round(part, 2) for part in parts)))
    return Table.from_rows(("t_s", *CPU_PARTS), rows)


def _links_table(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> Table:
    used = utilisation_pct(readings, rates_bps)
    t_s = np.array([round(sample.t_s - readings.zero_s, 3) for sample in readings.samples[1:]])
    interval, port = np.nonzero(used)
    return Table({"t_s": t_s[interval], "port": port, "utilisation_pct": np.round(used[interval, port], 2)})


def _ports_table(readings: Readings) -> Table:
    drops = np.diff(np.array([sample.drops for sample in readings.samples]).astype(np.int64), axis=0)
    queued = np.array([sample.queued_pkts for sample in readings.samples[1:]]).astype(np.int64)
    t_s = np.array([round(sample.t_s - readings.zero_s, 3) for sample in readings.samples[1:]])
    interval, port = np.nonzero((drops != 0) | (queued != 0))
    return Table(
        {
            "t_s": t_s[interval],
            "port": port,
            "queued_pkts": queued[interval, port],
            "drops": drops[interval, port],
        }
    )


def _queues_table(
    readings: Readings, times: npt.NDArray[np.float64], lengths: npt.NDArray[np.uint32]
) -> Iterator[tuple[str, Table]]:
    """Yield queue lengths, with times converted from the data plane's clock to the machine's."""
    now_s = np.array([sample.now_s for sample in readings.samples])
    machine_s = np.array([sample.t_s for sample in readings.samples])
    ahead_s = np.interp(times, now_s, machine_s - now_s)
    t_s = np.round(times + ahead_s - readings.zero_s, 4)
    step = max(1, PART_ROWS // max(1, lengths.shape[1]))
    for begin in range(0, max(1, len(t_s)), step):
        some = lengths[begin : begin + step]
        when, port = np.nonzero(some)
        yield (
            "queues",
            Table({"t_s": t_s[begin + when], "port": port, "pkts": some[when, port].astype(np.int64)}),
        )
    yield "queue_times", Table({"t_s": t_s})


def _sockets_table(looks: Sequence[SocketReadings], zero_s: float) -> Table:
    t_s = [np.full(len(look), round(look.t_s - zero_s, 3)) for look in looks]

    def column(name: str) -> npt.NDArray[np.int64]:
        return np.concatenate([getattr(look, name) for look in looks]).astype(np.int64)

    return Table(
        {
            "t_s": np.concatenate(t_s),
            "flow": column("flow"),
            "subflow": column("subflow"),
            "cwnd_pkts": column("cwnd_pkts"),
            "srtt_ms": np.round(column("srtt_us") / 1000, 3),
            "rttvar_ms": np.round(column("rttvar_us") / 1000, 3),
            "retransmits": column("retransmits"),
            "bytes_acked": column("bytes_acked"),
            "unacked_pkts": column("unacked_pkts"),
            "notsent_bytes": column("notsent_bytes"),
            "busy_ms": np.round(column("busy_us") / 1000, 3),
            "rwnd_limited_ms": np.round(column("rwnd_limited_us") / 1000, 3),
        }
    )


def _pings_table(pings: PingReadings, zero_s: float) -> Table:
    return Table(
        {
            "t_s": np.round(pings.sent_s - zero_s, 3),
            "flow": pings.flow,
            "subflow": pings.subflow,
            "rtt_ms": np.round(pings.rtt_ms, 3),
            "out_ms": np.round(pings.out_ms, 3),
        }
    )
