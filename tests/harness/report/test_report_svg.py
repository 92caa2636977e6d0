"""Charts set into a page: nothing active, nothing fetched, no id of another chart."""

from __future__ import annotations

import re

import pytest

from common.errors import StoreError
from harness.report.svg import inline

CHART = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 5"
     width="10pt" height="5pt" onload="alert(1)">
 <metadata><x>secret</x></metadata>
 <style>* { color: red }</style>
 <script>alert(2)</script>
 <defs><clipPath id="clip"><rect x="1.23456" y="0" width="1" height="1"/></clipPath></defs>
 <g id="unused"><path id="mark" d="M 0.123456 1.5
L 2 3" clip-path="url(#clip)" onclick="alert(3)"/></g>
 <use xlink:href="#mark" style="font-family: 'DejaVu Sans'; fill: #222222"/>
 <use xlink:href="http://example.org/x.svg#a"/>
 <image xlink:href="data:image/png;base64,AAAA" width="1" height="1"/>
 <image xlink:href="file:///etc/passwd"/>
 <rect fill="url(http://example.org/p)"/>
 <text style="font-size: 9px">axis</text>
 <text style="font-size: 12px">TCP &lt; 50 % &amp; more</text>
 <foreignObject><p>html</p></foreignObject>
</svg>
"""


def test_what_acts_or_fetches_stays_out() -> None:
    page = inline(CHART, "c1", "Mean goodput", "How to read it.")
    for foreign in ("script", "alert", "onload", "onclick", "style>", "metadata", "secret", "foreignObject",
                    "http", "file:", "<?xml", "DOCTYPE"):  # fmt: skip
        assert foreign not in page, foreign
    assert "data:image/png;base64,AAAA" in page
    assert "TCP &lt; 50 % &amp; more" in page


def test_ids_are_the_charts_own_and_references_follow() -> None:
    page = inline(CHART, "c1", "Mean goodput", "How to read it.")
    ids = re.findall(r'\bid="([^"]*)"', page)
    assert sorted(ids) == ["c1-clip", "c1-desc", "c1-mark", "c1-title"], "others are of no use in a page"
    assert 'href="#c1-mark"' in page
    assert 'clip-path="url(#c1-clip)"' in page


def test_it_scales_and_is_read_aloud_as_its_finding() -> None:
    page = inline(CHART, "c1", "Mean goodput", "How to read it.")
    assert page.startswith(
        '<svg viewBox="0 0 10 5" class="chart" role="img" aria-labelledby="c1-title c1-desc">'
    )
    assert '<title id="c1-title">TCP &lt; 50 % &amp; more</title>' in page
    assert '<desc id="c1-desc">Mean goodput. How to read it.</desc>' in page


def test_numbers_lose_invisible_digits_and_styles_the_font() -> None:
    page = inline(CHART, "c1", "Mean goodput", "")
    assert 'd="M 0.12 1.5 L 2 3"' in page
    assert "DejaVu" not in page


@pytest.mark.parametrize("bad", ["", "<svg", "<html/>"])
def test_what_is_no_chart_is_named(bad: str) -> None:
    with pytest.raises(StoreError, match="the chart c1"):
        inline(bad, "c1", "Mean goodput", "")


@pytest.mark.parametrize(
    "hostile",
    [
        '<rect style="fill: u\\72l(http://example.org)"/>',
        '<rect style="fill: \\75rl(//example.org/p)"/>',
        '<rect style="background: red; -moz-binding: none; behavior: x; position: fixed"/>',
        '<rect fill="url( &quot;//example.org/p&quot; )"/>',
        '<rect fill="URL(//example.org/p)"/>',
        '<rect filter="url(#f)" data-x="1" tabindex="0" class="warning" lang="x"/>',
        '<rect fill="expression(alert(1))&lt;"/>',
        '<image href="data:image/svg+xml;base64,PHN2Zz48L3N2Zz4="/>',
        '<image href="data:text/html,x"/>',
        '<use href="other.svg#a"/>',
        '<a href="javascript:alert(1)"><text>x</text></a>',
        '<animate attributeName="href" to="javascript:alert(1)"/>',
        '<set attributeName="fill" to="red"/>',
        '<g id="x&quot; onclick=&quot;alert(1)"/><use href="#x&quot; onclick=&quot;alert(1)"/>',
    ],
)
def test_nothing_unlisted_gets_in(hostile: str) -> None:
    whole = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 5">{hostile}</svg>'
    page = inline(whole, "c1", "Mean goodput", "")
    for foreign in ("\\", "example", "binding", "behavior", "position", "filter", "data-", "tabindex",
                    "warning", "lang", "expression", "data:", "other", "javascript", "animate", "<set",
                    "onclick", "<a"):  # fmt: skip
        assert foreign not in page, page


@pytest.mark.parametrize(
    "bomb",
    [
        '<!DOCTYPE svg [<!ENTITY a "ha">]><svg xmlns="http://www.w3.org/2000/svg"><text>&a;</text></svg>',
        f'<svg xmlns="http://www.w3.org/2000/svg">{"<g>" * 5000}{"</g>" * 5000}</svg>',
    ],
)
def test_a_chart_that_grows_when_read_is_refused(bomb: str) -> None:
    with pytest.raises(StoreError, match="the chart c1: it is not whole SVG"):
        inline(bomb, "c1", "Mean goodput", "")
