"""Whether a window shows what the network carried in it: MPTCP delivers in order, so what is delivered may
have come before the window, and what came may still wait. Pure."""

from __future__ import annotations

from collections.abc import Mapping

OVER_CARRIED_PCT = "delivered_over_carried_pct"
"""Metric: bytes that MPTCP's flows without end delivered in the window, in percent of those that their
subflows were acknowledged in it. 100 where what waits at receivers stays alike; absent without such flows."""
TOLERANCE_PCT = 5.0


def unsteady(metrics: Mapping[str, float]) -> str:
    """As `unsteady_words`, of a point's metrics."""
    return unsteady_words(metrics.get(OVER_CARRIED_PCT, 100.0))


def unsteady_words(over_carried_pct: float) -> str:
    """What a reader must know of a window that is off by more than the tolerance; empty where it is not."""
    off_pct = over_carried_pct - 100
    if abs(off_pct) <= TOLERANCE_PCT:
        return ""
    told = f"{abs(off_pct):.0f} % {'more' if off_pct > 0 else 'less'} was delivered than subflows carried"
    why = "what had come before it was delivered" if off_pct > 0 else "what came in it still waited"
    return f"{told} in the window, because {why}: a longer window (--seconds) is nearer the mark"
