"""Traffic matrices: who sends to whom, as pure functions of the hosts, an already derived seed and
parameters; those that depend on how long traffic lasts and how fast links are in `generated.py`.

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
from topos.topology import Topology
from workloads import generated, placed, turns
from workloads.flow import Flow, Traffic
from workloads.permutation import permuted

_LEFT = re.compile(r"l(\d+)\D")
Value = int | str


@dataclass(frozen=True)
class Matrix:
    """A registered matrix: `draw(host names in node order, seed, parameters...)`, and what it is in a
    sentence. `everywhere`: on any topology, not only on one made for it. A `generated` one's `draw` takes
    the run's `Traffic` after the seed; `transfers`: flows of the transport under test have an end.

    Its parameters are the integers and texts `draw` takes by keyword.
    """

    draw: Callable[..., tuple[Flow, ...]]
    title: str
    everywhere: bool = True
    generated: bool = False
    transfers: bool = False
    words: str = ""
    """What charts call it, with its parameters in braces; empty: its label."""

    @property
    def in_all(self) -> bool:
        """Whether `--workload all` means it too: long flows, on any topology."""
        return self.everywhere and not self.generated

    @property
    def defaults(self) -> dict[str, Value]:
        """Every parameter's default, in the order of the function."""
        parameters = inspect.signature(self.draw).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def one_to_one(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """A random permutation: every host sends one flow and receives one, never to itself.

    As the CS244 2013 reproduction draws it (source: code): hosts are shuffled and split into two halves;
    each half is matched at random to the other. In order of the senders in `hosts`, so that flow numbers
    do not depend on the seed. An odd number of hosts makes one ring. Raises UsageError for fewer than two.
    """
    receiver = permuted("one_to_one", hosts, random.Random(seed))
    return tuple(Flow(host, receiver[host]) for host in hosts)


def one_to_several(
    hosts: Sequence[str], seed: int, *, clients: int = 4, servers: int = 100
) -> tuple[Flow, ...]:
    """`servers` percent of the hosts have `clients` others drawn at random, each of which sends it one flow.

    As the CS244 2013 reproduction draws it (source: code), where every host is a server and iperf clients
    send: a server's link carries `clients` flows, so each can have 1/clients of it; a host is client to as
    many servers as chance will have it. Fewer servers, drawn at random, leave the network's core room.
    Server by server, in the order of `hosts`. Raises UsageError where there are not that many other hosts.
    """
    _at_least("one_to_several", "clients", clients, 1)
    _others("one_to_several", "clients", clients, len(hosts))
    _percentage("one_to_several", "servers", servers, 1)
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
    """Every host sends one flow to every other: n (n - 1) flows, 16 256 of them for 128 hosts.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    _others("all_to_all", "at least", 1, len(hosts))
    return tuple(Flow(src, dst) for src in hosts for dst in hosts if src != dst)


def stride(hosts: Sequence[str], seed: int, *, i: int = 0) -> tuple[Flow, ...]:
    """Host x sends to host (x + i) mod n; i = 0 stands for n/2, where in a FatTree every flow crosses the
    core.

    Source: Al-Fares et al., SIGCOMM 2008 (section 5) and Hedera, NSDI 2010, call it Stride(i). `seed` is not
    used. Raises UsageError for fewer than two hosts, or an i that is none of 1 .. n - 1.
    """
    del seed
    n = len(hosts)
    _others("stride", "at least", 1, n)
    step = i or n // 2
    if not 1 <= step < n:
        raise UsageError(f"workload stride: i={i} leads {n} hosts to themselves: choose i from 1 to {n - 1}")
    return tuple(Flow(hosts[x], hosts[(x + step) % n]) for x in range(n))


def hotspot(hosts: Sequence[str], seed: int, *, spots: int = 2, percent: int = 50) -> tuple[Flow, ...]:
    """`percent` of the hosts send to a few hot ones, `spots` of them; everybody else to anybody.

    Every host sends one flow. The hot hosts and those that send to them are drawn at random and the latter
    dealt out evenly, so that a hot host's link is shared by about n percent / (100 spots) flows; the others'
    receivers are drawn as in `random`. After the hotspot pattern of the MPTCP authors' simulator (htsim's
    connection matrix: some spots, many senders each) on a background that Hedera (NSDI 2010) calls Random.
    Raises UsageError for parameters that leave no host cold.
    """
    _at_least("hotspot", "spots", spots, 1)
    _percentage("hotspot", "percent", percent, 0)
    _others("hotspot", "spots", spots, len(hosts))
    rng = random.Random(seed)
    hot = rng.sample(hosts, spots)
    cold = rng.sample([host for host in hosts if host not in hot], len(hosts) - spots)
    drawn = cold[: min(len(cold), round(len(hosts) * percent / 100))]
    receiver = {host: hot[number % spots] for number, host in enumerate(drawn)}
    return tuple(Flow(host, receiver.get(host) or _anybody_else(rng, hosts, host)) for host in hosts)


def random_pairs(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """As many flows as hosts, source and destination drawn independently, but for never being the same host.

    Unlike in a permutation, links of hosts are shared by several flows or by none (the random traffic matrix
    of SIGCOMM 2011 and of Hedera, NSDI 2010, where every host sends one, has the receivers alone drawn).
    Raises UsageError for fewer than two hosts.
    """
    _others("random", "at least", 1, len(hosts))
    rng = random.Random(seed)
    sources = rng.choices(hosts, k=len(hosts))
    return tuple(Flow(src, _anybody_else(rng, hosts, src)) for src in sources)


def connections(hosts: Sequence[str], seed: int, *, percent: int = 100) -> tuple[Flow, ...]:
    """`percent` connections for every 100 hosts, source and destination drawn independently, but for never
    being the same host: `random` at any load.

    More connections of a seed are the fewer ones and some. Raises UsageError for fewer than two hosts.
    """
    _others("connections", "at least", 1, len(hosts))
    _at_least("connections", "percent", percent, 1)
    rng = random.Random(seed)
    sources = (rng.choice(hosts) for _ in range(max(1, round(len(hosts) * percent / 100))))
    return tuple(Flow(src, _anybody_else(rng, hosts, src)) for src in sources)


def against_tcp(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """Every host on the left sends to the one opposite; of each lane the first has the transport under test,
    the others are plain TCP.

    Names tell who is where, as in topos/dumbbell.py and topos/two_bottlenecks.py: `l3h1` is on the left of
    lane 3, opposite `r3h1`. `seed` is not used. Raises UsageError where hosts have no such names.
    """
    del seed
    there = set(hosts)
    flows: dict[str, list[Flow]] = {}
    for host in hosts:
        lane = lane_of(host)
        opposite = f"r{host[1:]}"
        if lane is not None and opposite in there:
            of_lane = flows.setdefault(lane, [])
            of_lane.append(Flow(host, opposite, plain=bool(of_lane)))
    if not flows:
        raise UsageError(
            f"workload against_tcp needs hosts that face each other, and {hosts[0]} does not: "
            "choose topology dumbbell or two_bottlenecks"
        )
    return tuple(flow for of_lane in flows.values() for flow in of_lane)


def lane_of(sender: str) -> str | None:
    """The lane of a host on the left, `3` for `l3h1`; None for any other."""
    found = _LEFT.match(sender)
    return found[1] if found else None


def reference(hosts: Sequence[str], seed: int) -> tuple[Flow, ...]:
    """One uncongested flow, from the first host to the last, the farthest apart: what 100 % means.

    `seed` is not used. Raises UsageError for fewer than two hosts.
    """
    del seed
    if len(hosts) < 2:
        raise UsageError(f"workload reference needs two hosts, not {len(hosts)}: change k or n")
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
    """The workload called `flows` with its defaults, and `constant_rate` beside it, which comes last.

    The former draws from the seed as it does alone, the latter has one of its own, so that other hosts are
    its partners. Raises UsageError as either does.
    """
    known = _known(flows)
    if flows in {"constant_rate", "beside_constant_rate"}:
        raise UsageError(f"workload beside_constant_rate: flows={flows} has a constant rate itself")
    told = (traffic,) if known.generated else ()
    own_seed = random.Random(seed).getrandbits(32)
    others = generated.constant_rate(hosts, own_seed, traffic, percent=percent, senders=senders, dscp=dscp)
    return (*known.draw(hosts, seed, *told), *others)


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
        "percent of the hosts send to a few hot spots, the others to anybody",
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
        "every server of a BCube sends to all it shares a switch with",
        everywhere=False,
        words="all neighbours",
    ),
    "against_tcp": Matrix(
        against_tcp,
        "the first pair of each lane against plain TCP on the others (dumbbell, two_bottlenecks)",
        everywhere=False,
    ),
    "poisson": Matrix(
        generated.poisson,
        "sized flows arrive at random (Poisson) and offer `load` percent of the hosts' links",
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
        "every host starts its next sized flow when the last is done",
        generated=True,
        transfers=True,
    ),
    "permuted_loop": Matrix(
        generated.permuted_loop,
        "the same, always to the partner of a permutation",
        generated=True,
        transfers=True,
    ),
    "short_and_long": Matrix(
        generated.short_and_long,
        "percent of the hosts send long flows, the others short ones over plain TCP now and then",
        generated=True,
    ),
    "short_and_long_alike": Matrix(
        generated.short_and_long_alike,
        "the same, the short flows over the transport under test too",
        generated=True,
        transfers=True,
    ),
    "constant_rate": Matrix(
        generated.constant_rate,
        "packets at percent of a host's rate, whatever becomes of them",
        generated=True,
    ),
    "beside_constant_rate": Matrix(
        beside_constant_rate, "another workload, and packets at a constant rate beside it", generated=True
    ),
    "in_turn": Matrix(
        turns.in_turn,
        "one transfer at a time between our hosts, TCP, MPTCP 2, MPTCP 4, among other tenants' (cloud)",
        everywhere=False,
        generated=True,
        transfers=True,
    ),
    "reference": Matrix(reference, "one uncongested flow across the network"),
}


def build(
    matrix: str, topology: Topology, params: Mapping[str, Value], seed: int, traffic: Traffic | None = None
) -> tuple[Flow, ...]:
    """The flows of matrix `matrix` (registry name) on `topology`; equal arguments, equal flows.

    `seed` is a seed of its own, derived by the caller from the run's root seed; parameters not given have
    their defaults; `traffic` is what generated workloads need to know. Raises UsageError for an unknown
    matrix or parameter, or a topology whose hosts do not suit the matrix.
    """
    known = _known(matrix)
    _check_names(matrix, params)
    hosts = [topology.nodes[host].name for host in topology.hosts]
    if known.generated and traffic is None:
        raise ValueError(f"workload {matrix} is generated for a run's traffic, and there is none")
    told = (traffic,) if known.generated else ()
    flows = known.draw(hosts, seed, *told, **params)
    for flow in flows:
        if topology.islands[topology.index(flow.src)] != topology.islands[topology.index(flow.dst)]:
            raise UsageError(
                f"workload {matrix}: nothing joins {flow.src} to {flow.dst} in this {topology.kind}; "
                "choose --workload against_tcp"
            )
    return flows


def parse(text: str) -> tuple[str, dict[str, Value]]:
    """The name and all parameters of `stride`, `stride:4`, `stride:i=4` or `poisson:40:sizes=datamining`.

    A value without a name, right after the workload's, is the first parameter's. Raises UsageError when the
    text is not of this form; whether values suit a topology is for `build` to say.
    """
    name, *arguments = (part.strip() for part in text.split(":"))
    params = _known(name).defaults
    if arguments and not params:
        raise UsageError(f"workload {text}: {name} takes no parameters")
    for number, argument in enumerate(arguments):
        key, equals, value = argument.rpartition("=")
        if not equals and number:
            raise UsageError(f"workload {text}: say which parameter {value} is: {', '.join(params)}")
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
    """The shortest text that `parse` reads, but for the first parameter, which is always told: `one_to_one`,
    `stride:0`, `one_to_several:4`, `one_to_several:4:servers=25`."""
    defaults = list(_known(matrix).defaults.items()) if params else []
    told = [matrix, *(str(params.get(name, default)) for name, default in defaults[:1])]
    told += [
        f"{name}={params[name]}" for name, default in defaults[1:] if params.get(name, default) != default
    ]
    return ":".join(told)


def transfers(matrix: str) -> bool:
    """Whether flows of the transport under test have an end. Raises UsageError for an unknown matrix."""
    return _known(matrix).transfers


def words(matrix: str, params: Mapping[str, Value]) -> str:
    """For readers: `10 % of hosts to 8 hot spots`, or the label where it has no words of its own."""
    known = _known(matrix)
    return known.words.format(**{**known.defaults, **params}) or label(matrix, params)


def _known(matrix: str) -> Matrix:
    if matrix not in MATRICES:
        raise UsageError(f"unknown workload '{matrix}': choose one of {', '.join(MATRICES)}")
    return MATRICES[matrix]


def _check_names(matrix: str, names: Mapping[str, Value] | Sequence[str]) -> None:
    takes = MATRICES[matrix].defaults
    for name in names:
        if name not in takes:
            raise UsageError(
                f"workload {matrix} has no parameter '{name}': it takes {', '.join(takes) or 'none'}"
            )


def _at_least(matrix: str, name: str, value: int, minimum: int) -> None:
    if value < minimum:
        raise UsageError(f"workload {matrix}: {name} must be at least {minimum}, not {value}")


def _percentage(matrix: str, name: str, value: int, minimum: int) -> None:
    if not minimum <= value <= 100:
        raise UsageError(f"workload {matrix}: {name} must be from {minimum} to 100 percent, not {value}")


def _others(matrix: str, name: str, needed: int, hosts: int) -> None:
    """Every host needs that many others."""
    if hosts <= needed:
        raise UsageError(
            f"workload {matrix} needs more than {needed} hosts ({name} {needed}), not {hosts}: change k or n"
        )


def _anybody_else(rng: random.Random, hosts: Sequence[str], host: str) -> str:
    """A host drawn uniformly from the others, by drawing again rather than by a list without it."""
    while (drawn := rng.choice(hosts)) == host:
        pass
    return drawn
