"""A run on a terminal has a live line, and colours unless NO_COLOR is set; in a pipe it has neither."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.stored_points import EXPERIMENT

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_S = 60.0
RUN = """
from engines import registry
from experiments.command import main
from harness.report import figures
from tests.support.fake_engine import FakeEngine
figures.draw = lambda wanted: {each.figure.name: [] for each in wanted}
registry.ENGINES["fake"] = lambda: FakeEngine(sleep_s=0.4)
main()
"""
ARGV = (sys.executable, "-c", RUN, "run", EXPERIMENT, "--engine", "fake", "--k", "4", "--subflows", "1")
COLOUR = re.compile(r"\x1b\[[0-9;]*\b(?:3[0-7]|9[0-7]|38;[0-9;]+)m")


def environment(**changes: str) -> dict[str, str]:
    outer = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    return {**outer, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **changes}


def on_a_terminal(folder: Path, **changes: str) -> str:
    """Return everything that the run writes to a terminal of its own."""
    parent, child = pty.openpty()
    until_s, written = time.monotonic() + DEADLINE_S, b""
    with subprocess.Popen(
        ARGV, cwd=folder, stdin=child, stdout=child, stderr=child, env=environment(**changes)
    ) as process:
        os.close(child)
        while time.monotonic() < until_s:
            try:
                written += os.read(parent, 65536)
            except OSError:  # EIO: the other end is closed
                break
        os.close(parent)
        assert process.wait(DEADLINE_S) == 0, written
    return written.decode()


@pytest.mark.parametrize(("changes", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_has_a_live_line_and_colours_unless_no_color_is_set(
    changes: dict[str, str], coloured: bool, tmp_path: Path
) -> None:
    written = on_a_terminal(tmp_path, **changes)
    assert "measure" in written and " left" in written, "the phase and the time left of the point that runs"
    assert bool(COLOUR.search(written)) == coloured


def test_a_pipe_has_a_line_per_point_and_no_codes(tmp_path: Path) -> None:
    done = subprocess.run(
        ARGV, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=DEADLINE_S, check=True
    )
    assert sum(line.startswith("[") for line in done.stdout.splitlines()) == 2, "the baseline and the point"
    assert "\x1b" not in done.stdout + done.stderr


def test_a_full_disk_and_an_ascii_terminal_are_no_tracebacks(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "from refabric.command import main; main()")
    with Path("/dev/full").open("w") as full:
        found = subprocess.run(
            (*command, "list"),
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
    assert (found.returncode, found.stderr.count("\n")) == (3, 1), found.stderr
    folder = tmp_path / "r\xe9sultats"
    ascii_only = environment(PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    found = subprocess.run(
        (*ARGV, "--results", str(folder)), cwd=tmp_path, env=ascii_only, capture_output=True, text=True,
        check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert found.returncode == 0, found.stderr
    assert r"r\xe9sultats" in found.stdout and "Traceback" not in found.stderr
