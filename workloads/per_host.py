"""Matrices by the number of flows per host: several flows from each, or one from a share of them. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence

from common.errors import UsageError
from workloads.flow import Flow, Traffic
from workloads.limits import MAX_KB, MAX_MS, not_too_many, percentage, within
from workloads.permutation import permuted

_ANY, _DISTINCT = "any", "distinct"


def connections_per_host(
    hosts: Sequence[str], seed: int, *, flows: int = 1, percent: int = 100, to: str = _DISTINCT
) -> tuple[Flow, ...]:
    """Return `flows` flows from each of `percent` of the hosts, to other hosts drawn at random.

    With `to=distinct` no two flows of a sender have the same destination; with `to=any` every destination is
    drawn independently. Senders are in the order of `hosts`. The traffic matrix of SIGCOMM 2011 (Raiciu et
    al.) with several connections per host. Raises UsageError for parameters that no such matrix has.
    """
    percentage("connections_per_host", "percent", percent, 1)
    if to not in {_ANY, _DISTINCT}:
        raise UsageError(f"workload connections_per_host: to must be {_DISTINCT} or {_ANY}, not '{to}'")
    most = len(hosts) - 1 if to == _DISTINCT else None
    if flows < 1 or len(hosts) < 2 or (most is not None and flows > most):
        most_words = "" if most is None else f" to {max(most, 1)}"
        raise UsageError(
            f"workload connections_per_host: {flows} flows per host on {len(hosts)} hosts are impossible: "
            f"choose from 1{most_words}, on at least 2 hosts"
        )
    not_too_many("connections_per_host", flows * max(1, round(len(hosts) * percent / 100)), "lower flows")
    rng = random.Random(seed)
    senders = _share(hosts, percent, rng)
    return tuple(
        Flow(src, dst) for src in hosts if src in senders for dst in _others(rng, hosts, src, flows, to)
    )


def permutation_share(hosts: Sequence[str], seed: int, *, percent: int = 50) -> tuple[Flow, ...]:
    """Return one flow from each of `percent` of the hosts to distinct other hosts.

    They are the flows of `one_to_one` with the same seed whose senders were drawn, so the destinations are
    distinct, and for one seed a larger share includes a smaller one. Raises UsageError for a percentage
    outside 1 to 100, or for fewer than two hosts.
    """
    percentage("permutation_share", "percent", percent, 1)
    rng = random.Random(seed)
    receiver = permuted("permutation_share", hosts, rng)
    senders = _share(hosts, percent, rng)
    return tuple(Flow(host, receiver[host]) for host in hosts if host in senders)


def joined_permutation(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, after_ms: int = 300, kb: int = 10_000
) -> tuple[Flow, ...]:
    """Return a random permutation of long flows, and a second one of `kb` thousand bytes per flow that begins
    `after_ms` after the start.

    While a host has two flows, each has half of the demand. `traffic` is not used. Raises UsageError for
    parameters below 1, or for fewer than two hosts.
    """
    del traffic
    within("joined_permutation", "after_ms", after_ms, 1, MAX_MS)
    within("joined_permutation", "kb", kb, 1, MAX_KB)
    rng = random.Random(seed)
    first, second = (permuted("joined_permutation", hosts, rng) for _ in range(2))
    joining = (Flow(host, second[host], size_bytes=1000 * kb, start_s=after_ms / 1000) for host in hosts)
    return (*(Flow(host, first[host]) for host in hosts), *joining)


def _share(hosts: Sequence[str], percent: int, rng: random.Random) -> frozenset[str]:
    """Draw `percent` of the hosts, one at least; for one state of `rng` a larger share includes a smaller."""
    shuffled = rng.sample(hosts, len(hosts))
    return frozenset(shuffled[: max(1, round(len(hosts) * percent / 100))])


def _others(rng: random.Random, hosts: Sequence[str], host: str, count: int, to: str) -> list[str]:
    others = [other for other in hosts if other != host]
    return rng.sample(others, count) if to == _DISTINCT else rng.choices(others, k=count)
