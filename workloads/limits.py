"""Checks of workloads' parameters: each raises UsageError with the workload's name and a remedy. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence

from common.errors import UsageError

MAX_FLOWS = 400_000
MAX_MESH = 1_200_000
"""The same for matrices that join every host with many others: 1024 hosts have 1 047 552 pairs."""
MAX_MS = 10_000_000
MAX_KB = 10**9


def at_least(matrix: str, name: str, value: int, minimum: int) -> None:
    """Raise UsageError for a `value` below `minimum`."""
    if value < minimum:
        raise UsageError(f"workload {matrix}: {name} must be at least {minimum}, not {value}")


def within(matrix: str, name: str, value: int, least: int, most: int) -> None:
    """Raise UsageError for a `value` outside `least` to `most`."""
    if not least <= value <= most:
        raise UsageError(f"workload {matrix}: {name} must be from {least} to {most}, not {value}")


def percentage(matrix: str, name: str, value: int, minimum: int) -> None:
    """Raise UsageError for a `value` outside `minimum` to 100 percent."""
    if not minimum <= value <= 100:
        raise UsageError(f"workload {matrix}: {name} must be from {minimum} to 100 percent, not {value}")


def enough(matrix: str, hosts: Sequence[str]) -> None:
    """Raise UsageError for fewer than two hosts."""
    if len(hosts) < 2:
        raise UsageError(f"workload {matrix} needs at least two hosts, not {len(hosts)}: change k or n")


def others(matrix: str, name: str, needed: int, hosts: int) -> None:
    """Raise UsageError unless every one of `hosts` hosts has `needed` other hosts."""
    if hosts <= needed:
        raise UsageError(
            f"workload {matrix} needs more than {needed} hosts ({name} {needed}), not {hosts}: change k or n"
        )


def not_too_many(matrix: str, flows: float, remedy: str, most: int = MAX_FLOWS) -> None:
    """Raise UsageError for more than `most` flows, expected or counted."""
    if flows > most:
        raise UsageError(
            f"workload {matrix} would start about {flows:.0f} flows, but the limit is {most}: {remedy}"
        )


def anybody_else(rng: random.Random, hosts: Sequence[str], host: str) -> str:
    """Draw a host uniformly from the others, by repeated draws instead of a list without it."""
    while (drawn := rng.choice(hosts)) == host:
        pass
    return drawn
