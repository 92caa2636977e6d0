"""The report as its readers meet it: whole, self-contained, escaped, claiming no more than was measured."""

from __future__ import annotations

import dataclasses
import html
import json
import re
import shlex
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest

from analysis.plausibility import OVER_CARRIED_PCT
from engines import registry as engines
from experiments.registry import CATALOGUE
from harness.experiment import Figure
from harness.load import ExperimentResults, FigureResults
from harness.options.options import resolve
from harness.report import report, sentences
from harness.report.tables import commands, missing
from harness.results.point_results import PointResult
from harness.results.provenance import collect
from harness.results.store import load
from model.result import Status
from model.spec import LinkSpec
from tests.support import chart_files
from tests.support.command import refabric
from tests.support.fake_engine import FakeEngine
from tests.support.judged_points import BASELINE_MBPS, judged, stored
from tests.support.options import options_typed
from tests.support.reasons import of_text
from tests.support.stored_points import EXPERIMENT, spec_of

VOID = {"meta", "link", "br", "hr", "img"}


class Page(HTMLParser):
    """Collects tags, attributes and ids, and checks that every element is closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.tags: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._note(tag, attrs)

    def _note(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of two of cs244's thirteen figures, from the fake engine."""
    folder = tmp_path_factory.mktemp("results")
    short = ("--k", "4", "--subflows", "1,8", "--seconds", "5", "--seeds", "2", "--results", folder)
    for figure in ("cs244-fig1", "cs244-fig3"):
        done = refabric("run", figure, "--engine", "fake", *short)
        assert done.exit_code == 0, done.output
    return folder


@pytest.fixture(scope="module")
def written(results: Path) -> str:
    with pytest.MonkeyPatch.context() as patch:
        chart_files.draw_all(patch)
        done = refabric("report", "cs244", "--results", results)
    assert done.exit_code == 0, done.output
    path = results / "cs244" / "report.html"
    assert done.stdout.strip() == str(path)
    return path.read_text()


def test_the_page_is_whole_and_needs_nothing_else(written: str) -> None:
    page = Page(written)
    assert page.open == []
    assert not {"script", "link", "iframe", "object", "form", "svg"} & set(page.tags)
    for name, value in page.attributes:
        assert not name.startswith("on"), name
        if name in {"href", "src", "xlink:href"}:
            assert value.startswith(("#", "data:image/")) or value == "watch.html", value
    assert "http" not in written.replace("http-equiv", "")
    assert "@import" not in written
    assert "url(" not in re.sub(r"url\(#[^)]*\)", "", written)


def test_every_id_is_one_and_every_reference_has_one(written: str) -> None:
    page = Page(written)
    assert len(page.ids) == len(set(page.ids))
    asked = {one for name, value in page.attributes if name == "aria-labelledby" for one in value.split()}
    asked |= {value[1:] for name, value in page.attributes if name == "href" and value.startswith("#")}
    asked |= set(re.findall(r"url\(#([^)]*)\)", written))
    assert asked <= set(page.ids)


def test_charts_are_in_it_with_their_reading(written: str) -> None:
    assert Page(written).tags.count("img") == 1 + 4, "the first one, then throughput and rank of two figures"
    assert written.count("<figcaption>") == 4
    assert all(value for name, value in Page(written).attributes if name == "alt")


def test_published_stands_beside_measured_and_gaps_are_listed(written: str) -> None:
    text = html.unescape(re.sub(r"<[^>]*>", " ", written))
    assert "not measured" in text, "the paper's k is 8"
    judged, opened = written.split('id="open"')
    assert "no point of this figure has been run" in opened
    assert "no point of this figure has been run" not in judged
    assert "not run: k=8, subflows 2, 3, 4, 5, 6, 7." in text
    assert "cs244-fig2, cs244-fig4" in text


def test_the_commands_repeat_exactly_these_points(results: Path, written: str) -> None:
    (block,) = re.findall(r'<p class="command"><code>(.*?)</code>', written)
    command = shlex.split(html.unescape(re.sub(r"<[^>]*>", "", block)))
    assert command[:3] == [".venv/bin/refabric", "run", "cs244-fig1"]
    plan = refabric("plan", *command[2:], "--results", results, "--json")
    jobs = [json.loads(line) for line in plan.stdout.splitlines()]
    assert {j["point"] for j in jobs if j["event"] == "job"} == {p.name for p in load(results / "cs244")}


