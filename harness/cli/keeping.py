"""The commands that keep results: list, remove and export them."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from common.errors import UsageError
from common.grammar import points as counted_points
from common.printable import one_line
from common.version import VERSION
from harness.cli.options import json_option, stored_option, users_path
from harness.results import contents, store
from harness.results import contents as exporting
from harness.streams import write_json

MAX_SHOWN = 5


def size(of: float) -> str:
    """Return a number of bytes as text: `512 B`, `1.4 MB`."""
    for unit in ("B", "kB", "MB"):
        if of < 1000:
            return f"{of:.0f} {unit}" if unit == "B" else f"{of:.1f} {unit}"
        of /= 1000
    return f"{of:.1f} GB"


@click.group(
    invoke_without_command=True, short_help="List stored experiments with their sizes, or remove them."
)
@stored_option
@json_option
@click.pass_context
def results(context: click.Context, results: Path, as_json: bool) -> int:
    """List the stored experiments with their points and sizes, or remove them.

    Damaged files are named (exit code 1).
    """
    context.obj = results
    if context.invoked_subcommand is not None:
        return 0
    found = [contents.contents(folder) for folder in contents.experiment_folders(results)]
    broken = False
    for each in found:
        scan = store.scan(each.path)
        broken = broken or bool(scan.broken)
        for error in scan.broken:
            click.echo(f"refabric: {error}", err=True)
        damaged = f"  {len(scan.lost_points)} damaged" if scan.lost_points else ""
        if as_json:
            fields = {
                "points": each.points,
                "damaged": len(scan.lost_points),
                "size_bytes": each.size_bytes,
                "other_files": list(each.foreign),
            }
            write_json(sys.stdout, {"event": "results", "experiment": each.path.name, **fields})
        else:
            name, points = one_line(each.path.name), counted_points(each.points)
            click.echo(f"{name:<36} {points:>12} {size(each.size_bytes):>10}{damaged}")
    if not as_json:
        total = size(sum(each.size_bytes for each in found))
        click.echo(
            f"{len(found)} experiments in {results}, {total}"
            if found
            else f"there are no results in {results}"
        )
    return 1 if broken else 0


@results.command()
@click.argument("names", nargs=-1, required=True, metavar="EXPERIMENT...")
@click.option("--yes", is_flag=True, help="Remove them without asking.")
@click.option("--results", "own", type=users_path, metavar="DIR", help="Remove results in this folder.")
@click.pass_obj
def remove(folder: Path, names: tuple[str, ...], yes: bool, own: Path | None) -> None:
    """Remove all results of these experiments. Files that refabric did not write stay."""
    folder = own or folder
    known = {each.name: each for each in contents.experiment_folders(folder)}
    for name in names:
        if name not in known:
            raise UsageError(f"{name}: no results of it in {folder}; there are: {', '.join(known) or 'none'}")
    found = [contents.contents(known[name]) for name in dict.fromkeys(names)]
    for each in found:
        click.echo(f"{one_line(str(each.path))}: {counted_points(each.points)}, {size(each.size_bytes)}")
    if not yes and not click.confirm("Remove them?"):
        click.echo("nothing was removed")
        return
    for each in found:
        left = contents.remove(each.path)
        more = f" and {len(left) - MAX_SHOWN} more" if len(left) > MAX_SHOWN else ""
        kept = (
            f"; left there, not written by refabric: {', '.join(map(one_line, left[:MAX_SHOWN]))}{more}"
            if left
            else ""
        )
        click.echo(f"removed {one_line(each.path.name)}{kept}")


@click.command(short_help="Write one zip with report, charts and provenance.")
@click.argument("experiment", metavar="EXPERIMENT")
@stored_option
@click.option(
    "--output",
    type=users_path,
    metavar="FILE",
    help="Write the archive to FILE (.zip). [default: EXPERIMENT.zip]",
)
@click.option("--samples", is_flag=True, help="Include the tables over time, which are large.")
def export(experiment: str, results: Path, output: Path | None, samples: bool) -> None:
    """Write one zip with report, tables, charts and provenance of stored results."""
    known = {each.name: each for each in contents.experiment_folders(results)}
    if experiment not in known:
        raise UsageError(
            f"{experiment}: no results of it in {results}; there are: {', '.join(known) or 'none'}"
        )
    target = output or Path(f"{experiment}.zip")
    count, length = exporting.export(known[experiment], target, samples, VERSION)
    click.echo(f"{target}: {count} files, {size(length)}")
