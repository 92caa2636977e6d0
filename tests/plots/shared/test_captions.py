"""Captions: two lines at most, the settings first, the most important note never left out."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from plots.shared import saving, style
from plots.shared.sheet import Caption, Sheet, Text
from tests.support.svg_text import words_of

NOTES = ("Dots: one seed each.", "Line: their mean.")


def drawn(caption: Caption, out: Path) -> tuple[str, int]:
    """The words of a chart with this caption, and how many lines the caption has."""
    with style.look():
        (path,) = saving.save(Sheet((1.0, 1)).finish(Text("Title", "subtitle", caption)), out, "chart")
    return words_of(path), len(re.findall(r"<text[^>]*font-size: 8px", path.read_text()))


def test_what_fits_is_all_there(tmp_path: Path) -> None:
    words, lines = drawn(Caption(["links of 5 Mb/s", "", "40 s"], NOTES), tmp_path)
    assert "Links of 5 Mb/s; 40 s. Dots: one seed each. Line: their mean." in words
    assert lines == 1


@pytest.mark.parametrize("length", [5, 15, 40, 400])
def test_a_caption_has_at_most_two_lines_and_its_first_note(length: int, tmp_path: Path) -> None:
    settings = [f"setting {n} {'x' * length}" for n in range(8)]
    words, lines = drawn(Caption(settings, [*NOTES, "More words. " * 30]), tmp_path)
    assert 1 <= lines <= 2
    assert "Dots: one seed each." in words
    assert "More words" not in words


def test_the_last_settings_give_way_before_notes(tmp_path: Path) -> None:
    settings = ["links of 5 Mb/s", "queues of 100 packets", "y" * 60, "z" * 60]
    words, lines = drawn(Caption(settings, NOTES), tmp_path)
    assert "queues of 100 packets" in words and "Line: their mean." in words
    assert "zzz" not in words and lines <= 2


def test_a_first_note_that_is_too_long_is_cut(tmp_path: Path) -> None:
    words, lines = drawn(Caption([], ["word " * 200]), tmp_path)
    assert lines == 2 and words.count("word") > 10 and "..." in words
