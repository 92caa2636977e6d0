"""Prose of the pages wraps at 100 characters; tables, code, images and generated blocks may be longer."""

from __future__ import annotations

import re
from pathlib import Path

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


def test_a_long_line_is_found_and_a_table_is_not() -> None:
    long = "word " * 30
    assert too_long(f"short\n{long}\n| {long} |\n    {long}\n```\n{long}\n```\n") == [long]


def test_pages_wrap() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {page.name: too_long(page.read_text()) for page in pages}
    assert {name: lines for name, lines in found.items() if lines} == {}
