"""`refabric run`: a session, its sweep, and what is shown afterwards, for people or for machines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import IO, Any

from engines import registry as engines
from engines.result import Status
from experiments import figures, session, store, summary, sweep, table
from experiments.experiment import Experiment
from experiments.options import SweepOptions
from experiments.progress import JsonProgress, for_stream, write_json
from experiments.sweep import Outcome, Progress
from fabric.errors import RefabricError


def run_experiment(
    experiment: Experiment, options: SweepOptions, results: Path, force: bool, as_json: bool
) -> int:
    """Run, show and draw; the exit code. Raises RefabricError for what keeps it from starting or going on.

    With `as_json` stdout gets one object a line and nothing else; people read stderr.
    """
    human: IO[str] = sys.stderr if as_json else sys.stdout
    progress = for_stream(human)
    if as_json:
        progress = JsonProgress(sys.stdout, progress, experiment.name)
    try:
        outcome, closing = _carry_out(experiment, options, results, force, progress, human)
    except RefabricError as error:
        if as_json:
            write_json(sys.stdout, {"event": "error", "message": str(error), "exit_code": error.exit_code})
        raise
    if as_json:
        write_json(sys.stdout, {"event": "done", "exit_code": outcome.exit_code, **closing})
    return outcome.exit_code


def _carry_out(
    experiment: Experiment,
    options: SweepOptions,
    results: Path,
    force: bool,
    progress: Progress,
    human: IO[str],
) -> tuple[Outcome, dict[str, Any]]:
    engine = engines.make(options.engine)
    ready = session.prepare(experiment, options, engine, results, force, progress)
    outcome = sweep.run(ready.plan.jobs, engine, ready.store, progress, force)
    directory = ready.store.directory
    closing: dict[str, Any] = {"interrupted": outcome.interrupted, "summary": str(directory / store.SUMMARY)}
    if outcome.interrupted:
        print(_how_to_continue(outcome, directory), file=human)
        return outcome, closing
    table.print_results(human, outcome.points, experiment.published)
    # Charts show all that is stored, not this command's points alone: other k, other subflow counts.
    charts = figures.draw(
        experiment, summary.judge(store.scan(directory).points), directory, options.subflows
    )
    for path in (*charts, directory / store.SUMMARY):
        print(path, file=human)
    return outcome, {**closing, "charts": [str(path) for path in charts]}


def _how_to_continue(outcome: Outcome, directory: Path) -> str:
    finished = sum(judged.point.status is not Status.FAILED for judged in outcome.points)
    return (
        f"interrupted: {finished} of {outcome.planned} points are finished and kept in {directory}; "
        "run the same command again to continue with the rest"
    )
