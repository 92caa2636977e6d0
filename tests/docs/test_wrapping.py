"""Prose of the pages wraps at 100 characters; tables, code, images and generated blocks may be longer.

Commands are code: as prose they would be joined to paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 100
_GENERATED = re.compile(r"<!-- (claims|packages|walk).*?<!-- end -->|<!-- numbers -->.*", re.DOTALL)
_FENCED = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
_EXEMPT = ("|", "#", "    ", "![", "<!--")


def too_long(page: str) -> list[str]:
    """Return the lines of prose in `page` that are longer than WIDTH; a line of one word may be."""
    prose = _FENCED.sub("", _GENERATED.sub("", page))
    lines = (line for line in prose.splitlines() if len(line) > WIDTH and not line.startswith(_EXEMPT))
    return [line for line in lines if " " in line.strip().removeprefix("* ")]


def unfenced(page: str) -> list[str]:
    """Return the lines of prose in `page` that hold a command."""
    prose = re.sub(r"`[^`]*`", "", _FENCED.sub("", _GENERATED.sub("", page)))
    return [line for line in prose.splitlines() if ".venv/bin/" in line and not line.startswith(_EXEMPT)]


def test_a_long_line_is_found_and_a_table_is_not() -> None:
    long = "word " * 30
    assert too_long(f"short\n{long}\n| {long} |\n    {long}\n```\n{long}\n```\n") == [long]


def test_a_command_amid_prose_is_found() -> None:
    command = ".venv/bin/refabric run ims"
    assert unfenced(f"{command} # all\n\n    {command}\n\nas with `{command}\n--k 4`") == [f"{command} # all"]


@pytest.mark.parametrize("wrong", [too_long, unfenced])
def test_pages_have_none(wrong: Callable[[str], list[str]]) -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {page.name: wrong(page.read_text()) for page in pages}
    assert {name: lines for name, lines in found.items() if lines} == {}
