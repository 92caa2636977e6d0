"""Readings of a running IMS, simulated or real: counters since the start of traffic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

PCSCF, SCSCF = "pcscf", "scscf"
ROLES = (PCSCF, SCSCF)


@dataclass(frozen=True)
class Instance:
    """One instance. Waiting messages take the share `fill` of its receive buffer, the room of `waiting` short
    ones (1280 bytes each).

    `dropped` and the seconds are since the start: `cpu_s` is the CPU time of its processor, `busy_s` the time
    of its `workers` in which they had a message, the wait for a look-up included.
    """

    role: str
    number: int
    waiting: float
    fill: float
    dropped: int
    cpu_s: float
    busy_s: float
    workers: int
    dialogs: int
    active: bool


@dataclass(frozen=True)
class Calls:
    """Counts since the start of traffic, `age_s` seconds before they were read."""

    offered: int = 0
    completed: int = 0
    failed: int = 0
    registrations: int = 0
    registered: int = 0
    registrations_failed: int = 0
    retransmitted: int = 0
    age_s: float = 0.0


@dataclass(frozen=True)
class Reading:
    """All of it at `t_s` after the start of traffic.

    `setups` are the calls set up since the last reading: when their caller had the answer, in s after the
    start, and how long it took, in ms.
    """

    t_s: float
    calls: Calls
    instances: tuple[Instance, ...]
    setups: Sequence[tuple[float, float]] = ()


@dataclass
class Measurement:
    """What a run measured: a reading per second from 0 on, when each function's receive buffer was first half
    full (by role; none if it never was), and the controller's steps (time, role, step)."""

    readings: list[Reading] = field(default_factory=list)
    onset_s: dict[str, float] = field(default_factory=dict)
    steps: list[tuple[float, str, str]] = field(default_factory=list)
