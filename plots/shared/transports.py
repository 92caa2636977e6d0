"""Shared parts of charts that compare transports differing in congestion control and ECN marking."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from model import transports
from model.result import Status
from plots.data import TRANSPORT, Inputs, Panel, Point, panels
from plots.shared import saving


def draw_joined(chart: str, inputs: Inputs, drawn: Callable[[Panel], Figure | None]) -> list[Path]:
    """Draw one chart for all points that differ at most in transport and marking; return the files."""
    of = panels(inputs.points, inputs.expected, (*TRANSPORT, "link.ecn_pkts"))
    return saving.draw_each(chart, [(panel.spec, panel) for panel in of], inputs.out, drawn)


def by_transport(panel: Panel) -> list[list[Point]]:
    """Group the points by transport, good points first; drop-tail before ECN."""
    groups: dict[tuple[int, int, int, str], list[Point]] = {}
    for point in panel.points:
        rank = transports.rank(point.algorithm)
        groups.setdefault((rank, point.subflows, point.spec.link.ecn_pkts, point.cc), []).append(point)
    order = (Status.OK, Status.SUSPECT, Status.FAILED)
    return [
        sorted(groups[key], key=lambda point: (order.index(point.status), point.seed))
        for key in sorted(groups)
    ]


def label(point: Point) -> str:
    """Return `TCP, drop-tail`, `TCP DCTCP, ECN`."""
    name = transports.transport(point.cc, point.subflows, point.spec.routing)
    return (
        f"{name}, {'ECN' if point.spec.link.ecn_pkts else 'drop-tail'}{' (suspect)' if point.suspect else ''}"
    )


def colour(point: Point) -> str:
    """Return the algorithm's colour; lighter for plain TCP with ECN, to set it apart from drop-tail."""
    name = point.algorithm
    own = transports.look(name).colour
    red, green, blue = ((1 + part) / 2 for part in to_rgb(own))
    return to_hex((red, green, blue)) if point.spec.link.ecn_pkts and name == transports.TCP else own