def test_an_output_file_and_json(results: Path, tmp_path: Path) -> None:
    page = tmp_path / "a" / "x.html"
    done = refabric("report", "cs244-fig1", "--results", results, "--output", page, "--json")
    assert json.loads(done.stdout) == {"event": "report", "report": str(page)}
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["x-watch.html", "x.html"]


def test_what_cannot_be_reported_is_one_line(results: Path, tmp_path: Path) -> None:
    for arguments, said in (
        (("cs244", "--results", tmp_path), "there are no results in"),
        (("cs244", "--results", results, "--output", tmp_path), "is a folder"),
        (("nope",), "unknown"),
    ):
        done = refabric("report", *arguments)
        assert done.exit_code == 2, done.output
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_only_a_report_is_replaced(results: Path, tmp_path: Path) -> None:
    mine, link, page = tmp_path / "thesis.html", tmp_path / "link.html", tmp_path / "page.html"
    mine.write_text("<html>mine</html>")
    link.symlink_to(mine)
    for path, said in ((mine, "is not a report of refabric"), (link, "it is a symbolic link")):
        done = refabric("report", "cs244-fig1", "--results", results, "--output", path)
        assert (done.exit_code, len(done.stderr.splitlines())) == (2, 1), done.output
        assert f"--output {path}: " in done.stderr
        assert said in done.stderr
    assert mine.read_text() == "<html>mine</html>"
    for _ in range(2):
        assert refabric("report", "cs244-fig1", "--results", results, "--output", page).exit_code == 0
    assert "Content-Security-Policy\" content=\"default-src 'none';" in page.read_text()


def test_suspect_failed_and_damaged_points_are_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = FakeEngine(fail=lambda s: s.transport.subflows == 2, suspect=lambda s: s.transport.subflows == 8)
    monkeypatch.setitem(engines.ENGINES, "fake", lambda: bad)
    fake = ("--engine", "fake", "--k", "4", "--subflows", "1,2,4,8")
    refabric("run", EXPERIMENT, *fake, "--results", tmp_path)
    next((tmp_path / EXPERIMENT).glob("*mptcp4*/flows.csv")).write_text("")
    done = refabric("report", EXPERIMENT, "--results", tmp_path)
    assert done.exit_code == 1, "as plot does where a point is damaged"
    assert "flows.csv" in done.stderr
    text = (tmp_path / EXPERIMENT / "report.html").read_text()
    for words in ("is set to be suspect", "is set to fail", "flows.csv", "1 suspect", "1 failed"):
        assert words in text, words


def loaded(points: Sequence[PointResult], figure: Figure | None = None) -> ExperimentResults:
    chosen = figure or CATALOGUE.find(EXPERIMENT).figures[0]
    return ExperimentResults((FigureResults(chosen, tuple(judged(points)), Path("charts")),), ())


def rendered(points: Sequence[PointResult]) -> str:
    return report.page(CATALOGUE.find(EXPERIMENT), loaded(points), {}, "today")


def test_nothing_stored_can_become_markup() -> None:
    evil = "<script>alert(1)</script>\"'&"
    doubtful = dataclasses.replace(
        stored(spec_of(), [1.0], Status.SUSPECT, {"kernel": evil, "tools": {evil: evil}}),
        reasons=(of_text(evil),),
    )
    text = rendered([doubtful, dataclasses.replace(stored(spec_of(2), []), reasons=(of_text(evil),))])
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)" in text
    assert Page(text).open == []


def test_a_summary_claims_what_verdicts_say() -> None:
    at_8 = [stored(spec_of(n, k=8), [level * BASELINE_MBPS / 100] * 2) for n, level in ((1, 40.0), (8, 60.0))]
    text = " ".join((*sentences.found_in(loaded(at_8)), *sentences.basis(loaded(at_8))))
    assert "5 published statements measured here: 1 agree, 4 differ." in text
    assert "one seed" in text
    findings = sentences.findings(loaded(at_8))
    assert [word for word, _ in findings].count("agrees") == 1


