"""Traffic matrices of flows that last until the run ends."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

from common.errors import UsageError
from workloads.flow import MAX_MESH, Flow, anybody_else, at_least, not_too_many, others, percentage, permuted

_LEFT = re.compile(r"l(\d+)\D")


def one_to_one(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a random permutation: every host sends one flow and receives one, never its own.

    It is drawn as in the CS244 2013 reproduction (source: code): hosts are shuffled and split into halves,
    and each half is matched at random to the other. Flows are in the order of `hosts`, so flow numbers do not
    depend on the seed. An odd number of hosts makes one ring. Raises UsageError for fewer than two.
    """
    receiver = permuted("one_to_one", hosts, random.Random(seed))
    return tuple(Flow(host, receiver[host]) for host in hosts)


def one_to_several(
    hosts: Sequence[str], seed: int, *, clients: int = 4, servers: int = 100
) -> tuple[Flow, ...]:
    """Return flows to `servers` percent of the hosts, each from `clients` other hosts drawn at random.

    It is drawn as in the CS244 2013 reproduction (source: code), where every host is a server and iperf
    clients send. A server's link carries `clients` flows, so each can have 1/clients of it; a host may be the
    client of any number of servers. With fewer servers, drawn at random, the core is less loaded. Flows are
    ordered by server as in `hosts`. Raises UsageError if there are fewer other hosts than `clients`.
    """
    at_least("one_to_several", "clients", clients, 1)
    others("one_to_several", "clients", clients, len(hosts))
    percentage("one_to_several", "servers", servers, 1)
    count = max(1, round(len(hosts) * servers / 100))
    not_too_many("one_to_several", count * clients, "lower clients or servers", MAX_MESH)
    rng = random.Random(seed)
    chosen = set(hosts) if count == len(hosts) else set(rng.sample(hosts, count))
    others_of = range(len(hosts) - 1)  # the places of all hosts but one
    return tuple(
        Flow(hosts[place + (place >= at)], server)
        for at, server in enumerate(hosts)
        if server in chosen
        for place in rng.sample(others_of, clients)
    )


def all_to_all(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return one flow from every host to every other: n (n - 1) flows, 16 256 for 128 hosts.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    others("all_to_all", "at least", 1, len(hosts))
    not_too_many("all_to_all", len(hosts) * (len(hosts) - 1), "choose a smaller network", MAX_MESH)
    return tuple(Flow(src, dst) for src in hosts for dst in hosts if src != dst)


def stride(hosts: Sequence[str], seed: int, *, i: int = 0) -> tuple[Flow, ...]:
    """Return a flow from each host x to host (x + i) mod n.

    i = 0 stands for n/2, with which every flow crosses the core of a FatTree. Source: Al-Fares et al.,
    SIGCOMM 2008 (section 5) and Hedera, NSDI 2010, who call it Stride(i). `seed` is not used. Raises
    UsageError for fewer than two hosts, or for an i outside 1 .. n - 1.
    """
    del seed
    n = len(hosts)
    others("stride", "at least", 1, n)
    step = i or n // 2
    if not 1 <= step < n:
        raise UsageError(f"workload stride: i={i} with {n} hosts is invalid: choose i from 1 to {n - 1}")
    return tuple(Flow(hosts[x], hosts[(x + step) % n]) for x in range(n))


def hotspot(hosts: Sequence[str], seed: int, *, spots: int = 2, percent: int = 50) -> tuple[Flow, ...]:
    """Return one flow per host: `percent` of the hosts send to `spots` hot hosts, the others to random hosts.

    Hot hosts and their senders are drawn at random. Senders are distributed evenly, so about
    n percent / (100 spots) flows share a hot host's link. The other receivers are drawn as in `random`. This
    is the hotspot pattern of the MPTCP authors' simulator (htsim's connection matrix: some spots, many
    senders each) on the background that Hedera (NSDI 2010) calls Random. Raises UsageError for parameters
    that make every host hot.
    """
    at_least("hotspot", "spots", spots, 1)
    percentage("hotspot", "percent", percent, 0)
    others("hotspot", "spots", spots, len(hosts))
    rng = random.Random(seed)
    hot = rng.sample(hosts, spots)
    cold = rng.sample([host for host in hosts if host not in hot], len(hosts) - spots)
    drawn = cold[: min(len(cold), round(len(hosts) * percent / 100))]
    receiver = {host: hot[number % spots] for number, host in enumerate(drawn)}
    return tuple(Flow(host, receiver.get(host) or anybody_else(rng, hosts, host)) for host in hosts)


def random_pairs(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return as many flows as hosts, with source and destination drawn independently but never equal.

    Unlike in a permutation, several flows or none may share a host's link. (In the random traffic matrix of
    SIGCOMM 2011 and of Hedera, NSDI 2010, every host sends one flow, and only receivers are drawn.) Raises
    UsageError for fewer than two hosts.
    """
    others("random", "at least", 1, len(hosts))
    rng = random.Random(seed)
    sources = rng.choices(hosts, k=len(hosts))
    return tuple(Flow(src, anybody_else(rng, hosts, src)) for src in sources)


def connections(hosts: Sequence[str], seed: int, *, percent: int = 100) -> tuple[Flow, ...]:
    """Return `percent` connections per 100 hosts, drawn as in `random`.

    For one seed, a larger number of connections includes the smaller one. Raises UsageError for fewer than
    two hosts.
    """
    others("connections", "at least", 1, len(hosts))
    at_least("connections", "percent", percent, 1)
    count = len(hosts) * percent / 100
    not_too_many("connections", count, "lower percent")
    rng = random.Random(seed)
    sources = (rng.choice(hosts) for _ in range(max(1, round(count))))
    return tuple(Flow(src, anybody_else(rng, hosts, src)) for src in sources)


def against_tcp(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return a flow from every host on the left to the opposite host.

    The first flow of each replica uses the transport under test, the others plain TCP. Host names give the
    positions, as in topos/dumbbell.py and topos/two_bottlenecks.py: `l3h1` is on the left of replica 3,
    opposite `r3h1`. `seed` is not used. Raises UsageError if hosts have no such names.
    """
    del seed
    there = set(hosts)
    flows: dict[str, list[Flow]] = {}
    for host in hosts:
        replica = replica_of(host)
        opposite = f"r{host[1:]}"
        if replica is not None and opposite in there:
            of_replica = flows.setdefault(replica, [])
            of_replica.append(Flow(host, opposite, plain=bool(of_replica)))
    if not flows:
        raise UsageError(
            f"workload against_tcp needs hosts that face each other, and {hosts[0]} does not: "
            "choose topology dumbbell or two_bottlenecks"
        )
    return tuple(flow for of_replica in flows.values() for flow in of_replica)


def replica_of(sender: str) -> str | None:
    """Return the replica of a host on the left, `3` for `l3h1`; None for any other host."""
    found = _LEFT.match(sender)
    return found[1] if found else None


def reference(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return one uncongested flow from the first host to the last, which defines 100 %.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    if len(hosts) < 2:
        raise UsageError(f"workload reference needs at least two hosts, not {len(hosts)}: change k or n")
    return (Flow(hosts[0], hosts[-1]),)
