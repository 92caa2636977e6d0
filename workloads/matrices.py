"""Traffic matrices: who sends to whom, as pure functions of the hosts, a seed and parameters.

Matrices that depend on the duration of traffic and the rate of links are in `generated.py`.

A matrix is one function and one line of MATRICES. Written as text (command lines, labels) it is
`name[:value of the first parameter][:parameter=value ...]`, e.g. `stride:4`.
"""

from __future__ import annotations

import inspect
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common.errors import UsageError
from common.suggest import did_you_mean
from topos.topology import Topology
from workloads import generated, map_reduce, per_host, placed, sequential, sip, to_one, trace
from workloads.flow import Flow, Traffic
from workloads.limits import anybody_else, at_least, not_too_many, others, percentage
from workloads.permutation import permuted

_LEFT = re.compile(r"l(\d+)\D")
Value = int | str


@dataclass(frozen=True)
class Matrix:
    """A registered matrix: `draw(host names in node order, seed, parameters...)`, and a description.

    `everywhere` is True if it works on any topology. The `draw` of a `generated` matrix takes the run's
    `Traffic` after the seed. `transfers` is True if flows of the transport under test have a size. Its
    parameters are the keyword arguments of `draw`, integers and texts.
    """

    draw: Callable[..., tuple[Flow, ...]]
    title: str
    everywhere: bool = True
    generated: bool = False
    transfers: bool = False
    calls: bool = False
    """Whether its traffic is SIP calls (workloads/sip.py), so that it has no flows."""
    words: str = ""
    """Name in charts, with parameters in braces; empty for the label."""
    data: tuple[str, ...] = ()
    """Parameters that hold data, which labels leave out."""

    @property
    def in_all(self) -> bool:
        """Whether `--workload all` includes it: matrices of long flows on any topology."""
        return self.everywhere and not self.generated

    @property
    def defaults(self) -> dict[str, Value]:
        """The default of every parameter, in the order of the function."""
        parameters = inspect.signature(self.draw).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


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
    rng = random.Random(seed)
    count = max(1, round(len(hosts) * servers / 100))
    chosen = set(hosts) if count == len(hosts) else set(rng.sample(hosts, count))
    return tuple(
        Flow(client, server)
        for server in hosts
        if server in chosen
        for client in rng.sample([host for host in hosts if host != server], clients)
    )


