"""`refabric plot`: show and draw what is stored."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from common.errors import UsageError
from harness.claims.own_settings import OwnSettings
from harness.cli import table
from harness.cli.options import (
    experiment_argument,
    json_option,
    stored_option,
    typed,
    warn,
)
from harness.cli.run import (
    emit_verdicts,
    files_in,
    metrics_of,
    show_claims,
)
from harness.experiment import Experiment
from harness.load import load
from harness.options.fields import SUBFLOWS
from harness.options.options import UserOptions
from harness.plan import session
from harness.report import report as reporting
from harness.streams import write_json


@click.command(short_help="Show and draw every stored point.")
@experiment_argument
@typed(replace(SUBFLOWS, help="Show these subflow counts on the axes, measured or not."))
@stored_option
@json_option
def plot(chosen: Experiment, subflows: tuple[int, ...] | None, results: Path, as_json: bool) -> int:
    """Show and draw every stored point. Damaged points are listed and left out (exit code 1)."""
    found = load(chosen, results, session.make_plan(chosen, UserOptions()))
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    if not found.points:
        where = results / chosen.folder
        raise UsageError(
            f"nothing to draw in {where}: run `refabric run {chosen.name}` first, or give --results"
        )
    drawn = reporting.draw_charts(found, subflows or ())
    charts = [path for paths in drawn.values() for path in paths]
    if not as_json:
        table.print_results(sys.stdout, found.points, OwnSettings(chosen.figures), metrics_of(chosen))
    for shown in found.figures:
        if shown.claims:
            continue
        if as_json:
            emit_verdicts(shown.figure, shown.verdicts)
        else:
            table.print_verdicts(sys.stdout, shown.figure, shown.verdicts)
    human = sys.stderr if as_json else sys.stdout
    show_claims(human, found, as_json)
    judged = [verdict for shown in found.figures if not shown.claims for verdict in shown.verdicts]
    closing = table.Closing(found.points, OwnSettings(chosen.figures), judged)
    warn(found.write_cache())
    table.print_details(human, closing)
    table.print_closing(human, closing, files_in(results / chosen.folder, drawn))
    if as_json:
        write_json(sys.stdout, {"event": "charts", "charts": [str(path) for path in charts]})
        return 1 if found.broken else 0
    for path in charts:
        if path.suffix == ".svg":
            click.echo(str(path))
    return 1 if found.broken else 0
