"""Run and load experiments from Python: the five steps of the command line, ending in results."""

from __future__ import annotations

import dataclasses
import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from common import interrupts
from common.errors import UsageError
from engines.emulation.sandbox import client
from harness import load as loading
from harness.api.points import Point
from harness.api.results import Results
from harness.catalogue import Catalogue
from harness.cli.arguments import argv_of, parsed
from harness.cli.progress import PlainProgress, for_stream
from harness.cli.run import carry_out, how_to_continue, metrics_of, request_of
from harness.cli.run import run as run_command
from harness.compare.compare import experiments_in
from harness.experiment import Experiment
from harness.load import Shown
from harness.options.options import UserOptions
from harness.plan import session
from harness.results import store
from harness.results.point_results import Judged, judge

Folder = str | os.PathLike[str]


def run(
    catalogue: Catalogue, experiment: str, results: Folder, quiet: bool, options: Mapping[str, Any]
) -> Results:
    """Run the points that are not finished yet; return the points that were asked for.

    Raises RefabricError as the command does, and KeyboardInterrupt if it is interrupted.
    """
    client.separate()
    values = {**options, "results": os.fspath(results)}
    argv = [*argv_of(run_command, values), "--", experiment]
    asked = request_of(**parsed(run_command, argv, catalogue))
    progress = PlainProgress(io.StringIO()) if quiet else for_stream(sys.stderr)
    with interrupts.never_lost():
        carried = carry_out(asked, progress)
    outcome = carried.outcome
    if outcome.interrupted:
        raise KeyboardInterrupt(how_to_continue(outcome, carried.session.store.directory))
    found = loading.loaded(asked.experiment, asked.results, carried.session.plan, outcome.stored)
    broken = [str(error) for error in found.broken]
    folder = asked.results / asked.experiment.folder
    return _results(asked.experiment, folder, outcome.points, found.figures, broken)


def load(catalogue: Catalogue, folder: Folder, experiment: str | None) -> Results:
    """Return all stored points of results/<experiment>, or of a results folder that holds one experiment.

    `experiment` names the experiment whose charts are drawn, if several share the folder. Raises UsageError
    for a folder without points.
    """
    path = _experiment_folder(Path(folder))
    chosen = _find(catalogue, path, experiment)
    if chosen is None:
        found = store.scan(path)
        points, broken = judge(found.points), found.broken
        figures: tuple[Shown, ...] = ()
    else:
        plan = session.make_plan(chosen, UserOptions())
        loaded = loading.load(dataclasses.replace(chosen, folder=path.name), path.parent, plan)
        points, broken, figures = loaded.points, loaded.broken, loaded.figures
    if not points:
        why = f": {broken[0]}" if broken else ""
        raise UsageError(f"loading {folder}: no point there can be read{why}")
    return _results(chosen or path.name, path, points, figures, [str(error) for error in broken])


def _experiment_folder(path: Path) -> Path:
    """Return the folder of the one experiment at `path`. Raises UsageError."""
    if not path.is_dir():
        what = "it is a file" if path.exists() else "there is no such folder"
        raise UsageError(f"loading {path}: {what}; give results/<experiment>, e.g. results/cs244")
    path = path.resolve()
    held = experiments_in(path)
    if len(held) > 1:
        raise UsageError(
            f"loading {path}: it holds {len(held)} experiments ({', '.join(held)}); "
            f"name one, e.g. {path / held[0]}"
        )
    return path / held[0] if held else path


def _find(catalogue: Catalogue, path: Path, experiment: str | None) -> Experiment | None:
    """Return the experiment of a folder, by its name or else the first with this folder."""
    if experiment is not None:
        return catalogue.find(experiment)
    sharing = [each for each in catalogue if each.folder == path.name]
    return next((each for each in sharing if each.name == path.name), next(iter(sharing), None))


def _results(
    of: Experiment | str,
    folder: Path,
    points: Sequence[Judged],
    figures: Sequence[Shown],
    broken: Sequence[str],
) -> Results:
    """Return the points of an experiment, or of a folder that belongs to no known experiment."""
    name, own = (of, ()) if isinstance(of, str) else (of.name, metrics_of(of))
    return Results(name, folder, [Point(name, judged, own) for judged in points], figures, broken)
