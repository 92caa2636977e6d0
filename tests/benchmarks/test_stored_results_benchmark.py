"""The benchmark of commands on stored results reports the cost of each run."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from benchmarks.stored_results import main


def test_costs_of_each_run(tmp_path: Path) -> None:
    command = ["status", "cs244-one-to-one", "--engine", "max-min", "--k", "4", "--results", str(tmp_path)]
    done = CliRunner().invoke(main, ["--times", "2", "--json", "--", *command])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert found["command"] == command
    assert [run["exit_code"] for run in found["runs"]] == [0, 0]
    assert all(run["peak_mb"] > 10 and run["cpu_s"] > 0 for run in found["runs"])
    assert found["machine"]
