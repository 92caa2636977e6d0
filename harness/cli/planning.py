"""`refabric plan`: the points of a run, without running them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from harness.cli import advice as advising
from harness.cli.config import Configurable, config_options
from harness.cli.options import (
    experiment_argument,
    json_option,
    results_option,
    sweep_options,
)
from harness.cli.progress import (
    duration,
)
from harness.experiment import Experiment
from harness.options.options import UserOptions, retries_of
from harness.plan import jobs, session
from harness.plan.jobs import Job, pending_jobs, wall_s
from harness.points.labels import label
from harness.results import store
from harness.streams import fitted, write_json


@click.command(cls=Configurable, short_help="Show the points of a run, with their expected times.")
@experiment_argument
@config_options
@sweep_options
@results_option
@json_option
def plan(chosen: Experiment, results: Path, as_json: bool, **options: Any) -> None:
    """Show the points of a run, their order, expected time and link rate, without starting any."""
    asked = UserOptions.parsed(**options)
    stored = store.index(results / chosen.folder)
    made = session.checked_plan(chosen, asked, stored=stored)
    pending = {job.name for job in pending_jobs(made.jobs, stored, force=False)}
    to_run = {job.name for job in jobs.to_run(made.jobs, stored, force=False, retries=retries_of(asked))}
    for index, job in enumerate(made.jobs, 1):
        todo = "to run" if job.name in pending else "to retry" if job.name in to_run else "finished"
        if as_json:
            fields = _job_fields(job)
            write_json(sys.stdout, {"event": "job", "index": index, "state": todo, **fields})
        else:
            rate = "auto" if job.rate.rate_mbps is None else f"{job.rate.rate_mbps:g} Mb/s"
            head = f"{index:3} {todo:8} {duration(job.expected_s):>11} {rate:>9} "
            click.echo(fitted(head + label(job.spec), len(head)))
    left = [job for job in made.jobs if job.name in to_run]
    advice = advising.on(made.jobs, to_run)
    if as_json:
        advising.tell(advice, as_json)
        write_json(sys.stdout, {"event": "total", "points": len(made.jobs), "to_run": len(left),
                                "expected_s": wall_s(left)})  # fmt: skip
        return
    total = f"{len(made.jobs)} points, {len(left)} to run, about {duration(wall_s(left))}{_turns(left)}"
    for line in (total, *made.rate_lines(), *made.left_out()):
        click.echo(fitted(line, 2))
    advising.tell(advice, as_json)


def _turns(left: Sequence[Job]) -> str:
    """Return the time of points that run side by side and of points that run alone, if there are both."""
    alone = [job for job in left if job.at_once == 1]
    if not alone or len(alone) == len(left):
        return ""
    shared = [job for job in left if job.at_once > 1]
    return f": {duration(wall_s(shared))} side by side, then {duration(wall_s(alone))} one by one"


def _job_fields(job: Job) -> dict[str, Any]:
    """Return a job as fields for JSON; name and rate are null while the rate is not known."""
    spec = job.spec.to_json()
    spec["link"]["rate_mbps"] = job.rate.rate_mbps
    return {
        "point": None if job.rate.rate_mbps is None else job.name,
        "expected_s": job.expected_s,
        "rate_mbps": job.rate.rate_mbps,
        "rate_how": job.rate.how,
        "spec": spec,
    }
