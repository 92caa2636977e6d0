"""RunResult: what one point measured, and whether the numbers are reliable.

`ok` is a reliable result. `suspect` is a number that says more about the machine (or about a missing
subflow) than about the transport. `failed` has no number. Every status but `ok` has at least one reason
(model/reasons.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from model import rows
from model.reasons import Reason

NO_VALUE = rows.NO_VALUE
"""Marks a number that was not measured; empty in CSV files."""

UDP = "udp"
"""Transport of a flow of constant rate."""


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One flow (one line of flows.csv).

    `goodput_mbps` is the payload delivered to the receiving application's socket in the measured window, in
    Mb/s; `bytes_received` are the bytes of the same window.

    Means and standard deviations of the RTT are over the window. `srtt` is the kernel's smoothed estimate,
    over all subflows and samples; `ping` is over all answered pings along the paths of the subflows.
    """

    flow: int
    src: str
    dst: str
    src_ip: str
    dst_ip: str
    sport: int
    dport: int
    transport: str
    subflows_asked: int
    subflows_joined: int
    cc: str
    goodput_mbps: float
    bytes_received: int
    retransmits: int
    up_s: float
    """Seconds from the start of traffic until the last subflow was established."""
    srtt_ms_mean: float = NO_VALUE
    srtt_ms_std: float = NO_VALUE
    ping_ms_mean: float = NO_VALUE
    ping_ms_std: float = NO_VALUE
    pings_sent: int = 0
    pings_lost: int = 0
    completed_s: float = NO_VALUE
    """Seconds from a sized flow's start until its last byte was received."""
    size_bytes: int = 0
    """Payload of the flow; 0 means that it sends until the run ends."""
    start_s: float = NO_VALUE
    """Start of the flow, in seconds from the start of the measured window (warm-up is negative). No value if
    the flow did not start, or if the engine does not record starts."""
    ideal_s: float = NO_VALUE
    """What `completed_s` would be if the flow were alone on its path and sent at line rate from the start."""
    rate_mbps: float = 0.0
    """Rate of a flow of constant rate, headers included; 0 for flows with a transport."""
    sent_pkts: int = 0
    """Packets that a flow of constant rate sent in the window."""
    lost_pkts: int = 0
    """Packets of such a flow that its host's queue or the network dropped in the window."""


def under_test(flows: Sequence[FlowRow]) -> Sequence[FlowRow]:
    """Return the flows whose transport the point studies: all flows but those of constant rate.

    If there are no others, return the flows of constant rate.
    """
    if UDP not in rows.distinct(flows, "transport"):
        return flows
    return [flow for flow in flows if flow.transport != UDP] or flows


@dataclass(frozen=True, slots=True)
class PortRow:
    """One direction of one link (one line of ports.csv); counts cover the measured window.

    `layer` names the layers of both ends, e.g. `edge-agg`. Utilisation is bytes sent over capacity, in the
    whole window, and as the median over its seconds. `drops` counts packets dropped by full queues and cut
    links, `lost` random losses on the wire, `marked` packets marked Congestion Experienced.
    """

    port: int
    node: str
    peer: str
    layer: str
    tx_packets: int
    tx_bytes: int
    drops: int
    max_queue_pkts: int
    utilisation_pct: float
    utilisation_median_pct: float = NO_VALUE
    lost: int = 0
    marked: int = 0


