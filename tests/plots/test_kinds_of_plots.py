"""Kinds of plots: what reaches how far, and what ticks, marks and words show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from plots.kinds.axis import FROM_ZERO, Axis
from plots.kinds.bars import Repeats
from plots.kinds.lines import Level, Line, Lines, published
from plots.kinds.samples import Repetitions
from plots.picture import Overlay, Page, Plot, Row
from plots.shared import style
from plots.shared.kinds import Look

LOOK = Look("flows", "#0072B2")
RISING = Line((0, 1), (1.0, 10.0), LOOK)


@pytest.fixture(autouse=True)
def look() -> Iterator[None]:
    with style.look():
        yield


def drawn(kind: Plot) -> Axes:
    axes = Figure().add_subplot()
    kind.draw(axes, (), True)
    return axes


def words(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_levels_leave_the_axis_to_the_lines_but_published_ones_are_reached() -> None:
    assert drawn(Lines([RISING], levels=[Level(500)])).get_ylim()[1] < 20
    assert drawn(Lines([RISING], levels=[published(500)])).get_ylim()[1] >= 500


@given(st.floats(1e-3, 1e3), st.floats(1.3, 1e6))
def test_a_logarithmic_axis_has_ticks_to_read_and_not_too_many(low: float, ratio: float) -> None:
    with style.look():
        axes = drawn(Lines([RISING], y=Axis(log=True, low=low, high=low * ratio)))
    ends = axes.get_ylim()
    shown = [tick for tick in axes.get_yticks() if ends[0] <= tick <= ends[1]]
    assert (2 if ratio > 2.2 else 1) <= len(shown) <= 10


def test_an_axis_with_room_covers_what_it_must_even_without_values() -> None:
    y = Axis(low=0, room=1.2, covers=(0, 4))
    assert drawn(Lines([RISING], y=y)).get_ylim() == (0, 12)
    assert drawn(Lines([], y=y)).get_ylim() == (0, 4)


def test_a_deviation_is_cut_at_zero_and_only_upwards_on_a_logarithmic_axis() -> None:
    of = Line((0, 1), (2.0, 4.0), LOOK, std=(3.0, 1.0))
    for y, low in ((FROM_ZERO, 0), (Axis(log=True), 2)):
        (band,) = drawn(Lines([of], y=y)).collections
        box = band.get_paths()[0].get_extents()
        assert (box.y0, box.y1) == (low, 5)


def test_hollow_marks_are_those_of_suspect_values() -> None:
    _, hollow = drawn(Lines([Line((1, 2), (3, 4), LOOK, size=5, hollow=(False, True))])).lines
    assert (np.asarray(hollow.get_xdata()).tolist(), hollow.get_markerfacecolor()) == ([2], "white")


def test_plots_of_a_column_have_one_scale_where_the_page_says_so() -> None:
    rows = [Row(1.0, [Lines([Line((0, 1), (0.0, top), LOOK)], y=FROM_ZERO)]) for top in (1.0, 50.0)]
    for one_scale, differ in ((True, 1), (False, 2)):
        page = Page(rows=rows, about="", points=(), settings=(), one_scale=one_scale)
        figure = page.draw("", "a title")
        assert len({axes.get_ylim() for axes in figure.axes}) == differ


def test_repetitions_have_their_mean_and_suspect_ones_a_question_mark() -> None:
    rows = {"good": [Repeats(LOOK, [1.0, 2.0], [9.0])], "suspect": [Repeats(LOOK, [], [4.0])]}
    axes = drawn(Repetitions(rows, at_edge=True))
    assert words(axes) == ["1.5", "4.0?"]
    assert len(axes.lines) == 4, "a dot for each repetition"
    six = {"six": [Repeats(LOOK, [1.0, 2.0, 3.0, 1.0, 2.0, 3.0])]}
    assert words(drawn(Repetitions(six, at_edge=True, spread=True)))[0].startswith("2.0 \N{PLUS-MINUS SIGN} ")


def test_an_overlay_draws_all_on_the_same_axes() -> None:
    assert len(drawn(Overlay([Lines([RISING]), Lines([RISING])])).lines) == 2
