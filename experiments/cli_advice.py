"""Advice on a plan, told by `plan` in full and by `run` before it starts as far as it matters."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

from experiments import store
from experiments.advice import Advice, Machine, advise
from experiments.progress import write_json
from experiments.session import Session
from experiments.sweep import Job, pending_jobs

MACHINE_BOUND = ("mininet",)
"""Engines that move real packets in real time."""


def on(jobs: Sequence[Job], names: Collection[str], engine: str) -> list[Advice]:
    """Advice on those of `jobs` that are called `names`; none for an engine that needs no CPU in time."""
    if engine not in MACHINE_BOUND:
        return []
    from engines.emulation import here  # noqa: PLC0415

    return advise([job for job in jobs if job.name in names], Machine(here.capacity(), here.free_memory_mb()))


def tell(found: Sequence[Advice], as_json: bool) -> None:
    """Every line on stdout, for people or for machines."""
    for advice in found:
        if as_json:
            fields = {"lesson": advice.lesson, "severity": advice.severity, "text": advice.text}
            write_json(sys.stdout, {"event": "advice", **fields})
        else:
            click.echo(str(advice))


def before(ready: Session, engine: str, force: bool) -> list[str]:
    """What a run says before it starts: what will be suspect, or does not fit, of what is still to run."""
    pending = pending_jobs(ready.plan.jobs, store.index(ready.store.directory), force)
    found = on(pending, {job.name for job in pending}, engine)
    return [str(advice) for advice in found if advice.urgent]
