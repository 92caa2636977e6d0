"""`refabric plot`, `report` and `compare`: stored results as charts, pages and tables."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from common.errors import UsageError
from harness.catalogue import additions
from harness.claims.own_settings import OwnSettings
from harness.cli import table
from harness.cli.options import (
    experiment_argument,
    json_option,
    metric_option,
    optional_experiment,
    stored_option,
    typed,
    users_path,
    warn,
)
from harness.cli.run import emit_verdicts, files_in, metrics_of, show_claims
from harness.compare import compare as comparing
from harness.compare import show
from harness.experiment import Experiment
from harness.load import load
from harness.metrics.metrics import Metric
from harness.options.fields import SUBFLOWS
from harness.plan import session
from harness.report import report as reporting
from harness.streams import console_for, write_json


@click.command(short_help="Write one HTML page of published and measured numbers.")
@optional_experiment
@stored_option
@click.option(
    "--compare",
    "sides",
    type=users_path,
    nargs=2,
    metavar="A B",
    help="Write a page on the differences between two results folders instead; then leave out EXPERIMENT.",
)
@click.option(
    "--output", type=users_path, metavar="FILE", help="Write the page to FILE instead of beside the results."
)
@json_option
def report(
    chosen: Experiment | None,
    results: Path,
    sides: tuple[Path, Path] | None,
    output: Path | None,
    as_json: bool,
) -> int:
    """Write one HTML page on an experiment: published beside measured numbers, charts, provenance.

    Damaged points are listed in it and left out (exit code 1).
    """
    if (chosen is None) == (sides is None):
        raise UsageError("report: name one experiment, or two results folders with --compare A B")
    if sides is not None:
        return _report_on_two(sides, output, as_json)
    assert chosen is not None
    found = load(chosen, results, session.make_plan(chosen, {}))
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    path = reporting.write_report(chosen, found, reporting.draw_charts(found), results, output)
    show_claims(console_for(sys.stderr if as_json else sys.stdout), found, as_json)
    warn(found.store_readings())
    if as_json:
        write_json(sys.stdout, {"event": "report", "report": str(path)})
    else:
        click.echo(str(path))
    return 1 if found.broken else 0


def _report_on_two(folders: tuple[Path, Path], output: Path | None, as_json: bool) -> int:
    """Write the page on two folders; return the exit code."""
    sides = comparing.load_sides(*folders)
    broken = [error for side in sides for error in side.broken]
    for error in broken:
        click.echo(f"refabric: {error}", err=True)
    found = comparing.compare(*sides)
    disagreements = comparing.disagreements(found)
    path = reporting.write_comparison(found, disagreements, output)
    if as_json:
        write_json(sys.stdout, {"event": "report", "report": str(path)})
    else:
        click.echo(str(path))
    return 1 if broken or disagreements else 0


@click.command(short_help="Compare two results folders.")
@click.argument("a", type=users_path)
@click.argument("b", type=users_path)
@metric_option("Compare the metrics of FILE (Python), too. Repeatable.")
@json_option
def compare(a: Path, b: Path, added: tuple[str, ...], as_json: bool) -> int:
    """Compare two results folders: for example results/cs244 of two machines or two queue sizes.

    A and B are results/<experiment> folders, results folders, or single points' folders.

    The exit code is 0 if A and B agree in all that must agree, 1 if a point of A is missing in B, a point is
    damaged or contradicts itself or summary.csv, points of one spec in virtual time are not equal, or the
    mean goodput of a setting in real time changed by more than chance explains (95 % for all intervals
    together). Settings that differ between A and B are the subject of the comparison: their results may
    differ. 2 if there is nothing to compare.
    """
    own = tuple(each for file in added for each in additions(file) if isinstance(each, Metric))
    sides = comparing.load_sides(a, b)
    for side in sides:
        for error in side.broken:
            click.echo(f"refabric: {error}", err=True)
    found = comparing.compare(*sides, more=own)
    disagreements = comparing.disagreements(found)
    (show.write if as_json else show.show)(sys.stdout, found, disagreements)
    return 1 if disagreements else 0


@click.command(short_help="Show and draw every stored point.")
@experiment_argument
@typed(replace(SUBFLOWS, help="Show these subflow counts on the axes, measured or not."))
@stored_option
@json_option
def plot(chosen: Experiment, subflows: tuple[int, ...] | None, results: Path, as_json: bool) -> int:
    """Show and draw every stored point. Damaged points are listed and left out (exit code 1)."""
    found = load(chosen, results, session.make_plan(chosen, {}))
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    if not found.points:
        where = results / chosen.folder
        raise UsageError(
            f"nothing to draw in {where}: run `refabric run {chosen.name}` first, or give --results"
        )
    drawn = reporting.draw_charts(found, subflows or ())
    charts = [path for paths in drawn.values() for path in paths]
    console = console_for(sys.stderr if as_json else sys.stdout)
    if not as_json:
        by_figure = [(shown.figure, shown.points) for shown in found.figures]
        own = OwnSettings(chosen.figures)
        table.print_figures(console, found.points, by_figure, own, metrics_of(chosen))
    for shown in found.figures:
        if shown.claims:
            continue
        if as_json:
            emit_verdicts(shown.figure, shown.verdicts)
        else:
            table.print_verdicts(console, shown.figure, shown.verdicts)
    show_claims(console, found, as_json)
    judged = [verdict for shown in found.figures if not shown.claims for verdict in shown.verdicts]
    warn(found.store_readings())
    table.print_details(console, found.points, judged)
    own, files = OwnSettings(chosen.figures), files_in(results / chosen.folder, drawn)
    table.print_closing(console, found.points, own, judged, files)
    if as_json:
        write_json(sys.stdout, {"event": "charts", "charts": [str(path) for path in charts]})
        return 1 if found.broken else 0
    for path in charts:
        if path.suffix == ".svg":
            click.echo(str(path))
    return 1 if found.broken else 0
