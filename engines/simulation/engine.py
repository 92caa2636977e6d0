"""The engine `simulator`: runs one RunSpec at a time, in virtual time, without root.

Flows between simulated hosts: what they need, their run, and the result that follows from its readings.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from analysis.plausibility import OVER_CARRIED_PCT, deadlock, drift_reasons, unsteady_reasons
from analysis.stats import spread_by_flow
from common.errors import RunError, UsageError
from controllers.routing import IN_SWITCHES, parse, per_packet
from engines.core_setup import (
    ALARMS_A_SUBFLOW,
    MIN_PACKETS,
    NEVER_PS,
    PACKETS_A_SUBFLOW,
    PS_PER_MS,
    PS_PER_S,
    SimulatedAgent,
    built,
    check_agent,
    check_ccs,
    check_paths,
    check_spec,
    check_transport,
    elastic,
    ideal_times_s,
    plan_of,
    transport_options,
)
from engines.engine import Observer, OnePointPerCpu
from engines.provenance import free_memory_mb, origin
from engines.simulation.readings import Ints, Reading, Recording, following, owners, payload_bytes, record
from engines.simulation.scheduled import Responsive, Scheduling, control_of
from engines.workload import ByWorkload
from fabric._core import COMPILER, LATENESS_EDGES_NS, Simulation
from fabric.plan import FRAME_BITS
from model.congestion import COUPLED_DEFAULT, DATAPATH, core_name
from model.flows import PlannedFlow, congestion_controls, drawn_flows, planned_flows, subflow_counts
from model.links import changes_in_window, check_events, longest_queue_pkts, lossy
from model.machine import demand
from model.network_plan import check_trace, is_measured, port_names, port_rates_bps
from model.noise import noisy
from model.reasons import GOODPUT
from model.result import NO_VALUE, SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table
from model.schedulers import check_scheduler, opens_subflows, ticking_s
from model.spec import FIFO, QUEUES, TCP, LinkSpec, RunSpec
from topos.topology import Topology, parts_of
from workloads.flow import Flow

HOPS_PER_CPU_S = 12e6
"""Packet-hops per CPU second, for plans: between those at k=8 (20 M) and k=32 (8 M) on the reference machine
(benchmarks/simulator.py)."""
STARTING_S = 0.3


def check(spec: RunSpec) -> None:
    """Raise UsageError for a spec that simulated hosts do not support."""
    topology = spec.network()
    check_spec(spec)
    flows = drawn_flows(spec, topology)
    check_transport(spec, topology, flows)
    check_ccs(congestion_controls(spec, flows))
    check_agent(spec)
    check_parts(spec, topology, flows)
    check_memory(spec, topology, flows, free_memory_mb())
    check_paths(spec, topology)
    check_events(spec, topology)
    check_trace(spec, topology)
    check_scheduler(spec, topology)


def memory_mb(spec: RunSpec) -> float:
    """Return an estimate made before anything is built."""
    topology = spec.network()
    return estimated_mb(spec, topology, drawn_flows(spec, topology))


def cpus(spec: RunSpec) -> int:
    """Return the number of threads that carry out the point."""
    return 1 if spec.parts == 1 else threads_of(spec, spec.network())


def expected_s(spec: RunSpec) -> float:
    """Return an estimate from the point's packet-hops."""
    seconds = spec.warmup_s + spec.seconds
    events_s = demand(spec).hops_per_s * seconds / HOPS_PER_CPU_S
    return STARTING_S + events_s / cpus(spec) + ticking_s(spec)


