"""RunResult: what one point measured, and whether to believe it.

`ok` is a result. `suspect` is a number that says more about the CPU (or about a subflow that
never came up) than about the transport. `failed` has no number. Every status but `ok` carries
at least one reason in plain words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True)
class FlowRow:
    """One flow (one line of flows.csv). Goodput is payload delivered to the receiving application's
    socket inside the measured window, in Mb/s; `bytes_received` is the same window's bytes."""

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


@dataclass(frozen=True)
class PortRow:
    """One direction of one link (one line of ports.csv); counts cover the measured window.

    `layer` names the ends' layers, e.g. `edge-agg`; utilisation is bytes sent over capacity.
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


@dataclass(frozen=True)
class Table:
    """Samples: column names and rows, written as samples/<name>.csv.gz."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[float | int | str]]


@dataclass(frozen=True)
class RunResult:
    """`metrics` holds per-point numbers: cpu_busy_pct, cpu_busy_max_pct, late_p99_us, drops,
    retransmits, ring_drops, packet_hops, setup_s, startup_s ...

    `samples` always has `goodput` (t_s, flow, mbps) and `cpu` (t_s, busy_pct, user_pct, system_pct,
    softirq_pct, steal_pct), and `queues` (t_s, port, pkts) when asked for; t_s counts from the
    opening of the measured window (warm-up is negative)."""

    status: Status
    reasons: tuple[str, ...] = ()
    flows: tuple[FlowRow, ...] = ()
    ports: tuple[PortRow, ...] = ()
    samples: Mapping[str, Table] = field(default_factory=dict)
    metrics: Mapping[str, float] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)
