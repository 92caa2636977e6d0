"""Write baselines/verdicts.json from simulated results: the verdicts that later versions are compared with.

    refabric run sigcomm11 --engine simulator --profile smoke --results FOLDER
    python docs/tools/verdicts_baseline.py FOLDER sigcomm11

FOLDER must hold nothing but what that command wrote. Verdicts of other experiments in the file are kept.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from experiments.registry import EXPERIMENTS
from harness.claims import remembered
from harness.load import load
from harness.options.options import UserOptions
from harness.plan import session


def stored(results: Path, name: str) -> dict[str, remembered.Remembered]:
    """Return the verdicts on the simulated points of an experiment. Raises StoreError for damaged points."""
    experiment = EXPERIMENTS[name]
    asked = UserOptions.of(engine="simulator")
    found = load(experiment, results, session.make_plan(experiment, asked))
    for error in found.broken:
        raise error
    rows: dict[str, remembered.Remembered] = {}
    for shown in found.figures:
        rows |= remembered.rows(shown.figure, shown.verdicts)
    return rows


@click.command()
@click.argument("results", metavar="FOLDER", type=click.Path(path_type=Path))
@click.argument(
    "names", metavar="EXPERIMENT...", nargs=-1, required=True, type=click.Choice(list(EXPERIMENTS))
)
def main(results: Path, names: Sequence[str]) -> None:
    """Store the verdicts on the results of EXPERIMENT in FOLDER as the baseline of later versions."""
    found = remembered.read()
    for name in names:
        found |= stored(results, name)
    remembered.write(found)
    print(f"{remembered.FILE}: {len(found)} verdicts")


if __name__ == "__main__":
    main()