def run(spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
    """Run the point; signals are handled between slices of virtual time, many times a second."""
    del raw
    began = time.process_time()
    topology = spec.network()
    flows = planned_flows(spec, topology)
    plan, options = plan_of(spec, topology), transport_options(spec)
    agent = SimulatedAgent(spec, topology, flows)
    threads = threads_of(spec, topology)
    simulation = built(spec, topology, flows, plan, options, agent, threads)
    ideal = ideal_times_s(simulation, flows, plan, options)
    control = control_of(spec, topology, flows, simulation)
    recording = _recorded(simulation, spec, topology, flows, observer, control)
    result = summarise(spec, topology, flows, ideal, recording)
    cpu_s = time.process_time() - began
    hops_per_cpu_s = recording.closed.ports["hops"] / cpu_s
    return dataclasses.replace(
        result.doubted(agent.reasons),
        metrics={**result.metrics, **control.counts, **agent.metrics(simulation)},
        reproducible=True,
        provenance={**origin(), **agent.provenance, "compiler": COMPILER, "engine": "simulator"},
        cost={
            "simulation_cpu_s": cpu_s,
            "packet_hops_per_cpu_s": hops_per_cpu_s,
            **({"simulation_threads": threads} if spec.parts > 1 else {}),
            **control.times,
        },
    )


def _recorded(
    simulation: Simulation,
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    observer: Observer,
    control: Scheduling | Responsive,
) -> Recording:
    """Run the simulation. Raises RunError if the core cannot hold it."""
    subflows = sum(flow.subflows for flow in flows)
    try:
        follow = following(simulation, spec, flows, observer)
        return record(simulation, spec, topology, subflows, observer, control.ticking, follow)
    except (ValueError, MemoryError, RuntimeError) as error:
        raise RunError(f"simulating: {error or 'out of memory'}") from error


class SimulatorEngine(ByWorkload, OnePointPerCpu):
    """An Engine with simulated hosts on the fabric core."""

    name = "simulator"

    def cpus(self, spec: RunSpec) -> int:
        """Return the number of threads that carry out the point."""
        return cpus(spec)

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: the simulator has all of them."""
        return COUPLED_DEFAULT, ""


MIN_HOSTS = 512
"""On smaller networks windows are too short to wait for one another at each (docs/performance.md): one thread
does all parts."""


def check_parts(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> None:
    """Raise UsageError, in one line, for a point in parts with what only an undivided network has."""
    if spec.parts == 1:
        return
    if not parts_of(topology, spec.parts):
        raise UsageError(
            f"--parts {spec.parts}: {topology.kind} has no pods below a common layer, into which it could be "
            "divided: leave it out"
        )
    for what, given in _undivided(spec, topology, flows).items():
        if given:
            raise UsageError(f"--parts {spec.parts}: only an undivided network has {what}: leave one out")


def _undivided(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> dict[str, bool]:
    link = spec.link
    one_by_one = link.discipline != FIFO or bool(link.trace)
    return {
        "link events": bool(spec.events),
        "random loss": lossy(link, topology),
        "CPUs that stall": noisy(spec),
        f"the transport {spec.transport.name}": spec.transport.protocol != TCP,
        "agents": DATAPATH in map(core_name, congestion_controls(spec, flows)),
        "subflows on demand": opens_subflows(spec),
        "acknowledgements at once (acks=at_once)": spec.stack.acks == "at_once",
        "per-packet routing": per_packet(spec.routing),
        "flows that wait for one from another part": _waits_elsewhere(spec, topology, flows),
        "queues that choose packets on links without delay": one_by_one and not link.delay_us,
    }


def _waits_elsewhere(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> bool:
    parts = parts_of(topology, spec.parts)
    of_source = [parts[topology.index(flow.src)] for flow in flows]
    return any(
        flow.after is not None and of_source[flow.after] != of_source[number]
        for number, flow in enumerate(flows)
    )


def threads_of(spec: RunSpec, topology: Topology) -> int:
    """Return how many threads carry out the point on this machine: one for each CPU and part at most."""
    if spec.parts == 1 or len(topology.hosts) < MIN_HOSTS:
        return 1
    return min(len(os.sched_getaffinity(0)), len(set(parts_of(topology, spec.parts))))


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
_FLOWLETS, _STEERING, _TELEMETRY = MB, 20, 328
"""Of a switch whose flowlets have all been in use, and of a packet that switches steer or measure
(fabric/core/balancing/flowlets.hpp, fabric/core/packet.hpp)."""
_RING_ENTRY, _PLACES_IN_PORT, _UNLIMITED_QUEUE = 2, 128, 128


def _flow_queues(link: LinkSpec) -> float:
    """Return the bytes that a port holds for queues of flows, also for those without packets."""
    kind = QUEUES[link.queue]
    usual = next((each.usual for each in kind.settings if each.name == "flows"), 0.0)
    return kind.flow_bytes * link.queue_settings.get("flows", usual)


def estimated_mb(spec: RunSpec, topology: Topology, flows: Sequence[Flow]) -> float:
    """Return the peak memory in MB, within 30 % of measurements on FatTrees of 128 to 8192 hosts."""
    ports = 2 * len(topology.links)
    usual = spec.link.queue_limit_pkts or _UNLIMITED_QUEUE
    places = sum(
        links * queue
        for own, links in topology.queues_pkts.items()
        if (queue := own or usual) > _PLACES_IN_PORT
    )
    attachments = len({nic.switch for nic in topology.nics})
    counts = subflow_counts(spec, flows)
    subflows = sum(counts)
    name, parameters = parse(spec.routing)
    packet = _PACKET + (_BLOCKS if spec.stack.sack else 0) + (_STEERING if name in IN_SWITCHES else 0)
    packet += _TELEMETRY if is_measured(spec) else 0
    held = (
        _PROGRAM
        + _PART * (spec.parts - 1)
        + ports * _PORT
        + 2 * _RING_ENTRY * places
        + _TABLE_ENTRY * len(topology.forwarders) * attachments
        + _LINK_IN_PYTHON * len(topology.links)
        + _FLOW_IN_PYTHON * len(flows)
        + _SUBFLOW * subflows
        + ports * _flow_queues(spec.link)
        + (_FLOWLETS * len(topology.forwarders) if "gap_us" in parameters else 0)
        + packet * _packets(spec, topology, flows, counts)
    )
    return held / MB


def check_memory(spec: RunSpec, topology: Topology, flows: Sequence[Flow], available_mb: float) -> None:
    """Raise UsageError if the machine has less memory than needed."""
    needed = estimated_mb(spec, topology, flows)
    if needed <= available_mb:
        return
    subflows = sum(subflow_counts(spec, flows))
    bound = "" if spec.link.queue_limit_pkts else " or a limit to --queue"
    raise UsageError(
        f"simulating {topology.kind} with {len(topology.hosts)} hosts and {subflows} "
        f"subflows takes about {needed:,.0f} MB of memory, but only {available_mb:,.0f} MB are free: "
        f"choose a smaller --k, fewer --subflows{bound}"
    )


def _packets(spec: RunSpec, topology: Topology, flows: Sequence[Flow], counts: Sequence[int]) -> int:
    subflows = sum(counts)
    most = MIN_PACKETS + (ALARMS_A_SUBFLOW + PACKETS_A_SUBFLOW) * subflows
    queue = longest_queue_pkts(spec.link, topology)
    if queue == 0:
        return most
    on_wire = spec.link.rate_mbps * spec.link.delay_us / FRAME_BITS * 2 * 6
    slow_start_ends = bool(spec.stack.ssthresh)
    filled = sum(
        1 if slow_start_ends or flow.size_bytes else max(1, min(count, _FILLED_IN_SLOW_START))
        for flow, count in zip(flows, counts, strict=True)
    )
    return min(most, round(filled * (queue + on_wire)) + _MIN_WINDOW * subflows)


NO_SPREAD = (NO_VALUE, NO_VALUE)


def summarise(
    spec: RunSpec,
    topology: Topology,
    flows: Sequence[PlannedFlow],
    ideal_s: Sequence[float],
    recording: Recording,
) -> RunResult:
    """Return the point's result, which is suspect if its window delivered data that it did not carry.

    Raises RunError if no flow delivered anything.
    """
    opened, closed = recording.opened, recording.closed
    deadlocks = deadlock(recording.deadlocked, port_names(topology))
    if not closed.flows["delivered_bytes"].any():
        seconds = spec.warmup_s + spec.seconds
        raise RunError(
            f"no flow delivered a byte in {seconds:g} s at {spec.link.rate_mbps:g} Mb/s: simulate longer "
            "(--warmup, --seconds), or check losses, delays and link events"
            + "".join(f"; {each}" for each in deadlocks)
        )
    rates_bps = port_rates_bps(topology, spec.link)
    samples = sample_tables(spec, flows, rates_bps, recording)
    rows = _flow_rows(spec, flows, ideal_s, recording, samples)
    over_carried = _over_carried(flows, recording)
    reasons = unsteady_reasons(over_carried)
    drifts = drift_reasons(_halves_pct(spec, flows, recording))
    return RunResult(
        status=Status.SUSPECT if reasons else Status.OK,
        reasons=reasons,
        cautions=(*deadlocks, *(replace(drift, doubts=(GOODPUT,)) for drift in drifts)),
        flows=tuple(rows),
        ports=tuple(_port_rows(spec, topology, rates_bps, recording)),
        samples=samples,
        metrics={
            **_counts(recording),
            **_chosen_drops(spec, recording),
            **_pauses(spec, recording),
            "retransmits": sum(row.retransmits for row in rows),
            **_idle_pct(flows, recording),
            **over_carried,
            **noise_metrics(spec, opened, closed),
        },
    )


def _counts(recording: Recording) -> dict[str, float]:
    """Return what the whole network counted in the window."""
    opened, closed = recording.opened, recording.closed
    of_ports = ("hops", "injected", "delivered", "dropped", "lost")
    hops, injected, delivered, dropped, lost = (
        closed.ports[name] - opened.ports[name]  # type: ignore[literal-required]
        for name in of_ports
    )
    return {
        "packet_hops": hops,
        "injected": injected,
        "delivered": delivered,
        "drops": dropped,
        "lost": lost,
        "marked": int((closed.ports["marks"] - opened.ports["marks"]).sum()),
        "timeouts": int(closed.subflows["timeouts"].sum() - opened.subflows["timeouts"].sum()),
    }


def _chosen_drops(spec: RunSpec, recording: Recording) -> dict[str, float]:
    """Return how many of the dropped packets made room for others, and how many left a queue with room; {} if
    the discipline never does that."""
    if spec.link.discipline == FIFO and not spec.link.random_pkts:
        return {}
    opened, closed = recording.opened.ports, recording.closed.ports
    return {
        "pushed_out": int((closed["pushed_out"] - opened["pushed_out"]).sum()),
        "early_drops": int((closed["early_drops"] - opened["early_drops"]).sum()),
    }


def _pauses(spec: RunSpec, recording: Recording) -> dict[str, float]:
    """Return how many pause frames stopped ports; {} if queues drop."""
    if not spec.link.lossless:
        return {}
    opened, closed = recording.opened.ports, recording.closed.ports
    return {"pause_frames": int((closed["pause_frames"] - opened["pause_frames"]).sum())}


def _idle_pct(flows: Sequence[PlannedFlow], recording: Recording) -> dict[str, float]:
    """Return `subflow_idle_pct` of RunResult over flows without a size; {} if there are none."""
    opened, closed = recording.opened, recording.closed
    endless = np.repeat([flow.size_bytes == 0 for flow in flows], [flow.subflows for flow in flows])
    if not endless.any():
        return {}
    busy = (closed.subflows["busy_ps"] - opened.subflows["busy_ps"])[endless]
    return {"subflow_idle_pct": float(100 * (1 - np.mean(busy / (closed.t_ps - opened.t_ps))))}


def _over_carried(flows: Sequence[PlannedFlow], recording: Recording) -> dict[str, float]:
    """Return OVER_CARRIED_PCT over MPTCP flows without a size; {} if there are none."""
    opened, closed = recording.opened, recording.closed
    endless = np.array([flow.mptcp and not flow.size_bytes for flow in flows])
    subflows = np.repeat(endless, [flow.subflows for flow in flows])
    acked = (closed.subflows["acked_bytes"] - opened.subflows["acked_bytes"])[subflows].sum()
    delivered = (closed.flows["delivered_bytes"] - opened.flows["delivered_bytes"])[endless].sum()
    return {OVER_CARRIED_PCT: float(100 * delivered / acked)} if acked else {}


def _halves_pct(
    spec: RunSpec, flows: Sequence[PlannedFlow], recording: Recording
) -> tuple[float, float] | None:
    """Return mean goodput in each half of the window, in percent of the link rate.

    Returns None if links change in the window or if flows have a size.
    """
    if changes_in_window(spec) or any(flow.size_bytes for flow in flows):
        return None
    (middle,), of_link = recording.middle, spec.link.rate_mbps * 1e6 * spec.seconds / 2
    ends = [each.flows["delivered_bytes"].mean() for each in (recording.opened, recording.closed)]
    first, second = middle.mean() - ends[0], ends[1] - middle.mean()
    return float(800 * first / of_link), float(800 * second / of_link)


def _flow_rows(
    spec: RunSpec,
    flows: Sequence[PlannedFlow],
    ideal_s: Sequence[float],
    recording: Recording,
    samples: dict[str, Table],
) -> list[FlowRow]:
    opened, closed = recording.opened, recording.closed
    received = (closed.flows["delivered_bytes"] - opened.flows["delivered_bytes"]).tolist()
    started = closed.flows["started_ps"].tolist()
    completed = closed.flows["completed_ps"].tolist()
    srtts = _spreads(samples.get("sockets"), "srtt_ms", len(flows))
    pings = _spreads(samples.get("pings"), "rtt_ms", len(flows))
    sent, lost = _datagrams(recording, len(flows))
    retransmits = _per_flow(flows, closed.subflows["retransmits"] - opened.subflows["retransmits"])
    joined = [flow.subflows for flow in flows]
    if spec.transport.joins_late or opens_subflows(spec):
        joined = _per_flow(flows, closed.subflows["established"])
    return [
        FlowRow(
            **flow.columns(),
            subflows_joined=joined[i],
            cc=flow.cc,
            goodput_mbps=received[i] * 8 / spec.seconds / 1e6,
            bytes_received=received[i],
            retransmits=retransmits[i],
            up_s=0.0,
            srtt_ms_mean=srtts[i][0],
            srtt_ms_std=srtts[i][1],
            ping_ms_mean=pings[i][0],
            ping_ms_std=pings[i][1],
            pings_sent=len(recording.pings) * flow.subflows,
            completed_s=NO_VALUE if completed[i] == NEVER_PS else (completed[i] - started[i]) / PS_PER_S,
            start_s=NO_VALUE if started[i] == NEVER_PS else started[i] / PS_PER_S - spec.warmup_s,
            ideal_s=ideal_s[i],
            sent_pkts=sent[i],
            lost_pkts=lost[i],
        )
        for i, flow in enumerate(flows)
    ]


def _per_flow(flows: Sequence[PlannedFlow], of_subflows: npt.NDArray[np.generic]) -> list[int]:
    """Return the sum over the subflows of each flow."""
    each, ends = of_subflows.tolist(), itertools.accumulate(flow.subflows for flow in flows)
    return [sum(each[end - flow.subflows : end]) for flow, end in zip(flows, ends, strict=True)]


def _datagrams(recording: Recording, flows: int) -> tuple[list[int], list[int]]:
    """Return packets sent and lost in the window by each flow; flows of constant rate are the last."""
    before, after = recording.opened.datagrams, recording.closed.datagrams

    refused = after["refused_pkts"] - before["refused_pkts"]
    sent = after["sent_pkts"] - before["sent_pkts"] + refused
    lost = after["lost_pkts"] - before["lost_pkts"] + refused
    none = [0] * (flows - len(refused))
    return none + sent.tolist(), none + lost.tolist()


def _spreads(table: Table | None, name: str, flows: int) -> list[tuple[float, float]]:
    """Return mean and standard deviation of a column in the window for each flow; nan without samples.

    An srtt of 0 means that there is none yet.
    """
    if table is None:
        return [NO_SPREAD] * flows
    chosen = (table["t_s"] >= 0) & (table[name] > 0)
    mean, deviation = spread_by_flow(table["flow"][chosen], table[name][chosen], flows)
    return list(zip(mean.tolist(), deviation.tolist(), strict=True))


def _port_rows(
    spec: RunSpec, topology: Topology, rates_bps: npt.NDArray[np.int64], recording: Recording
) -> list[PortRow]:
    opened, closed = recording.opened, recording.closed
    capacity_bytes = (rates_bps / 8 * spec.seconds).tolist()
    names = (
        "tx_packets", "tx_bytes", "drops", "losses", "marks", "early_drops", "pause_frames", "paused_ps",
    )  # fmt: skip
    packets, sent, drops, losses, marks, early, frames, paused_ps = (
        (closed.ports[name] - opened.ports[name]).tolist()  # type: ignore[literal-required]
        for name in names
    )
    queue = closed.ports["max_queue_pkts"].tolist()
    median = _medians_pct(rates_bps, recording).tolist()
    return [
        PortRow(
            port, node, peer, layer, packets[port], sent[port], drops[port], queue[port],
            100 * sent[port] / capacity_bytes[port], median[port], losses[port], marks[port],
            early[port], frames[port], paused_ps[port] / PS_PER_S,
        )
        for port, (node, peer, layer) in enumerate(port_names(topology))
    ]  # fmt: skip


def _medians_pct(rates_bps: npt.NDArray[np.int64], recording: Recording) -> npt.NDArray[np.float64]:
    """Return each port's median utilisation over the intervals in the window."""
    used = utilisation_pct(rates_bps, recording)
    within = np.array(recording.times[:-1]) >= recording.opened.t_ps
    median: npt.NDArray[np.float64] = np.median(used[within], axis=0)
    return median


QUANTILES = {"late_p50_us": 0.5, "late_p99_us": 0.99, "late_p999_us": 0.999}


def noise_metrics(spec: RunSpec, opened: Reading, closed: Reading) -> dict[str, float]:
    """Return the lateness of the window's deliveries, and the share of real time in stalls; {} without."""
    if not noisy(spec):
        return {}
    counts = closed.noise["lateness"] - opened.noise["lateness"]
    delivered = closed.ports["delivered"] - opened.ports["delivered"]
    stalled_ps = closed.noise["stalled_ps"] - opened.noise["stalled_ps"]
    window_ps = closed.t_ps - opened.t_ps
    real_ps = window_ps + stalled_ps if elastic(spec) else window_ps
    late = {name: late_us(counts, delivered, quantile) for name, quantile in QUANTILES.items()}
    return {**late, "stalled_pct": 100 * stalled_ps / real_ps}


def late_us(counts: npt.NDArray[np.uint64], delivered: int, quantile: float) -> float:
    """Return a quantile of the lateness of all deliveries, in microseconds.

    `counts` is the histogram of late deliveries over LATENESS_EDGES_NS. The value is the upper edge of a bin
    (resolution 1/16).
    """
    on_time = max(0, delivered - int(counts.sum()))
    wanted = quantile * max(delivered, 1)
    if wanted <= on_time:
        return 0.0
    bin_ = int(np.searchsorted(on_time + np.cumsum(counts), wanted))
    return float(LATENESS_EDGES_NS[min(bin_ + 1, len(LATENESS_EDGES_NS) - 1)]) / 1000


Floats = npt.NDArray[np.float64]


def sample_tables(
    spec: RunSpec, flows: Sequence[PlannedFlow], rates_bps: Ints, recording: Recording
) -> dict[str, Table]:
    """Return the requested tables; t_s counts from the start of the window.

    The table `cpu` is empty, because the CPU does not influence a simulation.
    """
    sampling = spec.sampling
    of_subflows = owners(flows)
    tables = {
        "goodput": _goodput(flows, recording),
        "cpu": Table.from_rows(SAMPLE_COLUMNS["cpu"], ()),
        "links": _links(rates_bps, recording),
        "ports": _ports(recording),
    }
    if sampling.queues_ms:
        tables |= _queues(recording)
    if sampling.sockets_ms:
        tables["sockets"] = _sockets(spec, recording, *of_subflows)
    if recording.pings:
        tables["pings"] = _pings(recording, *of_subflows)
    return tables


def utilisation_pct(rates_bps: Ints, recording: Recording) -> Floats:
    """Return the use of every port in every interval (intervals x ports), in percent of its rate."""
    sent = _steps(np.array(recording.links))
    share: Floats = sent * 8 / (_seconds(recording)[:, None] * rates_bps)
    return 100 * share


def _seconds(recording: Recording) -> Floats:
    seconds: Floats = _steps(np.array(recording.times)) / PS_PER_S
    return seconds


def _steps(counted: npt.NDArray[Any]) -> Ints:
    """Return the increments from each time (row) to the next."""
    whole = counted.astype(np.int64)
    steps: Ints = whole[1:] - whole[:-1]
    return steps


def _t_s(recording: Recording, times: Sequence[int]) -> Floats:
    since_ps = np.array(times, np.int64) - recording.opened.t_ps
    rounded: Floats = np.round(since_ps / PS_PER_S, 9)
    return rounded


def _goodput(flows: Sequence[PlannedFlow], recording: Recording) -> Table:
    """Return the goodput of every flow; zeros of sized flows are omitted."""
    mbps = np.round(_steps(np.array(recording.goodput)) * 8 / _seconds(recording)[:, None] / 1e6, 5)
    endless = np.array([flow.size_bytes == 0 for flow in flows], bool)
    interval, flow = np.nonzero((mbps != 0) | endless)
    t_s = _t_s(recording, recording.times[1:])
    return Table({"t_s": t_s[interval], "flow": flow, "mbps": mbps[interval, flow]})


def _links(rates_bps: Ints, recording: Recording) -> Table:
    used = utilisation_pct(rates_bps, recording)
    interval, port = np.nonzero(used)
    t_s = _t_s(recording, recording.times[1:])
    return Table({"t_s": t_s[interval], "port": port, "utilisation_pct": np.round(used[interval, port], 2)})


def _ports(recording: Recording) -> Table:
    drops, queued = _steps(np.array(recording.drops)), np.array(recording.queued[1:]).astype(np.int64)
    interval, port = np.nonzero((drops != 0) | (queued != 0))
    return Table(
        {
            "t_s": _t_s(recording, recording.times[1:])[interval],
            "port": port,
            "queued_pkts": queued[interval, port],
            "drops": drops[interval, port],
        }
    )


def _queues(recording: Recording) -> dict[str, Table]:
    t_s = _t_s(recording, [t_ps for t_ps, _, _ in recording.queues])
    counts = [len(ports) for _, ports, _ in recording.queues]
    none = np.zeros(0, np.uint32)
    ports = np.concatenate([none, *(ports for _, ports, _ in recording.queues)])
    pkts = np.concatenate([none, *(pkts for _, _, pkts in recording.queues)])
    return {
        "queues": Table(
            {"t_s": np.repeat(t_s, counts), "port": ports.astype(np.int64), "pkts": pkts.astype(np.int64)}
        ),
        "queue_times": Table({"t_s": t_s}),
    }


def _sockets(spec: RunSpec, recording: Recording, flow: Ints, subflow: Ints) -> Table:
    looks = recording.sockets

    def column(name: str) -> npt.NDArray[np.generic]:
        return np.concatenate([look[name] for _, look in looks])  # type: ignore[literal-required]

    acked = column("acked_pkts").astype(np.int64)
    payload = payload_bytes(spec, flow)
    table = Table(
        {
            "t_s": np.repeat(_t_s(recording, [t_ps for t_ps, _ in looks]), len(flow)),
            "flow": np.tile(flow, len(looks)),
            "subflow": np.tile(subflow, len(looks)),
            "cwnd_pkts": np.round(column("window_pkts").astype(np.float64), 3),
            "srtt_ms": np.round(column("srtt_ps").astype(np.int64) / PS_PER_MS, 6),
            "rttvar_ms": np.round(column("rttvar_ps").astype(np.int64) / PS_PER_MS, 6),
            "retransmits": column("retransmits").astype(np.int64),
            "bytes_acked": acked * np.tile(payload, len(looks)),
            "unacked_pkts": column("unacked_pkts").astype(np.int64),
            "notsent_bytes": column("notsent_bytes").astype(np.int64),
            "busy_ms": np.round(column("busy_ps").astype(np.int64) / PS_PER_MS, 6),
            "rwnd_limited_ms": np.round(column("rwnd_limited_ps").astype(np.int64) / PS_PER_MS, 6),
        }
    )
    if not opens_subflows(spec):
        return table
    is_open = column("established") == 1  # as the kernel lists a host's sockets
    return Table({name: table[name][is_open] for name in SAMPLE_COLUMNS["sockets"]})


def _pings(recording: Recording, flow: Ints, subflow: Ints) -> Table:
    looks = recording.pings
    return Table(
        {
            "t_s": np.repeat(_t_s(recording, [t_ps for t_ps, _, _ in looks]), len(flow)),
            "flow": np.tile(flow, len(looks)),
            "subflow": np.tile(subflow, len(looks)),
            "rtt_ms": np.round(np.concatenate([back for _, _, back in looks]) / PS_PER_MS, 6),
            "out_ms": np.round(np.concatenate([out for _, out, _ in looks]) / PS_PER_MS, 6),
        }
    )
