"""Check that a window is steady: that data delivered in it was also carried in it, that its halves agree, and
that subflows had settled before it.

MPTCP delivers in order: data delivered in the window may have arrived before it, and data that arrived in it
may still wait for a gap. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from model.machine.effects import DRIFT_POINTS
from model.reasons import DRIFT, SETTLING, UNSTEADY, Reason

OVER_CARRIED_PCT = "delivered_over_carried_pct"
"""Metric: bytes that MPTCP flows without a size delivered in the window, in percent of the bytes that their
subflows had acknowledged in it. 100 if the data waiting at receivers is constant; absent without such
flows."""
TOLERANCE_PCT = 5.0
SETTLING_ROUND_TRIPS = 50.0
"""How long subflows of LIA take to settle. Simulated (k=4, 10 Mb/s, 8 subflows, 6 seeds), mean goodput was
44 % of the link rate in the first 3 s, 74 % in the next, and 81 to 89 % in each later one; the round trip was
141 ms. So 6 s, or 43 round trips, are too short. Single flows need none of it."""


def unsteady(metrics: Mapping[str, float]) -> str:
    """Return `unsteady_words` for a point's metrics."""
    return unsteady_words(metrics.get(OVER_CARRIED_PCT, 100.0))


def unsteady_reasons(metrics: Mapping[str, float]) -> tuple[Reason, ...]:
    """Return the reason for suspicion of a point with these metrics, if its window is off; else nothing."""
    text = unsteady(metrics)
    return (Reason(UNSTEADY, text, numbers=((OVER_CARRIED_PCT, metrics[OVER_CARRIED_PCT]),)),) if text else ()


def unsteady_words(over_carried_pct: float) -> str:
    """Return a warning for a window that is off by more than the tolerance; else an empty text."""
    off_pct = over_carried_pct - 100
    if abs(off_pct) <= TOLERANCE_PCT:
        return ""
    amount = f"{abs(off_pct):.0f} % {'more' if off_pct > 0 else 'less'} was delivered than subflows carried"
    why = "data from before the window was delivered in it" if off_pct > 0 else "some data still waited"
    return f"{amount} in the window, because {why}: use a longer window (--seconds)"


def drift_reasons(halves_pct: tuple[float, float] | None) -> tuple[Reason, ...]:
    """Return the reason for doubt if mean goodput in the halves of a window, in percent of the link rate,
    differs by more than the tolerance; else nothing.

    The tolerance is a share of the link rate, or of the mean goodput where flows get more than that: from
    several NICs, or over links that are faster than the slowest."""
    if halves_pct is None:
        return ()
    whole_pct = max(100.0, sum(halves_pct) / 2)
    if abs(halves_pct[1] - halves_pct[0]) <= DRIFT_POINTS / 100 * whole_pct:
        return ()
    first, second = halves_pct
    text = f"mean goodput was {first:.1f} % of the link rate in the first half, then {second:.1f} %"
    numbers = (("first_half_pct", first), ("second_half_pct", second))
    return (Reason(DRIFT, text, numbers=numbers),)


def settling_reasons(warmup_s: float, round_trip_s: float) -> tuple[Reason, ...]:
    """Return the reason for doubt if subflows had fewer round trips to settle in than they need; else
    nothing. `round_trip_s` is the mean over subflows when the window began, 0 if there were none."""
    trips = warmup_s / round_trip_s if round_trip_s else SETTLING_ROUND_TRIPS
    if trips >= SETTLING_ROUND_TRIPS:
        return ()
    enough_s = math.ceil(SETTLING_ROUND_TRIPS * round_trip_s)
    text = (
        f"the warm-up of {warmup_s:g} s held {trips:.0f} round trips of {1000 * round_trip_s:.0f} ms; "
        f"subflows need {SETTLING_ROUND_TRIPS:.0f} to settle: use --warmup {enough_s}"
    )
    return (Reason(SETTLING, text, numbers=(("round_trips", trips),)),)
