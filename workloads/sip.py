"""SIP calls and registrations through an IMS: settings of such a workload, its load over time, its knees.

Hosts have roles, in the order of the topology: users, HSS, then as many P-CSCFs as S-CSCFs. A workload of
this kind has no flows: it is judged by calls. Rates are per second. A call is 13 messages at P-CSCFs and 7 at
S-CSCFs, a registration 4 and 2 (docs/experiments/ims.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import UsageError
from workloads.flow import Flow

MATRIX = "sip"
P_OF_CALL, P_OF_REGISTRATION = 13, 4
S_OF_CALL, S_OF_REGISTRATION = 7, 2
POISSON, CONSTANT = "poisson", "constant"
POLICIES = ("static", "queue", "cpu", "latency")
RAMP, DAY = "ramp", "day"
DAY_LOW = 0.2
"""Share of the peak at night."""
MAX_RATE = 100_000
MAX_INSTANCES = 200


@dataclass(frozen=True)
class SipSettings:
    """An IMS and its load. Its parameters and their units are those of `sip`."""

    calls: int
    registrations: int
    pcscf: int
    scscf: int
    scale: int
    message_us: int
    scscf_us: int
    lookup_us: int
    workers: int
    buffer: int
    hold_ms: int
    patience_ms: int
    arrivals: str
    load: str
    policy: str
    react_s: int

    @property
    def share(self) -> float:
        """The factor of all rates; service times are divided by it."""
        return self.scale / 100

    def rates(self, share_of_time: float) -> tuple[float, float]:
        """Return calls and registrations per second, after this share of the run's time."""
        return self.calls * self.share * self._level(share_of_time), self.registrations * self.share

    def _level(self, share_of_time: float) -> float:
        if self.load == CONSTANT:
            return 1.0
        if self.load == RAMP:
            return share_of_time
        if self.load == DAY:
            return DAY_LOW + (1 - DAY_LOW) * (1 - math.cos(2 * math.pi * share_of_time)) / 2
        steps = _steps(self.load)
        return steps[min(len(steps) - 1, int(share_of_time * len(steps)))] / self.calls

    def pcscf_knee(self, instances: int) -> float:
        """Return the calls per second, at scale 100, that keep this many P-CSCFs busy all the time."""
        per_s = instances * 1e6 / self.message_us
        return max(0.0, (per_s - P_OF_REGISTRATION * self.registrations) / P_OF_CALL)

    def scscf_knee(self, instances: int) -> float:
        """Return the same for S-CSCFs: their workers wait for a look-up per call and per registration."""
        registration_s = (self.lookup_us + S_OF_REGISTRATION * self.scscf_us) / 1e6
        call_s = (self.lookup_us + S_OF_CALL * self.scscf_us) / 1e6
        return max(0.0, (instances * self.workers - self.registrations * registration_s) / call_s)


def sip(
    hosts: Sequence[str],
    seed: int,
    *,
    calls: int = 130,
    registrations: int = 100,
    pcscf: int = 1,
    scscf: int = 1,
    scale: int = 100,
    message_us: int = 440,
    scscf_us: int = 100,
    lookup_us: int = 18_000,
    workers: int = 4,
    buffer: int = 185,
    hold_ms: int = 200,
    patience_ms: int = 5000,
    arrivals: str = POISSON,
    load: str = CONSTANT,
    policy: str = "static",
    react_s: int = 1,
) -> tuple[Flow, ...]:
    """Return no flows. `calls` and `registrations` per second go through `pcscf` P-CSCFs and `scscf` S-CSCFs.

    All rates are multiplied by `scale` percent and all service times divided by it, so that the loads at
    which functions overload stay the same. `message_us` is a P-CSCF's time per message, `scscf_us` an
    S-CSCF's CPU time, `lookup_us` the time that one of its `workers` waits for user data. A socket has room
    for `buffer` short messages. Calls last `hold_ms`; users wait `patience_ms` for an answer. `load` is how
    calls vary over the run: constant, ramp, day, or steps such as 130+180+320. The controller `policy` scales
    a function that was overloaded for `react_s` seconds in a row. `seed` is not used. Raises UsageError.
    """
    del seed
    values = dict(locals())
    del values["hosts"]
    settings(values)
    roles_of(hosts, max(pcscf, scscf))
    return ()


def settings(params: Mapping[str, int | str]) -> SipSettings:
    """Return the settings of these parameters of `sip`, defaults included. Raises UsageError."""
    usual: dict[str, int | str] = sip.__kwdefaults__ or {}
    found = SipSettings(**{**usual, **params})  # type: ignore[arg-type]
    _check(found)
    return found


def roles_of(hosts: Sequence[str], instances: int) -> tuple[str, str, tuple[str, ...], tuple[str, ...]]:
    """Return the hosts of the users, of the HSS, of P-CSCFs and of S-CSCFs.

    Raises UsageError if there are fewer than `instances` of a function.
    """
    most = (len(hosts) - 2) // 2
    if most < instances:
        raise UsageError(
            f"workload {MATRIX} needs {2 + 2 * instances} hosts for {instances} instances of a function, not "
            f"{len(hosts)}: choose a larger network or fewer instances"
        )
    return hosts[0], hosts[1], tuple(hosts[2 : 2 + most]), tuple(hosts[2 + most : 2 + 2 * most])


def _check(found: SipSettings) -> None:
    ranges = (
        ("calls", found.calls, 1, MAX_RATE), ("registrations", found.registrations, 0, MAX_RATE),
        ("pcscf", found.pcscf, 1, MAX_INSTANCES), ("scscf", found.scscf, 1, MAX_INSTANCES),
        ("scale", found.scale, 1, 1000), ("message_us", found.message_us, 1, 1_000_000),
        ("scscf_us", found.scscf_us, 0, 1_000_000), ("lookup_us", found.lookup_us, 0, 10_000_000),
        ("workers", found.workers, 1, 64), ("buffer", found.buffer, 1, 100_000),
        ("hold_ms", found.hold_ms, 0, 3_600_000), ("patience_ms", found.patience_ms, 1, 3_600_000),
        ("react_s", found.react_s, 1, 3600),
    )  # fmt: skip
    for name, value, least, most in ranges:
        if not least <= value <= most:
            raise UsageError(f"workload {MATRIX}: {name} must be from {least} to {most}, not {value}")
    _check_name("arrivals", found.arrivals, (POISSON, CONSTANT))
    _check_name("policy", found.policy, POLICIES)
    if found.load not in {CONSTANT, RAMP, DAY}:
        _steps(found.load)


def _check_name(name: str, value: str, known: Sequence[str]) -> None:
    if value not in known:
        raise UsageError(f"workload {MATRIX}: {name} must be {' or '.join(known)}, not {value}")


def _steps(text: str) -> list[int]:
    """Parse calls per second of equally long steps. Raises UsageError."""
    steps = [int(part) for part in text.split("+") if part.isdecimal() and len(part) < 8]
    if len(steps) < len(text.split("+")) or max(steps) > MAX_RATE:
        raise UsageError(
            f"workload {MATRIX}: load must be {CONSTANT}, {RAMP}, {DAY} or steps of calls per second, "
            f"e.g. 130+180+320, not {text}"
        )
    return steps
