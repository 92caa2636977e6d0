"""What the fixed points of coupled algorithms promise: shares at equilibrium, by formula. Pure.

All paths have one round-trip time and losses at random with probability p_r on path r. Windows then settle
where an ACK's growth equals a loss's cut, and are given in units of one TCP's window on the better path,
sqrt(2 / p). Sources: Wischik et al., NSDI 2011, section 2 (uncoupled, EWTCP, LIA) and RFC 6356; Khalili et
al., CoNEXT 2012, theorem 1 (OLIA); Peng et al., ToN 2016, section III (BALIA).
"""

from __future__ import annotations

from collections.abc import Callable

_HALVINGS = 60
Windows = Callable[[float], tuple[float, float]]
"""Of a flow with one subflow on either path, given one TCP's window on the worse path, 0 < r <= 1: its
windows on the worse and on the better one."""


def bottleneck_share(cc: str, subflows: int) -> float:
    """The share of a link that a flow has which meets one TCP there with all its subflows: n / (n + 1) where
    they are not coupled, else a half."""
    return subflows / (subflows + 1) if cc not in _WINDOWS else 0.5


def congested_share(cc: str, first: int, second: int) -> float:
    """The share of a flow's traffic that stays on the first of two equal links, where `first` TCPs are its
    competitors, against `second` < `first` on the other.

    The links are full and lose as much as it takes: r is where both carry the same.
    """
    windows = _WINDOWS.get(cc, _uncoupled)

    def surplus(r: float) -> float:
        worse, better = windows(r)
        return first * r + worse - second - better

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if surplus(middle) > 0 else (middle, high)
    worse, better = windows(low)
    return worse / (worse + better)


def _uncoupled(r: float) -> tuple[float, float]:
    """Each subflow is one TCP."""
    return r, 1.0


def _ewtcp(r: float) -> tuple[float, float]:
    """Each subflow is half a TCP."""
    return r / 2, 0.5


def _lia(r: float) -> tuple[float, float]:
    """Windows as the inverse of the loss, in all one TCP on the better path: p is as 1 / r^2."""
    return r * r / (1 + r * r), 1 / (1 + r * r)


def _olia(r: float) -> tuple[float, float]:
    """All on the better path, as long as there is one."""
    return (0.0, 1.0) if r < 1 else (0.5, 0.5)


def _balia(r: float) -> tuple[float, float]:
    """(1 + a) / 2 (4 + a) / 5 = min(a, 3/2) / r^2 on the worse path, a being the better one's window over its
    own; on the better path the sum is one TCP's."""
    low, high = 1.0, 2 + 10 / (r * r) if r else float("inf")
    if high == float("inf"):
        return 0.0, 1.0
    for _ in range(_HALVINGS):
        a = (low + high) / 2
        grows = (1 + a) / 2 * (4 + a) / 5 > min(a, 1.5) / (r * r)
        low, high = (low, a) if grows else (a, high)
    return 1 / (1 + low), low / (1 + low)


_WINDOWS: dict[str, Windows] = {"ewtcp": _ewtcp, "lia": _lia, "olia": _olia, "balia": _balia}
