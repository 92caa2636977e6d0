"""A random permutation of the hosts, as the CS244 2013 reproduction draws it."""

from __future__ import annotations

import random
from collections.abc import Sequence

from fabric.errors import UsageError


def permuted(matrix: str, hosts: Sequence[str], rng: random.Random) -> dict[str, str]:
    """The receiver of each host: hosts are shuffled and split into two halves, and each half is matched at
    random to the other (source: code). Raises UsageError for an odd number of hosts, or fewer than two."""
    if len(hosts) < 2 or len(hosts) % 2:
        raise UsageError(
            f"workload {matrix} pairs two halves of the hosts and needs an even number of them, "
            f"not {len(hosts)}: change k or n"
        )
    shuffled = rng.sample(hosts, len(hosts))
    half = len(hosts) // 2
    first, second = shuffled[:half], shuffled[half:]
    receiver = dict(zip(first, rng.sample(second, half), strict=True))
    receiver.update(zip(second, rng.sample(first, half), strict=True))
    return receiver
