"""`refabric status`, `results`, `export` and `watch`: what is stored, and what is at work."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

import topos
from common.errors import UsageError
from common.files import label_of, write_new
from common.text import counted, one_line
from common.version import VERSION
from harness import contents
from harness.cli.config import Configurable, config_options
from harness.cli.options import (
    experiment_argument,
    interruptible,
    json_option,
    stored_option,
    sweep_options,
    users_path,
)
from harness.cli.progress import point_fields
from harness.experiment import Experiment
from harness.load import loaded
from harness.options import user_files
from harness.options.options import by_path
from harness.plan import session
from harness.results import point_results, store
from harness.streams import fitted, write_json
from model.reasons import texts
from topos import from_file, writers
from topos.from_file import RATES_MBPS

STATE_INDENT = 9
NETWORK_MBPS = 10_000.0


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
    asked = by_path(options)
    stored = store.scan(results / chosen.folder)
    made = session.make_plan(chosen, asked, stored=stored.points)
    found = loaded(chosen, results, made, stored)
    judged = {j.name: j for j in found.points}
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
        done = sum(name in judged and judged[name].finished for name in planned)
        click.echo(f"{done} of {len(made.jobs)} planned points finished; {len(judged)} stored in all")
        _print_others([judged[name] for name in judged if name not in planned])
    return 1 if found.broken else 0


def _print_others(others: Sequence[point_results.PointResult]) -> None:
    """Say how to ask about stored points that these options do not plan."""
    if others:
        engines = ",".join(sorted({judged.spec.engine for judged in others}))
        head = f"{counted(len(others), 'point')} not of this plan"
        click.echo(fitted(f"{head}: give the options of their run, such as --engine {engines}", 2))


def _print_state(
    name: str,
    judged: point_results.PointResult | None,
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
        click.echo(fitted(f"{' ' * STATE_INDENT}{reasons}", STATE_INDENT))


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
            name, points = one_line(each.path.name), counted(each.points, "point")
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
        click.echo(f"{one_line(str(each.path))}: {counted(each.points, 'point')}, {size(each.size_bytes)}")
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


@click.command(short_help="Write one zip with report, charts and provenance, or a network as a file.")
@click.argument("experiment", metavar="[EXPERIMENT]", required=False)
@stored_option
@click.option(
    "--output",
    type=users_path,
    metavar="FILE",
    help="Write to FILE. [default: EXPERIMENT.zip, or the network's name]",
)
@click.option("--samples", is_flag=True, help="Include the tables over time, which are large.")
@click.option("--topology", metavar="NETWORK", help="Write this network instead, ft,4 or file:net.json.")
@click.option(
    "--format",
    "form",
    type=click.Choice(list(writers.FORMATS)),
    default="json",
    help="The form of the network's file. [default: json]",
)
@click.option(
    "--rate",
    type=click.FloatRange(*RATES_MBPS),
    metavar="MBPS",
    help="The rate of the slowest links of the network. [default: its file's, or 10000]",
)
def export(
    experiment: str | None,
    results: Path,
    output: Path | None,
    samples: bool,
    topology: str | None,
    form: str,
    rate: float | None,
) -> None:
    """Write one zip with report, tables, charts and provenance of stored results.

    With --topology write a network for other tools: node-link JSON (networkx), GraphML, htsim's .topo or a
    topology of Mininet.
    """
    if topology:
        if experiment:
            raise UsageError(f"{experiment} and --topology {topology}: give one of them")
        (network,) = user_files.topologies("--topology", (topology,))
        suffix, written = writers.FORMATS[form]
        named = from_file.rate_mbps(str(network.params["network"])) if network.kind == from_file.KIND else 0
        text = written(topos.build(network.kind, network.params), rate or named or NETWORK_MBPS)
        target = output or Path(label_of(Path(topology.replace(",", "-"))) + suffix)
        write_new(f"--output {target}", target, text.encode())
        click.echo(f"{target}: {size(len(text))}")
        return
    if not experiment:
        raise UsageError("name an experiment that has results, or a network: --topology ft,4")
    known = {each.name: each for each in contents.experiment_folders(results)}
    if experiment not in known:
        raise UsageError(
            f"{experiment}: no results of it in {results}; there are: {', '.join(known) or 'none'}"
        )
    target = output or Path(f"{experiment}.zip")
    count, length = contents.export(known[experiment], target, samples, VERSION)
    click.echo(f"{target}: {count} files, {size(length)}")


@click.command(short_help="Show running and finished points on a live page.")
@click.argument("folder", type=users_path, default=Path("results"), metavar="[FOLDER]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="Serve on this port. [default: any that is free]",
)
@json_option
def watch(folder: Path, port: int, as_json: bool) -> None:
    """Show running and finished points on a page: the network, its queues, every subflow.

    FOLDER holds results (default: results), one experiment's, or one point. The page is served on 127.0.0.1,
    to those who have the token in its address, until Ctrl-C.
    """
    from harness.watch.points import WatchFolder  # noqa: PLC0415
    from harness.watch.server import WatchServer, until_interrupted  # noqa: PLC0415

    with interruptible(), contextlib.suppress(KeyboardInterrupt):
        server = WatchServer(WatchFolder(folder.absolute()), f"Watching {folder.absolute().name}", port)
        if as_json:
            write_json(sys.stdout, {"event": "watch", "url": server.url})
        else:
            click.echo(f"Open {server.url}")
            click.echo(f"It shows what runs and what is stored in {folder}. Ctrl-C ends it.", err=True)
        sys.stdout.flush()
        until_interrupted(server)
