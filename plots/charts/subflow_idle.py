"""Goodput, and the share of time in which subflows are idle or starved, by the tuning of the end hosts.

One chart per setting and number of subflows, one row per tuning. Idle and starved are defined in
analysis/idleness.py.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterable, Mapping, Sequence

from analysis.idleness import idleness
from analysis.quantities import SUBFLOW_IDLE_PCT
from harness.results.point_results import PointResult
from model.spec import RunSpec
from model.tuning import UNTOUCHED, words_of
from plots.data import Inputs, Panel, panels
from plots.kinds.axis import Axis
from plots.kinds.bars import sample
from plots.kinds.samples import Repetitions
from plots.picture import Page, Picture, Row
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look

TUNING = ("transport.sysctls", "transport.write_bytes", "stack.send_buffer", "stack.receive_buffer")
"""The fields of a spec that `model.tuning.words_of` describes."""
GOODPUT, SLOWEST = Look("mean goodput", style.INK, dash=""), Look("slowest flow", style.FAINT, "d", "")
IDLE, STARVED = Look("idle", "#d55e00", dash=""), Look("starved", "#0072b2", "s", "")


def slowest_pct(point: PointResult) -> float | None:
    return min(point.flows_pct, default=None)


def idle_pct(point: PointResult) -> float | None:
    return point.metric(SUBFLOW_IDLE_PCT.name)


def starved_pct(point: PointResult) -> float | None:
    """Return the share of time in which subflows are starved; None where they were not sampled."""
    sockets = point.read_table("sockets")
    shares = idleness(sockets)["starved_pct"] if sockets is not None else ()
    return float(statistics.fmean(shares)) if len(shares) else None


def _is_measured(point: PointResult) -> bool:
    return point.subflows > 1 and not point.failed and idle_pct(point) is not None


def _by_count(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the points of each setting and number of subflows."""
    for panel in panels(filter(_is_measured, inputs.points), ignoring=TUNING):
        for count, of in sorted(kinds.grouped(panel.points, lambda point: point.subflows).items()):
            yield panel.spec, dataclasses.replace(panel, subflows=(count,), points=tuple(of))


def _rows(points: Sequence[PointResult]) -> dict[str, list[PointResult]]:
    """Return the points of each tuning, from the least idle to the most."""
    tunings = kinds.grouped(sorted(points, key=lambda p: p.seed), lambda point: words_of(point.spec))
    return dict(sorted(tunings.items(), key=lambda of: statistics.fmean(idle_pct(p) or 0.0 for p in of[1])))


def numbers(rows: Mapping[str, Sequence[PointResult]]) -> dict[str, object]:
    """Return the least idle tuning beside the untouched kernel, or else beside the most idle."""
    found = []
    for name in dict.fromkeys([next(iter(rows)), UNTOUCHED if UNTOUCHED in rows else list(rows)[-1]]):
        sure = [point for point in rows[name] if not point.suspect]
        idle, goodput = kinds.mean_of(map(idle_pct, sure)), kinds.mean_of(point.mean_pct for point in sure)
        if idle:
            found.append((name.partition(",")[0], idle.value, goodput.value if goodput else None))
    return {"tunings": found}


def _page(panel: Panel, _: Inputs) -> Page:
    rows = _rows(panel.points)
    both = [v for point in panel.points for v in (point.mean_pct, slowest_pct(point)) if v is not None]
    columns = {
        (SLOWEST, slowest_pct, GOODPUT, lambda point: point.mean_pct): Axis(
            axis_labels.relative_goodput(panel), low=min(both, default=0) - 4, high=max(both, default=100) + 6
        ),
        (STARVED, starved_pct, IDLE, idle_pct): Axis(
            "share of the time (%)", low=0, room=1.12, covers=(0, 1)
        ),
    }
    plots = [
        Repetitions(
            {
                name.replace(", ", "\n"): [sample(upper, of, upper_value), sample(lower, of, lower_value)]
                for name, of in rows.items()
            },
            x, ("", "{:.1f}"),
        )
        for (upper, upper_value, lower, lower_value), x in columns.items()
    ]  # fmt: skip
    return Page(
        rows=[Row(0.34 * len(rows) + 0.2, plots)], points=panel.points, numbers=numbers(rows),
        about=style.subtitle(panel, f"MPTCP {panel.subflows[0]} by the tuning of its hosts"),
        settings=style.parameters(panel),
        notes=["One mark per seed; line: their mean.", style.definition(panel)],
        keys=[look.key(size=4) for look in (GOODPUT, SLOWEST)],
        more_keys=[look.key(size=4) for look in (IDLE, STARVED)],
    )  # fmt: skip


subflow_idle = Picture(
    groups=_by_count, page=_page, suffix=lambda panel: f"-{panel.subflows[0]}subflows",
    finding="{% for name, idle, goodput in tunings %}{{ '; ' if not loop.first }}{{ name }}: subflows idle "
    "{{ '%.1f' % idle }} %{% if goodput is not none %}, goodput {{ '%.0f' % goodput }} %{% endif %}"
    "{% else %}No finding, all points are suspect{% endfor %}",
)  # fmt: skip
