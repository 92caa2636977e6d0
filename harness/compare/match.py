"""Decide which points of two folders are compared with each other. Pure.

A condition is everything that was requested except the seed; points that differ only in the seed are its
repetitions. Fields for which the two sides have no value in common (A used iperf3 throughout, B the native
driver) are the subject of the comparison and are not used for matching. All others must agree. Conditions are
paired only if the match is unique.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import topos
from harness.options.fields import SPEC_FIELDS, SpecField
from harness.points.labels import digest
from harness.results.point_results import Judged
from model.spec import RunSpec, TopologySpec

Value = str | float | int
Fields = Mapping[str, Value]
MAX_TEXT = 500
AS_PORTS = "as the ports"
"""The usual length of hosts' own queues: that of all other queues. Then it is not a field."""
_BY_PATH = {option.path: option for option in SPEC_FIELDS}
_ELSEWHERE = {"topology", "workload", "seed", "sampling"}
PERMUTATION = ("topology", "workload")
"""Prefixes of the fields that determine, with the seed, which hosts communicate."""


def fields_of(spec: RunSpec) -> dict[str, Value]:
    """Return everything that was requested except seed and sampling, flat.

    Names are those of the spec's fields, or of options that set several of them.
    """
    link = spec.link
    nic = AS_PORTS if link.nic_queue_pkts == link.queue_pkts else link.nic_queue_pkts
    return {
        "topology": spec.topology.kind,
        **_parameters(spec.topology),
        "workload": spec.workload.matrix,
        **{f"workload {name}": _brief(value) for name, value in sorted(spec.workload.params.items())},
        **_flat(spec, ""),
        "nic_queue_pkts": nic,
    }


def _flat(part: Any, at: str) -> dict[str, Value]:
    """Return the fields of `part`, which is at the path `at` of a spec, each by its own name."""
    found: dict[str, Value] = {}
    for field in dataclasses.fields(part):
        path, value = f"{at}{field.name}", getattr(part, field.name)
        if path in _ELSEWHERE:
            continue
        if path in _BY_PATH and not isinstance(value, str | float | int):
            found |= _typed(_BY_PATH[path], value)
        elif dataclasses.is_dataclass(value):
            found |= _flat(value, f"{path}.")
        else:
            found[field.name] = value
    return found


def _typed(option: SpecField, value: Any) -> dict[str, Value]:
    """Return a value that is not a single number or text, in the syntax of the options."""
    if isinstance(value, Mapping):
        return {f"{option.name} {name}": text for name, text in sorted(value.items())}
    text = option.text(value)
    return {option.name: text if isinstance(text, str) else " ".join(text)}


def _brief(value: Value) -> Value:
    """Return a value, or a digest of a long text: data of a user's file."""
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"#{digest(value)}"
    return value


def _parameters(topology: TopologySpec) -> dict[str, Value]:
    """Return size, replicas and parameters that differ from their defaults, independent of how they were
    given."""
    family = topos.TOPOLOGIES[topology.kind]
    shape = {family.size.name: topology.k, **dict(topos.shape(topology.kind, topology.params))}
    if topos.LANES in topology.params:
        shape[topos.LANES] = topology.number(topos.LANES)
    if family.size.text:
        return {f"topology {name}": _brief(value) for name, value in sorted(topology.params.items())}
    return {f"topology {name}": value for name, value in sorted(shape.items())}


@dataclass(frozen=True)
class Condition:
    """What was requested, and the points that ran it, with one or more seeds."""

    fields: Fields
    points: tuple[Judged, ...]

    @property
    def spec(self) -> RunSpec:
        """The spec of the first seed."""
        return self.points[0].spec

    def by_seed(self) -> dict[int, Judged]:
        return {point.spec.seed: point for point in self.points}


