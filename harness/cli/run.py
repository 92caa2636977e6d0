"""`refabric run`: plan, run and show an experiment, for people or for machines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click

from common import grammar
from common.errors import RefabricError
from engines.engine import Engine
from engines.registry import SIMULATOR
from harness.claims import claims, remembered, verdicts
from harness.claims.claims import once
from harness.claims.own_settings import OwnSettings
from harness.claims.verdicts import Verdict
from harness.cli import advice as advising
from harness.cli import table
from harness.cli.config import Configurable, config_options
from harness.cli.kernel import first_build
from harness.cli.options import (
    experiment_argument,
    interruptible,
    json_option,
    results_option,
    sweep_options,
    warn,
)
from harness.cli.progress import JsonProgress, for_stream
from harness.execute import sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import MakeExecutor, Outcome, Progress
from harness.experiment import Experiment, Figure
from harness.load import Loaded, loaded
from harness.metrics import columns
from harness.metrics.metric import Metric
from harness.options.options import UserOptions, retries_of
from harness.options.profiles import NO_RETRIES, PROFILES, Retries
from harness.plan import session
from harness.plan.machines import Machines, ThisMachine
from harness.plan.session import Session
from harness.report import claims as claim_tables
from harness.report import figures, kept
from harness.results import store
from harness.streams import write_json
from model.result import Status

MAX_RETRIES = 100


@dataclass(frozen=True)
class Request:
    """The options of `refabric run`.

    `retries` says how often a suspect point is run again. `dask` is the address of a cluster's scheduler,
    whose workers then run the points (`insecure`: root may use it without TLS). With `as_json`, stdout gets
    one object per line and nothing else; text for people goes to stderr.
    """

    experiment: Experiment
    given: UserOptions
    results: Path
    as_json: bool = False
    force: bool = False
    retries: Retries = NO_RETRIES
    dask: str | None = None
    insecure: bool = False

    @property
    def human(self) -> IO[str]:
        """The stream for people."""
        return sys.stderr if self.as_json else sys.stdout


def run_experiment(asked: Request) -> int:
    """Run, show and draw; return the exit code. Raises RefabricError if it cannot start or continue."""
    progress = for_stream(asked.human)
    if asked.as_json:
        progress = JsonProgress(sys.stdout, progress, asked.experiment.folder)
    try:
        outcome, closing = _carry_out_and_show(asked, progress)
    except RefabricError as error:
        if asked.as_json:
            write_json(sys.stdout, {"event": "error", "message": str(error), "exit_code": error.exit_code})
        raise
    if asked.as_json:
        write_json(sys.stdout, {"event": "done", "exit_code": outcome.exit_code, **closing})
    return outcome.exit_code


@dataclass(frozen=True)
class Carried:
    """A sweep that was carried out: its session and its outcome."""

    session: Session
    outcome: Outcome


def carry_out(asked: Request, progress: Progress) -> Carried:
    """Plan and execute; show nothing but progress. Raises RefabricError if it cannot start or continue."""
    experiment, force = asked.experiment, asked.force
    engine = session.engine_for(experiment, asked.given)
    with _machines(engine, asked, progress) as (machines, make_executor):
        try:
            ready = session.prepare(
                experiment, asked.given, machines, asked.results, force, progress, asked.retries
            )
        finally:
            progress.end()
        for line in advising.before(ready, force) if asked.dask is None else ():
            progress.note(line)
        outcome = sweep.run(
            ready.jobs, make_executor, ready.store, ready.found, progress, force, ready.retries
        )
    return Carried(ready, dataclasses.replace(outcome, planned=len(ready.plan.jobs)))


def _carry_out_and_show(asked: Request, progress: Progress) -> tuple[Outcome, dict[str, Any]]:
    carried = carry_out(asked, progress)
    ready, outcome = carried.session, carried.outcome
    if outcome.interrupted:
        if all_finished(outcome):
            table.print_results(
                asked.human,
                outcome.points,
                OwnSettings(asked.experiment.figures),
                metrics_of(asked.experiment),
            )
        print(how_to_continue(outcome, ready.store.directory), file=asked.human)
        closing = {"summary": str(ready.store.directory / store.SUMMARY)}
    else:
        closing = _show(asked, ready, outcome)
    return outcome, {"interrupted": outcome.interrupted, **closing}


def _show(asked: Request, ready: Session, outcome: Outcome) -> dict[str, Any]:
    """Print tables and verdicts, write charts and the report; return their paths for JSON."""
    human, directory, own = asked.human, ready.store.directory, metrics_of(asked.experiment)
    table.print_results(human, outcome.points, OwnSettings(asked.experiment.figures), own)
    if own:
        columns.write(ready.store, outcome.stored.points, columns.Rows(own))
    stored = loaded(asked.experiment, asked.results, ready.plan, outcome.stored)
    wanted: list[figures.Wanted] = []
    judged: list[Verdict] = []
    simulated: dict[str, remembered.Remembered] = {}
    for shown in stored.figures:
        figure, plans = shown.figure, ready.plan.of(shown.figure)
        # Verdicts are about the setting just run. Charts show all points: also other rates and durations.
        names = frozenset().union(*(each.names for each in plans))
        ours = [point for point in outcome.points if point.point.name in names]
        found = verdicts.verdicts(figure, verdicts.beside(shown.points, ours), shown.measure)
        if all(point.spec.engine == SIMULATOR for point in ours):
            simulated |= remembered.rows(figure, found)
        if not shown.claims:
            judged += found
            table.print_verdicts(human, figure, found)
            if asked.as_json:
                emit_verdicts(figure, found)
        subflows = dict.fromkeys(count for each in plans for count in each.options.subflows)
        wanted.append(figures.Wanted(figure, shown.points, shown.folder, tuple(subflows)))
    show_claims(human, stored, asked.as_json)
    charts, page = kept.draw_and_report(asked.experiment, stored, wanted, asked.results)
    warn(stored.write_cache())
    drawn = [path for paths in charts.values() for path in paths]
    beside = remembered.compared(remembered.read(), simulated)
    closing = table.Closing(outcome.points, OwnSettings(asked.experiment.figures), judged)
    table.print_details(human, closing, [*ready.lacking, str(beside)])
    table.print_closing(human, closing, files_in(directory, charts), page)
    summary = str(directory / store.SUMMARY)
    drawn_paths = [str(path) for path in drawn]
    changed = {"verdicts_known": beside.known, "verdicts_changed": beside.changed}
    return {"summary": summary, "charts": drawn_paths, "report": str(page), **changed}


def files_in(directory: Path, charts: Mapping[str, Sequence[Path]]) -> str:
    """Return a line on what lies in a results folder beside the report."""
    count = len({path.with_suffix("") for paths in charts.values() for path in paths})
    drawn = f"{grammar.counted(count, 'chart')}, " if count else ""
    return f"{drawn}{store.SUMMARY} and every point are in {directory}"


@contextlib.contextmanager
def _machines(engine: Engine, asked: Request, progress: Progress) -> Iterator[tuple[Machines, MakeExecutor]]:
    """Yield this machine, or the cluster, and its executors. Raises UsageError, HostUnfitError."""
    if asked.dask is None:
        here = ThisMachine(engine, lambda: first_build(progress.note))
        yield here, functools.partial(LocalExecutor, engine)
        return
    from harness.execute.dask_cluster import connected  # noqa: PLC0415

    with connected(asked.dask, engine, asked.insecure) as cluster:
        yield cluster, cluster.executor


def metrics_of(experiment: Experiment) -> tuple[Metric, ...]:
    """Return the metrics of a user's file."""
    return tuple(metric for figure in experiment.figures for metric in figure.metrics)


