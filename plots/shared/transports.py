"""Shared parts of charts that compare transports differing in congestion control and ECN marking."""

from __future__ import annotations

from matplotlib.colors import to_hex, to_rgb

from harness.results.point_results import PointResult
from model import transports
from model.result import Status
from plots.data import TRANSPORT, Panel
from plots.shared.kinds import Look, grouped

JOINED = (*TRANSPORT, "link.ecn_pkts")
"""Fields in which points of one chart may differ."""


def by_transport(panel: Panel) -> list[list[PointResult]]:
    """Group the points by transport, good points first; drop-tail before ECN."""
    groups = grouped(
        panel.points, lambda p: (transports.rank(p.algorithm), p.subflows, p.spec.link.ecn_pkts, p.cc)
    )
    order = (Status.OK, Status.SUSPECT, Status.FAILED)
    return [
        sorted(groups[key], key=lambda point: (order.index(point.status), point.seed))
        for key in sorted(groups)
    ]


def label(point: PointResult) -> str:
    """Return `TCP, drop-tail`, `TCP DCTCP, ECN`."""
    return look(point).label


def look(point: PointResult) -> Look:
    """Return the look of the point's transport; lighter for plain TCP with ECN, to set it apart from
    drop-tail."""
    ecn, name = bool(point.spec.link.ecn_pkts), point.algorithm
    colour = transports.look(name).colour
    if ecn and name == transports.TCP:
        red, green, blue = ((1 + part) / 2 for part in to_rgb(colour))
        colour = to_hex((red, green, blue))
    title = transports.transport(point.cc, point.subflows, point.spec.routing)
    return Look(f"{title}, {'ECN' if ecn else 'drop-tail'}", colour, "").doubted(point.suspect)
