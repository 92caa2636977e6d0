"""Jain's index of a point, as charts draw it: 0 where no flow sent anything."""

from __future__ import annotations

from plots.data import Point


def jain(point: Point) -> float:
    """Jain's index of the point's flows: 1 where all get the same."""
    goodputs = [flow.goodput_mbps for flow in point.flows]
    return sum(goodputs) ** 2 / (len(goodputs) * sum(x * x for x in goodputs)) if any(goodputs) else 0.0
