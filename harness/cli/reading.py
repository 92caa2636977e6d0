"""The commands that read results only: report and compare."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from harness.cli.options import experiment_argument, json_option, results_option
from harness.cli.run import show_claims
from harness.compare import compare as comparing
from harness.compare import show
from harness.experiment import Experiment
from harness.plan import session
from harness.plan.options import Given
from harness.report import report as reporting
from harness.results.load import load
from harness.streams import write_json

_folder = click.Path(path_type=Path)


@click.command()
@experiment_argument
@results_option
@click.option(
    "--output", type=_folder, metavar="FILE", help="Write the page to FILE instead of beside the results."
)
@json_option
def report(chosen: Experiment, results: Path, output: Path | None, as_json: bool) -> int:
    """Write one HTML page on an experiment: published beside measured numbers, charts, provenance.

    Damaged points are listed in it and left out (exit code 1).
    """
    asked = Given()
    found = load(chosen, results, session.make_plan(chosen, asked, session.engine_for(chosen, asked)))
    for error in found.broken:
        click.echo(f"refabric: {error}", err=True)
    path = reporting.write_report(chosen, found, reporting.draw_charts(found), results, output)
    show_claims(sys.stderr if as_json else sys.stdout, found, as_json)
    if as_json:
        write_json(sys.stdout, {"event": "report", "report": str(path)})
    else:
        click.echo(str(path))
    return 1 if found.broken else 0


@click.command()
@click.argument("a", type=_folder)
@click.argument("b", type=_folder)
@json_option
def compare(a: Path, b: Path, as_json: bool) -> None:
    """Compare two results folders: for example results/cs244 of two machines or two queue sizes.

    A and B are results/<experiment> folders, results folders, or single points' folders.
    """
    sides = comparing.load_sides(a, b)
    for side in sides:
        for error in side.broken:
            click.echo(f"refabric: {error}", err=True)
    comparison = comparing.compare(*sides)
    (show.write if as_json else show.show)(sys.stdout, comparison)
