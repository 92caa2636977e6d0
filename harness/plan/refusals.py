"""Leave out the figures of a plan that an engine refuses, whatever the machine."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence

from common.errors import HostUnfitError, UsageError
from harness.plan.jobs import Job
from harness.plan.parts import Part, Plan
from model.spec import RunSpec

Check = Callable[[Iterable[RunSpec]], Mapping[str, HostUnfitError]]
"""Returns the engines that cannot run these points here. Raises UsageError for points that no machine can."""
Pending = Callable[[Sequence[Job]], Sequence[Job]]
"""Returns the jobs that are still to run."""


def suited(plan: Plan, pending: Pending, check: Check) -> tuple[Plan, Mapping[str, HostUnfitError]]:
    """Return the plan without figures that an engine refuses, and the engines unfit for the rest here.

    Each figure that is left out has a line with the reason among the plan's notes. Raises UsageError if
    nothing is left, or if the plan has one figure.
    """
    try:
        return plan, check(job.spec for job in pending(plan.jobs))
    except UsageError:
        if len({part.figure.name for part in plan.parts}) == 1:
            raise
        rest = _without_refused(plan, pending(plan.jobs), check)
        if not rest.jobs:
            raise
    return rest, check(job.spec for job in pending(rest.jobs))


def _without_refused(plan: Plan, pending: Sequence[Job], check: Check) -> Plan:
    kept: list[Part] = []
    lines: list[str] = []
    for part in plan.parts:
        refused = _refused(part, pending, check)
        left = tuple(spec for spec in part.specs if spec.engine not in refused)
        if left or not refused:
            kept.append(dataclasses.replace(part, specs=left))
        lines += [f"{part.figure.name}: not run in {engine}: {error}" for engine, error in refused.items()]
    names = frozenset().union(*(part.names for part in kept))
    jobs = [job for job in plan.jobs if job.name in names]
    return dataclasses.replace(plan, jobs=jobs, parts=tuple(kept), notes=(*plan.notes, *lines))


def _refused(part: Part, pending: Sequence[Job], check: Check) -> dict[str, UsageError]:
    """Return the engines that refuse a pending point of this part, each with the first reason."""
    refused: dict[str, UsageError] = {}
    for engine in dict.fromkeys(spec.engine for spec in part.specs):
        try:
            check(job.spec for job in pending if job.name in part.names and job.spec.engine == engine)
        except UsageError as error:
            refused[engine] = error
    return refused
