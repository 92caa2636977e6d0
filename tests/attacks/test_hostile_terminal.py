"""Names and texts of others on the terminal: no control character, no forged line."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from rich.table import Table
from rich.text import Text

from experiments.command import main
from harness import streams
from harness.cli.progress import PlainProgress
from harness.results.store import Store, point_name
from model.reasons import Reason
from setup import doctor
from tests.support.stored_points import EXPERIMENT, put, put_baseline, result_of, spec_of

HOSTILE = "a\x1b]0;owned\x07\x1b[2J\r\u202eb\x9b31m\x7f"
LINES = f"{HOSTILE}\nok       forged"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results in a folder with a hostile name, and in it files, folders and a point with such names."""
    store = Store.open(tmp_path / "results", LINES)
    put_baseline(store, spec_of(), 4.7)
    put(store, spec_of(2), result_of([4.5]))
    folder = store.directory
    (folder / f"{LINES}-0123456789ab").mkdir()
    (folder / "charts").mkdir()
    for name in (f"charts/rank-{HOSTILE}.svg", LINES, os.fsdecode(b"\xff\xfe")):
        (folder / name).write_text("x")
    return tmp_path / "results"


def shown(results: Path, *arguments: str) -> str:
    done = CliRunner().invoke(main, [*arguments, "--results", str(results)], input="n\n")
    assert done.exit_code in {0, 1, 2} and not isinstance(done.exception, Exception), done.output
    return done.output


def check(text: str) -> None:
    assert "owned" in text
    assert {c for c in text if not c.isprintable()} <= {"\n"}
    assert not any(line.startswith("ok       forged") for line in text.splitlines())


def test_results_and_export_show_no_control_characters(results: Path) -> None:
    """L1: `results`, `results remove` and `export` printed names of folders and files as they were."""
    check(shown(results, "results"))
    check(shown(results, "export", "nothing"))
    done = CliRunner().invoke(main, ["results", "--results", str(results), "remove", LINES, "--yes"])
    check(done.output)
    assert "left there" in done.output


def test_an_export_has_no_hostile_names(results: Path, tmp_path: Path) -> None:
    """L1: a chart whose name is not text in UTF-8 ended `export` in a traceback."""
    (results / LINES / "charts" / os.fsdecode(b"rank-\xff.svg")).write_text("x")
    output = shown(results, "export", LINES, "--output", str(tmp_path / "out.zip"))
    assert "files" in output


def test_doctor_shows_no_control_characters(monkeypatch: pytest.MonkeyPatch) -> None:
    """L1: `doctor` printed what tools and the machine's name say as it was."""

    def checks() -> Iterator[doctor.Check]:
        yield doctor.Check(HOSTILE, False, HOSTILE, HOSTILE)

    monkeypatch.setattr(doctor, "checks", checks)
    done = CliRunner().invoke(main, ["doctor"])
    check(done.output)
    assert json.loads(CliRunner().invoke(main, ["doctor", "--json"]).output)["name"] == HOSTILE


def test_whatever_prints_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    """L1: one place for all commands."""
    with streams.escaped():
        print(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        click.echo(HOSTILE)
        sys.stdout.writelines([HOSTILE])
        with streams.unescaped():
            print("\x1b[1mtheir own\x1b[0m")
    PlainProgress(sys.stderr).note(HOSTILE)
    out, err = capsys.readouterr()
    assert "\x1b[1mtheir own\x1b[0m\n" in out
    check(out.replace("\x1b", "", 2))
    check(err)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_console_keeps_its_own_colours_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """L1: rich passes escapes in texts on."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    terminal = Terminal()
    console = streams.console_for(streams.Escaping(terminal))  # type: ignore[arg-type]
    table = Table("head")
    table.add_row(Text(HOSTILE, style="bold red"))
    console.print(table)
    streams.print_wrapped(console, HOSTILE)
    assert "\x1b[1;31m" in terminal.getvalue()
    assert "\x1b]0" not in terminal.getvalue() and "\x1b[2J" not in terminal.getvalue()
    assert not {"\x07", "\u202e", "\x9b", "\r", "\x7f"}.intersection(terminal.getvalue())


@pytest.mark.parametrize("name", ["[/b]", "[bold]", "[link=http://x]y[/link]", ":smile:"])
def test_a_name_is_no_markup(tmp_path: Path, name: str) -> None:
    """L1: a stored name in the markup of rich ended `plot` and `compare` in a traceback."""
    store = Store.open(tmp_path / "results", EXPERIMENT)
    put_baseline(store, spec_of(), 4.7)
    point = put(store, spec_of(2), result_of([4.5])).path
    run = json.loads((point / "run.json").read_text())
    doubtful = {"reasons": [Reason("other", name).to_json()], "status": "suspect"}
    run |= doubtful
    run["attempts"][-1] |= doubtful
    run["provenance"]["kernel"] = name
    (point / "run.json").write_text(json.dumps(run))
    assert point_name(spec_of(2)) == point.name
    assert name in shown(tmp_path / "results", "plot", EXPERIMENT)
    both = [str(store.directory), str(store.directory)]
    done = CliRunner().invoke(main, ["compare", *both])
    assert not isinstance(done.exception, Exception), done.output
