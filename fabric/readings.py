"""What the core tells about itself, as the extension returns it. Arrays have one entry a port."""

from __future__ import annotations

from typing import TypedDict

import numpy as np
import numpy.typing as npt

Departure = tuple[int, int, int, bool, int]
"""Packet, NIC it reached (or port that dropped or lost it), when in ps, whether it was, and its ECN field."""


class SimulatedCounters(TypedDict):
    """Packets handed in and out, dropped and lost at random; `hops` counts arrivals at the far end of a link.
    Of each port: `drops` (queue full or link cut), `losses` (at random, on the wire, after
    transmission), `marks` (packets that became "congestion experienced" in its queue)."""

    injected: int
    delivered: int
    dropped: int
    lost: int
    hops: int
    tx_packets: npt.NDArray[np.uint64]
    tx_bytes: npt.NDArray[np.uint64]
    drops: npt.NDArray[np.uint64]
    losses: npt.NDArray[np.uint64]
    marks: npt.NDArray[np.uint64]
    max_queue_pkts: npt.NDArray[np.uint32]
    queued_pkts: npt.NDArray[np.uint32]


class Counters(SimulatedCounters):
    """The same, and the packets that are held."""

    in_flight: int


class Snapshot(Counters):
    """The real-time fabric's own truth.

    `lateness` is a histogram over `LATENESS_EDGES_NS`: for every frame, how long after its due time
    its destination had it. `cpu_s` is the CPU time of the fabric's thread, the receivers' softirq
    work that runs inside its system calls included; `sampling_s` the part that read counters and queues.
    `now_s` is the fabric's own time, which stood still for `paused_s` in `pauses` pauses, `longest_pause_s`
    in the longest since `restart_maxima`; for `unheld_s` it went on although a CPU had had no idle time for
    longer than it is waited for. `wakeups` are (CPU, longest lateness in ns, histogram) of each
    probed CPU, since the start.
    """

    now_s: float
    ring_drops: int
    send_refused: int
    not_ipv4: int
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
    """What the flow driver knows of its flows; arrays have one entry a flow.

    `state`: 0 connecting, 1 ready, 2 running, 3 done, 4 failed, then with `errno` (0: ended by the other
    end). `received_bytes` were read by the receiver, `sent_bytes` taken by the sender's kernel.
    `ready_s` counts from connect(), `started_s` from release(), `completed_s` from the flow's own start
    to its last byte; nan until then.
    `strangers` are connections nobody expected. `cpu_s` is the CPU time of the driver's thread.
    """

    state: npt.NDArray[np.uint8]
    received_bytes: npt.NDArray[np.uint64]
    sent_bytes: npt.NDArray[np.uint64]
    ready_s: npt.NDArray[np.float64]
    started_s: npt.NDArray[np.float64]
    completed_s: npt.NDArray[np.float64]
    errno: npt.NDArray[np.int32]
    strangers: int
    cpu_s: float


class FlowReadings(TypedDict):
    """Of each simulated flow, those of constant rate last: payload delivered in order, when it started and
    when its last byte was delivered (2^63 - 1: not yet)."""

    delivered_bytes: npt.NDArray[np.uint64]
    started_ps: npt.NDArray[np.int64]
    completed_ps: npt.NDArray[np.int64]


class DatagramReadings(TypedDict):
    """Of each source of constant rate: packets its host took, packets it refused (the socket was full),
    packets lost on their way, and arrivals."""

    sent_pkts: npt.NDArray[np.uint32]
    refused_pkts: npt.NDArray[np.uint32]
    lost_pkts: npt.NDArray[np.uint32]
    received_pkts: npt.NDArray[np.uint32]


class NoiseReadings(TypedDict):
    """Of a simulated machine that stalls: a histogram over `LATENESS_EDGES_NS` of the deliveries that were
    late, and for how long it has stalled in all."""

    lateness: npt.NDArray[np.uint64]
    stalled_ps: int


class SubflowReadings(TypedDict):
    """Of each simulated subflow, connection by connection, at its sender. Payload in its socket that was not
    sent yet; how long it has had anything unsent or unacknowledged, and how long of that the receiver's
    window was in the way; 1 where it was ever established, else 0."""

    window_pkts: npt.NDArray[np.float64]
    srtt_ps: npt.NDArray[np.int64]
    rttvar_ps: npt.NDArray[np.int64]
    retransmits: npt.NDArray[np.uint32]
    timeouts: npt.NDArray[np.uint32]
    acked_pkts: npt.NDArray[np.uint32]
    unacked_pkts: npt.NDArray[np.uint32]
    notsent_bytes: npt.NDArray[np.uint64]
    busy_ps: npt.NDArray[np.int64]
    rwnd_limited_ps: npt.NDArray[np.int64]
    established: npt.NDArray[np.uint8]
