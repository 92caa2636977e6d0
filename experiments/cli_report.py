"""The commands that read results only: compare."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from experiments import compare as comparing
from experiments import compare_show
from experiments.cli_options import json_option

_folder = click.Path(path_type=Path)


@click.command()
@click.argument("a", type=_folder)
@click.argument("b", type=_folder)
@json_option
def compare(a: Path, b: Path, as_json: bool) -> None:
    """Set two results folders side by side: results/cs244 of two machines, two queues, two drivers.

    A and B are results/<experiment> folders, results folders, or single points' folders.
    """
    sides = comparing.load_sides(a, b)
    for side in sides:
        for error in side.broken:
            click.echo(f"refabric: {error}", err=True)
    comparison = comparing.compare(*sides)
    (compare_show.write if as_json else compare_show.show)(sys.stdout, comparison)
