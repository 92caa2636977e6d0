"""`refabric list`: what there is to choose from."""

from __future__ import annotations

import sys

import click

import topos
from controllers.schedulers import SCHEDULERS
from engines import registry as engines
from engines.emulation.dataplanes.dataplane import DATAPLANES
from harness.catalogue import Catalogue
from harness.cli.options import (
    json_option,
)
from harness.options.options import sweep_workloads
from harness.options.profiles import PROFILES
from harness.streams import fitted, write_json
from model.congestion import CONGESTION_CONTROLS
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
