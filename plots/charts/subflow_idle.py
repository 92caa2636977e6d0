"""Goodput, and the share of time in which subflows are idle or starved, by the tuning of the end hosts.

One chart per setting and number of subflows, one row per tuning. Idle and starved are defined in
analysis/idleness.py.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.idleness import idleness
from analysis.quantities import SUBFLOW_IDLE_PCT
from model.tuning import UNTOUCHED, words_of
from plots.data import Inputs, Panel, Point, panels
from plots.shared import axis_labels, saving, style
from plots.shared.naming import file_stems
from plots.shared.sheet import Caption, Sheet, Text

TUNING = ("transport.sysctls", "transport.write_bytes", "stack.send_buffer", "stack.receive_buffer")
"""The fields of a spec that `model.tuning.words_of` describes."""
_ROW_IN = 0.34
_IDLE, _STARVED, _MEAN, _SLOWEST = "#d55e00", "#0072b2", style.INK, style.FAINT


@dataclass(frozen=True)
class TuningRow:
    """One tuning: its points, and for each the share of time in which subflows are starved (None: not
    sampled)."""

    points: tuple[Point, ...]
    starved_pct: tuple[float | None, ...]

    def mean(self, values: Sequence[float | None]) -> float | None:
        """Return the mean of `values` (one per point) over the good points; None without any."""
        good = zip(self.points, values, strict=True)
        known = [value for point, value in good if value is not None and not point.suspect]
        return statistics.fmean(known) if known else None

    @property
    def goodput_pct(self) -> list[float | None]:
        return [point.mean_pct for point in self.points]

    @property
    def slowest_pct(self) -> list[float | None]:
        return [min(point.flows_pct, default=None) for point in self.points]

    @property
    def idle_pct(self) -> list[float | None]:
        return [point.recorded(SUBFLOW_IDLE_PCT) for point in self.points]


def draw_subflow_idle(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting and number of subflows; see `registry.Chart.draw`."""
    of = panels(filter(_is_measured, inputs.points), ignoring=TUNING)
    paths: list[Path] = []
    stems = file_stems(
        "subflow_idle", [panel.spec for panel in of], overrides=[panel.overrides for panel in of]
    )
    for panel, stem in zip(of, stems, strict=True):
        for count in sorted({point.subflows for point in panel.points}):
            rows = _rows([point for point in panel.points if point.subflows == count])
            shown = tuple(point for row in rows.values() for point in row.points)
            with style.look():
                figure = _idle_chart(dataclasses.replace(panel, subflows=(count,), points=shown), rows)
                paths += saving.save(figure, inputs.out, f"{stem}-{count}subflows")
    return paths


def _is_measured(point: Point) -> bool:
    return point.subflows > 1 and not point.failed and point.recorded(SUBFLOW_IDLE_PCT) is not None


def _rows(points: Sequence[Point]) -> dict[str, TuningRow]:
    """Return one row per tuning, from the least idle to the most."""
    tunings: dict[str, list[Point]] = {}
    for point in sorted(points, key=lambda p: p.seed):
        tunings.setdefault(words_of(point.spec), []).append(point)
    rows = {name: TuningRow(tuple(of), tuple(map(_starved_pct, of))) for name, of in tunings.items()}
    return dict(sorted(rows.items(), key=lambda item: statistics.fmean(i or 0.0 for i in item[1].idle_pct)))


def _starved_pct(point: Point) -> float | None:
    sockets = point.read_table("sockets")
    shares = idleness(sockets)["starved_pct"] if sockets is not None else ()
    return float(statistics.fmean(shares)) if len(shares) else None


def finding(rows: Mapping[str, TuningRow]) -> str:
    """Return the title: the least idle tuning beside the untouched kernel, or else beside the most idle."""
    ends = dict.fromkeys([next(iter(rows)), UNTOUCHED if UNTOUCHED in rows else list(rows)[-1]])
    parts = []
    for name in ends:
        idle, goodput = rows[name].mean(rows[name].idle_pct), rows[name].mean(rows[name].goodput_pct)
        if idle is not None:
            reached = f", goodput {goodput:.0f} %" if goodput is not None else ""
            parts.append(f"{name.partition(',')[0]}: subflows idle {idle:.1f} %{reached}")
    return "; ".join(parts) or "No finding, all points are suspect"


def _idle_chart(panel: Panel, rows: Mapping[str, TuningRow]) -> Figure:
    sheet = Sheet((_ROW_IN * len(rows) + 0.2, 2))
    left, right = sheet.axes[0]
    for axes in (left, right):
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_yticks(range(len(rows)), [name.replace(", ", "\n") for name in rows])
        axes.tick_params(axis="y", length=0)
        style.grid_of_rows(axes)
    right.tick_params(labelleft=False)
    for y, row in enumerate(rows.values()):
        _marks(left, y, row, row.slowest_pct, _SLOWEST, "d")
        _marks(left, y, row, row.goodput_pct, _MEAN, "o", "{:.1f}")
        _marks(right, y, row, row.starved_pct, _STARVED, "s")
        _marks(right, y, row, row.idle_pct, _IDLE, "o", "{:.1f}")
    values = [v for row in rows.values() for v in (*row.goodput_pct, *row.slowest_pct) if v is not None]
    left.set_xlim(min(values, default=0.0) - 4, max(values, default=100.0) + 6)
    left.set_xlabel(axis_labels.relative_goodput(panel))
    right.set_xlim(left=0)
    right.set_xlim(right=max(1.0, 1.12 * right.get_xlim()[1]))
    right.set_xlabel("share of the time (%)")
    subtitle = style.subtitle(panel, f"MPTCP {panel.subflows[0]} by the tuning of its hosts")
    return sheet.finish(Text(finding(rows), subtitle, _caption(panel)), _key(), _key_of_shares())


def _marks(
    axes: Axes,
    y: int,
    row: TuningRow,
    values: Sequence[float | None],
    colour: str,
    marker: str,
    words: str = "",
) -> None:
    """Draw one mark per seed, hollow if suspect, and the mean of the good ones as a line, with its value in
    the format `words`."""
    step = min(0.12, 0.4 / max(len(values), 1))
    for i, (point, value) in enumerate(zip(row.points, values, strict=True)):
        if value is None:
            continue
        face = "white" if point.suspect else colour
        where = y + step * (i - (len(values) - 1) / 2)
        axes.plot(value, where, marker, markersize=3.4, color=colour, markerfacecolor=face, zorder=3)
    mean = row.mean(values)
    if mean is None:
        return
    axes.vlines(mean, y - 0.34, y + 0.34, color=colour, linewidth=1.8, zorder=4)
    if words:
        axes.annotate(
            words.format(mean), (mean, y - 0.34), ha="center", va="bottom", fontsize=7, color=colour,
            zorder=5, path_effects=style.halo(),
        )  # fmt: skip


def _mark(marker: str, colour: str) -> Callable[[str], Line2D]:
    return lambda label: Line2D([], [], color=colour, marker=marker, markersize=4, lw=0, label=label)


def _key() -> list[Line2D]:
    return [_mark("o", _MEAN)("mean goodput"), _mark("d", _SLOWEST)("slowest flow")]


def _key_of_shares() -> list[Line2D]:
    return [_mark("o", _IDLE)("idle"), _mark("s", _STARVED)("starved")]


def _caption(panel: Panel) -> Caption:
    return Caption(
        style.parameters(panel),
        [*style.doubts(panel.points), "One mark per seed; line: their mean.", style.definition(panel)],
    )
