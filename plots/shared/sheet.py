"""Lay out a chart: title, legend, axes and caption one below the other, without overlap.

The sheet is narrow, so that text is readable on a phone. Everything is measured as it will be drawn and
placed at the end: axes keep their height, the sheet grows with its text. No pyplot, so no global state.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.text import Text as Words

from plots.shared import style

WIDTH_IN = 4.8
DPI = 200
MAX_CAPTION_LINES = 2
_FONT, _CAPTION_SIZE = "DejaVu Sans", 8
_CUT_BY = 10
"""A first note that does not fit is cut to a multiple of this many characters."""
_MARGIN, _GAP = 0.1, 0.08
_NO_BREAK = "\N{NO-BREAK SPACE}"
_UNIT = re.compile(r"(?<=\d) (?=%|Mb/s|ms\b|us\b|s\b|hosts|packets|subflows)|(?<=MPTCP) (?=\d)")
_LEGEND: Any = {  # Any: matplotlib types the places as one long Literal
    "loc": "upper left",
    "borderaxespad": 0.0,
    "borderpad": 0.0,
    "handlelength": 2.0,
    "columnspacing": 1.2,
    "labelspacing": 0.3,
    "frameon": False,
}


@functools.cache
def _measuring() -> RendererAgg:
    return RendererAgg(1, 1, DPI)  # type: ignore[no-untyped-call]


@functools.lru_cache(maxsize=1 << 14)
def _width(words: str, size: float, weight: str) -> float:
    """Return the width of words in pixels. Captions of many charts are alike, and measuring is slow."""
    font = FontProperties(family=_FONT, size=size, weight=weight)
    width, _, _ = _measuring().get_text_width_height_descent(words, font, False)  # type: ignore[no-untyped-call]
    return float(width)


@dataclass(frozen=True)
class _Room:
    """The space that labels need around axes, in inches."""

    left: float
    right: float
    below: float
    above: float


class Sheet:
    """Rows of axes, each given by its height in inches and the number of axes in it; make, fill and
    `finish` it inside `style.look()`."""

    def __init__(self, *rows: tuple[float, int]) -> None:
        self._heights_in = [height for height, _ in rows]
        in_all = sum(self._heights_in)
        self._figure = Figure(figsize=(WIDTH_IN, in_all), dpi=DPI)
        self._renderer: RendererAgg = FigureCanvasAgg(self._figure).get_renderer()  # type: ignore[no-untyped-call]
        self.axes = [
            [self._new_axes((WIDTH_IN - 0.4) / columns - 0.3, height, in_all) for _ in range(columns)]
            for height, columns in rows
        ]

    def finish(
        self,
        title: str,
        subtitle: str,
        settings: Sequence[str],
        notes: Sequence[str],
        *legends: Sequence[Artist],
        gaps: str = "",
    ) -> Figure:
        """Place everything, each of the `legends` in its own rows; return the figure, as high as it needs.

        `title` is the finding, `subtitle` what is plotted, `gaps` why points are missing. The caption has at
        most two lines: `settings` are short phrases on how the points were run, `notes` sentences, both with
        the most important first. Where there is no room the last two settings give way, then notes from the
        last on; the first note stays.
        """
        head: list[Words | Legend] = [
            self._words([title], 11.5, style.INK, "bold"),
            self._words([subtitle], 9.5, style.FAINT),
            *(self._legend(handles) for handles in legends if handles),
            *([self._words([gaps], 8.5, style.FAINT)] if gaps else []),
        ]
        caption = self._fitting(settings, list(filter(None, notes)))
        foot = self._words([caption], _CAPTION_SIZE, style.FAINT)
        rooms = [[self._room(axes) for axes in row] for row in self.axes]
        rows_in = [
            (max(room.above for room in row), height, max(room.below for room in row))
            for row, height in zip(rooms, self._heights_in, strict=True)
        ]
        parts_in = [*map(self._height_in, head), *map(sum, rows_in), self._height_in(foot)]
        height_in = 2 * _MARGIN + sum(parts_in) + _GAP * (len(parts_in) - 1)
        tops = self._tops(parts_in, height_in)
        for part in head:
            self._put(part, next(tops), height_in)
        left_in, right_in = max(row[0].left for row in rooms), max(row[-1].right for row in rooms)
        for row, needed, (above, height, _) in zip(self.axes, rooms, rows_in, strict=True):
            bottom = next(tops) - above - height
            alike = [other for other in rooms if len(other) == len(needed)]
            for axes, (left, width) in zip(row, _columns(alike, left_in, right_in), strict=True):
                axes.set_position((left / WIDTH_IN, bottom / height_in, width / WIDTH_IN, height / height_in))
        self._put(foot, next(tops), height_in)
        self._figure.set_size_inches(WIDTH_IN, height_in)
        return self._figure

    def _new_axes(self, width_in: float, height_in: float, sheet_in: float) -> Axes:
        """Make axes of nearly their final size; `finish` places them."""
        size = (width_in / WIDTH_IN, height_in / sheet_in)
        axes = self._figure.add_axes((0, 0, *size), axisbelow=True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color=style.GRID, linewidth=0.8)
        axes.tick_params(length=3)
        return axes

    def _fitting(self, settings: Sequence[str], notes: Sequence[str]) -> str:
        """Return as much of the caption as fits into `MAX_CAPTION_LINES`."""
        text = ""
        for text in _shorter(settings, notes):
            if self._fits(text):
                return text
        cut = [f"{text[:end]} ..." for end in range(_CUT_BY, len(text) + 1, _CUT_BY)]
        return cut[bisect.bisect(cut, False, key=lambda words: not self._fits(words)) - 1]

    def _fits(self, words: str) -> bool:
        font = FontProperties(family=_FONT, size=_CAPTION_SIZE)
        lines = self._lines(_UNIT.sub(_NO_BREAK, words), font)
        return len(list(itertools.islice(lines, MAX_CAPTION_LINES + 1))) <= MAX_CAPTION_LINES

    def _words(self, paragraphs: Sequence[str], size: float, colour: str, weight: str = "normal") -> Words:
        font = FontProperties(family=_FONT, size=size, weight=weight)
        lines = [line for words in paragraphs for line in self._lines(_UNIT.sub(_NO_BREAK, words), font)]
        return self._figure.text(
            0, 0, "\n".join(lines), va="top", color=colour, fontproperties=font, linespacing=1.15
        )

    def _lines(self, words: str, font: FontProperties) -> Iterator[str]:
        """Break text into lines that fit the sheet; break words that are too long for one line."""
        most = (WIDTH_IN - 2 * _MARGIN) * DPI
        line = ""
        for word in words.split(" "):
            longer = f"{line} {word}" if line else word
            if self._width(longer, font) <= most:
                line = longer
                continue
            if line:
                yield line
            line = word
            while self._width(line, font) > most:
                fitting = max(1, int(len(line) * most / self._width(line, font)) - 1)
                yield line[:fitting]
                line = line[fitting:]
        yield line

    def _width(self, words: str, font: FontProperties) -> float:
        return _width(words, font.get_size_in_points(), str(font.get_weight()))

    def _legend(self, handles: Sequence[Artist]) -> Legend:
        """Make a legend with as many columns as fit the sheet."""
        for columns in range(min(len(handles), 5), 0, -1):
            legend: Legend = self._figure.legend(handles=handles, ncols=columns, **_LEGEND)
            fits = legend.get_window_extent(self._renderer).width <= (WIDTH_IN - 2 * _MARGIN) * DPI
            if fits or columns == 1:
                return legend
            legend.remove()
        raise ValueError("a legend has at least one handle")

    def _room(self, axes: Axes) -> _Room:
        inner, outer = axes.bbox, axes.get_tightbbox(self._renderer) or axes.bbox
        return _Room(
            max(0.0, inner.x0 - outer.x0) / DPI,
            max(0.0, outer.x1 - inner.x1) / DPI,
            max(0.0, inner.y0 - outer.y0) / DPI,
            max(0.0, outer.y1 - inner.y1) / DPI,
        )

    def _height_in(self, part: Artist) -> float:
        return float(part.get_window_extent(self._renderer).height) / DPI

    def _tops(self, parts_in: Sequence[float], height_in: float) -> Iterator[float]:
        """Yield the upper edge of each part, in inches above the bottom of the sheet, from the top down."""
        top = height_in - _MARGIN
        for part in parts_in:
            yield top
            top -= part + _GAP

    def _put(self, part: Words | Legend, top_in: float, height_in: float) -> None:
        where = (_MARGIN / WIDTH_IN, top_in / height_in)
        if isinstance(part, Legend):
            part.set_bbox_to_anchor(where, transform=self._figure.transFigure)
        else:
            part.set_position(where)


def _shorter(settings: Sequence[str], notes: Sequence[str]) -> Iterator[str]:
    """Yield the whole text of a caption, then shorter ones."""
    for kept in range(len(notes), 0, -1):
        for left_out in (0, 1, 2) if kept == len(notes) else (2,):
            yield _text(settings[: max(1, len(settings) - left_out)], notes[:kept])
    for count in range(len(settings), -1, -1):
        yield _text(settings[:count], notes[:1])


def _text(settings: Sequence[str], notes: Sequence[str]) -> str:
    words = "; ".join(filter(None, settings))
    return " ".join([*([f"{words[0].upper()}{words[1:]}."] if words else []), *notes])


def _columns(
    alike: Sequence[Sequence[_Room]], left_in: float, right_in: float
) -> Iterator[tuple[float, float]]:
    """Return left edge and width in inches of each of a row's axes.

    All are equally wide, and at the same places in all rows with as many axes (`alike`). `left_in` and
    `right_in` are the largest space that any row needs at its ends, so that all rows begin and end at the
    same places.
    """
    columns = list(zip(*alike, strict=True))
    lefts = [left_in, *(max(room.left for room in column) for column in columns[1:])]
    rights = [*(max(room.right for room in column) for column in columns[:-1]), right_in]
    spent = 2 * _MARGIN + sum(lefts) + sum(rights) + _GAP * (len(columns) - 1)
    width = (WIDTH_IN - spent) / len(columns)
    x = _MARGIN
    for left, right in zip(lefts, rights, strict=True):
        yield x + left, width
        x += left + width + right + _GAP
