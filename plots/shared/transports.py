"""Charts of transports that differ in congestion control and marking: one panel of them all, a look each."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from model import transports
from model.result import Status
from plots.data import Panel, PointSummary, file_stems, panels
from plots.shared import saving, style


def joined(of: Sequence[Panel]) -> list[Panel]:
    """Panels that differ in congestion control, routing and marking, made one."""
    groups: dict[object, list[Panel]] = {}
    for panel in of:
        own = dataclasses.replace(panel.setting, cc="", ecn_pkts=0, variant=panel.points[0].common)
        groups.setdefault(own, []).append(panel)
    made = []
    for group in groups.values():
        ccs = "+".join(sorted({panel.setting.cc for panel in group}, key=transports.rank))
        marks = max(panel.setting.ecn_pkts for panel in group)
        common = group[0].points[0].common
        setting = dataclasses.replace(group[0].setting, cc=ccs, ecn_pkts=marks, variant=common)
        points = tuple(point for panel in group for point in panel.points)
        made.append(Panel(setting, group[0].subflows, points))
    return made


def draw_joined(
    chart: str,
    points: Iterable[PointSummary],
    out: Path,
    expected: Sequence[int],
    drawn: Callable[[Panel], Figure | None],
) -> list[Path]:
    """One chart for all points that differ in transport and marking alone; paths of the files."""
    alike = joined(panels(points, expected))
    paths: list[Path] = []
    for panel, stem in zip(alike, file_stems(chart, alike), strict=True):
        with style.look():
            figure = drawn(panel)
            paths += saving.save(figure, out, stem) if figure else []
    return paths


def by_transport(panel: Panel) -> list[list[PointSummary]]:
    """The points of each transport, the best first; drop-tail before marks."""
    groups: dict[tuple[int, int, int, str], list[PointSummary]] = {}
    for point in panel.points:
        rank = transports.rank(point.algorithm)
        groups.setdefault((rank, point.subflows, point.ecn_pkts, point.cc), []).append(point)
    order = (Status.OK, Status.SUSPECT, Status.FAILED)
    return [
        sorted(groups[key], key=lambda point: (order.index(point.status), point.seed))
        for key in sorted(groups)
    ]


def label(point: PointSummary) -> str:
    """`TCP, drop-tail`, `TCP DCTCP, ECN`."""
    name = transports.transport(point.cc, point.subflows, point.routing)
    return f"{name}, {'ECN' if point.ecn_pkts else 'drop-tail'}{' (suspect)' if style.suspect(point) else ''}"


def colour(point: PointSummary) -> str:
    """The algorithm's; half as strong where plain TCP heeds marks, to stand beside plain TCP without."""
    name = point.algorithm
    own = style.algorithm_colour(name)
    red, green, blue = ((1 + part) / 2 for part in to_rgb(own))
    return to_hex((red, green, blue)) if point.ecn_pkts and name == transports.TCP else own
