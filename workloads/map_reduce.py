"""The shuffle of map-reduce jobs: every mapper of a job sends to every reducer of it. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence

from common.errors import UsageError
from workloads.flow import MAX_MESH, Flow, not_too_many

MAPS = REDUCES = 8
KB = 23_000
"""Eight such transfers take 1.55 s on an idle link of 1 Gb/s."""


def map_reduce(
    hosts: Sequence[str],
    seed: int,
    *,
    jobs: int = 0,
    maps: int = MAPS,
    reduces: int = REDUCES,
    kb: int = KB,
) -> tuple[Flow, ...]:
    """Return the transfers of `jobs` jobs, job by job: `maps` times `reduces` of `kb` thousand bytes each.

    Every host is a mapper or a reducer of one job at most; hosts are drawn at random. All transfers start
    together. jobs = 0 stands for as many as the hosts allow. Raises UsageError for numbers below 1 or more
    jobs than hosts.
    """
    for name, value in (("maps", maps), ("reduces", reduces), ("kb", kb)):
        if value < 1:
            raise UsageError(f"workload map_reduce: {name}={value} is invalid: choose 1 or more")
    each = maps + reduces
    most = len(hosts) // each
    if not 0 <= jobs <= most or most == 0:
        raise UsageError(
            f"workload map_reduce: {max(1, jobs)} jobs need {max(1, jobs) * each} hosts, but there are "
            f"{len(hosts)}: choose fewer jobs, maps or reduces, or a larger network"
        )
    not_too_many("map_reduce", (jobs or most) * maps * reduces, "choose fewer maps or reduces", MAX_MESH)
    drawn = random.Random(seed).sample(hosts, (jobs or most) * each)
    members = [drawn[first : first + each] for first in range(0, len(drawn), each)]
    return tuple(
        Flow(mapper, reducer, 1000 * kb) for job in members for mapper in job[:maps] for reducer in job[maps:]
    )
