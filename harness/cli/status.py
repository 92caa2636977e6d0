"""`refabric status`: which points are stored, and how they ended."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from common.grammar import are, points
from harness.cli.config import Configurable, config_options
from harness.cli.options import (
    experiment_argument,
    json_option,
    stored_option,
    sweep_options,
)
from harness.cli.progress import (
    point_fields,
)
from harness.experiment import Experiment
from harness.load import loaded
from harness.options.options import UserOptions
from harness.plan import session
from harness.results import point_results, store
from harness.streams import fitted, write_json
from model.reasons import texts

INDENT = 9


@click.command(cls=Configurable, short_help="Show which points are ok, suspect, failed, damaged or missing.")
@experiment_argument
@config_options
@sweep_options
@stored_option
@json_option
def status(chosen: Experiment, results: Path, as_json: bool, **options: Any) -> int:
    """Show which points are ok, suspect, failed, damaged or missing.

    Damaged files are named (exit code 1).
    """
    asked = UserOptions.parsed(**options)
    stored = store.scan(results / chosen.folder)
    made = session.make_plan(chosen, asked, stored=stored.points)
    found = loaded(chosen, results, made, stored)
    judged = {j.point.name: j for j in found.points}
    planned = [job.name for job in made.jobs if job.rate.rate_mbps is not None]
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    damaged = stored.lost_points
    for name in dict.fromkeys((*planned, *judged, *damaged)):
        state = "damaged" if name in damaged else "missing"
        _print_state(name, judged.get(name), state, name in planned, chosen.folder, as_json)
    if not made.certain:
        click.echo(
            "points at a link rate that is to be measured first have no names yet: give --rate", err=True
        )
    if not as_json:
        done = sum(name in judged and judged[name].point.finished for name in planned)
        click.echo(f"{done} of {len(made.jobs)} planned points finished; {len(judged)} stored in all")
        _print_others([judged[name] for name in judged if name not in planned])
    return 1 if found.broken else 0


def _print_others(others: Sequence[point_results.Judged]) -> None:
    """Say how to ask about stored points that these options do not plan."""
    if others:
        engines = ",".join(sorted({judged.spec.engine for judged in others}))
        head = f"{points(len(others))} {are(len(others))} not of this plan"
        click.echo(fitted(f"{head}: give the options of their run, such as --engine {engines}", 2))


def _print_state(
    name: str,
    judged: point_results.Judged | None,
    absence: str,
    planned: bool,
    experiment: str,
    as_json: bool,
) -> None:
    if as_json:
        fields = point_fields(experiment, judged) if judged else {"point": name, "status": absence}
        write_json(sys.stdout, {"event": "status", "planned": planned, **fields})
        return
    reasons = texts(judged.reasons) if judged else ""
    state = judged.state if judged else absence
    line = f"{state:8} {name}{'' if planned else '  (not of this plan)'}"
    click.echo(line)
    if reasons:
        click.echo(fitted(f"{' ' * INDENT}{reasons}", INDENT))
