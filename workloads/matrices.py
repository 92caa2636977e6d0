"""The registry of traffic matrices: who sends to whom, as pure functions of the hosts, a seed and parameters.

Most matrices are in `pairs.py`, those that depend on the duration of traffic and the rate of links in
`generated.py`.

A matrix is one function and one line of MATRICES. Written as text (command lines, labels) it is
`name[:value of the first parameter][:parameter=value ...]`, e.g. `stride:4`.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import topos
from common.errors import UsageError
from common.text import did_you_mean
from topos.topology import Topology
from workloads import app, generated, pairs, sequential, sip, sizes, trace
from workloads.flow import Flow, Traffic

Value = int | str
MANY_PARAMETERS = 8


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
    loops: bool = False
    """Whether a host sends its next flow when one has ended, so that goodput shows what it reached."""
    kind: str = "engines.flows"
    """The package of what hosts do (engines/workload.py), by name: it is above this one."""
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
        return dict(_defaults(self.draw))


@functools.cache
def _defaults(draw: Callable[..., Any]) -> dict[str, Value]:
    parameters = inspect.signature(draw).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


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


def beside_programs(
    hosts: Sequence[str], seed: int, traffic: Traffic, *, name: str = "", programs: str = ""
) -> tuple[Flow, ...]:
    """Return the flows beside the programs of an app (workloads/app.py), drawn as they are alone.

    Raises UsageError for programs that find no host, and as the workload of those flows.
    """
    del name
    parsed = app.parsed(programs)
    app.placed(parsed, hosts, seed)
    if not parsed.background:
        return ()
    matrix, params = parse(parsed.background)
    known = _known(matrix)
    if known.kind != Matrix.kind:
        raise UsageError(f'workload {app.NAME}: background = "{matrix}": give a workload of flows')
    return known.draw(hosts, seed, *((traffic,) if known.generated else ()), **params)


MATRICES: dict[str, Matrix] = {
    "one_to_one": Matrix(
        pairs.one_to_one,
        "random permutation, every host sends one flow and receives one",
        words="permutation",
    ),
    "one_to_several": Matrix(
        pairs.one_to_several,
        "every host (or percent of them) receives a flow from each of 4 random clients",
    ),
    "all_to_all": Matrix(pairs.all_to_all, "every host sends a flow to every other: n (n - 1) flows"),
    "stride": Matrix(
        pairs.stride, "host x sends to host x + i; i=0 stands for half of the hosts", words="stride {i}"
    ),
    "hotspot": Matrix(
        pairs.hotspot,
        "percent of the hosts send to a few hot hosts, the others to random hosts",
        words="{percent} % of hosts to {spots} spots",
    ),
    "random": Matrix(
        pairs.random_pairs, "as many flows as hosts, source and destination drawn independently"
    ),
    "connections": Matrix(
        pairs.connections,
        "percent connections for every 100 hosts, both ends drawn at random",
        words="{percent} per 100 hosts",
    ),
    "local": Matrix(
        pairs.local,
        "percent connections for every 100 hosts, part of them within racks, part within pods (FatTrees)",
        everywhere=False,
        words="{rack} % in rack, {pod} % in pod",
    ),
    "neighbours": Matrix(
        pairs.neighbours,
        "every server of a BCube sends to all servers that share a switch with it",
        everywhere=False,
        words="all neighbours",
    ),
    "against_tcp": Matrix(
        pairs.against_tcp,
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
        loops=True,
    ),
    "permuted_loop": Matrix(
        generated.permuted_loop,
        "closed loop in which each host always sends to the same partner of a permutation",
        generated=True,
        transfers=True,
        loops=True,
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
        loops=True,
    ),
    "map_reduce": Matrix(
        pairs.map_reduce,
        "the shuffle of map-reduce jobs: each of `maps` hosts sends `kb` thousand bytes to each of `reduces`",
        everywhere=False,
        transfers=True,
        words="shuffle, {maps} x {reduces}",
    ),
    "connections_per_host": Matrix(
        pairs.connections_per_host,
        "percent of the hosts send flows to several random hosts each, all different or any",
        words="{flows} flows per host",
    ),
    "permutation_share": Matrix(
        pairs.permutation_share,
        "percent of the hosts send one flow each, to distinct hosts",
        words="{percent} % of a permutation",
    ),
    "incast": Matrix(
        pairs.incast,
        "all hosts send `packets` full segments to the last at once",
        generated=True,
        transfers=True,
        words="incast of {packets} packets",
    ),
    "to_one": Matrix(
        pairs.to_one, "sized flows from random hosts to the last (Poisson)", generated=True, transfers=True
    ),
    "joined_permutation": Matrix(
        pairs.joined_permutation,
        "a permutation of long flows, and a second one of `kb` thousand bytes per flow that begins later",
        generated=True,
        words="a permutation, joined by another after {after_ms} ms",
    ),
    "sip": Matrix(
        sip.sip, "SIP calls and registrations through an IMS", everywhere=False, kind="engines.ims"
    ),
    "trace": Matrix(
        trace.trace,
        "the flows of a file, trace:flows.csv (start_s, src, dst, bytes)",
        everywhere=False,
        generated=True,
        transfers=True,
        words="trace {name}",
        data=("flows",),
    ),
    app.NAME: Matrix(
        beside_programs,
        "your own programs, app:web.toml",
        everywhere=False,
        generated=True,
        kind="engines.app",
        words="programs {name}",
        data=("programs",),
    ),
    "reference": Matrix(pairs.reference, "one uncongested flow across the network"),
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
    if known.generated and traffic is None:
        raise ValueError(f"building workload {matrix}: it is generated and needs the run's traffic")
    more = (traffic,) if known.generated else ()
    key = known.draw, topology.host_names, seed, more, tuple(sorted(params.items()))
    flows = _kept.pop(key, None) or known.draw(list(topology.host_names), seed, *more, **params)
    _kept[key] = flows  # the last one used comes last
    while len(_kept) > _MIN_KEPT and sum(map(len, _kept.values())) > _MAX_FLOWS_KEPT:
        del _kept[next(iter(_kept))]
    _check_joined(matrix, topology, flows)
    return flows


_kept: dict[tuple[object, ...], tuple[Flow, ...]] = {}
"""Flows that were drawn: estimates, checks and runs of points that differ in their transport need the same
ones. `plan sigcomm11` draws 88 times, in 0.15 s of CPU time; with four kept, 162 times in 0.23 s."""
_MIN_KEPT, _MAX_FLOWS_KEPT = 4, 100_000


def _check_joined(matrix: str, topology: Topology, flows: Sequence[Flow]) -> None:
    if topology.is_joined:
        return
    islands = {topology.nodes[host].name: topology.islands_of(host) for host in topology.hosts}
    for flow in flows:
        if islands[flow.src].isdisjoint(islands[flow.dst]):
            instead = (
                "choose --workload against_tcp, or another whose flows have a path"
                if topos.LANES in topology.params
                else "add a link that joins the parts of the network"
            )
            raise UsageError(
                f"workload {matrix}: no path joins {flow.src} and {flow.dst} in this {topology.kind}; "
                f"{instead}"
            )


def is_generated(matrix: str) -> bool:
    """Return whether the flows of this matrix depend on the run's traffic. Raises UsageError for an unknown
    matrix."""
    return _known(matrix).generated


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


def label(matrix: str, params: Mapping[str, Value], *, whole: bool = False) -> str:
    """Return the shortest text that `parse` reads, always with the first parameter: `one_to_one`,
    `stride:0`, `one_to_several:4`, `one_to_several:4:servers=25`.

    A distribution of the user's has a digest in it, unless `whole`: then `parse` reads it, too.
    """
    defaults = list(_known(matrix).defaults.items()) if params else []
    params = shown(matrix, params)
    if not whole:
        params = {name: sizes.short(value) for name, value in params.items()}
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


def loops(matrix: str) -> bool:
    """Return whether flows begin when others end. Raises UsageError if unknown."""
    return _known(matrix).loops


def kind_of(matrix: str) -> str:
    """Return the package of its kind, `engines.flows` or another. Raises UsageError if unknown."""
    return _known(matrix).kind


def param_words(matrix: str, params: Mapping[str, Value]) -> str:
    """Return `i=4, j=5`: all parameters but data, or those not at their defaults where there are many."""
    defaults = _known(matrix).defaults
    usual = defaults if len(defaults) > MANY_PARAMETERS else {}
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
