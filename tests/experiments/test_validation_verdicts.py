"""Verdicts of this version on the statements that theory makes about the simulator: a change of one fails.

`baselines/verdicts.json` holds them with the measured values. After a change that is meant to move one, run
`python tests/experiments/test_validation_verdicts.py`, and say why in the commit.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from experiments.command import main

BASELINES = Path(__file__).resolve().parents[2] / "baselines" / "verdicts.json"


def verdicts(results: Path) -> dict[str, dict[str, Any]]:
    """Run the experiment `validation`; return the verdict and the measured value of each statement."""
    done = CliRunner().invoke(main, ["run", "validation", "--json", "--results", str(results)])
    assert done.exit_code == 0, done.output
    events = (json.loads(line) for line in done.stdout.splitlines())
    return {
        f"{row['figure']}: {row['words']}": {"verdict": row["verdict"], "value": row["measured"]["value"]}
        for row in events
        if row["event"] == "verdict"
    }


@pytest.mark.builds
def test_every_verdict_on_theory_is_that_of_this_version(tmp_path: Path) -> None:
    known, found = json.loads(BASELINES.read_text()), verdicts(tmp_path)
    assert {name: row["verdict"] for name, row in found.items()} == {
        name: row["verdict"] for name, row in known.items()
    }
    for name, row in found.items():
        assert row["value"] == pytest.approx(known[name]["value"], rel=1e-3, abs=1e-9), name


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        BASELINES.write_text(f"{json.dumps(verdicts(Path(folder)), indent=1)}\n")
