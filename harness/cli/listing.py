"""`refabric list` and `refabric new`: what there is to choose from, and a file to begin with."""

from __future__ import annotations

import sys
from pathlib import Path

import click

import topos
from common.errors import UsageError
from common.files import write_new
from controllers.routing import POLICIES
from controllers.schedulers import SCHEDULERS
from engines import registry as engines
from engines.emulation.dataplanes.dataplane import DATAPLANES
from harness.catalogue import FILE_SUFFIX, Catalogue
from harness.cli.options import json_option, users_path
from harness.options.options import sweep_workloads
from harness.options.profiles import PROFILES
from harness.streams import fitted, write_json
from model.congestion import CONGESTION_CONTROLS
from model.spec import QUEUES, TRANSPORTS, usual_settings
from plots.registry import CHARTS
from workloads import matrices
from workloads.matrices import MATRICES

LIST_WIDTH = 28


@click.command("list", short_help="List experiments, charts, topologies, workloads, engines.")
@json_option
@click.pass_obj
def list_(catalogue: Catalogue, as_json: bool) -> None:
    """List experiments, charts, topologies, workloads, engines and so on, one per line."""
    known = {
        "experiments": {e.name: e.title for e in catalogue},
        "charts": {chart.name: chart.title for chart in CHARTS.values()},
        "topologies": {kind: f"{f.title}, e.g. {f.example}" for kind, f in topos.TOPOLOGIES.items()},
        "workloads": {
            matrices.label(name, MATRICES[name].defaults): MATRICES[name].title for name in sweep_workloads()
        },
        "congestion controls": {name: cc.title for name, cc in CONGESTION_CONTROLS.items()},
        "schedulers": {name: scheduler.about for name, scheduler in SCHEDULERS.items()},
        "routing": {policy.form(name): policy.about for name, policy in POLICIES.items()},
        "transports": {name: usual_settings(kind) for name, kind in TRANSPORTS.items()},
        "queue disciplines": {name: usual_settings(kind) for name, kind in QUEUES.items()},
        "data planes": {name: plane.about for name, plane in DATAPLANES.items()},
        "engines": {name: engines.ABOUT.get(name, "") for name in engines.ENGINES},
        "profiles": {p.name: p.about for p in PROFILES.values()},
    }
    if as_json:
        write_json(sys.stdout, known)
        return
    for heading, entries in known.items():
        click.echo(f"{heading}:")
        for name, about in entries.items():
            click.echo(fitted(f"  {name:<{LIST_WIDTH}} {about}".rstrip(), LIST_WIDTH + 3))


TEMPLATE = Path(__file__).with_name("template.txt")
TEMPLATE_NAME = "NAME"


@click.group(short_help="Write the template of an experiment of your own.")
def new() -> None:
    """Write the template of an experiment of your own."""


@new.command(short_help="Write a commented experiment to FILE, which ends in .py.")
@click.argument("file", type=users_path)
@click.pass_obj
def experiment(catalogue: Catalogue, file: Path) -> None:
    """Write a commented experiment to FILE, which ends in .py; it runs as it is."""
    name = file.stem
    if file.suffix != FILE_SUFFIX or not (name.isascii() and name.replace("_", "").isalnum()):
        raise UsageError(
            f"{file}: name a file of letters, digits and '_' that ends in {FILE_SUFFIX}, e.g. mine.py"
        )
    if any(name in (each.name, each.folder) for each in catalogue):
        raise UsageError(f"{file}: refabric has an experiment called {name}; choose another name")
    text = TEMPLATE.read_text().replace(TEMPLATE_NAME, name)
    write_new(str(file), file, text.encode())
    click.echo(f"{file}: run it with  refabric run {file if file.is_absolute() else f'./{file}'}")
