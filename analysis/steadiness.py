"""Check that a window is steady: that data delivered in it was also carried in it, and that its halves agree.

MPTCP delivers in order: data delivered in the window may have arrived before it, and data that arrived in it
may still wait for a gap. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from model.machine.effects import DRIFT_POINTS
from model.reasons import DRIFT, UNSTEADY, Reason

OVER_CARRIED_PCT = "delivered_over_carried_pct"
"""Metric: bytes that MPTCP flows without a size delivered in the window, in percent of the bytes that their
subflows had acknowledged in it. 100 if the data waiting at receivers is constant; absent without such
flows."""
TOLERANCE_PCT = 5.0


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
    differs by more than the tolerance; else nothing."""
    if halves_pct is None or abs(halves_pct[1] - halves_pct[0]) <= DRIFT_POINTS:
        return ()
    first, second = halves_pct
    text = f"mean goodput was {first:.1f} % of the link rate in the first half, then {second:.1f} %"
    numbers = (("first_half_pct", first), ("second_half_pct", second))
    return (Reason(DRIFT, text, numbers=numbers),)
