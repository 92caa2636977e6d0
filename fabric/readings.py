"""Readings of the core, as the extension returns them. Arrays have one entry per port."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

Departure = tuple[int, int, int, bool, int]
"""Packet, the NIC it reached (or the port that dropped or lost it), time in ps, whether it was dropped, and
its ECN field."""

AgentEventTuple = tuple[int, int, int, int, int, tuple[int, ...]]
"""Kind (0: created, 1: measured, 2: closed), subflow, time in us, number of the program, window in bytes,
fields: those of a report, or of a flow that begins a full segment in bytes."""


class SimulatedCounters(TypedDict):
    """Packets injected, delivered, dropped and lost at random; `hops` counts arrivals at the far end of
    a link.

    For each port: `drops` (at its queue, or link cut), `pushed_out` (of the drops, those that made room for
    another packet), `early_drops` (of the drops, those that the queue chose although it had room), `losses`
    (at random, on the wire, after transmission), `marks` (packets that became "congestion experienced" in
    its queue), `pause_frames` (that stopped it) and `paused_ps` (how long it was stopped)."""

    injected: int
    delivered: int
    dropped: int
    lost: int
    hops: int
    tx_packets: npt.NDArray[np.uint64]
    tx_bytes: npt.NDArray[np.uint64]
    drops: npt.NDArray[np.uint64]
    pushed_out: npt.NDArray[np.uint64]
    early_drops: npt.NDArray[np.uint64]
    pause_frames: npt.NDArray[np.uint64]
    paused_ps: npt.NDArray[np.int64]
    losses: npt.NDArray[np.uint64]
    marks: npt.NDArray[np.uint64]
    max_queue_pkts: npt.NDArray[np.uint32]
    queued_pkts: npt.NDArray[np.uint32]


class Counters(SimulatedCounters):
    """SimulatedCounters, and the packets in the network."""

    in_flight: int


class Snapshot(Counters):
    """Counters and times of the real-time fabric.

    `lateness` is a histogram over `LATENESS_EDGES_NS`: for every frame, how long after its due time
    its destination had it. `cpu_s` is the CPU time of the fabric's thread, the receivers' softirq
    work that runs inside its system calls included; `sampling_s` the part that read counters and queues.
    `now_s` is the fabric's own time, which stood still for `paused_s` in `pauses` pauses, `longest_pause_s`
    in the longest since `restart_maxima`. For `unheld_s` it went on although a CPU had no idle time, because
    it had waited for its limit. `wakeups` are (CPU, longest lateness in ns, histogram) of each probed CPU,
    since the start.
    """

    now_s: float
    ring_drops: int
    send_refused: int
    not_ipv4: int
    vlan_tagged: int
    no_such_host: int
    oversized: int
    no_memory: int
    cpu_s: float
    sampling_s: float
    lateness: npt.NDArray[np.uint64]
    pauses: int
    paused_s: float
    longest_pause_s: float
    unheld_s: float
    wakeups: list[tuple[int, int, npt.NDArray[np.uint64]]]


class TrafficReadings(TypedDict):
    """Readings of the flow driver; arrays have one entry per flow.

    `state`: 0 connecting, 1 ready, 2 running, 3 done, 4 failed, then with `errno` (0: ended by the other
    end). `received_bytes` were read by the receiver, `sent_bytes` taken by the sender's kernel.
    `ready_s` counts from connect(), `started_s` from release(), `completed_s` from the flow's own start
    to its last byte; nan until then. `retransmitted` are segments that the sender had retransmitted by then;
    -1 until then, or if the kernel does not say.
    `strangers` are connections that no flow expected. `cpu_s` is the CPU time of the driver's thread.
    """

    state: npt.NDArray[np.uint8]
    received_bytes: npt.NDArray[np.uint64]
    sent_bytes: npt.NDArray[np.uint64]
    ready_s: npt.NDArray[np.float64]
    started_s: npt.NDArray[np.float64]
    completed_s: npt.NDArray[np.float64]
    retransmitted: npt.NDArray[np.int64]
    errno: npt.NDArray[np.int32]
    strangers: int
    cpu_s: float


class FlowReadings(TypedDict):
    """For each simulated flow, those of constant rate last: payload delivered in order, when it started, and
    when its last byte was delivered (2^63 - 1: not yet)."""

    delivered_bytes: npt.NDArray[np.uint64]
    started_ps: npt.NDArray[np.int64]
    completed_ps: npt.NDArray[np.int64]


class DatagramReadings(TypedDict):
    """For each source of constant rate: packets sent, packets refused (the socket was full), packets lost in
    the network, and packets received."""

    sent_pkts: npt.NDArray[np.uint32]
    refused_pkts: npt.NDArray[np.uint32]
    lost_pkts: npt.NDArray[np.uint32]
    received_pkts: npt.NDArray[np.uint32]


class NoiseReadings(TypedDict):
    """A simulated machine that stalls: a histogram of late deliveries over `LATENESS_EDGES_NS`, and how long
    it has stalled in all."""

    lateness: npt.NDArray[np.uint64]
    stalled_ps: int


class SubflowReadings(TypedDict):
    """The sender of each simulated subflow, connection by connection. `notsent_bytes` is payload in its
    socket; `busy_ps` is how long anything was unsent or unacknowledged, and `rwnd_limited_ps` how long of
    that the receiver's window held it back; `established` is 1 if it ever was, else 0."""

    window_pkts: npt.NDArray[np.float64]
    srtt_ps: npt.NDArray[np.int64]
    rttvar_ps: npt.NDArray[np.int64]
    retransmits: npt.NDArray[np.uint32]
    timeouts: npt.NDArray[np.uint32]
    acked_pkts: npt.NDArray[np.uint32]
    acked_bytes: npt.NDArray[np.uint64]
    unacked_pkts: npt.NDArray[np.uint32]
    notsent_bytes: npt.NDArray[np.uint64]
    busy_ps: npt.NDArray[np.int64]
    rwnd_limited_ps: npt.NDArray[np.int64]
    established: npt.NDArray[np.uint8]


class AgentReadings(TypedDict):
    """The datapaths under an agent: acknowledgements that they folded, reports and commands, programs that
    ended in an error, and acknowledgements without an agent."""

    acknowledgements: int
    reports: int
    commands: int
    errors: int
    fallbacks: int


class ImsServer(TypedDict):
    """One SIP server of a simulated IMS. `waiting` and `longest` are messages in its receive buffer, `fill`
    is the share of it that they take, `queued_ps` the time integral of `waiting`, `busy_ps` the sum over its
    workers. `dialogs` have it on their path and have not ended; new ones come only while it is `active`."""

    role: str
    active: bool
    idle: bool
    dialogs: int
    waiting: int
    fill: float
    longest: int
    arrived: int
    dropped: int
    served: int
    lookups: int
    busy_ps: int
    queued_ps: int


class ImsCounts(TypedDict):
    """Calls and registrations of a simulated IMS. `retransmissions` are those of users and proxies, `events`
    the steps of the simulation."""

    offered: int
    completed: int
    failed: int
    registrations: int
    registered: int
    registrations_failed: int
    retransmissions: int
    events: int
