"""Run a simulation and read it at times that depend on the spec only.

Readings are compact (arrays, and only non-empty queues) and bounded: if an interval would give a table more
than `MAX_ROWS` rows, only every second, third, ... time is read.
"""

from __future__ import annotations

import functools
import math
import operator
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from controllers.routing import per_packet
from engines.core_setup import PS_PER_MS, PS_PER_S
from engines.engine import Observer, follower
from engines.simulation.scheduled import RunUntil
from fabric._core import Simulation
from fabric.readings import DatagramReadings, FlowReadings, NoiseReadings, SimulatedCounters, SubflowReadings
from model.flows import PlannedFlow
from model.links import ports_of
from model.network_plan import port_rates_bps, reroutes
from model.result import Instant, Windows
from model.schedulers import opens_subflows
from model.spec import LinkEvent, RunSpec
from topos.topology import Topology

Ints = npt.NDArray[np.int64]

MAX_ROWS = 2_000_000
SAMPLE_S = 1.0
PING_BYTES = 98
"""Size of a ping by ping(8): 56 bytes of data with ICMP, IP and Ethernet headers."""
SLICE_HOPS = 1_000_000
"""Packet-hops between two checks for signals: about a tenth of a second."""
FIRST_SLICE_PS = PS_PER_MS
MIN_SLICE_PS = 1000


@dataclass(frozen=True, eq=False)
class Reading:
    """All counters at `t_ps`, which, like the counters, starts at the start of traffic."""

    t_ps: int
    ports: SimulatedCounters
    flows: FlowReadings
    subflows: SubflowReadings
    datagrams: DatagramReadings
    noise: NoiseReadings


@dataclass(eq=False)
class Recording:
    """All readings: the ends of the window, and samples with their times in ps.

    `deadlocked` are ports that wait for one another at the end.
    `middle` is the bytes that each flow has delivered in the middle of the window.
    `goodput` (bytes that each flow has delivered), `links` (bytes that each port has sent), `drops` and
    `queued` (packets dropped so far and queued now, of each port) are at the times `times`.
    `queues` holds ports and packets of non-empty queues. `sockets` and `pings` (ps out, ps
    there and back) cover every subflow.
    """

    ends: list[Reading] = field(default_factory=list)
    deadlocked: list[int] = field(default_factory=list)
    middle: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    times: list[int] = field(default_factory=list)
    goodput: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    links: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    drops: list[npt.NDArray[np.uint64]] = field(default_factory=list)
    queued: list[npt.NDArray[np.uint32]] = field(default_factory=list)
    queues: list[tuple[int, npt.NDArray[np.uint32], npt.NDArray[np.uint32]]] = field(default_factory=list)
    sockets: list[tuple[int, SubflowReadings]] = field(default_factory=list)
    pings: list[tuple[int, npt.NDArray[np.int64], npt.NDArray[np.int64]]] = field(default_factory=list)

    @property
    def opened(self) -> Reading:
        return self.ends[0]

    @property
    def closed(self) -> Reading:
        return self.ends[1]


def with_events(simulation: Simulation, spec: RunSpec, topology: Topology) -> RunUntil:
    """Return what runs the simulation and carries out the spec's link events, and changes of routing, at
    their exact times.

    Packets that arrive at such a time arrive before it.
    """
    rates = port_rates_bps(topology, spec.link)

    def set_share(event: LinkEvent, at_ps: int) -> None:
        for port in ports_of(event, topology):
            simulation.set_port_up(port, event.share > 0, at_ps)
            if event.share:
                simulation.set_port_rate(port, round(event.share * int(rates[port])))

    changes: list[tuple[int, Callable[[int], None]]] = [
        *((_ps(event.t_s), functools.partial(set_share, event)) for event in spec.events),
        *(
            (_ps(t_s), lambda _, plan=plan: simulation.reroute(plan))
            for t_s, plan in reroutes(spec, topology)
        ),
    ]
    ahead = deque(sorted(changes, key=operator.itemgetter(0)))

    def run_until(limit_ps: int) -> None:
        while ahead and ahead[0][0] <= limit_ps:
            at_ps, change = ahead.popleft()
            simulation.run_until(at_ps)
            change(at_ps)
        simulation.run_until(limit_ps)

    return run_until


