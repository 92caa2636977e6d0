"""Topologies: pure graphs, by registry name.

    topology.py               Topology, its parts, shortest paths
    fat_tree.py  dual_homed_fat_tree.py  star.py
    mininet_topos.py          the same for stock Mininet: mn --custom topos/mininet_topos.py --topo ft,4

To add one: write its module, add a `Family` here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fabric.errors import UsageError
from topos import dual_homed_fat_tree, fat_tree, star
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
    "Topology",
    "build",
    "parse",
]


@dataclass(frozen=True)
class Family:
    """A kind of topology: its short name on command lines, and the one size parameter with its range."""

    alias: str
    parameter: str
    minimum: int
    maximum: int
    step: int
    construct: Callable[[int], Topology]
    title: str

    @property
    def accepts(self) -> str:
        even = "an even number" if self.step == 2 else "a number"
        return f"{even} from {self.minimum} to {self.maximum}"


TOPOLOGIES: dict[str, Family] = {
    fat_tree.KIND: Family("ft", "k", 4, fat_tree.MAX_K, 2, fat_tree.fat_tree, "FatTree"),
    dual_homed_fat_tree.KIND: Family(
        "dhft",
        "k",
        4,
        dual_homed_fat_tree.MAX_K,
        2,
        dual_homed_fat_tree.dual_homed_fat_tree,
        "dual-homed FatTree",
    ),
    star.KIND: Family("star", "n", 2, star.MAX_N, 1, star.star, "star"),
}
ALIASES: dict[str, str] = {family.alias: kind for kind, family in TOPOLOGIES.items()}


def build(kind: str, params: Mapping[str, int]) -> Topology:
    """Construct topology `kind` (registry name or alias) of exactly its parameters, e.g. `{"k": 8}`.

    Raises UsageError for an unknown kind, a missing, extra or unsuitable parameter.
    """
    kind = _resolve(kind)
    family = TOPOLOGIES[kind]
    extra = sorted(set(params) - {family.parameter})
    if extra:
        raise UsageError(
            f"topology {kind} has no parameter '{extra[0]}': it takes {family.parameter}, {family.accepts}"
        )
    if family.parameter not in params:
        raise UsageError(f"topology {kind} needs {family.parameter}: give {family.accepts}")
    size = params[family.parameter]
    if not isinstance(size, int) or not family.minimum <= size <= family.maximum or size % family.step:
        raise UsageError(f"topology {kind}: {family.parameter} must be {family.accepts}, not {size}")
    return family.construct(size)


def parse(text: str) -> tuple[str, dict[str, int]]:
    """The kind and parameters of `ft,4`, `fat_tree,4` or `ft,k=4`, to be given to `build`.

    Raises UsageError when the text is not of this form; the value itself is checked by `build`.
    """
    name, *arguments = [part.strip() for part in text.split(",")]
    kind = _resolve(name)
    family = TOPOLOGIES[kind]
    example = f"{family.alias},{family.minimum}"
    if len(arguments) != 1:
        raise UsageError(
            f"topology '{text}' has {len(arguments)} parameters, {kind} takes one: write e.g. {example}"
        )
    parameter, equals, value = arguments[0].rpartition("=")
    if equals and parameter != family.parameter:
        raise UsageError(f"topology {kind} has no parameter '{parameter}': write for example {example}")
    try:
        return kind, {family.parameter: int(value)}
    except ValueError:
        raise UsageError(
            f"topology '{text}': {family.parameter} must be {family.accepts}, not '{value}'"
        ) from None


def _resolve(name: str) -> str:
    kind = ALIASES.get(name, name)
    if kind not in TOPOLOGIES:
        known = ", ".join(f"{kind} ({family.alias})" for kind, family in TOPOLOGIES.items())
        raise UsageError(f"unknown topology '{name}': choose one of {known}")
    return kind
