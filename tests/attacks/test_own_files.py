"""A site of the documentation and charts of a report harm nobody who builds, serves or opens them (H2)."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from common.errors import UsageError
from harness.cli import manuals
from harness.report.report import TEMPLATES, picture
from tests.support.watch.chromium import LACKING, Chromium, program

HOSTILE = """<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
     width="300" height="200" onload="document.title='taken'">
<script>document.title='taken'; fetch('URL/fetch'); top.location='URL/script'</script>
<style>@import url(URL/css); body { display: none } * { position: fixed }</style>
<image xlink:href="URL/image" width="9" height="9"/><use href="URL/use.svg#a"/>
<foreignObject width="300" height="200"><html xmlns="http://www.w3.org/1999/xhtml">
<head><meta http-equiv="refresh" content="0;url=URL/refresh"/><base href="URL/"/></head>
<body><form action="URL/form"><input autofocus=""/></form><iframe src="URL/frame"/><img src="URL/img"/></body>
</html></foreignObject></svg>
"""
BROKEN = """<svg></svg></figure><style>p { display: none }</style>
<meta http-equiv="refresh" content="0;url=URL/outside">
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    (folder / "search").mkdir(parents=True)
    (folder / "index.html").write_text("new")
    return folder


def test_only_a_site_is_replaced(tmp_path: Path, site: Path) -> None:
    """MkDocs empties its folder: it gets one of its own, and --output only a copy."""
    output, other = tmp_path / "out", tmp_path / "other"
    other.mkdir()
    (other / "file").write_text("kept")
    link = tmp_path / "link"
    link.symlink_to(other)
    for wrong in (other, link, other / "file"):
        with pytest.raises(UsageError, match=f"^--output {wrong}: "):
            manuals.put_site(site, wrong)
    manuals.put_site(site, output)
    (output / "old.html").write_text("old")
    (output / "assets").symlink_to(other)
    (output / ".git").mkdir()
    manuals.put_site(site, output)
    assert sorted(path.name for path in output.iterdir()) == [
        ".git",
        manuals.SITE_MARK,
        "index.html",
        "search",
    ]
    assert (other / "file").read_text() == "kept"


@pytest.fixture
def served(site: Path) -> Iterator[int]:
    with manuals.site_server(site, 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


def answer(port: int, path: str, host: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    connection.putrequest("GET", path, skip_host=True)
    if host:
        connection.putheader("Host", host)
    connection.endheaders()
    found = connection.getresponse()
    read = (found.status, found.read())
    connection.close()
    return read


def test_the_server_answers_for_this_machine_only(served: int) -> None:
    for host in (f"127.0.0.1:{served}", f"localhost:{served}", "localhost"):
        assert answer(served, "/index.html", host) == (200, b"new")
    for host in ("", "evil.example", f"evil.example:{served}", "localhost.evil.example"):
        assert answer(served, "/index.html", host)[0] == 421


def test_the_server_follows_no_link_out_of_the_site(served: int, site: Path) -> None:
    (site.parent / "secret").write_text("secret")
    (site / "file").symlink_to(site.parent / "secret")
    (site / "folder").symlink_to(site.parent)
    for path in ("/file", "/folder/secret", "/folder/", "/../secret", "/%2e%2e/secret"):
        assert answer(served, path, "localhost")[0] == 404, path


@pytest.mark.skipif(program() is None, reason=LACKING)
def test_a_hostile_chart_is_a_picture_and_no_more(tmp_path: Path) -> None:
    asked: list[str] = []

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

    with ThreadingHTTPServer(("127.0.0.1", 0), Listening) as server, Chromium() as browser:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        charts = [chart.replace("URL", url) for chart in (HOSTILE, BROKEN)]
        (policy,) = re.findall(r"<meta http-equiv=.*>", (TEMPLATES / "report.html").read_text())
        page = tmp_path / "report.html"
        shown = "".join(picture(chart, "chart") for chart in charts)
        page.write_text(f"<!DOCTYPE html><title>report</title>{policy}<p>text</p>{shown}")
        browser.open_file(page)
        time.sleep(1)  # for a refresh after no seconds
        assert browser.value("[document.title, location.href]") == ["report", page.as_uri()]
        assert browser.value("document.querySelector('img').naturalWidth") == 300, "it is drawn"
        assert browser.value("document.body.innerText").strip() == "text"
        assert asked == []
        page.write_text(f"<!DOCTYPE html>{policy}{charts[1]}")
        browser.open_file(page)
        until = time.monotonic() + 20
        while not asked:
            assert time.monotonic() < until, "as a part of the page it is harmless, too: this shows nothing"
            time.sleep(0.05)
        server.shutdown()
