"""A random permutation of the hosts; an even number is drawn as in the CS244 2013 reproduction."""

from __future__ import annotations

import random
from collections.abc import Sequence

from common.errors import UsageError


def permuted(matrix: str, hosts: Sequence[str], rng: random.Random) -> dict[str, str]:
    """Return the receiver of each host.

    Hosts are shuffled and split into two halves, and each half is matched at random to the other (source:
    code). An odd number of shuffled hosts forms a ring. Raises UsageError for fewer than two hosts.
    """
    if len(hosts) < 2:
        raise UsageError(f"workload {matrix} needs at least two hosts, not {len(hosts)}: change k or n")
    shuffled = rng.sample(hosts, len(hosts))
    if len(hosts) % 2:
        return dict(zip(shuffled, [*shuffled[1:], shuffled[0]], strict=True))
    half = len(hosts) // 2
    first, second = shuffled[:half], shuffled[half:]
    receiver = dict(zip(first, rng.sample(second, half), strict=True))
    receiver.update(zip(second, rng.sample(first, half), strict=True))
    return receiver
