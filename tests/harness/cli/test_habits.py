"""What people expect of a command: completion, manual pages, lines that fit, and care for results."""

from __future__ import annotations

import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from common.version import VERSION
from experiments.command import main
from experiments.registry import EXPERIMENTS
from harness import contents
from harness.cli.commands import COMMANDS, next_steps
from harness.cli.manuals import pages
from tests.support import chart_files
from tests.support.command import refabric

STUDY = "cs244-one-to-one"
RUN = ("run", STUDY, "--engine", "fake", "--k", "4", "--subflows", "1,2")


def completed(words: str) -> list[str]:
    """Return what bash would offer for the last word."""
    environment = {
        "_REFABRIC_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")),
    }  # fmt: skip
    done = CliRunner(env=environment).invoke(main, [], prog_name="refabric")
    return [line.partition(",")[2] for line in done.stdout.splitlines()]


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a results folder with one experiment, in the current folder."""
    monkeypatch.chdir(tmp_path)
    chart_files.sketch(monkeypatch)
    assert refabric(*RUN).exit_code == 0
    return tmp_path / "results" / STUDY


def test_commands_experiments_options_and_values_are_completed() -> None:
    assert completed("refabric stat") == ["status"]
    assert "cs244-fig2" in completed("refabric run cs244-f")
    assert completed(f"refabric run {STUDY} --queue-b") == ["--queue-bytes"]
    assert completed(f"refabric plan {STUDY} --engine mininet,sim") == ["mininet,simulator"]
    assert completed(f"refabric plan {STUDY} --topology fi") == ["file:"]
    assert completed("refabric run ./m") == ["./m"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_of_a_shell_is_printed(shell: str, tmp_path: Path) -> None:
    done = refabric("completion", shell)
    assert done.exit_code == 0
    assert f"_REFABRIC_COMPLETE={shell}_complete" in done.stdout
    (tmp_path / "script").write_text(done.stdout)
    if shutil.which(shell):
        subprocess.run([shell, "-n", tmp_path / "script"], check=True, timeout=30)
    assert refabric("completion", "tcsh").exit_code == 2


def test_the_version_is_printed() -> None:
    assert refabric("--version").stdout.split()[-1] == VERSION


def test_the_list_has_every_experiment_and_each_kind_of_choice() -> None:
    every = json.loads(refabric("list", "--json").stdout)
    assert set(EXPERIMENTS) <= set(every["experiments"])
    done = refabric("list")
    for name in (
        *EXPERIMENTS,
        "fat_tree",
        "one_to_one",
        "reno",
        "first_fit",
        "mininet",
        "paper",
        "ksp:K",
        "codel",
    ):
        assert name in done.stdout, name


def inside(found: click.Command, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    """Yield the path and the command of a command and of all inside it."""
    yield context.command_path, found
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            inner = found.get_command(context, name)
            assert inner is not None, name
            yield from inside(inner, click.Context(inner, info_name=name, parent=context))


def test_every_command_and_option_has_help() -> None:
    every = dict(inside(main, click.Context(main, info_name="refabric")))
    assert {"refabric run", "refabric kernel build"} < set(every)
    for path, found in every.items():
        options = [each for each in found.params if isinstance(each, click.Option) and not each.hidden]
        assert found.help and all(each.help for each in options), path


def test_next_steps_of_a_wheel_name_commands_and_no_script(tmp_path: Path) -> None:
    """An installed wheel has no run_mptcp.sh, which is in a clone."""
    assert "run_mptcp.sh" in next_steps()
    steps = next_steps(tmp_path)
    assert "run_mptcp.sh" not in steps
    commands = [line.split()[1] for line in steps.splitlines()[1:]]
    assert commands and set(commands) <= set(COMMANDS)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("rnu", STUDY), "there is no command rnu: did you mean run"),
        (("plan", STUDY, "--workload", "one_to_on"), "did you mean one_to_one"),
        (("plan", STUDY, "--engine", "simulatr"), "did you mean simulator"),
        (("plan", STUDY, "--topology", "fat_tre,4"), "did you mean fat_tree"),
    ],
)
def test_a_misspelt_name_is_answered_with_close_ones(words: tuple[str, ...], meant: str) -> None:
    done = refabric(*words)
    assert done.exit_code == 2
    assert meant in done.stderr


def test_every_command_has_a_manual_page_with_its_options(tmp_path: Path) -> None:
    done = refabric("man", str(tmp_path / "man1"))
    assert done.exit_code == 0
    text = (tmp_path / "man1" / "refabric-run.1").read_text()
    assert ".B \\-\\-random\\-drop PKTS" in text
    assert ".SH EXIT STATUS" in text
    found = dict(pages(main, "refabric"))
    assert {f"refabric-{name}.1" for name in COMMANDS} < set(found)
    assert "refabric-results-remove.1" in found


def test_results_are_listed_with_their_sizes(stored: Path) -> None:
    (event,) = map(json.loads, refabric("results", "--json").stdout.splitlines())
    files = [path for path in stored.rglob("*") if path.is_file()]
    assert event["experiment"] == STUDY
    assert event["points"] == 3
    assert event["size_bytes"] == sum(path.stat().st_size for path in files)
    assert event["other_files"] == []
    assert "3 points" in refabric("results").stdout


def test_removal_asks_and_leaves_what_is_not_refabrics(stored: Path, tmp_path: Path) -> None:
    point = next(path.parent for path in stored.glob("*/run.json"))
    (point / "mine.txt").write_text("mine")
    (stored / "notes.md").write_text("mine")
    (stored / "away").symlink_to(tmp_path)
    assert "nothing was removed" in refabric("results", "remove", STUDY, input="n\n").stdout
    assert contents.contents(stored).points == 3
    done = refabric("results", "remove", STUDY, "--yes")
    assert done.exit_code == 0, done.output
    left = {path.relative_to(stored).as_posix() for path in stored.rglob("*") if not path.is_dir()}
    assert left - {"away"} == {f"{point.name}/mine.txt", "notes.md"}
    assert tmp_path.is_dir()
    assert "notes.md" in done.stdout
    assert "no results of it" in refabric("results", "remove", STUDY, "--yes").stderr


def test_removal_without_anything_else_removes_the_folder(stored: Path) -> None:
    assert refabric("results", "remove", STUDY, "--yes").exit_code == 0
    assert not stored.exists()


def test_an_export_holds_report_tables_and_provenance(stored: Path) -> None:
    (stored / "notes.md").write_text("mine")
    done = refabric("export", STUDY)
    assert done.exit_code == 0, done.output
    names = zipfile.ZipFile(f"{STUDY}.zip").namelist()
    for name in ("README.txt", "report.html", "summary.csv"):
        assert f"{STUDY}/{name}" in names
    assert sum(name.endswith("/run.json") for name in names) == 3
    assert not any("samples" in name or "notes" in name for name in names)
    assert "it exists" in refabric("export", STUDY).stderr
    refabric("export", STUDY, "--samples", "--output", "all.zip")
    assert any("/samples/" in name for name in zipfile.ZipFile("all.zip").namelist())
    assert "no results of it" in refabric("export", "star").stderr


def test_a_report_compares_two_folders(stored: Path) -> None:
    assert refabric(*RUN, "--queue", "50", "--results", "other").exit_code == 0
    done = refabric("report", "--compare", str(stored), f"other/{STUDY}")
    assert done.exit_code == 0, done.output
    page = Path("comparison.html").read_text()
    assert "queue" in page
    assert "<script" not in page
    again = refabric("report", "--compare", str(stored), f"other/{STUDY}")
    assert again.exit_code == 0, "its own page is replaced"
    assert "name one experiment" in refabric("report").stderr
    Path("comparison.html").write_text("mine")
    assert "is not a report of refabric" in refabric("report", "--compare", str(stored), "other").stderr
