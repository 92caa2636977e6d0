"""The page in a real browser: clicks, keys and pixels, stored and running points.

REFABRIC_PICTURES=1 writes the pictures of docs/guide/watch.md.
"""

from __future__ import annotations

import io
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from engines.engine import Silent, follower
from harness.results.point_results import PointResult
from harness.results.store import Store
from harness.watch.feed import followed
from harness.watch.page import MAX_PAGE_BYTES, policy_hash, self_contained
from harness.watch.points import WatchFolder
from harness.watch.server import WatchServer, until_interrupted
from tests.harness.watch.test_feed import instant
from tests.support.stored_points import put, result_of
from tests.support.watch.chromium import LACKING, Chromium, program
from tests.support.watch.watched_points import EXPERIMENT, simulated, spec_of

needs_chromium = pytest.mark.skipif(program() is None, reason=LACKING)
PICTURES = Path(__file__).parents[3] / "docs" / "images"
CUT_S = 3.0
FLASH_S = 0.8
"""Longer than drops flash."""
PANELS = "[...document.querySelectorAll('.panel')]"
DETAILS = "[...[...document.querySelectorAll('.details')]"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[PointResult]:
    """TCP and MPTCP on a FatTree with k=4 whose cable p0a0-c0 is cut 3 s into the window."""
    results = tmp_path_factory.mktemp("results")
    return simulated(results, *(spec_of(subflows, cut_s=CUT_S) for subflows in (8, 1)))


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with Chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Chromium, points: list[PointResult], tmp_path: Path) -> Iterator[Chromium]:
    """Open the self-contained page; check at the end that the browser reported no problem."""
    browser.problems.clear()
    browser.size(1280, 1000)
    path = tmp_path / "watch.html"
    path.write_text(self_contained("FatTree", points).html)
    browser.open_file(path)
    browser.wait("document.querySelectorAll('svg.network').length === 2")
    yield browser
    assert browser.problems == []


def pixels(browser: Chromium, selector: str) -> npt.NDArray[np.uint8]:
    """Return the pixels of an element, as height x width x RGB."""
    quoted = json.dumps(selector)
    box = browser.value(
        f"(() => {{ const e = document.querySelector({quoted}); e.scrollIntoView({{block: 'center'}});"
        "const r = e.getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom]; })()"
    )
    image = Image.open(io.BytesIO(browser.picture())).convert("RGB")
    return np.asarray(image.crop(tuple(map(round, box))))


def seconds(browser: Chromium) -> str:
    return str(browser.value("document.getElementById('now').textContent"))


def stroke(browser: Chromium, panel: int, half: int) -> list[int]:
    colour = browser.value(
        f"{PANELS}[{panel}].querySelector('[data-half=\"{half}\"]').getAttribute('stroke')"
    )
    return [int(number) for number in re.findall(r"\d+", colour)]


def count(browser: Chromium, selector: str) -> int:
    return int(browser.value(f"document.querySelectorAll({json.dumps(selector)}).length"))


@needs_chromium
def test_tcp_and_mptcp_stand_side_by_side_with_all_their_links(page: Chromium) -> None:
    numbers = page.value(f"{PANELS}.map(p => p.querySelector('.numbers').textContent)")
    assert numbers[0].startswith("TCP, 1 s:") and numbers[1].startswith("MPTCP 8 LIA, 1 s:")
    assert count(page, "svg.network") == 2 and count(page, ".half") == 2 * 96
    assert count(page, ".spot") == 2 * (16 + 20)
    left, right = (page.value(f"{PANELS}[{i}].getBoundingClientRect().top") for i in (0, 1))
    assert left == right


@needs_chromium
def test_colours_say_how_much_a_link_carries(page: Chromium, points: list[PointResult]) -> None:
    page.press("End")
    tcp = next(point for point in points if point.spec.transport.subflows == 1)
    links = tcp.sample("links")
    last = links["t_s"] == links["t_s"].max()
    used = dict(zip(links["port"][last].tolist(), links["utilisation_pct"][last].tolist(), strict=True))
    light = {half: sum(stroke(page, 0, half)) for half in range(0, 96, 5)}
    order = sorted(light, key=lambda half: used.get(half, 0.0))
    darkness = [-light[half] for half in order]
    assert darkness == sorted(darkness) and darkness[0] < darkness[-1] - 300


