"""Reasons to doubt the numbers of a real IMS: the machine slowed down service, users or links.

Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from engines.ims import HALF, PCSCF, SCSCF, Measurement, Reading, signals
from model.reasons import SATURATED, STRETCHED, Fault, Reason
from workloads.sip import SipSettings

OFF_PCT = 15.0
"""If a service time before the run is further off than this, the machine is the cause."""
SERVED_OFF_PCT = 5.0
"""A full function that serves this much less is slower than its knee, and knees are as close as 4 %."""
OFFERED_OFF_PCT = 5.0
BUSY_PCT = 95.0
WAITED_PCT = 2.0
"""How long a program that is ready may wait for a CPU, in percent of the run: the closest knees are 4 %
apart."""
PAUSED_PCT = 2.0
MIN_FULL_S = 3
"""Seconds with a full buffer from which the rate of service is judged."""
_TITLES = {PCSCF: "P-CSCF", SCSCF: "S-CSCF"}


def doubts(
    settings: SipSettings,
    measured_us: Mapping[str, float],
    found: Measurement,
    machine: Mapping[str, float],
    events: bool = False,
) -> list[Reason]:
    """Return the reasons. `measured_us` has the service times measured before the run, of a message and of a
    look-up. `machine` has `cpu_busy_pct`, `paused_pct` of the fabric's clock, and `waited_pct`, the share of
    the run in which the program that waited most was ready without a CPU. All have real-time priority, so
    others may keep the machine busy. With `events`, a full server may wait for a cut link instead."""
    reasons = list(_service_times(settings, measured_us))
    served = {} if events else served_pct(found.readings)
    reasons += [_slow(role, pct) for role, pct in served.items() if pct < 100 - SERVED_OFF_PCT]
    off_pct = _offered_off_pct(settings, found.readings)
    if abs(off_pct) > OFFERED_OFF_PCT:
        words = f"CPU: users called {off_pct:+.0f} % off the requested rate"
        reasons.append(_of(SATURATED, words, off_pct=off_pct))
    return reasons + list(_contention(machine))


def served_pct(readings: Sequence[Reading]) -> dict[str, float]:
    """Return, for each function, how busy instances were in seconds that began and ended with a buffer at
    least half full, in percent of their time.

    By the measured service times it is 100: a full function that serves less has become slower since. A
    function with fewer than MIN_FULL_S such seconds is left out.
    """
    found = {}
    for role in (PCSCF, SCSCF):
        busy = [share for a, b in pairwise(readings) for share in _full(role, a, b)]
        if len(busy) >= MIN_FULL_S:
            found[role] = 100 * statistics.fmean(busy)
    return found


def _full(role: str, before: Reading, now: Reading) -> Iterator[float]:
    """Return the busy share of each instance whose buffer was half full at both ends of the interval."""
    fills = {(each.role, each.number): each.fill for each in before.instances}
    ours = [each for each in now.instances if each.role == role]
    for instance, signal in zip(ours, signals(role, before, now).instances, strict=True):
        if min(instance.fill, fills.get((role, instance.number), 0.0)) >= HALF:
            yield signal.busy


def _service_times(settings: SipSettings, measured_us: Mapping[str, float]) -> Iterator[Reason]:
    for name, asked_us in (("message", settings.message_us), ("lookup", settings.lookup_us)):
        off_pct = 100 * (measured_us[name] * settings.share / asked_us - 1)
        if not math.isfinite(off_pct) or abs(off_pct) > OFF_PCT:
            words = f"CPU: the service time of a {name} is {off_pct:+.0f} % off the requested time"
            yield _of(SATURATED, words, off_pct=off_pct)


def _contention(machine: Mapping[str, float]) -> Iterator[Reason]:
    paused_pct, waited_pct = machine["paused_pct"], machine["waited_pct"]
    if paused_pct > PAUSED_PCT:
        words = f"CPU: the fabric's clock was paused for {paused_pct:.0f} % of the time"
        yield _of(STRETCHED, words, paused_pct=paused_pct)
    if machine["cpu_busy_pct"] > BUSY_PCT and waited_pct > WAITED_PCT:
        words = f"CPU: no idle time, and a program waited for {waited_pct:.1f} % of the time"
        yield _of(SATURATED, words, waited_pct=waited_pct)


def _slow(role: str, pct: float) -> Reason:
    words = f"CPU: a full {_TITLES[role]} served {pct:.0f} % of what its service times give"
    return _of(SATURATED, words, served_pct=pct)


def _offered_off_pct(settings: SipSettings, readings: Sequence[Reading]) -> float:
    seconds = len(readings) - 1
    asked = sum(settings.rates(second / seconds)[0] for second in range(seconds))
    return 100 * (readings[-1].calls.offered / (asked * _counted(readings)) - 1) if asked else 0.0


def _counted(readings: Sequence[Reading]) -> float:
    """Return the share of the run that the last counts cover."""
    return 1 - readings[-1].calls.age_s / readings[-1].t_s


def _of(kind: str, words: str, **numbers: float) -> Reason:
    return Reason(kind, words, Fault.UNKNOWN, tuple(numbers.items()))
