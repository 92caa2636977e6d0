"""Matrices that depend on the location of hosts, taken from their names: same rack, pod or switch."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from common.errors import UsageError
from workloads.flow import Flow
from workloads.limits import not_too_many

_IN_POD = re.compile(r"(p\d+)e\d+(?=h\d+$)")
RACK, POD = 0, 1
"""Groups of this expression."""
_DIGITS = re.compile(r"h(\d+)$")


def local(
    hosts: Sequence[str], seed: int, *, rack: int = 50, pod: int = 30, percent: int = 100
) -> tuple[Flow, ...]:
    """Return `percent` connections per 100 hosts, most of them local.

    `rack` percent stay in the sender's rack, `pod` percent leave it but stay in its pod, and the others go to
    other pods; the ends are drawn at random. Each sender is drawn independently, so a larger number of
    connections includes the smaller one. The matrix needs a FatTree, whose host names contain rack and pod.
    (A rack of a dual-homed FatTree is the hosts below one pair of switches.) Raises UsageError elsewhere, and
    for invalid percentages.
    """
    if not (rack >= 0 <= pod and rack + pod <= 100 and percent >= 1):
        raise UsageError(
            f"workload local: rack={rack} and pod={pod} must be percentages of at most 100 together, and "
            f"percent={percent} at least 1"
        )
    count = len(hosts) * percent / 100
    not_too_many("local", count, "lower percent")
    racks, pods = (_together(hosts, level) for level in (RACK, POD))
    rng = random.Random(seed)
    flows = []
    for _ in range(max(1, round(count))):
        src, where = rng.choice(hosts), 100 * rng.random()
        if where < rack:
            inside, outside = racks[src], {src}
        elif where < rack + pod:
            inside, outside = pods[src], set(racks[src])
        else:
            inside, outside = hosts, set(pods[src])
        if outside.issuperset(inside):
            raise UsageError(
                f"workload local: {src} has no other host to send to in its rack, its pod or another pod: "
                "choose another rack=, pod= or a larger network"
            )
        flows.append(Flow(src, _other_than(rng, inside, outside)))
    return tuple(flows)


def neighbours(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a flow from every BCube server to each that shares a switch with it: (k+1)(n-1) per server.

    Their addresses differ in one digit (topos/bcube.py). `seed` is not used. Raises UsageError if names are
    no such addresses.
    """
    del seed
    addresses = _addresses(hosts)
    named = {address: host for host, address in addresses.items()}
    base = 1 + max(max(address) for address in named)
    return tuple(
        Flow(host, named[(*address[:place], digit, *address[place + 1 :])])
        for host, address in addresses.items()
        for place in range(len(address))
        for digit in range(base)
        if digit != address[place]
    )


def _together(hosts: Sequence[str], level: int) -> dict[str, Sequence[str]]:
    """Return for each host all hosts of its rack or pod, including itself."""
    groups: dict[str, list[str]] = {}
    for host in hosts:
        groups.setdefault(_place(host, level), []).append(host)
    return {host: groups[_place(host, level)] for host in hosts}


def _place(host: str, level: int) -> str:
    found = _IN_POD.match(host)
    if not found:
        raise UsageError(
            f"workload local needs host names with rack and pod, but {host} has none: choose topology "
            "fat_tree or dual_homed_fat_tree"
        )
    return found[level]


def _other_than(rng: random.Random, inside: Sequence[str], outside: set[str]) -> str:
    """Draw uniformly from `inside` without `outside`, by repeated draws."""
    while (drawn := rng.choice(inside)) in outside:
        pass
    return drawn


def _addresses(hosts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Return each server's address as digits.

    A digit has one place in a name, or two if there are more than ten. Only one of the two readings gives as
    many addresses as there are hosts.
    """
    for width in (1, 2):
        read = {host: _digits(host, width) for host in hosts}
        base = 1 + max((digit for address in read.values() for digit in address), default=0)
        if all(base ** len(address) == len(hosts) for address in read.values()):
            return read
    raise UsageError(
        f"workload neighbours needs BCube addresses, but {hosts[0]} is none: choose topology bcube"
    )


def _digits(host: str, width: int) -> tuple[int, ...]:
    found = _DIGITS.match(host)
    text = found[1] if found else ""
    return tuple(int(text[at : at + width]) for at in range(0, len(text), width))