def all_to_all(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Return one flow from every host to every other: n (n - 1) flows, 16 256 for 128 hosts.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    others("all_to_all", "at least", 1, len(hosts))
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

    The first flow of each replica uses the transport under test, the others plain TCP. Names tell where hosts
    are, as in topos/dumbbell.py and topos/two_bottlenecks.py: `l3h1` is on the left of replica 3, opposite
    `r3h1`. `seed` is not used. Raises UsageError if hosts have no such names.
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


def beside_constant_rate(
    hosts: Sequence[str],
    seed: int,
    traffic: Traffic,
    *,
    percent: int = 10,
    senders: int = 100,
    dscp: int = 0,
    flows: str = "one_to_one",
) -> tuple[Flow, ...]:
    """Return the workload `flows` with its defaults, followed by `constant_rate`.

    `flows` draws from the seed as it does alone; `constant_rate` has its own seed, so its pairs differ.
    Raises UsageError as either of them.
    """
    known = _known(flows)
    if flows in {"constant_rate", "beside_constant_rate"}:
        raise UsageError(f"workload beside_constant_rate: flows={flows} has a constant rate itself")
    more = (traffic,) if known.generated else ()
    own_seed = random.Random(seed).getrandbits(32)
    constant = generated.constant_rate(hosts, own_seed, traffic, percent=percent, senders=senders, dscp=dscp)
    return (*known.draw(hosts, seed, *more), *constant)


MATRICES: dict[str, Matrix] = {
    "one_to_one": Matrix(
        one_to_one, "random permutation, every host sends one flow and receives one", words="permutation"
    ),
    "one_to_several": Matrix(
        one_to_several, "every host (or percent of them) receives a flow from each of 4 random clients"
    ),
    "all_to_all": Matrix(all_to_all, "every host sends a flow to every other: n (n - 1) flows"),
    "stride": Matrix(
        stride, "host x sends to host x + i; i=0 stands for half of the hosts", words="stride {i}"
    ),
    "hotspot": Matrix(
        hotspot,
        "percent of the hosts send to a few hot hosts, the others to random hosts",
        words="{percent} % of hosts to {spots} spots",
    ),
    "random": Matrix(random_pairs, "as many flows as hosts, source and destination drawn independently"),
    "connections": Matrix(
        connections,
        "percent connections for every 100 hosts, both ends drawn at random",
        words="{percent} per 100 hosts",
    ),
    "local": Matrix(
        placed.local,
        "percent connections for every 100 hosts, part of them within racks, part within pods (FatTrees)",
        everywhere=False,
        words="{rack} % in rack, {pod} % in pod",
    ),
    "neighbours": Matrix(
        placed.neighbours,
        "every server of a BCube sends to all servers that share a switch with it",
        everywhere=False,
        words="all neighbours",
    ),
    "against_tcp": Matrix(
        against_tcp,
        "first pair of each replica against plain TCP on the others (dumbbell, two_bottlenecks)",
        everywhere=False,
    ),
    "pairs": Matrix(
        generated.pairs,
        "flows arrive between every two hosts at random (pFabric, SIGCOMM 2013)",
        generated=True,
        transfers=True,
    ),
    "poisson": Matrix(
        generated.poisson,
        "sized flows arrive as a Poisson process and offer `load` percent of the hosts' links",
        generated=True,
        transfers=True,
    ),
    "transfers": Matrix(
        generated.transfers,
        "random permutation of transfers of `kb` thousand bytes",
        generated=True,
        transfers=True,
    ),
    "closed_loop": Matrix(
        generated.closed_loop,
        "every host starts its next sized flow when the previous one is complete",
        generated=True,
        transfers=True,
    ),
    "permuted_loop": Matrix(
        generated.permuted_loop,
        "closed loop in which each host always sends to the same partner of a permutation",
        generated=True,
        transfers=True,
    ),
    "short_and_long": Matrix(
        generated.short_and_long,
        "percent of the hosts send long flows, the others short flows over plain TCP (Poisson)",
        generated=True,
    ),
    "short_and_long_alike": Matrix(
        generated.short_and_long_alike,
        "short_and_long with the short flows over the transport under test too",
        generated=True,
        transfers=True,
    ),
    "constant_rate": Matrix(
        generated.constant_rate,
        "packets at percent of a host's rate, regardless of losses",
        generated=True,
    ),
    "beside_constant_rate": Matrix(
        beside_constant_rate, "another workload, with packets at a constant rate beside it", generated=True
    ),
    "in_turn": Matrix(
        sequential.in_turn,
        "sequential transfers between our hosts by TCP, MPTCP 2 and MPTCP 4, beside other tenants (cloud)",
        everywhere=False,
        generated=True,
        transfers=True,
    ),
    "map_reduce": Matrix(
        map_reduce.map_reduce,
        "the shuffle of map-reduce jobs: each of `maps` hosts sends `kb` thousand bytes to each of `reduces`",
        everywhere=False,
        transfers=True,
        words="shuffle, {maps} x {reduces}",
    ),
    "connections_per_host": Matrix(
        per_host.connections_per_host,
        "percent of the hosts send flows to several random hosts each, all different or any",
        words="{flows} flows per host",
    ),
    "permutation_share": Matrix(
        per_host.permutation_share,
        "percent of the hosts send one flow each, to distinct hosts",
        words="{percent} % of a permutation",
    ),
    "incast": Matrix(
        to_one.incast,
        "all hosts send `packets` full segments to the last at once",
        generated=True,
        transfers=True,
        words="incast of {packets} packets",
    ),
    "to_one": Matrix(
        to_one.to_one, "sized flows from random hosts to the last (Poisson)", generated=True, transfers=True
    ),
    "joined_permutation": Matrix(
        per_host.joined_permutation,
        "a permutation of long flows, and a second one of `kb` thousand bytes per flow that begins later",
        generated=True,
        words="a permutation, joined by another after {after_ms} ms",
    ),
    "sip": Matrix(sip.sip, "SIP calls and registrations through an IMS", everywhere=False, calls=True),
    "trace": Matrix(
        trace.trace,
        "the flows of a file, trace:flows.csv (start_s, src, dst, bytes)",
        everywhere=False,
        generated=True,
        transfers=True,
        words="trace {name}",
        data=("flows",),
    ),
    "reference": Matrix(reference, "one uncongested flow across the network"),
}


def build(
    matrix: str, topology: Topology, params: Mapping[str, Value], seed: int, traffic: Traffic | None = None
) -> tuple[Flow, ...]:
    """Return the flows of matrix `matrix` (registry name) on `topology`; equal arguments give equal flows.

    `seed` is a sub-seed that the caller derives from the run's seed. Missing parameters have their defaults.
    `traffic` is required for generated workloads. Raises UsageError for an unknown matrix or parameter, or a
    topology whose hosts do not suit the matrix.
    """
    known = _known(matrix)
    _check_names(matrix, params)
    hosts = [topology.nodes[host].name for host in topology.hosts]
    if not known.generated:
        flows = known.draw(hosts, seed, **params)
    elif traffic is None:
        raise ValueError(f"building workload {matrix}: it is generated and needs the run's traffic")
    else:
        flows = generated.drawn(known.draw, tuple(hosts), seed, traffic, tuple(sorted(params.items())))
    if any(topology.islands):  # else all nodes are on the island of node 0
        _check_joined(matrix, topology, flows)
    return flows


def _check_joined(matrix: str, topology: Topology, flows: Sequence[Flow]) -> None:
    for flow in flows:
        if topology.islands[topology.index(flow.src)] != topology.islands[topology.index(flow.dst)]:
            raise UsageError(
                f"workload {matrix}: no path joins {flow.src} and {flow.dst} in this {topology.kind}; "
                "choose --workload against_tcp"
            )


def check(matrix: str, params: Mapping[str, Value]) -> None:
    """Raise UsageError for an unknown matrix, an unknown parameter, or a value of another type than its
    default. `build` checks whether values suit a topology."""
    defaults = _known(matrix).defaults
    _check_names(matrix, params)
    for name, value in params.items():
        if type(value) is not type(defaults[name]):
            kind = "a text" if isinstance(defaults[name], str) else "a whole number"
            raise UsageError(f"workload {matrix}: {name} must be {kind}, not {value!r}")


def parse(text: str) -> tuple[str, dict[str, Value]]:
    """Parse `stride`, `stride:4`, `stride:i=4` or `poisson:40:sizes=datamining`; return name and parameters.

    A value without a name, right after the workload's name, is the first parameter. Raises UsageError for
    text of another form; `build` checks whether values suit a topology.
    """
    name, *arguments = (part.strip() for part in text.split(":"))
    params = _known(name).defaults
    if arguments and not params:
        raise UsageError(f"workload {text}: {name} takes no parameters")
    for number, argument in enumerate(arguments):
        key, equals, value = argument.rpartition("=")
        if not equals and number:
            raise UsageError(f"workload {text}: name the parameter of {value}: one of {', '.join(params)}")
        key = key.strip() if equals else next(iter(params))
        _check_names(name, [key])
        params[key] = value.strip() if isinstance(params[key], str) else _whole(text, key, value)
    return name, params


def _whole(text: str, key: str, value: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise UsageError(f"workload {text}: {key} must be a whole number, not '{value}'") from None


def label(matrix: str, params: Mapping[str, Value]) -> str:
    """Return the shortest text that `parse` reads, always with the first parameter: `one_to_one`,
    `stride:0`, `one_to_several:4`, `one_to_several:4:servers=25`."""
    defaults = list(_known(matrix).defaults.items()) if params else []
    params = shown(matrix, params)
    parts = [matrix, *(str(params.get(name, default)) for name, default in defaults[:1])]
    parts += [
        f"{name}={params[name]}" for name, default in defaults[1:] if params.get(name, default) != default
    ]
    return ":".join(filter(None, parts))


def shown(matrix: str, params: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters that labels show: all but data."""
    return {name: value for name, value in params.items() if name not in _known(matrix).data}


def transfers(matrix: str) -> bool:
    """Return whether flows of the transport under test have a size. Raises UsageError if unknown."""
    return _known(matrix).transfers


def has_flows(matrix: str) -> bool:
    """Return whether its traffic is flows. Raises UsageError if unknown."""
    return not _known(matrix).calls


def param_words(matrix: str, params: Mapping[str, Value]) -> str:
    """Return `i=4, j=5`: all parameters but data, or those not at their defaults where there are many."""
    usual = _known(matrix).defaults if not has_flows(matrix) else {}
    named = sorted(shown(matrix, params).items())
    return ", ".join(f"{name}={value}" for name, value in named if usual.get(name) != value)


def words(matrix: str, params: Mapping[str, Value]) -> str:
    """Return text for readers: `10 % of hosts to 8 hot spots`, or the label if it has no words."""
    known = _known(matrix)
    return known.words.format(**{**known.defaults, **params}) or label(matrix, params)


def _known(matrix: str) -> Matrix:
    if matrix not in MATRICES:
        meant = did_you_mean(matrix, MATRICES)
        raise UsageError(f"unknown workload '{matrix}': {meant}choose one of {', '.join(MATRICES)}")
    return MATRICES[matrix]


def _check_names(matrix: str, names: Mapping[str, Value] | Sequence[str]) -> None:
    takes = MATRICES[matrix].defaults
    for name in names:
        if name not in takes:
            raise UsageError(
                f"workload {matrix} has no parameter '{name}': it takes {', '.join(takes) or 'none'}"
            )