def emit_verdicts(figure: Figure, found: Sequence[verdicts.Verdict]) -> None:
    """Write one JSON object per verdict."""
    for verdict in found:
        write_json(sys.stdout, {"event": "verdict", **verdicts.fields(figure, verdict)})


def show_claims(human: IO[str], stored: Loaded, as_json: bool) -> None:
    """Print every claim of a paper once; with `as_json` also write one object per claim on stdout."""
    found = once(claim for shown in stored.figures for claim in shown.claims)
    table.print_claims(human, claim_tables.rows(found), claim_tables.score(found))
    for claim in found if as_json else ():
        write_json(sys.stdout, {"event": "claim", **claims.fields(claim)})


def all_finished(outcome: Outcome) -> bool:
    """Return whether only retries were left when the run was interrupted."""
    return len(outcome.points) == outcome.planned and all(j.point.finished for j in outcome.points)


def how_to_continue(outcome: Outcome, directory: Path) -> str:
    """Return the line for the user of an interrupted run."""
    if all_finished(outcome):
        return (
            f"interrupted: all {outcome.planned} points are finished and kept in {directory}; run the same "
            "command again to repeat the suspect ones"
        )
    finished = sum(judged.point.status is not Status.FAILED for judged in outcome.points)
    return (
        f"interrupted: {finished} of {outcome.planned} points are finished and kept in {directory}; "
        "run the same command again to continue with the rest"
    )


@click.command(cls=Configurable, short_help="Run the unfinished points, then show and draw the results.")
@experiment_argument
@config_options
@sweep_options
@results_option
@click.option("--force", is_flag=True, help="Run finished points again.")
@click.option(
    "--retry-suspect",
    "retries",
    type=click.IntRange(0, MAX_RETRIES),
    metavar="N",
    help="Run points that are suspect because of the machine alone up to N more times. [default: "
    + ", ".join(f"{p.retries} in profile {p.name}" for p in PROFILES.values())
    + "] Baselines run up to three times in all, unless N is 0.",
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Run the points on the workers of the Dask scheduler at ADDRESS (tcp://HOST:PORT).",
)
@click.option("--insecure", is_flag=True, help="Let root connect to a scheduler without TLS.")
@json_option
def run(**given: Any) -> int:
    """Run the points of an experiment that are not finished yet, then show and draw the results.

    Charts and report are made again only if something that they show has changed, or if one of their files
    was changed or removed. `refabric plot` and `refabric report` always make them.
    """
    asked = request_of(**given)
    with interruptible():
        return run_experiment(asked)


def request_of(
    *,
    chosen: Experiment,
    results: Path,
    force: bool,
    retries: int | None,
    dask: str | None,
    insecure: bool,
    as_json: bool,
    **options: Any,
) -> Request:
    """Return what `refabric run` was asked for, by its parsed parameters. Raises UsageError."""
    asked = UserOptions.parsed(**options)
    return Request(chosen, asked, results, as_json, force, retries_of(asked, retries), dask, insecure)


def _check_plan(given: dict[str, Any]) -> None:
    """Raise UsageError for an experiment of which nothing can be run."""
    asked = request_of(**given)
    stored = () if asked.force else store.index(asked.results / asked.experiment.folder)
    engine = session.engine_for(asked.experiment, asked.given)
    session.checked_plan(asked.experiment, asked.given, engine, stored)


run.check = _check_plan
