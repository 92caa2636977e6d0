"""RunResult: what one point measured, and whether to believe it.

`ok` is a result. `suspect` is a number that says more about the CPU (or about a subflow that
never came up) than about the transport. `failed` has no number. Every status but `ok` carries
at least one reason (model/reasons.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from model.reasons import Reason

NO_VALUE = float("nan")
"""In a row of numbers: not measured. Empty in the CSV files."""

UDP = "udp"
"""The transport of a flow of constant rate."""


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One flow (one line of flows.csv). Goodput is payload delivered to the receiving application's
    socket inside the measured window, in Mb/s; `bytes_received` is the same window's bytes.

    RTT means and standard deviations are over the window: `srtt` the kernel's own smoothed estimate, over
    all subflows and samples; `ping` over all pings that came back along the paths of the subflows.
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
    """Of payload; 0: as much as the run lasts."""
    start_s: float = NO_VALUE
    """Seconds from the opening of the measured window (warm-up is negative) until it started; no value where
    it did not, or where that is not recorded."""
    ideal_s: float = NO_VALUE
    """What `completed_s` would be if the flow had its path to itself and sent at its rate from the start."""
    rate_mbps: float = 0.0
    """At which a flow of constant rate sends, headers included; 0: its transport decides."""
    sent_pkts: int = 0
    """Of a flow of constant rate, in the window."""
    lost_pkts: int = 0
    """The same, for want of room in its host's queue or on their way."""


def under_test(flows: Sequence[FlowRow]) -> Sequence[FlowRow]:
    """The flows whose transport the point is about: all but those of constant rate, or these where there are
    no others."""
    return [flow for flow in flows if flow.transport != UDP] or flows


@dataclass(frozen=True, slots=True)
class PortRow:
    """One direction of one link (one line of ports.csv); counts cover the measured window.

    `layer` names the ends' layers, e.g. `edge-agg`; utilisation is bytes sent over capacity, in the whole
    window and as the median over its seconds. `drops` are of full queues and cut links; `lost` at random on
    the wire; `marked` with Congestion Experienced.
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
    """Samples: named columns of equal length, integers, floats or text; samples/<name>.csv.gz."""

    columns: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("columns of a table have one length")

    @classmethod
    def from_rows(cls, names: Sequence[str], rows: Iterable[Sequence[float | int | str]]) -> Table:
        """A table from its rows; without rows every column is an empty one of floats."""
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
        """All rows as Python values."""
        return list(zip(*(column.tolist() for column in self.columns.values()), strict=True))


SAMPLE_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "goodput": ("t_s", "flow", "mbps"),
    "cpu": ("t_s", "busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct"),
    "links": ("t_s", "port", "utilisation_pct"),
    "queues": ("t_s", "port", "pkts"),
    "queue_times": ("t_s",),
    "sockets": (
        "t_s", "flow", "subflow", "cwnd_pkts", "srtt_ms", "rttvar_ms", "retransmits", "bytes_acked",
        "unacked_pkts", "notsent_bytes", "busy_ms", "rwnd_limited_ms",
    ),
    "pings": ("t_s", "flow", "subflow", "rtt_ms", "out_ms"),
}  # fmt: skip
"""The tables of RunResult.samples and the columns every reader may count on."""


@dataclass(frozen=True)
class RunResult:
    """`metrics` holds per-point numbers: cpu_busy_pct, cpu_busy_max_pct, late_p99_us, drops,
    retransmits, astray (frames lost outside queues), packet_hops, setup_s, startup_s ...; `subflow_idle_pct`
    is the mean share of the window in which a subflow had nothing unsent and nothing unacknowledged;
    `delivered_over_carried_pct` as analysis/steadiness.py says.

    `samples` always has `goodput` (t_s, flow, mbps), `cpu` (t_s, busy_pct, user_pct, system_pct,
    softirq_pct, steal_pct) and `links` (t_s, port, utilisation_pct, 0 left out), each over the interval that
    ended at t_s, which counts from the opening of the measured window (warm-up is negative). When asked for
    (SamplingSpec), also

    * `queues` (t_s, port, pkts), lengths of 0 left out, and `queue_times` (t_s) with every sampled instant;
    * `sockets` (t_s, flow, subflow, cwnd_pkts, srtt_ms, rttvar_ms, retransmits, bytes_acked, unacked_pkts,
      notsent_bytes, busy_ms, rwnd_limited_ms) at the sender, subflow 0 being the first. Retransmits and
      acknowledged bytes count since the connection began, as do the ms in which something was unsent
      or unacknowledged, and those of them in which the receiver's window was in the way;
    * `pings` (t_s of sending, flow, subflow, rtt_ms, out_ms: the way out alone; nan where none came back)."""

    status: Status
    reasons: tuple[Reason, ...] = ()
    flows: tuple[FlowRow, ...] = ()
    ports: tuple[PortRow, ...] = ()
    samples: Mapping[str, Table] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
    reproducible: bool = False
    """Whether the same spec gives the same on any machine, all but `provenance` and `cost`."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Per-point numbers on the machine, of a reproducible result: CPU time, memory."""
    cautions: tuple[Reason, ...] = ()
    """What doubts some metrics of a point whose status stands: goodput holds, RTT may not."""
