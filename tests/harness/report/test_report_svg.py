"""Charts set into a page: pictures, read aloud as their finding."""

from __future__ import annotations

import base64
import re

from harness.report.report import finding, picture

CHART = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 10 5">
 <text style="font-size: 9px; font-family: 'DejaVu Sans'">axis</text>
 <text style="font-size: 12px; fill: #222222" x="1">TCP &lt; 50 %</text>
 <text style="font-size: 12px">&amp;  "more"</text>
</svg>
"""
HOSTILE = '</svg><script>alert(1)</script><meta http-equiv="refresh" content="0;url=//x"><base href="//x">'


def test_it_is_read_aloud_as_its_finding() -> None:
    assert finding(CHART) == 'TCP < 50 % & "more"'
    assert 'alt="TCP &lt; 50 % &amp; &#34;more&#34;. Mean goodput. How to read it."' in picture(
        CHART, "Mean goodput", "How to read it."
    )
    assert finding("") == ""
    assert 'alt="Mean goodput"' in picture("<svg/>", "Mean goodput")


def test_the_picture_is_the_chart_with_fonts_of_every_system() -> None:
    (data,) = re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', picture(CHART, "Mean goodput"))
    shown = base64.b64decode(data).decode()
    assert shown == CHART.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, Arial, sans-serif")


def test_no_chart_becomes_part_of_the_page() -> None:
    for chart in (HOSTILE, f'<svg><text style="font-size: 99px">&lt;/figure&gt;{HOSTILE}</text></svg>'):
        element = picture(chart, "Mean goodput")
        assert re.fullmatch(r'<img class="chart" alt="[^"<>]*" src="data:[^"<>]*">', element), element
