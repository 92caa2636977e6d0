"""A chart as a record: the points that share a sheet, their series, the kinds of plots in its rows, and its
finding, which is a template over numbers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.data import Inputs, Panel, overrides_of, panels
from plots.shared import saving, style
from plots.shared.kinds import Look, Mean
from plots.shared.naming import PartOf, file_stems, place
from plots.shared.sheet import Sheet


@dataclass(frozen=True)
class Series:
    """Points that are drawn alike, e.g. those of one transport. `number` is what curves show of them, if each
    series shows something else."""

    name: str
    look: Look
    points: Sequence[PointResult]
    number: Callable[[Sequence[PointResult]], Mean | None] | None = None


def by_subflows(panel: Panel, values: Callable[[PointResult], Sequence[object]]) -> list[Series]:
    """Return a series for each number of subflows with `values`: of its good points, else its suspect ones.
    Curves of many values have no marks but TCP's."""
    made = []
    for n in panel.subflows:
        counts = [(point, len(values(point))) for point in panel.best(n)]
        if of := [point for point, count in counts if count]:
            marker = "s" if n == 1 else "o" if sum(count for _, count in counts) <= style.FEW else ""
            colour, width = style.colour(n, max(panel.subflows)), 2.2 if n == 1 else 1.5
            look = Look(style.transport(n), colour, marker, width=width)
            made.append(Series(style.transport(n), look.doubted(of[0].suspect), of))
    return made


def absent(panel: Panel, series: Sequence[Series], otherwise: str) -> str:
    """Return why numbers of subflows have no series: `missing: MPTCP 2; failed: TCP`, or else `otherwise`."""
    shown = {one.points[0].subflows for one in series}
    return style.absences({n: panel.cell(n).gap or otherwise for n in panel.subflows if n not in shown})


def tcp_and_most(
    series: Sequence[Series], value: Callable[[Sequence[PointResult]], float]
) -> dict[str, object]:
    """Return what a finding says of series by subflows: the value of plain TCP, `tcp`, and `mptcp` of the
    `most` subflows. What is suspect or was not measured is left out."""
    good = {one.points[0].subflows: value(one.points) for one in series if not one.points[0].suspect}
    tcp, most = good.pop(1, None), max(good, default=0)
    return {"tcp": tcp, "most": most, "mptcp": good.get(most)} if good or tcp is not None else {}


class Plot(Protocol):
    """A plot."""

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> object:
        """Draw the series of the page, unless the plot has its own; `first` is whether the axes are the
        leftmost of their row."""


@dataclass(frozen=True)
class Overlay:
    """Several plots on the same axes."""

    kinds: Sequence[Plot]

    def draw(self, axes: Axes, all_series: Sequence[Series], first: bool) -> None:
        for kind in self.kinds:
            kind.draw(axes, all_series, first)


@dataclass(frozen=True)
class Row:
    """Plots side by side, `height_in` inches high; `x` labels the horizontal axes of all, at the middle one,
    and `y` the vertical axis of the first."""

    height_in: float
    kinds: Sequence[Plot]
    x: str = ""
    y: str = ""

    @property
    def middle(self) -> int:
        return len(self.kinds) // 2


Groups = Callable[[Inputs], Iterable[tuple[RunSpec, Panel]]]
Words = Callable[[Panel], Sequence[str]]


def nothing(_: Panel) -> Sequence[Any]:
    return ()


