"""A small simulated experiment, and its files edited, cut and removed as people do it."""

from __future__ import annotations

import csv
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from experiments.command import main
from tests.support import chart_files
from tests.support.stored_points import EXPERIMENT

SWEEP = ("--engine", "simulator", "--k", "4", "--subflows", "1,8", "--seeds", "2", "--seconds", "0.5")
EDITED = "*mptcp8*-s2-*"
"""The folder of the point that is edited."""


def refabric(*arguments: object) -> Result:
    """Run a command without drawing charts."""
    with pytest.MonkeyPatch.context() as patch:
        chart_files.draw_nothing(patch)
        return CliRunner().invoke(main, [str(argument) for argument in arguments])


def simulated(results: Path) -> Path:
    """Run the experiment; return its folder, which has a baseline and four points."""
    done = refabric("run", EXPERIMENT, *SWEEP, "--warmup", "0.5", "--results", results)
    assert (results / EXPERIMENT / "summary.csv").exists(), done.output
    return results / EXPERIMENT


def copied(original: Path, results: Path) -> Path:
    """Return a copy of the folder of an experiment, in another results folder."""
    return Path(shutil.copytree(original, results / original.name))


def edit_json(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))


def edit_rows(path: Path, change: Callable[[dict[str, str]], Mapping[str, str]]) -> None:
    """Replace cells of every row of a CSV file."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, **change(row)} for row in rows)


Damage = Callable[[Path], None]


def _rows(name: str, change: Callable[[dict[str, str]], Mapping[str, str]]) -> Damage:
    return lambda point: edit_rows(point / name, change)


def _run(**fields: object) -> Damage:
    return lambda point: edit_json(point / "run.json", lambda run: run.update(fields))


def _cut(point: Path) -> None:
    text = (point / "flows.csv").read_text()
    (point / "flows.csv").write_text("".join(text.splitlines(keepends=True)[:5]))


_80_MBPS = {"goodput_mbps": "80.0", "bytes_received": str(80 * 500_000 // 8)}
"""Contradicts only the mean goodput that the run recorded."""
DAMAGE: Mapping[str, tuple[Damage, str]] = {
    "all goodputs 95": (_rows("flows.csv", lambda _: {"goodput_mbps": "95.0"}), "flows.csv"),
    "one goodput": (
        _rows("flows.csv", lambda row: {"goodput_mbps": "95.0"} if row["flow"] == "7" else {}),
        "flows.csv",
    ),
    "goodputs and bytes": (_rows("flows.csv", lambda _: _80_MBPS), "flows.csv"),
    "retransmits": (_rows("flows.csv", lambda _: {"retransmits": "100"}), "flows.csv"),
    "drops": (_rows("ports.csv", lambda _: {"drops": "100"}), "ports.csv"),
    "cut": (_cut, "flows.csv"),
    "no run.json": (lambda point: (point / "run.json").unlink(), "run.json"),
    "status failed": (_run(status="failed"), "run.json"),
    "status suspect": (_run(status="suspect", reasons=["late"]), "run.json"),
    "ok with a reason": (_run(reasons=["late"]), "run.json"),
}
"""How a point is damaged, and the file that the error names."""
