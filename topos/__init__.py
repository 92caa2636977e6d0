"""Topologies: pure graphs, by registry name.

To add one, write its module and add a `Family` here. Imports `common`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from common.errors import UsageError
from common.text import did_you_mean
from topos import (
    bcube,
    cloud,
    dual_homed_fat_tree,
    dumbbell,
    fat_tree,
    from_file,
    jellyfish,
    leaf_spine,
    mininet_shapes,
    star,
    two_bottlenecks,
    vl2,
)
from topos.topology import Kind, Layer, Link, Nic, Node, Topology

__all__ = [
    "ALIASES",
    "TOPOLOGIES",
    "Family",
    "Kind",
    "Layer",
    "Link",
    "Nic",
    "Node",
    "Parameter",
    "Topology",
    "build",
    "check",
    "identity",
    "of_run",
    "parse",
    "shape",
    "size_words",
]

MAX_LINKS = 400_000
"""Most links of a network: a FatTree with k=80 has 384 000 and takes 210 MB and 1.4 s to build."""
LANES = "lanes"
"""Parameter of topologies that can hold several disjoint replicas of a network, for repetitions in one
run."""
SEED = "seed"
"""Parameter of random topologies: the seed of the graph; 0 stands for the seed of the run (`of_run`)."""


@dataclass(frozen=True)
class Parameter:
    """A parameter of a family: its name and range. `default` is None for a required parameter; `words` is
    its text for readers."""

    name: str
    minimum: int
    maximum: int
    step: int = 1
    default: int | None = None
    words: str = "{name}={value}"
    text: bool = False
    """Whether it is a text; `minimum` and `maximum` are then its length."""

    @property
    def accepts(self) -> str:
        if self.text:
            return f"a text of up to {self.maximum} characters"
        even = "an even number" if self.step == 2 else "a number"
        return f"{even} from {self.minimum} to {self.maximum}"

    def admits(self, value: object) -> bool:
        if self.text:
            return isinstance(value, str) and self.minimum <= len(value) <= self.maximum
        return isinstance(value, int) and self.minimum <= value <= self.maximum and not value % self.step


@dataclass(frozen=True)
class Family:
    """A kind of topology: its short name on the command line, and its parameters, the size first."""

    alias: str
    parameters: tuple[Parameter, ...]
    construct: Callable[..., Topology]
    links: Callable[..., int]
    """The number of links, or a number that it does not exceed, by the parameters."""
    title: str
    written: str = ""
    """Its form on a command line, if `example` does not give it."""

    @property
    def size(self) -> Parameter:
        return self.parameters[0]

    @property
    def example(self) -> str:
        return self.written or f"{self.alias},{max(1, self.size.minimum)}"

    @property
    def accepts(self) -> str:
        return "; ".join(f"{parameter.name}, {parameter.accepts}" for parameter in self.parameters)


TOPOLOGIES: dict[str, Family] = {
    fat_tree.KIND: Family(
        "ft",
        (
            Parameter("k", 4, fat_tree.MAX_K, 2),
            Parameter("oversubscription", 1, fat_tree.MAX_BELOW // 2, default=1, words="{value}:1"),
        ),
        fat_tree.fat_tree,
        fat_tree.links,
        "FatTree",
    ),
    dual_homed_fat_tree.KIND: Family(
        "dhft",
        (Parameter("k", 4, dual_homed_fat_tree.MAX_K, 2),),
        dual_homed_fat_tree.dual_homed_fat_tree,
        dual_homed_fat_tree.links,
        "dual-homed FatTree",
    ),
    vl2.KIND: Family(
        "vl2",
        (
            Parameter("da", 2, vl2.MAX_PORTS, 2),
            Parameter("di", 2, vl2.MAX_PORTS, 2, default=4),
            Parameter("servers", 1, vl2.MAX_SERVERS, default=vl2.SERVERS),
        ),
        vl2.vl2,
        lambda da, di, servers: da * di // 4 * (servers + 2) + da * di // 2,
        "VL2",
    ),
    leaf_spine.KIND: Family(
        "ls",
        (
            Parameter("leaves", 1, leaf_spine.MAX_LEAVES),
            Parameter("spines", 1, leaf_spine.MAX_SPINES, default=4),
            Parameter("hosts", 2, leaf_spine.MAX_HOSTS, default=16),
            Parameter("speed", 1, leaf_spine.MAX_SPEED, default=4),
        ),
        leaf_spine.leaf_spine,
        lambda leaves, spines, hosts, **_: leaves * (hosts + spines),
        "leaf-spine",
    ),
    bcube.KIND: Family(
        "bcube",
        (Parameter("n", 2, bcube.MAX_N), Parameter("k", 0, bcube.MAX_K, default=1)),
        bcube.bcube,
        bcube.links,
        "BCube",
    ),
    cloud.KIND: Family(
        "cloud",
        (
            Parameter("n", 2, cloud.MAX_HOSTS),
            Parameter("racks", 1, cloud.MAX_RACKS, default=8),
            Parameter("tenants", 0, cloud.MAX_TENANTS, default=10, words="{value} other hosts per rack"),
        ),
        cloud.cloud,
        lambda n, racks, tenants: n + racks * (tenants + max(cloud.UPLINKS)),
        "cloud",
    ),
    jellyfish.KIND: Family(
        "jf",
        (
            Parameter("switches", 4, jellyfish.MAX_SWITCHES),
            Parameter("ports", 2, jellyfish.MAX_PORTS, default=4),
            Parameter("servers", 0, jellyfish.MAX_SERVERS, default=1),
            Parameter("more", 0, jellyfish.MAX_SWITCHES, default=0),
            Parameter(SEED, 0, 10**15, default=0, words="graph {value}"),
        ),
        jellyfish.jellyfish,
        jellyfish.links,
        "Jellyfish",
    ),
    star.KIND: Family("star", (Parameter("n", 2, star.MAX_N),), star.star, lambda n: n, "star"),
    dumbbell.KIND: Family(
        "db",
        (
            Parameter("n", 1, dumbbell.MAX_PAIRS),
            Parameter("lanes", 1, dumbbell.MAX_REPLICAS, default=1),
            Parameter("access", 1, dumbbell.MAX_ACCESS, default=1, words="hosts' links {value}x"),
        ),
        dumbbell.dumbbell,
        lambda n, lanes, **_: lanes * (2 * n + 1),
        "dumbbell",
    ),
    two_bottlenecks.KIND: Family(
        "two",
        (
            Parameter("first", 0, two_bottlenecks.MAX_COMPETITORS),
            Parameter("second", 0, two_bottlenecks.MAX_COMPETITORS, default=1),
            Parameter("lanes", 1, two_bottlenecks.MAX_REPLICAS, default=1),
        ),
        two_bottlenecks.two_bottlenecks,
        lambda first, second, lanes: lanes * 2 * (first + second + 3),
        "two bottlenecks",
    ),
    mininet_shapes.SINGLE: Family(
        "single",
        (Parameter("k", 2, mininet_shapes.MAX_HOSTS, default=2),),
        mininet_shapes.single,
        lambda k: k,
        "Mininet's single switch",
    ),
    mininet_shapes.LINEAR: Family(
        "linear",
        (
            Parameter("k", 2, mininet_shapes.MAX_SWITCHES, default=2),
            Parameter("n", 1, mininet_shapes.MAX_HOSTS, default=1),
        ),
        mininet_shapes.linear,
        lambda k, n: k * (n + 1) - 1,
        "Mininet's linear",
    ),
    mininet_shapes.TREE: Family(
        "tree",
        (
            Parameter("depth", 1, mininet_shapes.MAX_DEPTH, default=1),
            Parameter("fanout", 2, mininet_shapes.MAX_FANOUT, default=2),
        ),
        mininet_shapes.tree,
        mininet_shapes.tree_links,
        "Mininet's tree",
    ),
    from_file.KIND: Family(
        "net",
        (
            Parameter("name", 1, from_file.MAX_NAME, words="{value}", text=True),
            Parameter("network", 2, from_file.MAX_TEXT, words="", text=True),
        ),
        from_file.from_file,
        lambda network, **_: network.count("["),
        "network",
        written="file:net.json",
    ),
}
ALIASES: dict[str, str] = {family.alias: kind for kind, family in TOPOLOGIES.items()}


Params = Mapping[str, int | str]


def build(kind: str, params: Params) -> Topology:
    """Return topology `kind` (registry name or alias) with parameters such as `{"k": 8}`.

    The last few networks are kept, because the steps of a run ask for the same ones, and more of them if they
    are small, because a plan asks for the same ones several times. Raises UsageError for an unknown kind, and
    for a missing, unknown or unsuitable parameter.
    """
    kind = _resolve(kind)
    checked = check(kind, params)
    key = TOPOLOGIES[kind].construct, tuple(checked.items())
    made = _kept.pop(key, None) or key[0](**checked)
    _kept[key] = made  # the last one used comes last
    while len(_kept) > _MIN_KEPT and sum(len(each.links) for each in _kept.values()) > _MAX_LINKS_KEPT:
        del _kept[next(iter(_kept))]
    return made


def of_run(kind: str, params: Params, seed: int) -> Topology:
    """Return the topology of a run with this seed, so that repetitions of a random one are over graphs."""
    random = any(parameter.name == SEED for parameter in TOPOLOGIES[_resolve(kind)].parameters)
    return build(kind, {**params, SEED: params.get(SEED) or seed} if random else params)


_kept: dict[tuple[Callable[..., Topology], tuple[tuple[str, int | str], ...]], Topology] = {}
_MIN_KEPT, _MAX_LINKS_KEPT = 4, 100_000


def check(kind: str, params: Params) -> dict[str, int | str]:
    """Return all parameters of topology `kind` (registry name), with defaults for those that are missing.

    Raises UsageError as `build` does, also for a network of more than MAX_LINKS links. It constructs nothing,
    so that it is quick for any size.
    """
    if kind not in TOPOLOGIES:
        raise _unknown(kind)
    family = TOPOLOGIES[kind]
    extra = sorted(set(params) - {parameter.name for parameter in family.parameters})
    if extra:
        raise UsageError(f"topology {kind} has no parameter '{extra[0]}': it takes {family.accepts}")
    checked = {parameter.name: _value(kind, parameter, params) for parameter in family.parameters}
    if (links := family.links(**checked)) > MAX_LINKS:
        given = ", ".join(f"{name}={value}" for name, value in checked.items() if isinstance(value, int))
        raise UsageError(
            f"topology {kind}: {given or 'its text'} has {links} links, and {MAX_LINKS} is the limit: "
            "choose a smaller one"
        )
    return checked


def _value(kind: str, parameter: Parameter, params: Params) -> int | str:
    value = params.get(parameter.name, parameter.default)
    if value is None:
        raise UsageError(f"topology {kind} needs {parameter.name}: give {parameter.accepts}")
    if not parameter.admits(value):
        raise UsageError(
            f"topology {kind}: {parameter.name} must be {parameter.accepts}, not {str(value)[:80]}"
        )
    return value


def parse(text: str) -> tuple[str, dict[str, int]]:
    """Parse `ft,4`, `fat_tree,4`, `ft,k=4` or `db,2,lanes=6` to a kind and parameters for `build`.

    Raises UsageError for text of another form; `build` checks the values.
    """
    name, *arguments = [part.strip() for part in text.split(",")]
    kind = _resolve(name)
    family = TOPOLOGIES[kind]
    if family.written:
        raise UsageError(f"topology '{text}': write {family.written}, where a network may come from a file")
    names = [parameter.name for parameter in family.parameters]
    if not 1 <= len(arguments) <= len(names):
        raise UsageError(
            f"topology '{text}' has {len(arguments)} parameters, but {kind} takes {' and '.join(names)}: "
            f"write e.g. {family.example}"
        )
    params: dict[str, int] = {}
    for position, argument in enumerate(arguments):
        key, equals, value = argument.rpartition("=")
        key = key if equals else names[position]
        if key not in names:
            raise UsageError(f"topology {kind} has no parameter '{key}': write for example {family.example}")
        try:
            params[key] = int(value)
        except ValueError:
            accepts = family.parameters[names.index(key)].accepts
            raise UsageError(f"topology '{text}': {key} must be {accepts}, not '{value}'") from None
    return kind, params


def identity(kind: str, params: Params) -> tuple[str, tuple[tuple[str, int | str], ...]]:
    """Return a key that is equal for equal networks: the kind and all parameters, including defaults.

    The number of replicas is omitted, because replicas repeat the same network.
    """
    family = TOPOLOGIES[kind]
    values = {
        parameter.name: params.get(parameter.name, parameter.default) for parameter in family.parameters
    }
    return kind, tuple((name, value) for name, value in values.items() if value is not None and name != LANES)


def shape(kind: str, params: Params) -> tuple[tuple[str, int], ...]:
    """Return the numbers, other than size and replicas, that differ from their defaults."""
    _, values = identity(kind, params)
    size, usual = TOPOLOGIES[kind].size.name, {p.name: p.default for p in TOPOLOGIES[kind].parameters}
    others = ((name, value) for name, value in values if name != size and value != usual[name])
    return tuple((name, value) for name, value in others if isinstance(value, int))


def size_words(kind: str, params: Params) -> list[str]:
    """Return text for readers, `["k=8", "4:1"]`: the size, then parameters that differ from defaults."""
    family = TOPOLOGIES[kind]
    return [
        parameter.words.format(name=parameter.name, value=params[parameter.name])
        for parameter in family.parameters
        if parameter.name in params
        and parameter.words
        and (parameter is family.size or params[parameter.name] != parameter.default)
    ]


def _resolve(name: str) -> str:
    kind = ALIASES.get(name, name)
    if kind not in TOPOLOGIES:
        raise _unknown(name)
    return kind


def _unknown(name: str) -> UsageError:
    known = ", ".join(f"{kind} ({f.alias})" for kind, f in TOPOLOGIES.items() if not f.written)
    meant = did_you_mean(name, (*TOPOLOGIES, *ALIASES))
    return UsageError(f"unknown topology '{name}': {meant}choose one of {known}")
