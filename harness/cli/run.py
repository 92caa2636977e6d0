"""`refabric run` and `plan`: plan, run and show an experiment, for people or for machines."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import click
from rich.console import Console

from common import text
from common.errors import RefabricError
from engines.engine import Engine
from engines.provenance import free_memory_mb
from engines.registry import MININET
from harness import labels
from harness.claims import claims
from harness.claims.claims import Verdict, once
from harness.claims.own_settings import OwnSettings
from harness.cli import table
from harness.cli.config import Configurable, config_options
from harness.cli.machine import first_build
from harness.cli.options import (
    experiment_argument,
    interruptible,
    json_option,
    results_option,
    sweep_options,
    warn,
)
from harness.cli.progress import JsonProgress, duration, for_stream
from harness.execute import sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import MakeExecutor, Progress, SweepOutcome
from harness.experiment import Experiment, Figure
from harness.labels import label
from harness.load import ExperimentResults, FigureResults, loaded
from harness.metrics import summary_csv
from harness.metrics.metrics import Metric
from harness.options.options import by_path, retries_of
from harness.options.profiles import PROFILES
from harness.plan import jobs, session
from harness.plan.advice import Advice, advise
from harness.plan.jobs import Job, pending_jobs, to_run, wall_s
from harness.plan.machines import Machines, ThisMachine
from harness.plan.session import Session
from harness.report import report
from harness.report import tables as claim_tables
from harness.results import store
from harness.results.point_results import PointResult
from harness.streams import console_for, fitted, write_json
from model.result import Status
from model.spec import Settings

MAX_RETRIES = 100


@dataclass(frozen=True)
class RunOptions:
    """The options of `refabric run`.

    `retries` says how often a suspect point is run again. `dask` is the address of a cluster's scheduler,
    whose workers then run the points (`insecure`: root may use it without TLS). With `as_json`, stdout gets
    one object per line and nothing else; text for people goes to stderr.
    """

    experiment: Experiment
    given: Settings
    results: Path
    as_json: bool = False
    force: bool = False
    retries: int | None = None
    dask: str | None = None
    insecure: bool = False

    @property
    def human(self) -> IO[str]:
        """The stream for people."""
        return sys.stderr if self.as_json else sys.stdout


def run_experiment(asked: RunOptions) -> int:
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


def carry_out(asked: RunOptions, progress: Progress) -> tuple[Session, SweepOutcome]:
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
        for line in urgent_advice(ready, force) if asked.dask is None else ():
            progress.note(line)
        outcome = sweep.run(
            ready.jobs, make_executor, ready.store, ready.found, progress, force, ready.retries
        )
    return ready, dataclasses.replace(outcome, planned=len(ready.plan.jobs))


def _carry_out_and_show(asked: RunOptions, progress: Progress) -> tuple[SweepOutcome, dict[str, Any]]:
    ready, outcome = carry_out(asked, progress)
    if outcome.interrupted:
        if all_finished(outcome):
            own = OwnSettings(asked.experiment.figures)
            console = console_for(asked.human)
            table.print_results(console, outcome.points, own, metrics_of(asked.experiment))
        print(how_to_continue(outcome, ready.store.directory), file=asked.human)
        closing = {"summary": str(ready.store.directory / store.SUMMARY)}
    else:
        closing = _show(asked, ready, outcome)
    return outcome, {"interrupted": outcome.interrupted, **closing}


def _show(asked: RunOptions, ready: Session, outcome: SweepOutcome) -> dict[str, Any]:
    """Print tables and verdicts, write charts and the report; return their paths for JSON."""
    console, directory, own = console_for(asked.human), ready.store.directory, metrics_of(asked.experiment)
    ours = [_of_figure(ready, figure, outcome.points) for figure in asked.experiment.figures]
    by_figure = zip(asked.experiment.figures, ours, strict=True)
    table.print_figures(console, outcome.points, by_figure, OwnSettings(asked.experiment.figures), own)
    if own:
        summary_csv.write(ready.store, outcome.stored.points, own)
    stored = loaded(asked.experiment, asked.results, ready.plan, outcome.stored)
    wanted: list[FigureResults] = []
    judged: list[Verdict] = []
    for shown, of_figure in zip(stored.figures, ours, strict=True):
        figure, plans = shown.figure, ready.plan.of(shown.figure)
        # Verdicts are about the setting just run. Charts show all points: also other rates and durations.
        found = claims.verdicts(figure, claims.beside(shown.points, of_figure))
        if not shown.claims:
            judged += found
            table.print_verdicts(console, figure, found)
            if asked.as_json:
                emit_verdicts(figure, found)
        subflows = dict.fromkeys(count for each in plans for count in each.options.subflows)
        wanted.append(dataclasses.replace(shown, expected=tuple(subflows)))
    show_claims(console, stored, asked.as_json)
    before = {point.name: point.digest for point in ready.found.points}
    warn(stored.store_readings([p.name for p in stored.points if before.get(p.name) != p.digest]))
    charts, page = report.draw_and_report(asked.experiment, stored, wanted, asked.results)
    drawn = [path for paths in charts.values() for path in paths]
    settings = OwnSettings(asked.experiment.figures)
    table.print_details(console, outcome.points, judged, ready.lacking)
    files, headline = files_in(directory, charts), report.headline(charts)
    table.print_closing(console, outcome.points, settings, judged, files, page, headline)
    summary = str(directory / store.SUMMARY)
    return {"summary": summary, "charts": [str(path) for path in drawn], "report": str(page)}


def _of_figure(ready: Session, figure: Figure, points: Sequence[PointResult]) -> list[PointResult]:
    """Return those points that a figure planned."""
    names = frozenset().union(*(each.names for each in ready.plan.of(figure)))
    return [point for point in points if point.name in names]


def files_in(directory: Path, charts: Mapping[str, Sequence[Path]]) -> str:
    """Return a line on what lies in a results folder beside the report."""
    count = len({path.with_suffix("") for paths in charts.values() for path in paths})
    drawn = f"{text.counted(count, 'chart')}, " if count else ""
    return f"{drawn}{store.SUMMARY} and every point are in {directory}"


@contextlib.contextmanager
def _machines(
    engine: Engine, asked: RunOptions, progress: Progress
) -> Iterator[tuple[Machines, MakeExecutor]]:
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


def emit_verdicts(figure: Figure, found: Sequence[claims.Verdict]) -> None:
    """Write one JSON object per verdict."""
    for verdict in found:
        write_json(sys.stdout, {"event": "verdict", **claims.verdict_fields(figure, verdict)})


def show_claims(console: Console, stored: ExperimentResults, as_json: bool) -> None:
    """Print every claim of a paper once; with `as_json` also write one object per claim on stdout."""
    found = once(claim for shown in stored.figures for claim in shown.claims)
    table.print_claims(console, claim_tables.claim_rows(found), claim_tables.score_of(found))
    for claim in found if as_json else ():
        write_json(sys.stdout, {"event": "claim", **claims.claim_fields(claim)})


def all_finished(outcome: SweepOutcome) -> bool:
    """Return whether only retries were left when the run was interrupted."""
    return len(outcome.points) == outcome.planned and all(j.finished for j in outcome.points)


def how_to_continue(outcome: SweepOutcome, directory: Path) -> str:
    """Return the line for the user of an interrupted run."""
    if all_finished(outcome):
        return (
            f"interrupted: all {outcome.planned} points are finished and kept in {directory}; run the same "
            "command again to repeat the suspect ones"
        )
    finished = sum(judged.status is not Status.FAILED for judged in outcome.points)
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
) -> RunOptions:
    """Return what `refabric run` was asked for, by its parsed parameters. Raises UsageError."""
    asked = by_path(options)
    return RunOptions(chosen, asked, results, as_json, force, retries_of(asked, retries), dask, insecure)


def _check_plan(given: dict[str, Any]) -> None:
    """Raise UsageError for an experiment of which nothing can be run."""
    asked = request_of(**given)
    stored = () if asked.force else store.scan(asked.results / asked.experiment.folder).points
    session.checked_plan(asked.experiment, asked.given, stored=stored)


run.check = _check_plan


@click.command("plan", cls=Configurable, short_help="Show the points of a run, with their expected times.")
@experiment_argument
@config_options
@sweep_options
@results_option
@json_option
def plan_command(chosen: Experiment, results: Path, as_json: bool, **options: Any) -> None:
    """Show the points of a run, their order, expected time and link rate, without starting any."""
    asked = by_path(options)
    stored = store.scan(results / chosen.folder).points
    made = session.checked_plan(chosen, asked, stored=stored)
    pending = {job.name for job in pending_jobs(made.jobs, stored, force=False)}
    to_run = {job.name for job in jobs.to_run(made.jobs, stored, force=False, retries=retries_of(asked))}
    axes = labels.shared([job.spec for job in made.jobs]).axes
    for index, job in enumerate(made.jobs, 1):
        todo = "to run" if job.name in pending else "to retry" if job.name in to_run else "finished"
        if as_json:
            known = job.rate.rate_mbps is not None
            spec = job.spec.to_json()
            spec["link"]["rate_mbps"] = job.rate.rate_mbps
            fields = {
                "point": job.name if known else None,
                "expected_s": job.expected_s,
                "rate_mbps": job.rate.rate_mbps,
                "rate_how": job.rate.how,
                "spec": spec,
            }
            write_json(sys.stdout, {"event": "job", "index": index, "state": todo, **fields})
        else:
            rate = "auto" if job.rate.rate_mbps is None else f"{job.rate.rate_mbps:g} Mb/s"
            head = f"{index:3} {todo:8} {duration(job.expected_s):>11} {rate:>9} "
            click.echo(fitted(head + label(job.spec, axes), len(head)))
    left = [job for job in made.jobs if job.name in to_run]
    advice = machine_advice(made.jobs, to_run)
    if as_json:
        print_advice(advice, as_json)
        write_json(sys.stdout, {"event": "total", "points": len(made.jobs), "to_run": len(left),
                                "expected_s": wall_s(left)})  # fmt: skip
        return
    total = f"{len(made.jobs)} points, {len(left)} to run, about {duration(wall_s(left))}"
    alone, shared = ([job for job in left if (job.at_once == 1) == one] for one in (True, False))
    if alone and shared:
        total += f": {duration(wall_s(shared))} side by side, then {duration(wall_s(alone))} one by one"
    for line in (total, *made.setting_lines(), *made.left_out()):
        click.echo(fitted(line, 2))
    print_advice(advice, as_json)


def machine_advice(jobs: Sequence[Job], names: Collection[str]) -> list[Advice]:
    """Return advice on those of `jobs` that have one of these names and move real packets in real time."""
    bound = [job for job in jobs if job.name in names and job.spec.engine == MININET]
    if not bound:
        return []
    from engines.emulation import calibrate  # noqa: PLC0415

    return advise(bound, calibrate.capacity(), free_memory_mb())


def print_advice(found: Sequence[Advice], as_json: bool) -> None:
    """Print every line on stdout, for people or for machines."""
    for advice in found:
        if as_json:
            fields = {"lesson": advice.lesson, "severity": advice.severity, "text": advice.text}
            write_json(sys.stdout, {"event": "advice", **fields})
        else:
            click.echo(fitted(str(advice), 2))


def urgent_advice(ready: Session, force: bool) -> list[str]:
    """Return the urgent advice on what is still to run: points that will be suspect or do not fit."""
    pending = to_run(ready.jobs, ready.found.points, force, ready.retries)
    found = machine_advice(pending, {job.name for job in pending})
    return [str(advice) for advice in found if advice.urgent]
