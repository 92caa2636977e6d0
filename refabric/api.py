"""`run` and `load` with all experiments of the registry."""

from __future__ import annotations

import os
from typing import Any

from experiments.registry import CATALOGUE
from harness.api import calls
from harness.api.results import Results


def run(
    experiment: str, *, results: str | os.PathLike[str] = "results", quiet: bool = False, **options: Any
) -> Results:
    """Run the points of an experiment that are not finished yet; return its points.

        refabric.run("cs244-one-to-one", k=4, engine="simulator", subflows=[1, 8], seeds=3)

    `options` are those of `refabric run`, with underscores: `random_drop=10` is `--random-drop 10`. A list
    stands for a comma-separated value (`k=[4, 8]`) or a repeated option (`event=["2:p0a0-c0"]`), a mapping
    for NAME=VALUE (`stack={"acks": "at_once"}`), True for a flag (`qmon=True`). Points are stored below
    `results`; the same call continues an interrupted run. Progress goes to stderr, unless `quiet`.

    A name that ends in `.py` is a file of the caller, which is run (docs/guide/own.md).

    Simulated hosts need no root. Raises UsageError for a bad name or value, in the words of the command line;
    HostUnfitError for an engine that this machine or user cannot run; KeyboardInterrupt when interrupted.
    """
    return calls.run(CATALOGUE, experiment, results, quiet, options)


def load(folder: str | os.PathLike[str], *, experiment: str | None = None) -> Results:
    """Return all stored points of a folder such as `results/cs244-one-to-one`.

    `experiment` names the experiment whose charts to draw, where the folder's name does not. Damaged points
    are left out and listed in `broken`. Raises UsageError for a folder without points.
    """
    return calls.load(CATALOGUE, folder, experiment)


def experiments() -> dict[str, str]:
    """Return the title of every experiment, by name, as `refabric list` does."""
    return {each.name: each.title for each in CATALOGUE}
