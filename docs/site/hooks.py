"""MkDocs calls these while it builds the site (docs/site/mkdocs.yml)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_LOADED = re.compile(r"https://unpkg\.com/[\w./@-]*")


NOT_SEARCHED = frozenset({"decisions.md"})
"""Pages for those who change refabric, whose words would come before those for its users."""


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave pages out of the search."""
    if page.file.src_uri in NOT_SEARCHED:
        page.meta["search"] = {"exclude": True}
    return markdown


def on_post_build(config: Any, **_: Any) -> None:
    """Remove every address that the theme's scripts could load something from.

    The scripts would load libraries for diagrams, old browsers and search from file://. No page needs the
    first two. Without the third, search works only if the site is served (`refabric docs --serve`).
    """
    site = Path(config["site_dir"])
    for source_map in site.rglob("*.map"):
        source_map.unlink()
    for script in site.rglob("*.js"):
        text = script.read_text(encoding="utf-8")
        script.write_text(_LOADED.sub("about:blank", text), encoding="utf-8")
