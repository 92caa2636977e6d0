"""The gallery of the site: every figure of docs/images, with the page that explains it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

IMAGES = Path(__file__).resolve().parents[1] / "images"
HEAD = """# Gallery

Every figure of these pages. A click opens the page that explains the figure and names the command
that draws it.
"""
_SHOWN = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)\)")
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def shown_in(pages: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Return for each picture (its path below docs/) the page that shows it first, and the caption there."""
    found: dict[str, tuple[str, str]] = {}
    for name, text in sorted(pages.items()):
        for caption, target in _SHOWN.findall(text):
            picture = _resolved(PurePosixPath(name).parent / target)
            found.setdefault(picture, (name, caption))
    return found


def _resolved(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == ".." and parts:
            parts.pop()
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def page(pages: Mapping[str, str]) -> str:
    """Return the page, in the order of the pages that show the figures. Every picture has a place."""
    shown = {picture: by for picture, by in shown_in(pages).items() if picture.startswith("images/")}
    parts, last = [HEAD], ""  # figures of one page flow side by side
    for picture, (name, caption) in sorted(shown.items(), key=lambda entry: (entry[1][0], entry[0])):
        if name != last:
            title = _TITLE.search(pages[name])
            parts.append(f"\n## {title[1] if title else name}\n")
            last = name
        parts.append(f"[![{caption}](../{picture}){{ width=330 }}](../{name})")
    return "\n".join(parts) + "\n"


def without_a_page(pages: Mapping[str, str]) -> list[str]:
    """Return the pictures that no page shows."""
    folder = IMAGES.parent
    every = {path.relative_to(folder).as_posix() for path in IMAGES.rglob("*") if path.is_file()}
    return sorted(every - shown_in(pages).keys())
