"""The SVG of a chart as a picture for a page. Pure.

It is an `<img>`: a browser runs no script of a picture, fetches nothing for it, and keeps its styles out of
the page. So a chart need not be searched for what could do harm.
"""

from __future__ import annotations

import base64
import html
import re

from markupsafe import Markup

MAX_BYTES = 1 << 26
_FONT, _FONTS = "'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif"
_TEXT = re.compile(r'<text style="font-size: (\d+(?:\.\d+)?)px[^<>]*>([^<]*)</text>')


def picture(svg: str, title: str, reading: str = "") -> Markup:
    """Return an element for HTML; screen readers read the chart's finding, `title` and `reading`."""
    alternative = ". ".join(filter(None, (finding(svg), title, reading)))
    data = base64.b64encode(svg.replace(_FONT, _FONTS).encode()).decode()
    return Markup('<img class="chart" alt="{}" src="data:image/svg+xml;base64,{}">').format(alternative, data)


def finding(svg: str) -> str:
    """Return the text in the largest font, which is the finding of a chart."""
    texts = [(float(size), text) for size, text in _TEXT.findall(svg)]
    largest = max((size for size, _ in texts), default=0.0)
    return html.unescape(" ".join(" ".join(text.split()) for size, text in texts if size == largest))
