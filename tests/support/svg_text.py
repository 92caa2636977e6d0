"""The text of an SVG."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree


def words_of(svg: Path) -> str:
    """Return all text of a chart, with plain spaces. Raises ParseError if it is no SVG."""
    lines = (element.text for element in ElementTree.parse(svg).iter() if element.tag.endswith("text"))
    return " ".join(line for line in lines if line).replace("\N{NO-BREAK SPACE}", " ")