@dataclass(frozen=True)
class Pair:
    """Two conditions to compare, and the fields in which they differ."""

    a: Condition
    b: Condition

    @property
    def differing(self) -> tuple[str, ...]:
        names = dict.fromkeys((*self.a.fields, *self.b.fields))
        return tuple(name for name in names if self.a.fields.get(name) != self.b.fields.get(name))

    @property
    def same_permutation(self) -> bool:
        """Whether equal seeds mean equal pairs of hosts."""
        return not any(name.startswith(PERMUTATION) for name in self.differing)


@dataclass(frozen=True)
class Ambiguity:
    """Conditions that agree in everything that both sides have in common, so more than one pairing is
    possible."""

    a: tuple[Condition, ...]
    b: tuple[Condition, ...]


@dataclass(frozen=True)
class Matching:
    """Every condition of both sides, exactly once."""

    pairs: tuple[Pair, ...]
    ambiguous: tuple[Ambiguity, ...]
    only_a: tuple[Condition, ...]
    only_b: tuple[Condition, ...]


def conditions(points: Iterable[Judged]) -> list[Condition]:
    """Group points by what was requested, in their order."""
    groups: dict[tuple[tuple[str, Value], ...], list[Judged]] = {}
    for point in points:
        groups.setdefault(_key(fields_of(point.spec)), []).append(point)
    return [Condition(dict(key), tuple(group)) for key, group in groups.items()]


def match(a: Sequence[Condition], b: Sequence[Condition]) -> Matching:
    """Pair the conditions of two sides, network by network if both have the same networks.

    Link rates are chosen per network, so k=4 may agree when k=8 does not.
    """
    shared = {_network(one.fields) for one in a} & {_network(one.fields) for one in b}
    if not shared:
        return _match(a, b)
    parts = [
        _match(*([c for c in side if _network(c.fields) == network] for side in (a, b)))
        for network in sorted(shared, key=str)
    ]
    return Matching(
        tuple(pair for part in parts for pair in part.pairs),
        tuple(open_ for part in parts for open_ in part.ambiguous),
        (*(c for part in parts for c in part.only_a), *_elsewhere(a, shared)),
        (*(c for part in parts for c in part.only_b), *_elsewhere(b, shared)),
    )


def _match(a: Sequence[Condition], b: Sequence[Condition]) -> Matching:
    about = contested(a, b)
    of_a, of_b = _grouped(a, about), _grouped(b, about)
    keys = dict.fromkeys((*of_a, *of_b))
    both = [(of_a[key], of_b[key]) for key in keys if key in of_a and key in of_b]
    single = [(ours, theirs) for ours, theirs in both if len(ours) == len(theirs) == 1]
    return Matching(
        tuple(Pair(ours[0], theirs[0]) for ours, theirs in single),
        tuple(Ambiguity(tuple(ours), tuple(theirs)) for ours, theirs in both if len(ours) + len(theirs) > 2),
        tuple(c for key in keys if key not in of_b for c in of_a[key]),
        tuple(c for key in keys if key not in of_a for c in of_b[key]),
    )


def contested(a: Sequence[Condition], b: Sequence[Condition]) -> set[str]:
    """Return the fields for which the two sides have no value in common: the subject of the comparison."""
    names = {name for condition in (*a, *b) for name in condition.fields}
    return {name for name in names if not {c.fields.get(name) for c in a} & {c.fields.get(name) for c in b}}


def _grouped(side: Sequence[Condition], without: set[str]) -> dict[tuple[object, ...], list[Condition]]:
    groups: dict[tuple[object, ...], list[Condition]] = {}
    for condition in side:
        kept = {name: value for name, value in condition.fields.items() if name not in without}
        groups.setdefault(_key(kept), []).append(condition)
    return groups


def _key(fields: Fields) -> tuple[tuple[str, Value], ...]:
    return tuple(sorted(fields.items()))


def _network(fields: Fields) -> tuple[tuple[str, Value], ...]:
    return _key({name: value for name, value in fields.items() if name.startswith("topology")})


def _elsewhere(side: Sequence[Condition], shared: set[tuple[tuple[str, Value], ...]]) -> list[Condition]:
    return [condition for condition in side if _network(condition.fields) not in shared]
