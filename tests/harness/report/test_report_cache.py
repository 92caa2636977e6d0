"""A run with nothing to do leaves charts and report alone; charts have their own names and are no markup."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from engines.registry import SIMULATOR
from experiments.command import main
from experiments.registry import CATALOGUE
from harness.claims.own_settings import OwnSettings
from harness.load import FigureResults
from harness.options.options import resolve
from harness.report import report
from harness.report.figures import as_drawn, draw
from harness.report.report import finding, picture
from harness.results.point_results import judge
from harness.results.store import Store, load
from model.result import Status
from model.spec import Settings
from tests.support import chart_files
from tests.support.judged_points import judged, stored
from tests.support.options import options_typed
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

STUDY = "cs244-one-to-one"
RUN = ("run", STUDY, "--engine", "fake", "--k", "4", "--subflows", "1,2", "--json")
RECORD = ".report.json"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    chart_files.sketch(monkeypatch)
    again()
    return tmp_path / "results" / STUDY


def again(*more: str) -> str:
    done = CliRunner().invoke(main, [*RUN, *more])
    assert done.exit_code == 0, done.output
    return done.stdout


def made(folder: Path) -> dict[str, int]:
    """Return when each file that a browser or a paper uses was written."""
    paths = [path for path in folder.rglob("*") if path.suffix in {".svg", ".png", ".pdf", ".html"}]
    assert len(paths) > 3
    return {str(path): path.stat().st_mtime_ns for path in paths}


def test_nothing_is_made_again_and_the_same_is_printed(folder: Path) -> None:
    before, said = made(folder), again()
    assert made(folder) == before
    charts = json.loads(said.splitlines()[-1])["charts"]
    assert charts and all(Path(name).is_file() for name in charts)
    assert again() == said


def spoil_chart(folder: Path) -> None:
    next(folder.rglob("*.svg")).write_text("<svg/>")


def remove_chart(folder: Path) -> None:
    next(folder.rglob("*.svg")).unlink()


def link_chart(folder: Path) -> None:
    chart = next(folder.rglob("*.svg"))
    other = chart.with_name("other")
    chart.rename(other)
    chart.symlink_to(other)


def remove_report(folder: Path) -> None:
    (folder / "report.html").unlink()


def edit_point_and_keep_its_times(folder: Path) -> None:
    flows = next(folder.glob("*mptcp*/flows.csv"))
    about, text = flows.stat(), flows.read_text()
    assert ",mptcp," in text
    flows.write_text(text.replace(",mptcp,", ",mpudp,"))
    os.utime(flows, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert flows.stat().st_size == about.st_size
    time.sleep(1)  # a repetition in the same second may store the same bytes, of which all is there already


def spoil_record(folder: Path) -> None:
    (folder / RECORD).write_text("{")


def name_a_file_outside(folder: Path) -> None:
    data = json.loads((folder / RECORD).read_text())
    data["charts"] = {STUDY: ["../../../etc/passwd"]}
    (folder / RECORD).write_text(json.dumps(data))


CHANGES = (
    spoil_chart, remove_chart, link_chart, remove_report,
    edit_point_and_keep_its_times, spoil_record, name_a_file_outside,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_after_a_change_all_is_made_again(folder: Path, change: Callable[[Path], None]) -> None:
    before = made(folder)
    change(folder)
    assert "passwd" not in again()
    after = made(folder)
    assert after.keys() == before.keys()
    assert all(after[name] > before[name] for name in before)
    assert not any(Path(name).is_symlink() for name in after)
    again()
    assert made(folder) == after


def test_other_options_and_other_code_are_other_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = made(folder)
    again("--subflows", "1,2,3")
    after = made(folder)
    assert after[str(folder / "report.html")] > before[str(folder / "report.html")]
    monkeypatch.setattr(report, "_code", lambda: "another")
    again("--subflows", "1,2,3")
    assert made(folder)[str(folder / "report.html")] > after[str(folder / "report.html")]


FIGURE = dataclasses.replace(CATALOGUE.find(EXPERIMENT).figures[0], charts=("throughput",))
PLAIN = "throughput-fat_tree-k4-one_to_one"


def drawn(folder: Path, *options: Settings) -> set[str]:
    """Draw what the figure runs with each of these options; return the names of all charts in its folder."""
    specs = [
        spec
        for given in options
        for spec in FIGURE.points(resolve(given, FIGURE.defaults), lambda _network: 5.0)
    ]
    paths = draw([FigureResults(FIGURE, tuple(judged([stored(spec, [2.0, 3.0]) for spec in specs])), folder)])
    there = {path for path in folder.iterdir() if path.suffix in {".svg", ".pdf", ".png"}}
    assert set(paths[FIGURE.name]) == there, "what is there is what was drawn"
    return {path.stem for path in there}


def with_options(**texts: str) -> Settings:
    return options_typed(engine=SIMULATOR, k="4", subflows="1,2", **texts)


def test_names_of_charts_say_which_setting_they_show(tmp_path: Path) -> None:
    notes = tmp_path / "throughput-notes.txt"
    notes.write_text("the user's own")
    own, lossy = with_options(), with_options(loss="1")
    assert drawn(tmp_path, own) == {PLAIN}
    both = drawn(tmp_path, own, lossy)
    assert PLAIN in both and len(both) == 2
    (alone,) = drawn(tmp_path, lossy)
    assert "random_loss" in alone and {alone, PLAIN} == both
    assert PLAIN not in drawn(tmp_path, own, with_options(seconds="7")), "neither has the plain name"
    assert notes.exists()


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


NO_TIME = "CPU: no idle time left in 3 of 20 seconds"


@pytest.mark.parametrize(
    ("reason", "on_purpose", "status"),
    [
        (NO_TIME, True, Status.OK),
        (NO_TIME, False, Status.SUSPECT),
        ("5 % less was delivered than subflows carried", True, Status.SUSPECT),
    ],
)
def test_a_point_counts_if_only_the_intended_is_against_it(
    tmp_path: Path, reason: str, on_purpose: bool, status: Status
) -> None:
    store = Store.open(tmp_path, EXPERIMENT)
    put(store, spec_of(), result_of([1.0], Status.SUSPECT, reason))
    put_baseline(store, spec_of(), 4.0)
    points = load(store.directory)
    names = {point.name for point in points} if on_purpose else set()
    own = OwnSettings([FIGURE])
    (point,) = (as_drawn(judged, own) for judged in judge(points, names) if judged.spec == spec_of())
    assert (point.status, point.as_intended) == (status, status is Status.OK)