@dataclass(frozen=True, eq=False)
class Table:
    """Samples: named columns of equal length (integers, floats, text), stored as samples/<name>.csv.gz."""

    columns: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("a table has columns of different lengths")

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[float | int | str]]) -> Table:
        """Return a table from its rows; without rows every column is an empty array of floats."""
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return cls({name: np.array(column) for name, column in zip(names, columns, strict=True)})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or list(self.columns) != list(other.columns):
            return False
        pairs = zip(self.columns.values(), other.columns.values(), strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" == b.dtype.kind) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def rows(self) -> list[tuple[float | int | str, ...]]:
        """Return all rows as Python values."""
        return list(zip(*(column.tolist() for column in self.columns.values()), strict=True))


SAMPLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "goodput": ("t_s", "flow", "mbps"),
    "cpu": ("t_s", "busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct"),
    "links": ("t_s", "port", "utilisation_pct"),
    "ports": ("t_s", "port", "queued_pkts", "drops"),
    "queues": ("t_s", "port", "pkts"),
    "queue_times": ("t_s",),
    "sockets": (
        "t_s", "flow", "subflow", "cwnd_pkts", "srtt_ms", "rttvar_ms", "retransmits", "bytes_acked",
        "unacked_pkts", "notsent_bytes", "busy_ms", "rwnd_limited_ms",
    ),
    "pings": ("t_s", "flow", "subflow", "rtt_ms", "out_ms"),
}  # fmt: skip
"""The tables of RunResult.samples and the columns that every table has."""
CALL_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "calls": (
        "t_s", "offered", "completed", "failed", "registered", "retransmitted", "setup_ms", "setup_ms_p95",
    ),
    "components": ("t_s", "name", "waiting", "drops", "cpu_pct", "busy_pct", "dialogs", "active"),
}  # fmt: skip
"""The same for points about SIP calls."""


@dataclass(frozen=True)
class RunResult:
    """Rows, samples and metrics of one point.

    `metrics` holds per-point numbers: cpu_busy_pct, cpu_busy_max_pct, late_p99_us, drops, pushed_out (of the
    drops, those that made room for other packets), retransmits, astray (frames lost outside queues),
    packet_hops, setup_s, startup_s and others. `subflow_idle_pct` is
    the mean share of the window in which a subflow had nothing unsent and nothing unacknowledged.
    analysis/plausibility.py defines `delivered_over_carried_pct`.

    `samples` always has `goodput` (t_s, flow, mbps), `cpu` (t_s, busy_pct, user_pct, system_pct,
    softirq_pct, steal_pct) and `links` (t_s, port, utilisation_pct; zeros omitted). Each sample covers the
    interval that ended at t_s, in seconds from the start of the measured window (warm-up is negative).
    Engines with queues add `ports` (t_s, port, queued_pkts at t_s, packets that the port dropped in the
    interval; rows with two zeros omitted).
    SamplingSpec adds on request:

    * `queues` (t_s, port, pkts; lengths of 0 omitted), and `queue_times` (t_s) with every sampled instant;
    * `sockets` (t_s, flow, subflow, cwnd_pkts, srtt_ms, rttvar_ms, retransmits, bytes_acked, unacked_pkts,
      notsent_bytes, busy_ms, rwnd_limited_ms) at the sender; subflow 0 is the first. Retransmits,
      acknowledged bytes and milliseconds are cumulative since the connection began. `busy_ms` counts the
      time in which data was unsent or unacknowledged, `rwnd_limited_ms` the part of it in which the
      receiver's window was the limit;
    * `pings` (t_s of sending, flow, subflow, rtt_ms, out_ms: the way out only; nan without an answer).

    A point about SIP calls (workloads/sip.py) has no flows, and two tables of each second:

    * `calls` (t_s, counts of calls offered, completed and failed, of users registered and of messages
      retransmitted; median and 95th percentile of setup times in ms, nan without any);
    * `components` (t_s, name: `p1` is a P-CSCF and `s1` an S-CSCF, messages waiting, messages dropped,
      percent of a CPU, percent of the workers' time, dialogs, 1 if it takes new ones).
    """

    status: Status
    reasons: tuple[Reason, ...] = ()
    flows: Sequence[FlowRow] = ()
    ports: Sequence[PortRow] = ()
    samples: Mapping[str, Table] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    reproducible: bool = False
    """Whether the same spec gives the same result on any machine, except for `provenance` and `cost`."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Machine-dependent numbers of a reproducible result: CPU time, memory."""
    cautions: tuple[Reason, ...] = ()
    """Reasons that cast doubt on some metrics only: goodput is reliable, RTT may not be."""

    def doubted(self, reasons: Sequence[Reason]) -> RunResult:
        """Return the result with further reasons for doubt; without any, as it is."""
        if not reasons:
            return self
        status = Status.FAILED if self.status is Status.FAILED else Status.SUSPECT
        return dataclasses.replace(self, status=status, reasons=(*self.reasons, *reasons))
