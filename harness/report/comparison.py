"""`refabric report --compare A B`: one self-contained page with what `refabric compare` prints."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence
from pathlib import Path

from common import files
from common.text import printable
from harness.compare import show
from harness.compare.agreement import Disagreement
from harness.compare.compare import Comparison
from harness.report.report import MARK, check_replaceable, now

DEFAULT = Path("comparison.html")
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
{mark}
<title>{title}</title>
<style>
body {{ font: 16px/1.5 sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; color: #222; }}
pre {{ font: 13px/1.4 monospace; overflow-x: auto; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Differences are B minus A. A is <code>{a}</code> ({points_a} points), B is <code>{b}</code>
({points_b} points).</p>
<pre>{text}</pre>
<footer><p>Written {written} by <code>refabric report --compare</code>. The page works offline and has
no script.</p></footer>
</body>
</html>
"""


def write(comparison: Comparison, disagreements: Sequence[Disagreement], output: Path | None) -> Path:
    """Write the page to `output`, by default comparison.html; return its path.

    Raises UsageError if something else is there, StoreError if it cannot be written.
    """
    path = output or DEFAULT
    check_replaceable(path)
    with files.storing(f"creating {path.parent}"):
        path.parent.mkdir(parents=True, exist_ok=True)
    files.replace_file(path, page(comparison, disagreements, now()).encode())
    return path


def page(comparison: Comparison, disagreements: Sequence[Disagreement], written: str) -> str:
    """Return the page as HTML."""
    text = io.StringIO()
    show.show(text, comparison, disagreements)
    a, b = comparison.a, comparison.b
    return _PAGE.format(
        mark=MARK.decode(),
        title=_escaped(f"{a.path.name} and {b.path.name}, compared"),
        a=_escaped(str(a.path)),
        b=_escaped(str(b.path)),
        points_a=len(a.measured),
        points_b=len(b.measured),
        text=_escaped(text.getvalue()),
        written=written,
    )


def _escaped(text: str) -> str:
    return html.escape(printable(text))
