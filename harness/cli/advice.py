"""Advice on a plan: `plan` prints all of it, and `run` prints the urgent part before it starts."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence

import click

from engines.provenance import free_memory_mb
from harness.plan.advice import Advice, Machine, advise
from harness.plan.jobs import Job, to_run
from harness.plan.session import Session
from harness.streams import fitted, write_json

MACHINE_BOUND = ("mininet",)
"""Engines that move real packets in real time."""


def on(jobs: Sequence[Job], names: Collection[str]) -> list[Advice]:
    """Return advice on those of `jobs` that have one of these names and need CPU time in real time."""
    bound = [job for job in jobs if job.name in names and job.spec.engine in MACHINE_BOUND]
    if not bound:
        return []
    from engines.emulation import calibrate  # noqa: PLC0415

    return advise(bound, Machine(calibrate.capacity(), free_memory_mb()))


def tell(found: Sequence[Advice], as_json: bool) -> None:
    """Print every line on stdout, for people or for machines."""
    for advice in found:
        if as_json:
            fields = {"lesson": advice.lesson, "severity": advice.severity, "text": advice.text}
            write_json(sys.stdout, {"event": "advice", **fields})
        else:
            click.echo(fitted(str(advice), 2))


def before(ready: Session, force: bool) -> list[str]:
    """Return the urgent advice on what is still to run: points that will be suspect or do not fit."""
    pending = to_run(ready.jobs, ready.found.points, force, ready.retries)
    found = on(pending, {job.name for job in pending})
    return [str(advice) for advice in found if advice.urgent]