@needs_chromium
def test_time_moves_by_keys_slider_and_play_button(page: Chromium) -> None:
    assert seconds(page).startswith("1 s of 6 s")
    page.press("ArrowRight")
    assert seconds(page).startswith("2 s")
    page.press("Home")
    assert seconds(page).startswith("-1 s") and "warm-up" in seconds(page)
    before = pixels(page, "svg.network")
    page.press("End")
    assert seconds(page).startswith("6 s")
    assert np.abs(pixels(page, "svg.network").astype(int) - before).max() > 100
    page.value("document.getElementById('speed').value = '20'")
    page.click("#play")
    assert page.value("document.getElementById('play').textContent") == "Stop"
    page.wait("document.getElementById('play').textContent === 'Play'")
    assert seconds(page).startswith("6 s")
    page.value("document.activeElement.blur()")
    page.press("Home")
    page.press(" ", " ")
    page.wait("!document.getElementById('now').textContent.startsWith('-1 s')")
    page.press(" ", " ")
    assert page.value("document.getElementById('play').textContent") == "Play"


@needs_chromium
def test_a_flow_shows_its_subflows_with_windows_and_rates(page: Chromium) -> None:
    assert count(page, "path.path") == 0
    page.click("#list li:nth-child(3)")
    assert page.value(f"{PANELS}.map(p => p.querySelectorAll('path.path').length)") == [1, 8]
    rows = page.value(f"{DETAILS}[1].querySelectorAll('tbody tr')].map(r => r.textContent)")
    assert len(rows) == 8 and all("p0e1" in row and "b/s" in row for row in rows)
    assert page.value(f"{DETAILS}[1].querySelectorAll('figure path')].length") == 16
    page.press("Escape")
    assert count(page, "path.path") == 0 and count(page, ".details figure") == 0


@needs_chromium
def test_pointing_at_a_host_shows_its_flow_and_at_a_link_its_numbers(page: Chromium) -> None:
    page.hover("section.panel:nth-child(1) .spot.host")
    page.wait("document.querySelectorAll('path.path').length === 9")
    assert page.value("document.querySelectorAll('li.aimed').length") == 1
    page.move(2, 2)
    page.wait("document.querySelectorAll('path.path').length === 0")
    x, y = page.value(
        "(() => { const l = document.querySelector('[data-half=\"40\"]'), m = l.getScreenCTM(),"
        "p = new DOMPoint((+l.getAttribute('x1') + +l.getAttribute('x2')) / 2,"
        "(+l.getAttribute('y1') + +l.getAttribute('y2')) / 2).matrixTransform(m); return [p.x, p.y]; })()"
    )
    page.move(x, y)
    about = page.value("document.querySelector('.about').textContent")
    assert re.fullmatch(
        r"p\d[ae]\d → [pc][\dae]+: [\d.]+ % used, queue [\d.]+ of 100 packets, \d+ dropped", about
    )


@needs_chromium
def test_the_keyboard_alone_reaches_everything(page: Chromium) -> None:
    page.press("ArrowDown")
    page.press("ArrowDown")
    assert page.value("document.querySelector('[aria-selected=true]').id") == "flow-1"
    assert page.value("document.getElementById('list').getAttribute('aria-activedescendant')") == "flow-1"
    assert count(page, "path.path") == 9
    for control in ("play", "time", "speed", "list"):
        page.value(f"document.getElementById('{control}').focus()")
        assert page.value("document.activeElement.id") == control


@needs_chromium
def test_drops_and_failures_are_marked(page: Chromium, points: list[PointResult]) -> None:
    page.press("Home")
    assert count(page, ".cut") == 1 and count(page, ".cuts path") == 0
    page.press("End")
    assert count(page, ".cuts .cut") == 2
    assert "p0a0-c0 down" in page.value("document.querySelector('.about').textContent")
    for i, subflows in enumerate((1, 8)):
        point = next(point for point in points if point.spec.transport.subflows == subflows)
        table = point.sample("ports")
        dropped = table["port"][(table["t_s"] == 6.0) & (table["drops"] > 0)]
        assert page.value(f"{PANELS}[{i}].querySelectorAll('.drops .drop').length") == len(dropped)


@needs_chromium
def test_hostile_texts_stay_texts(browser: Chromium, points: list[PointResult], tmp_path: Path) -> None:
    evil = "</script><script>window.evil = 1</script><img src=x onerror='window.evil = 1'>"
    path = tmp_path / "watch.html"
    made = self_contained(evil, points).html.replace("Drawn by", evil)
    assert "<script>window.evil" not in made
    path.write_text(
        made.replace('"reasons":""', '"reasons":"\\u003cimg src=x onerror=window.evil=1>","state":"suspect"')
    )
    browser.open_file(path)
    browser.wait("document.querySelectorAll('.note').length > 0")
    assert browser.value("window.evil") is None
    assert "<img" in browser.value("document.querySelector('.note').textContent")


@needs_chromium
def test_the_policy_stops_other_scripts_and_fetches(page: Chromium) -> None:
    page.value("(() => { const s = document.createElement('script'); s.textContent = 'window.evil = 1';"
               "document.body.append(s); })()")  # fmt: skip
    assert page.value("window.evil") is None
    refused = page.value("fetch('http://127.0.0.1:9/').then(() => 'sent', error => String(error))")
    assert "TypeError" in refused
    assert page.problems
    page.problems.clear()