def test_commands_are_split_where_one_would_run_more() -> None:
    points = [spec_of(1, seed=1), spec_of(8, seed=1), spec_of(1, seed=2), spec_of(1, seed=5),
              dataclasses.replace(spec_of(1), link=LinkSpec(12.345678))]  # fmt: skip
    given = commands(CATALOGUE.find(EXPERIMENT).figures[0], judged([stored(s, [1.0]) for s in points]))
    matches = [(re.search(r"--subflows (\S+) --seed (\S+ --seeds \S+)", c), c) for c in given]
    assert {(found[1], found[2]) for found, _ in matches if found} == {
        ("1,8", "1 --seeds 1"), ("1", "2 --seeds 1"), ("1", "5 --seeds 1"), ("1", "1 --seeds 1"),
    }  # fmt: skip
    assert sum("--rate 12.345678 " in command for command in given) == 1
    assert all(command.startswith("sudo .venv/bin/refabric run ") for command in given)


def test_commands_of_an_experiment_that_fixes_options_have_none_of_them() -> None:
    """Those of `noise` run exactly its points, of which some are shorter by a fixed part."""
    noise = CATALOGUE.find("noise")
    (figure,) = noise.figures
    typed = options_typed(seeds=2)
    specs = figure.points(resolve(typed, figure.defaults), lambda _topology: 10.0)
    given = commands(figure, judged([stored(spec, [1.0]) for spec in specs]), noise.shared_options)
    again: set[str] = set()
    for command in given:
        words_of = shlex.split(command)[3:]
        asked = {name[2:]: value for name, value in zip(words_of[::2], words_of[1::2], strict=True)}
        assert asked.keys() <= set(noise.shared_options or ())
        numbers = {"seconds": float, "warmup": float, "seed": int, "seeds": int}
        typed = options_typed(**{name: numbers.get(name, str)(value) for name, value in asked.items()})
        points = figure.points(resolve(typed, figure.defaults), lambda _topology: 10.0)
        again |= {spec.content_hash() for spec in points}
    assert again == {spec.content_hash() for spec in specs}


def test_holes_in_a_sweep_are_named() -> None:
    points = [stored(spec_of(n, seed=s), [1.0]) for n, s in ((1, 1), (1, 2), (8, 1))]
    (shown,) = loaded(points).figures
    assert any("MPTCP 8 seed 2" in sentence for sentence in missing(shown))


def test_provenance_shows_what_differs_and_what_is_dirty() -> None:
    counters = {"before": {"dropped": 1}, "after": {"dropped": 4}}
    here = {"kernel": "6.1", "revision": "abc+", "counters": counters}
    there = {"kernel": "6.18", "revision": "abc+", "kernel_counters": {"Tcp.RetransSegs": 7}}
    found = collect(judged([stored(spec_of(), [1.0], provenance=here)])[:1]
                    + judged([stored(spec_of(8), [1.0], provenance=there)])[-1:])  # fmt: skip
    assert list(found.varying) == ["kernel"]
    assert any("abc+" in note for note in found.notes)
    assert list(found.counted.values()) == [[("dropped", "3")], [("Tcp.RetransSegs", "7")]]


def test_a_window_that_is_off_is_reported() -> None:
    even, off = (dataclasses.replace(stored(spec_of(8), [1.0]), metrics={OVER_CARRIED_PCT: pct})
                 for pct in (101.0, 108.0))  # fmt: skip
    assert not any("subflows carried" in note for note in collect(judged([even])).notes)
    assert any("MPTCP 8" in note and "8 % more" in note for note in collect(judged([off])).notes)


@pytest.mark.parametrize("name", ["star", "dctcp"])
def test_commands_ask_for_the_k_that_makes_the_network(name: str) -> None:
    figure = CATALOGUE.find(name).figures[0]
    specs = figure.points(resolve(options_typed(k="6"), figure.defaults), lambda _topology: 5.0)
    given = commands(figure, judged([stored(spec, [1.0]) for spec in specs]))
    assert given
    assert all("--k 6 " in command for command in given)
