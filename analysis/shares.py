"""Shares of links: measured, where replicas repeat one experiment side by side, and at equilibrium. Pure.

Replicas are independent repetitions: they have no link, queue or random number in common.

At the equilibrium of coupled congestion controls all paths have one round-trip time, and path r loses packets
at random with probability p_r. Windows settle where the growth per ACK equals the cut per loss. They are
given in units of one TCP's window on the better path, sqrt(2 / p). Sources: Wischik et al., NSDI 2011,
section 2 (uncoupled, EWTCP, LIA) and RFC 6356; Khalili et al., CoNEXT 2012, theorem 1 (OLIA); Peng et al.,
ToN 2016, section III (BALIA).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from model.result import FlowRow, PortRow
from workloads.pairs import replica_of

_HALVINGS = 60
Windows = Callable[[float], tuple[float, float]]
"""Maps one TCP's window on the worse path, 0 < r <= 1, to the windows of a flow with one subflow on each
path: on the worse path and on the better one."""


def bottleneck_shares_pct(flows: Iterable[FlowRow]) -> list[float]:
    """Return the goodput of each replica's first flow in % of its flows' total; [] without replicas."""
    replicas: dict[str, list[float]] = {}
    for flow in flows:
        replica = replica_of(flow.src)
        if replica is not None:
            replicas.setdefault(replica, []).append(flow.goodput_mbps)
    return [100 * of_replica[0] / sum(of_replica) for of_replica in replicas.values() if sum(of_replica) > 0]


def congested_shares_pct(ports: Sequence[PortRow]) -> list[float]:
    """Return what each replica's dual-homed sender sent on its first NIC, in % of both NICs.

    Returns [] if no host on the left has two NICs.
    """
    sent: dict[str, list[int]] = {}
    for port in ports:
        if port.layer.startswith("host-") and replica_of(port.node) is not None:
            sent.setdefault(port.node, []).append(port.tx_bytes)
    both = [of_host for of_host in sent.values() if len(of_host) == 2 and sum(of_host) > 0]
    return [100 * first / (first + second) for first, second in both]


def bottleneck_share(cc: str, subflows: int) -> float:
    """Return the share of a link that a flow gets if it competes with one TCP flow there.

    The share is n / (n + 1) for n uncoupled subflows, else one half.
    """
    return subflows / (subflows + 1) if cc not in _WINDOWS else 0.5


def congested_share(cc: str, first: int, second: int) -> float:
    """Return the share of a flow's traffic on the first of two equal links.

    `first` TCP flows compete on the first link, `second` < `first` on the other. Both links are full, so r
    is where both links carry the same load.
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
    """Return the windows if each subflow is one TCP."""
    return r, 1.0


def _ewtcp(r: float) -> tuple[float, float]:
    """Return the windows if each subflow is half a TCP."""
    return r / 2, 0.5


def _lia(r: float) -> tuple[float, float]:
    """Return windows inversely proportional to loss (p ~ 1 / r^2); together one TCP on the better path."""
    return r * r / (1 + r * r), 1 / (1 + r * r)


def _olia(r: float) -> tuple[float, float]:
    """Return all of the window on the better path, as long as one path is better."""
    return (0.0, 1.0) if r < 1 else (0.5, 0.5)


def _balia(r: float) -> tuple[float, float]:
    """Solve (1 + a) / 2 (4 + a) / 5 = min(a, 3/2) / r^2 on the worse path, where a is the ratio of the better
    window to the worse one. The sum of both windows is one TCP's on the better path."""
    low, high = 1.0, 2 + 10 / (r * r) if r else float("inf")
    if high == float("inf"):
        return 0.0, 1.0
    for _ in range(_HALVINGS):
        a = (low + high) / 2
        grows = (1 + a) / 2 * (4 + a) / 5 > min(a, 1.5) / (r * r)
        low, high = (low, a) if grows else (a, high)
    return 1 / (1 + low), low / (1 + low)


_WINDOWS: dict[str, Windows] = {"ewtcp": _ewtcp, "lia": _lia, "olia": _olia, "balia": _balia}
