"""Verdicts of this version on simulated results, with the measured values: a change of one fails.

`baselines/verdicts.json` holds them. After a change that is meant to move one, run
`python tests/experiments/test_verdict_baselines.py`, and say why in the commit.

The simulator beside theory and agents beside the kernel's algorithms run as `refabric run` does. Responsive
MPTCP at k=8 runs one of its six seeds, because all take two minutes of a CPU.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import objects, refabric

BASELINES = Path(__file__).resolve().parents[2] / "baselines" / "verdicts.json"
RUNS = {
    "validation": (),
    "ccp-links": ("--engine", "simulator"),
    "responsive-mptcp-throughput": ("--engine", "simulator", "--seeds", "1"),
}


def verdicts(name: str, results: Path) -> dict[str, dict[str, Any]]:
    """Run an experiment or a figure; return the verdict and the measured value of each statement."""
    done = refabric("run", name, *RUNS[name], "--json", "--results", results)
    assert done.exit_code == 0, done.output
    return {
        f"{row['figure']}: {row['words']}": {"verdict": row["verdict"], "value": row["measured"]["value"]}
        for row in objects(done, "verdict")
    }


@pytest.mark.builds
@pytest.mark.parametrize("name", RUNS)
def test_every_verdict_is_that_of_this_version(name: str, tmp_path: Path) -> None:
    known, found = json.loads(BASELINES.read_text())[name], verdicts(name, tmp_path)
    assert {words: row["verdict"] for words, row in found.items()} == {
        words: row["verdict"] for words, row in known.items()
    }
    for words, row in found.items():
        assert row["value"] == pytest.approx(known[words]["value"], rel=1e-3, abs=1e-9), words


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        every = {name: verdicts(name, Path(folder, name)) for name in RUNS}
        BASELINES.write_text(f"{json.dumps(every, indent=1)}\n")