def record(
    simulation: Simulation,
    spec: RunSpec,
    topology: Topology,
    subflows: int,
    observer: Observer,
    ticking: Callable[[RunUntil], RunUntil],
    follow: Callable[[int], None],
) -> Recording:
    """Run the whole point, from the start of traffic to the end of the window.

    `ticking` adds a scheduler's ticks; `follow` shows the run at a time in ps.
    """
    recording = Recording()
    run_until = _sliced(simulation, ticking(with_events(simulation, spec, topology)))
    opens, ends = _ps(spec.warmup_s), _ps(spec.warmup_s + spec.seconds)
    looks = _looks(simulation, recording, follow, spec, len(topology.links) * 2, subflows, observer)
    instants = {t_ps for times, _ in looks for t_ps in times}
    observer.phase("warm-up", 0.0)
    middle = (opens + ends) // 2
    for t_ps in sorted({*instants, opens, middle, ends}):
        run_until(t_ps)
        if t_ps == middle:
            recording.middle.append(simulation.flows()["delivered_bytes"])
        for times, look in looks:
            if t_ps in times:
                look(t_ps)
        if t_ps in {opens, ends}:
            recording.ends.append(_read(simulation, t_ps))
        if t_ps == opens:
            simulation.restart_max_queues()
            observer.phase("measure", 0.0)
    recording.deadlocked = simulation.deadlocked()
    return recording


def _read(simulation: Simulation, t_ps: int) -> Reading:
    return Reading(
        t_ps,
        simulation.ports(),
        simulation.flows(),
        simulation.subflows(),
        simulation.datagrams(),
        simulation.noise(),
    )


Look = tuple[Collection[int], Callable[[int], None]]
"""Times of a sample, and the function that takes it."""


def _looks(
    simulation: Simulation,
    recording: Recording,
    follow: Callable[[int], None],
    spec: RunSpec,
    ports: int,
    subflows: int,
    observer: Observer,
) -> list[Look]:
    """Return what is sampled when, each appended to the recording; queues and pings are not sampled in the
    warm-up."""

    def traffic(t_ps: int) -> None:
        seen = simulation.ports()
        recording.times.append(t_ps)
        recording.goodput.append(simulation.flows()["delivered_bytes"])
        recording.links.append(seen["tx_bytes"])
        recording.drops.append(seen["drops"])
        recording.queued.append(seen["queued_pkts"])
        follow(t_ps)

    def queues(t_ps: int) -> None:
        lengths = simulation.queues()
        busy = np.flatnonzero(lengths).astype(np.uint32)
        recording.queues.append((t_ps, busy, lengths[busy]))

    def sockets(t_ps: int) -> None:
        recording.sockets.append((t_ps, simulation.subflows()))

    def pings(t_ps: int) -> None:
        recording.pings.append((t_ps, *simulation.path_delays(PING_BYTES, t_ps)))

    whole, window = (-spec.warmup_s, spec.seconds), (0.0, spec.seconds)
    every = functools.partial(_every, spec, observer)
    sampling = spec.sampling
    ping_ms = 0 if per_packet(spec.routing) else sampling.pings_ms
    rows = max(ports, len(simulation.flows()["delivered_bytes"]))
    second = every("goodput and links", min(SAMPLE_S, spec.seconds) * 1000, rows, *whole)
    return [
        ({0, *second, _ps(spec.warmup_s + spec.seconds)}, traffic),
        (every("queues", sampling.queues_ms, ports, *window), queues),
        (every("sockets", sampling.sockets_ms, subflows, *whole), sockets),
        (every("pings", ping_ms, subflows, *window), pings),
    ]