def alike(
    *ignoring: str,
    where: Callable[[PointResult], bool] = lambda _: True,
    apart: Callable[[PointResult], object] = lambda _: None,
    made: Callable[[Panel], Panel] = lambda panel: panel,
) -> Groups:
    """Return the points that share a sheet: those that differ at most in subflows, seed and the fields
    `ignoring`, and for which `apart` returns the same; as `made` changes their panel."""

    def groups(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
        of = panels(filter(where, inputs.points), inputs.expected, ignoring, apart)
        return [(panel.spec, panel) for panel in map(made, of)]

    return groups


@dataclass(frozen=True, kw_only=True)
class Page:
    """What a chart shows of one group, with the words around it; see `Picture`. `points` are those whose
    doubts its caption states, `more_keys` a legend below that of `keys`."""

    rows: Sequence[Row]
    about: str
    numbers: Mapping[str, object] | None = None
    points: Sequence[PointResult]
    settings: Sequence[str]
    notes: Sequence[str] = ()
    series: Sequence[Series] = ()
    keys: Sequence[Artist] = ()
    more_keys: Sequence[Artist] = ()
    gaps: str = ""
    one_scale: bool = False
    """Whether the vertical axes of a column reach equally far."""

    def draw(self, finding: str, title: str) -> Figure:
        """Draw, with what the finding says, or else the title."""
        sheet = Sheet(*((row.height_in, len(row.kinds)) for row in self.rows))
        for row, of_row in zip(self.rows, sheet.axes, strict=True):
            for number, (kind, axes) in enumerate(zip(row.kinds, of_row, strict=True)):
                kind.draw(axes, self.series, number == 0)
            if row.x:
                of_row[row.middle].set_xlabel(row.x)
            if row.y:
                of_row[0].set_ylabel(row.y)
        for column in zip(*sheet.axes, strict=True) if self.one_scale else ():
            ends = [axes.get_ylim() for axes in column]
            for axes in column:
                axes.set_ylim(min(low for low, _ in ends), max(high for _, high in ends))
        found = said(finding, self.numbers) if self.numbers else ""
        notes = [*style.doubts(self.points), *self.notes]
        return sheet.finish(
            found or title, self.about, self.settings, notes, self.keys, self.more_keys, gaps=self.gaps
        )


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A chart, drawn once for each of its `groups` of points.

    `rows` are its plots; no row means that a group has nothing to show. `numbers` are what the template
    `finding` says in the chart's title; None where a group gives no finding. `about` says what is plotted,
    `settings` how points were run, `notes` what else a reader must know, after what is suspect.
    `keys` is a legend instead of that of the series.
    `page` returns all of that at once, for charts whose plots, numbers and words come from the same samples.
    """

    groups: Groups
    rows: Callable[[Panel], Sequence[Row]] = nothing
    about: Callable[[Panel], str] = lambda _: ""
    page: Callable[[Panel, Inputs], Page | None] | None = None
    finding: str = ""
    numbers: Callable[[Panel], Mapping[str, object] | None] = lambda _: None
    series: Callable[[Panel], Sequence[Series]] = lambda _: ()
    settings: Words = style.parameters
    notes: Words = nothing
    keys: Callable[[Panel], Sequence[Artist]] | None = None
    gaps: Callable[[Panel], str] = lambda _: ""
    key: Mapping[str, Any] = field(default_factory=lambda: {"size": 4.5})
    """Size and width of the marks in the legend."""
    named: PartOf | None = place
    """Returns the first part of files' names; without it the only file has the chart's name."""
    suffix: Callable[[Panel], str] = lambda _: ""

    def __call__(self, inputs: Inputs) -> list[Path]:
        """Draw all groups; return the files written. Raises StoreError when the folder cannot be written."""
        by_name: dict[str, list[tuple[RunSpec, Panel]]] = {}
        for spec, panel in self.groups(inputs):
            name = "" if self.named is None or self.named is place else self.named(spec)
            by_name.setdefault(name, []).append((spec, panel))
        paths: list[Path] = []
        for of in by_name.values():
            stems = [inputs.chart] * len(of)
            if self.named is not None:
                overrides = [overrides_of(panel.points) for _, panel in of]
                stems = file_stems(inputs.chart, [spec for spec, _ in of], self.named, overrides)
            for (_, panel), stem in zip(of, stems, strict=True):
                with style.look():
                    figure = self.draw(panel, inputs)
                    paths += saving.save(figure, inputs.out, stem + self.suffix(panel)) if figure else []
        return paths

    def draw(self, panel: Panel, inputs: Inputs) -> Figure | None:
        """Draw one group."""
        page = self.page(panel, inputs) if self.page else self._page(panel)
        return page.draw(self.finding, inputs.title) if page and page.rows else None

    def _page(self, panel: Panel) -> Page | None:
        rows = self.rows(panel)
        if not rows:
            return None
        series = self.series(panel)
        return Page(
            rows=rows, about=self.about(panel), numbers=self.numbers(panel), points=panel.points,
            settings=self.settings(panel), notes=self.notes(panel), series=series,
            keys=[one.look.key(**self.key) for one in series] if self.keys is None else self.keys(panel),
            gaps=self.gaps(panel),
        )  # fmt: skip


def said(template: str, numbers: Mapping[str, object]) -> str:
    """Return the sentence that a Jinja template makes of numbers. Raises jinja2.UndefinedError where the
    template has a name that `numbers` lacks."""
    return _template(template).render(numbers)  # type: ignore[attr-defined, no-any-return]


@functools.cache
def _template(text: str) -> object:
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters["listed"] = listed
    return environment.from_string(text)


def listed(values: Mapping[str, float] | Iterable[tuple[str, float]], shown: str = "{:g}") -> str:
    """Return `TCP 1.2, pFabric 1.1`: names with their values, formatted as `shown`. A filter of templates."""
    pairs = values.items() if isinstance(values, Mapping) else values
    return ", ".join(f"{name} {shown.format(value)}" for name, value in pairs)
