"""Congestion controls as in their papers, in floating point; the BPF arithmetic is tested against them.

A path is (window in packets, RTT in seconds, packets between losses). Increases are packets per acknowledged
packet, decreases what is left of a window after a loss. Written from the papers, not from the C sources.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MIN_WINDOW = 2.0
"""After a loss, as Linux's reno."""


@dataclass(frozen=True)
class Path:
    window: float
    rtt_s: float
    between_losses: float = 0.0

    @property
    def rate(self) -> float:
        return self.window / self.rtt_s


def reno(paths: Sequence[Path], i: int) -> float:
    """RFC 5681: one packet per window."""
    return 1 / paths[i].window


def lia(paths: Sequence[Path], i: int) -> float:
    """RFC 6356, section 3, with all segments of one size."""
    total = sum(path.window for path in paths)
    best = max(path.window / path.rtt_s**2 for path in paths)
    alpha = total * best / sum(path.rate for path in paths) ** 2
    return min(alpha / total, 1 / paths[i].window)


def ewtcp(paths: Sequence[Path], i: int) -> float:
    """Weight 1/n^2 on reno's increase."""
    return reno(paths, i) / len(paths) ** 2


def coupled(paths: Sequence[Path], i: int) -> float:
    """Wischik et al., NSDI 2011, section 2.2: one packet per round trip for all paths together."""
    del i
    return 1 / sum(path.window for path in paths)


def coupled_after_loss(paths: Sequence[Path], i: int) -> float:
    """Half of the total window is subtracted from the path that loses."""
    return max(MIN_WINDOW, paths[i].window - sum(path.window for path in paths) / 2)


def half(paths: Sequence[Path], i: int) -> float:
    """RFC 5681."""
    return max(MIN_WINDOW, paths[i].window / 2)


def balia_alpha(paths: Sequence[Path], i: int) -> float:
    return max(path.rate for path in paths) / paths[i].rate


def balia(paths: Sequence[Path], i: int) -> float:
    """draft-walid-mptcp-congestion-control-04, section 3."""
    alpha = balia_alpha(paths, i)
    basic = paths[i].rate / paths[i].rtt_s / sum(path.rate for path in paths) ** 2
    return basic * (1 + alpha) / 2 * (4 + alpha) / 5


def balia_after_loss(paths: Sequence[Path], i: int) -> float:
    window = paths[i].window
    return max(MIN_WINDOW, window - window / 2 * min(balia_alpha(paths, i), 1.5))


def olia(paths: Sequence[Path], i: int) -> float:
    """draft-khalili-mptcp-congestion-control-05, section 3."""
    quality = [path.between_losses**2 / path.rtt_s for path in paths]
    best = {k for k, value in enumerate(quality) if value == max(quality)}
    largest = {k for k, path in enumerate(paths) if path.window == max(p.window for p in paths)}
    collected = best - largest
    alpha = 0.0
    if i in collected:
        alpha = 1 / len(paths) / len(collected)
    elif i in largest and collected:
        alpha = -1 / len(paths) / len(largest)
    own = paths[i]
    return own.window / own.rtt_s**2 / sum(path.rate for path in paths) ** 2 + alpha / own.window


def dctcp_alpha(alpha: float, delivered: int, marked: int) -> float:
    """RFC 8257, section 3.3, with g = 1/16."""
    return alpha * 15 / 16 + (marked / delivered if delivered else 0.0) / 16


def dctcp_after_marks(window: float, alpha: float) -> float:
    return max(MIN_WINDOW, window * (1 - alpha / 2))
