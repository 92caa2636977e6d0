"""What a student sees: on a terminal of 80 columns, in a pipe, and without colours."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from engines import registry
from engines.fake import FakeEngine
from experiments.command import main
from harness.cli.commands import next_steps
from harness.cli.progress import RichProgress
from tests.harness.cli.terminal import COLUMNS, Shown, shown
from tests.support.stored_points import EXPERIMENT

ROOT = Path(__file__).resolve().parents[3]
RUN = ("run", EXPERIMENT, "--engine", "fake", "--k", "4", "--subflows", "1,2,8")
SLOW = """
from engines import registry
from engines.fake import FakeEngine
from experiments.command import main
from plots.shared import saving
saving.FORMATS = ("svg",)
registry.ENGINES["fake"] = lambda: FakeEngine(sleep_s=0.4, suspect=lambda spec: spec.transport.subflows == 2)
main()
"""


def terminal(folder: Path, *arguments: str, program: str = SLOW, **environment: str) -> Shown:
    argv = [sys.executable, "-c", program, *arguments]
    return shown(argv, folder, {"PYTHONPATH": str(ROOT), **environment})


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Shown:
    return terminal(tmp_path_factory.mktemp("first"), *RUN)


def test_everything_fits(first_run: Shown) -> None:
    assert first_run.exit_code == 1, first_run.text
    assert first_run.too_long == []


def test_each_point_has_one_line_and_what_all_share_is_said_once(first_run: Shown) -> None:
    lines = first_run.lines
    assert "4 points: k=4 one_to_one, seed 1; about" in first_run.text
    found = [line for line in lines if line.startswith("[")]
    ended = [line for line in found if " ok" in line or "suspect" in line]
    assert [line.split()[0] for line in dict.fromkeys(ended)][:4] == ["[1/4]", "[2/4]", "[3/4]", "[4/4]"]
    assert not any("one_to_one" in line for line in ended)
    assert sum(line.startswith("[2/4] TCP: ") and line.endswith(", ok") for line in lines) == 1


def test_a_bar_shows_the_point_its_phase_and_the_time_left(first_run: Shown) -> None:
    live = [
        line for line in first_run.lines if line.endswith((" left", "longer than expected")) and "━" in line
    ]
    assert any("[1/4] TCP" in line and "measure" in line for line in live), first_run.lines


def test_the_last_lines_say_what_was_found_published_and_where_the_report_is(first_run: Shown) -> None:
    said = [line for line in first_run.lines if line and not line.startswith("All ")]
    found, published, report = said[-3:]
    assert found.startswith("TCP reaches ")
    assert "MPTCP with 8 subflows" in found
    assert published == "Published (SIGCOMM'11, k=8): below 50 % and about 95 %."
    assert report == f"Open results/{EXPERIMENT}/report.html"


def test_statements_about_other_sizes_are_one_sentence(first_run: Shown) -> None:
    assert first_run.text.count("about other sizes, workloads or transports") == 1
    assert "not measured here" in first_run.text


def test_colours_are_left_out_where_asked(first_run: Shown, tmp_path: Path) -> None:
    assert first_run.coloured
    plain = terminal(tmp_path, *RUN[:-1], "1", NO_COLOR="1")
    assert not plain.coloured
    assert plain.too_long == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", "cs244"), ("plan", EXPERIMENT, "--k", "4,8", "--engine", "simulator"), ("list",), (),
        ("run", "--help"), ("plan", "sigcomm11-throughput", "--engine", "simulator"), ("run", "--nonsense"),
    ],
)  # fmt: skip
def test_other_commands_fit(arguments: tuple[str, ...], tmp_path: Path) -> None:
    program = "from experiments.command import main; main()"
    assert terminal(tmp_path, *arguments, program=program).too_long == []


def test_a_pipe_has_one_line_per_point_and_per_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(registry.ENGINES, "fake", FakeEngine)
    done = CliRunner().invoke(main, [*RUN, "--results", str(tmp_path)])
    lines = done.stdout.splitlines()
    assert sum(line.startswith("[") for line in lines) == 4
    assert lines[-1] == f"Open {tmp_path}/{EXPERIMENT}/report.html"
    assert "\x1b" not in done.stdout


def test_the_trials_of_a_calibration_are_seen() -> None:
    stream = StringIO()
    progress = RichProgress(Console(file=stream, force_terminal=True, width=COLUMNS))
    progress.phase("trying 10 Mb/s", 12.0)
    progress.note("link rate at k=4: 10 Mb/s")
    progress.end()
    assert "trying 10 Mb/s 0 s of 12 s" in stream.getvalue()
    assert "note: link rate at k=4" in stream.getvalue()


def test_the_script_and_the_command_say_the_same_next_steps() -> None:
    script = subprocess.run(
        [str(ROOT / "run_mptcp.sh"), "--help"], capture_output=True, text=True, check=True, timeout=60
    )
    steps = [line.strip() for line in next_steps().splitlines()]
    command = CliRunner().invoke(main, []).output
    assert len(steps) == 4
    for said in (script.stdout, command):
        assert [line.strip() for line in said.splitlines()][-4:] == steps
        assert [line for line in said.splitlines() if len(line) > COLUMNS] == []


def test_a_wheel_names_no_script_that_it_lacks(tmp_path: Path) -> None:
    steps = next_steps(tmp_path)
    assert "run_mptcp.sh" not in steps
    commands = [line.split("  ")[1].split() for line in steps.splitlines()[1:]]
    assert commands
    for command in commands:
        assert CliRunner().invoke(main, [*command[1:2], "--help"]).exit_code == 0