@needs_chromium
def test_a_point_without_samples_shows_its_means(browser: Chromium, tmp_path: Path) -> None:
    store = Store.open(tmp_path / "results", EXPERIMENT)
    result = result_of([3.0] * 16)
    made = put(store, spec_of(1), result.__class__(result.status, (), result.flows, result.ports))
    path = tmp_path / "watch.html"
    path.write_text(self_contained("Old", [made]).html)
    browser.open_file(path)
    browser.wait("document.querySelectorAll('.note').length > 0")
    assert "no samples over time" in browser.value("document.querySelector('.note').textContent")
    assert "3 Mb/s per flow" in browser.value("document.querySelector('.numbers').textContent")
    assert browser.value("document.getElementById('play').disabled") is True
    assert stroke(browser, 0, 0) != stroke(browser, 0, 2)


@needs_chromium
def test_a_running_point_moves_on_the_page(browser: Chromium, tmp_path: Path) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    server = WatchServer(WatchFolder(tmp_path), "Watching")
    thread = threading.Thread(target=until_interrupted, args=(server,))
    thread.start()
    try:
        browser.problems.clear()
        browser.size(1280, 1000)
        browser.open(server.url)
        browser.wait("document.getElementById('status').textContent.startsWith('No point')")
        with followed(store, spec_of(4), Silent()) as observer:
            show = follower(observer)
            assert show is not None
            for t_s in (-2.0, -1.0):
                show(instant(t_s))
            browser.wait("document.getElementById('now').textContent.startsWith('-1 s of 6 s')")
            browser.wait("document.getElementById('status').textContent.includes('1 running')")
            show(instant(0.0))
            show(instant(1.0))
            browser.wait("document.getElementById('now').textContent.startsWith('1 s of 6 s')")
            browser.press("Home")
            show(instant(2.0))
            browser.wait("document.getElementById('time').max === '3'")
            assert seconds(browser).startswith("-1 s")
            browser.click("#latest")
            assert seconds(browser).startswith("2 s of 6 s")
        assert browser.problems == []
    finally:
        server.shutdown()
        thread.join(10)
    browser.wait("document.getElementById('status').textContent.includes('does not answer')")


def test_a_page_names_the_hashes_of_its_only_script_and_style(points: list[PointResult]) -> None:
    html = self_contained("FatTree", points).html
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    styles = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    assert len(scripts) == len(styles) == 1 and html.count("<script") == 2
    assert f"'sha256-{policy_hash(scripts[0])}'" in policy and f"'sha256-{policy_hash(styles[0])}'" in policy
    assert "unsafe" not in policy and "default-src 'none'" in policy and "connect-src" not in policy
    assert not re.search(r"\b(innerHTML|outerHTML|insertAdjacentHTML|eval|document\.write)\b", scripts[0])


def test_a_minute_at_k_8_stays_below_5_mb(tmp_path: Path) -> None:
    made = simulated(tmp_path, *(spec_of(n, k=8, rate_mbps=1.0, seconds=60.0) for n in (1, 8)))
    page = self_contained("FatTree", made)
    assert (page.points, page.left_out) == (2, 0)
    assert 500_000 < len(page.html.encode()) < 5_000_000
    many = self_contained("FatTree", made * 4)
    assert many.points < 8 and len(many.html.encode()) < MAX_PAGE_BYTES + 500_000


@needs_chromium
@pytest.mark.skipif("REFABRIC_PICTURES" not in os.environ, reason="REFABRIC_PICTURES=1 writes docs/images")
def test_write_the_pictures_of_the_docs(browser: Chromium, tmp_path: Path) -> None:
    made = simulated(tmp_path, *(spec_of(n, k=8, seconds=30.0, cut_s=10.0) for n in (1, 8)))
    path = tmp_path / "watch.html"
    path.write_text(self_contained("TCP and MPTCP on a FatTree", made).html)
    browser.size(1280, 860)
    browser.open_file(path)
    browser.wait("document.querySelectorAll('svg.network').length === 2")
    for _ in range(15):
        browser.press("ArrowRight")
    time.sleep(FLASH_S)
    (PICTURES / "watch.png").write_bytes(_small(browser.picture()))
    browser.size(1280, 1290)
    for _ in range(6):
        browser.press("ArrowDown")
    time.sleep(FLASH_S)
    (PICTURES / "watch-flow.png").write_bytes(_small(browser.picture()))


def _small(png: bytes) -> bytes:
    """Return a picture with 256 colours, which takes a third of the space."""
    out = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(256).save(out, "png", optimize=True)
    return out.getvalue()
