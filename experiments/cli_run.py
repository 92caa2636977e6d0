"""`refabric run`: a session, its sweep, and what is shown afterwards, for people or for machines."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from engines.engine import Engine
from engines.result import Status
from experiments import (
    claims,
    cli_advice,
    figures,
    report,
    report_parts_claims,
    session,
    store,
    sweep,
    table,
    verdicts,
)
from experiments.claims import once
from experiments.experiment import Experiment, Figure
from experiments.gather import Gathered, gather
from experiments.options import Given
from experiments.progress import JsonProgress, for_stream, write_json
from experiments.published import Published
from experiments.site import Here, Site
from experiments.sweep import Outcome, Progress
from fabric.errors import RefabricError


def run_experiment(
    experiment: Experiment, given: Given, results: Path, force: bool, as_json: bool, dask: str | None = None
) -> int:
    """Run, show and draw; the exit code. Raises RefabricError for what keeps it from starting or going on.

    `dask` is the address of a cluster's scheduler, whose workers carry out the points then.
    With `as_json` stdout gets one object a line and nothing else; people read stderr.
    """
    human: IO[str] = sys.stderr if as_json else sys.stdout
    progress = for_stream(human)
    if as_json:
        progress = JsonProgress(sys.stdout, progress, experiment.folder)
    try:
        outcome, closing = _carry_out(experiment, given, results, force, progress, as_json, dask)
    except RefabricError as error:
        if as_json:
            write_json(sys.stdout, {"event": "error", "message": str(error), "exit_code": error.exit_code})
        raise
    if as_json:
        write_json(sys.stdout, {"event": "done", "exit_code": outcome.exit_code, **closing})
    return outcome.exit_code


def _carry_out(
    experiment: Experiment,
    given: Given,
    results: Path,
    force: bool,
    progress: Progress,
    as_json: bool,
    dask: str | None,
) -> tuple[Outcome, dict[str, Any]]:
    human: IO[str] = sys.stderr if as_json else sys.stdout
    engine = session.engine_for(experiment, given)
    with _site(engine, dask) as site:
        ready = session.prepare(experiment, given, site, results, force, progress)
        for line in cli_advice.before(ready, force) if dask is None else ():
            progress.note(line)
        outcome = sweep.run(ready.jobs, site.crew, ready.store, progress, force)
    outcome = dataclasses.replace(outcome, planned=len(ready.plan.jobs))
    directory = ready.store.directory
    closing: dict[str, Any] = {"interrupted": outcome.interrupted, "summary": str(directory / store.SUMMARY)}
    if outcome.interrupted:
        print(_how_to_continue(outcome, directory), file=human)
        return outcome, closing
    table.print_results(human, outcome.points, published_of(experiment))
    stored = gather(experiment, results, ready.plan)
    wanted: list[figures.Wanted] = []
    for shown in stored.figures:
        figure, parts = shown.figure, ready.plan.of(shown.figure)
        # Verdicts are on the setting just run; charts show all the figure has: other rates, other durations.
        names = frozenset().union(*(part.names for part in parts))
        ours = [judged for judged in outcome.points if judged.point.name in names]
        found = verdicts.verdicts(figure, verdicts.beside(shown.points, ours))
        if not shown.claims:
            table.print_verdicts(human, figure, found)
            if as_json:
                emit_verdicts(figure, found)
        subflows = dict.fromkeys(count for part in parts for count in part.options.subflows)
        wanted.append(figures.Wanted(figure, shown.points, shown.folder, tuple(subflows)))
    show_claims(human, stored, as_json)
    charts = figures.draw(wanted)
    drawn = [path for paths in charts.values() for path in paths]
    page = report.write_report(experiment, stored, charts, results)
    for path in (*drawn, directory / store.SUMMARY, page):
        print(path, file=human)
    for line in ready.lacking:
        print(line, file=human)
    return outcome, {**closing, "charts": [str(path) for path in drawn], "report": str(page)}


@contextlib.contextmanager
def _site(engine: Engine, dask: str | None) -> Iterator[Site]:
    """This machine, or the cluster. Raises UsageError, HostUnfitError."""
    if dask is None:
        yield Here(engine)
        return
    from experiments.cluster import connected  # noqa: PLC0415

    with connected(dask, engine) as cluster:
        yield cluster


def published_of(experiment: Experiment) -> tuple[Published, ...]:
    """All published numbers of the experiment's figures, each once."""
    return tuple(dict.fromkeys(row for figure in experiment.figures for row in figure.published))


def emit_verdicts(figure: Figure, found: Sequence[verdicts.Verdict]) -> None:
    """Verdicts for machines: one object each."""
    for verdict in found:
        write_json(sys.stdout, {"event": "verdict", **verdicts.fields(figure, verdict)})


def show_claims(human: IO[str], stored: Gathered, as_json: bool) -> None:
    """A paper's contents: every claim once; for machines an object each on stdout."""
    found = once(claim for shown in stored.figures for claim in shown.claims)
    table.print_claims(human, report_parts_claims.rows(found))
    for claim in found if as_json else ():
        write_json(sys.stdout, {"event": "claim", **claims.fields(claim)})


def _how_to_continue(outcome: Outcome, directory: Path) -> str:
    finished = sum(judged.point.status is not Status.FAILED for judged in outcome.points)
    return (
        f"interrupted: {finished} of {outcome.planned} points are finished and kept in {directory}; "
        "run the same command again to continue with the rest"
    )
