"""The site is built from the pages and the code; its links lead somewhere, and it needs no other host."""

from __future__ import annotations

import functools
import re
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from common.errors import RunError, UsageError
from docs.tools import gallery, site, walk
from experiments.command import main
from harness.cli import manuals

pytestmark = pytest.mark.builds
_LOADED = re.compile(r"""(?:src|href)=["']?(?:https?:)?//|url\(["']?(?:https?:)?//""")
_LINK = re.compile(r"<a [^>]*href=\"?(https?:[^\s\">]+)")
MD = ".md"
GONE = f"gone{MD}"
KNOWN_LINKS = {"https://distributed.dask.org", "https://github.com/ccp-project/portus"}
"""Other sites that pages link to; nothing is loaded from them."""


_pages, _STAGE = functools.cache(site.pages), site.stage


@pytest.fixture(scope="module", autouse=True)
def no_walk() -> Iterator[None]:
    """Leave out the list of files that a run enters, which takes seconds, but where the site is built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walk, "files_entered", list)
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    done = CliRunner().invoke(main, ["docs", "--output", str(folder)])
    assert done.exit_code == 0, done.output
    assert f"Open {folder}/index.html" in done.output
    return folder


def test_every_page_is_there(built: Path) -> None:
    for name in site.pages():
        page = built / name.replace("README.md", "index.html").replace(".md", ".html")
        assert page.exists(), name


def test_every_column_of_results_has_a_meaning() -> None:
    of_files = _pages()["reference/results.md"].partition("## POINT/run.json")[0].splitlines()
    of_files = [line for line in of_files if line.startswith("| ")]
    assert len(of_files) > 120
    for row in of_files:
        assert row.split(" | ")[-1].strip("| "), row


def test_decisions_are_not_searched(built: Path) -> None:
    index = (built / "search" / "search_index.json").read_text()
    assert '"location":"decisions.html' not in index and '"location":"topologies.html' in index


def test_nothing_is_loaded_from_another_host(built: Path) -> None:
    for path in [*built.rglob("*.html"), *built.rglob("*.css")]:
        text = path.read_text()
        for link in _LINK.findall(text):
            assert link in KNOWN_LINKS, (path.name, link)
            text = text.replace(link, "")
        found = [each for each in _LOADED.findall(text.replace('href="https://', 'href="https:'))]
        assert found == [], path.name
    for script in built.rglob("*.js"):
        assert "unpkg.com" not in script.read_text(), script.name


def test_a_dead_link_a_dead_anchor_and_a_page_without_a_place_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, built: Path
) -> None:
    assert built.exists(), "MkDocs is installed by now"
    text = f"# Page\n\n[dead]({GONE}), [dead](../help/glossary{MD}#nothing)\n"
    few = {name: _pages()[name] for name in ("README.md", f"help/glossary{MD}")}
    monkeypatch.setattr(site, "pages", lambda: {**few, f"learn/orphan{MD}": text})
    monkeypatch.setattr(site, "STAGED", tmp_path / "pages")
    monkeypatch.setattr(site, "stage", lambda folder=tmp_path / "pages": _STAGE(folder))
    with pytest.raises(RunError) as error:
        site.build(tmp_path / "site")
    for words in (GONE, "#nothing", 'not included in the "nav"'):
        assert words in str(error.value)


def test_every_figure_is_in_the_gallery_and_every_picture_has_a_page() -> None:
    own = {name: text for name, text in _pages().items() if name != "experiments/gallery.md"}
    assert gallery.without_a_page(own) == []
    shown = _pages()["experiments/gallery.md"]
    assert "../images/sigcomm11/throughput.png" in shown
    assert "../images/learn/ecmp.svg" in shown


def test_the_reference_is_made_from_the_code() -> None:
    assert "## refabric run\n" in _pages()["reference/command-line.md"]
    for page, words in (
        ("command-line", "`--random-drop PKTS,...`"), ("metrics", "| `goodput_mbps_mean` |"),
        ("exit-codes", "| `130` |"), ("python", "## Results\n"), ("results", "flows.csv"),
    ):  # fmt: skip
        assert words in _pages()[f"reference/{page}.md"]


def test_lists_and_links_are_staged_for_mkdocs() -> None:
    text = "Prose:\n* one\n  * two\n```\nwords\n* kept\n```\n[code](../model/x), [page](kernel.md#x)\n"
    assert site.staged(text, "fidelity.md") == (
        "Prose:\n\n* one\n    * two\n```\nwords\n* kept\n```\ncode, [page](kernel.md#x)\n"
    )


def test_it_is_served_on_this_machine_alone(built: Path) -> None:
    with manuals.site_server(built, 0) as serving:
        threading.Thread(target=serving.serve_forever, daemon=True).start()
        host, port = serving.server_address[:2]
        assert host == "127.0.0.1"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/index.html", timeout=20) as answer:
            assert b"refabric" in answer.read()
        with pytest.raises(UsageError, match="choose another one"):
            manuals.site_server(built, int(port))
        serving.shutdown()


def test_a_folder_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("mine")
    done = CliRunner().invoke(main, ["docs", "--output", str(tmp_path)])
    assert done.exit_code == 2
    assert (tmp_path / "notes.md").read_text() == "mine"