def _every(
    spec: RunSpec, observer: Observer, what: str, interval_ms: float, rows: int, first_s: float, last_s: float
) -> frozenset[int]:
    """Return sample times in ps from the start of traffic, aligned with the start of the window.

    If all multiples of the interval would give too many rows, every second, third, ... is returned.
    """
    if not interval_ms:
        return frozenset()
    step_ps = round(interval_ms * PS_PER_MS)
    span_ps = _ps(last_s - first_s)
    wider = max(1, math.ceil(rows * (span_ps // step_ps + 1) / MAX_ROWS))
    if wider > 1:
        observer.note(
            f"{what} are sampled every {wider * interval_ms:g} ms: every {interval_ms:g} ms would give more "
            f"than {MAX_ROWS / 1e6:g} million rows"
        )
    step_ps *= wider
    opens = _ps(spec.warmup_s)
    first = math.ceil(_ps(first_s) / step_ps)
    return frozenset(opens + n * step_ps for n in range(first, _ps(last_s) // step_ps + 1))


def _sliced(simulation: Simulation, whole: RunUntil) -> RunUntil:
    """Return `whole` in slices of about SLICE_HOPS, between which Python handles signals.

    The slices depend on the simulation only, and do not change it.
    """
    now_ps, slice_ps = 0, FIRST_SLICE_PS

    def run_until(limit_ps: int) -> None:
        nonlocal now_ps, slice_ps
        while now_ps < limit_ps:
            before = simulation.hops()
            now_ps = min(limit_ps, now_ps + slice_ps)
            whole(now_ps)
            hops = simulation.hops() - before
            if hops > SLICE_HOPS:
                slice_ps = max(MIN_SLICE_PS, slice_ps // 2)
            elif hops < SLICE_HOPS // 4 and now_ps < limit_ps:
                slice_ps *= 2

    return run_until


def _ps(seconds: float) -> int:
    return round(seconds * PS_PER_S)


def following(
    simulation: Simulation, spec: RunSpec, flows: Sequence[PlannedFlow], observer: Observer
) -> Callable[[int], None]:
    """Return a function that shows the simulation at a time in ps; without followers it reads nothing."""
    show = follower(observer)
    if show is None:
        return lambda _t_ps: None
    flow, subflow = owners(flows)
    payload = payload_bytes(spec, flow)

    def look(t_ps: int) -> None:
        ports, read = simulation.ports(), simulation.subflows()
        listed = read["established"] == 1 if opens_subflows(spec) else slice(None)
        show(
            Instant(
                round(t_ps / PS_PER_S - spec.warmup_s, 9),
                ports["tx_bytes"].astype(np.int64),
                ports["drops"].astype(np.int64),
                ports["queued_pkts"].astype(np.int64),
                simulation.flows()["delivered_bytes"].astype(np.int64),
                Windows(
                    flow[listed],
                    subflow[listed],
                    read["window_pkts"][listed].astype(np.float64),
                    read["srtt_ps"][listed].astype(np.float64) / PS_PER_MS,
                    (read["acked_pkts"].astype(np.int64) * payload)[listed],
                ),
            )
        )

    return look


def owners(flows: Sequence[PlannedFlow]) -> tuple[Ints, Ints]:
    """Return for every subflow its flow and its number in that flow."""
    counts = [flow.subflows for flow in flows]
    number = [np.arange(count, dtype=np.int64) for count in counts]
    return np.repeat(np.arange(len(flows), dtype=np.int64), counts), np.concatenate(number)


def payload_bytes(spec: RunSpec, flow: Ints) -> Ints:
    """Return the payload of a full segment of each subflow."""
    stack = spec.stack
    mptcp = np.bincount(flow)[flow] > 1
    payload: Ints = stack.payload_bytes - stack.mptcp_bytes * mptcp.astype(np.int64)
    return payload
