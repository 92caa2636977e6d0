"""A graph of nodes and links from a file: checked, with kinds and layers settled, as the text of a spec.

Nodes may have `kind` (host or switch) and `layer` (edge, agg or core, of a switch), links what LINK_NUMBERS
names. Without `kind`, a node with one link is a host. Without `layer`, the distance from the nearest host
decides.
"""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import UsageError
from topos import from_file
from topos.from_file import LINK_NUMBERS
from topos.topology import Layer, Link

Part = tuple[str, Any]
"""Where a node or a link is in its file, for errors, and its attributes."""

LAYERS = {"edge": Layer.EDGE, "agg": Layer.AGG, "core": Layer.CORE}
LIKE = {
    **dict.fromkeys(("rate", "bandwidth", "bw", "capacity", "speed", "linkspeed"), "rate_mbps"),
    **dict.fromkeys(("delay", "latency"), "delay_us"),
    "loss": "loss_pct",
    **dict.fromkeys(("queue", "max_queue", "buffer"), "queue_pkts"),
}
"""How names of other tools for these attributes begin, and our names for them."""
LABELS = frozenset({"source", "target", "key", "id", "name", "label", "color", "comment", "description"})
"""Attributes of a link that are allowed and change nothing."""


@dataclass
class _Graph:
    """What was read: node names with the given kind and layer, and links between positions of nodes."""

    what: str
    names: list[str] = field(default_factory=list)
    kinds: list[str] = field(default_factory=list)
    layers: list[Layer | None] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    """With the rate in Mb/s as speed, 0 if none is given."""
    joined: dict[frozenset[int], str] = field(default_factory=dict)
    """Where the link between two nodes is."""

    def neighbours(self) -> list[list[int]]:
        """Return the neighbours of each node."""
        near: list[list[int]] = [[] for _ in self.names]
        for link in self.links:
            near[link.a].append(link.b)
            near[link.b].append(link.a)
        return near


def network(what: str, nodes: list[Part], links: list[Part], hosts: int) -> str:
    """Return the text of a network with so many more hosts at each switch. Raises UsageError."""
    graph = _Graph(what)
    position: dict[Any, int] = {}
    for where, node in nodes:
        _add_node(graph, where, node, position)
    for where, link in links:
        _add_link(graph, where, link, position)
    if not graph.names or not graph.links:
        raise UsageError(f"{what}: it has no {'links' if graph.names else 'nodes'}")
    if hosts:
        _add_hosts(graph, hosts)
    _settle_kinds(graph)
    _settle_layers(graph)
    return _written(graph)


def names(nodes: list[Part], links: list[Part]) -> tuple[list[Part], list[Part]]:
    """Give nodes and links of a file with names of any form names that a node can have.

    They are letters and digits of the own name, or `n` and the node's position if those are no name.
    """
    given: dict[Any, str] = {}
    taken: set[str] = set()
    for number, (_, node) in enumerate(nodes):
        own = "".join(char for char in str(node["id"]) if char.isascii() and char.isalnum())
        own = f"n{own}" if own.isdecimal() else own
        name = given.setdefault(node["id"], own if _is_name(own) and own not in taken else f"n{number}")
        taken.add(name)
    return [(where, node | {"id": given[node["id"]]}) for where, node in nodes], [
        (where, link | {end: given.get(link[end], link[end]) for end in ("source", "target")})
        for where, link in links
    ]


def with_unit(where: str, what: str, text: str, units: Mapping[str, float]) -> float:
    """Return a number that is followed by one of `units`, times that unit. Raises UsageError."""
    for unit, factor in units.items():
        if text.endswith(unit):
            try:
                return float(text.removesuffix(unit)) * factor
            except ValueError:
                break
    allowed = f" and one of {', '.join(units)}" if any(units) else ""
    raise UsageError(f"{where}: {what} '{text[:40]}' is not a number{allowed}")


def _is_name(text: str) -> bool:
    return text.isascii() and text.isalnum() and text[0].isalpha() and len(text) <= 10


def _add_node(graph: _Graph, where: str, node: Any, position: dict[Any, int]) -> None:
    if not isinstance(node, Mapping) or not isinstance(node.get("id"), str | int):
        raise UsageError(f"{where}: it has no id")
    number, kind, layer = node["id"], node.get("kind", ""), node.get("layer")
    name = f"n{number}" if str(number).isdecimal() else str(number)
    if not _is_name(name):
        raise UsageError(f"{where}.id: '{name[:40]}' must be a letter and up to 9 letters or digits")
    if kind not in ("", "host", "switch"):
        raise UsageError(f"{where}.kind: '{str(kind)[:40]}' must be host or switch")
    if layer is not None and (not isinstance(layer, str) or layer not in LAYERS):
        raise UsageError(f"{where}.layer: '{str(layer)[:40]}' must be {', '.join(LAYERS)}")
    if number in position:
        raise UsageError(f"{where}.id: another node is called {name} already")
    position[number] = len(graph.names)
    graph.names.append(name)
    graph.kinds.append(kind)
    graph.layers.append(None if layer is None else LAYERS[layer])


def _add_link(graph: _Graph, where: str, link: Any, position: Mapping[Any, int]) -> None:
    if not isinstance(link, Mapping):
        raise UsageError(f"{where}: it is not an object with source and target")
    ends = []
    for end in ("source", "target"):
        node = link.get(end)
        if not isinstance(node, str | int) or node not in position:
            raise UsageError(f"{where}.{end}: there is no node with the id {json.dumps(node)[:40]}")
        ends.append(position[node])
    for name in link:
        if name in LINK_NUMBERS or name in LABELS:
            continue
        ours = next((ours for start, ours in LIKE.items() if name.lower().startswith(start)), "")
        instead = f"write {ours}" if ours else f"leave it out (links have {', '.join(LINK_NUMBERS)})"
        raise UsageError(f"{where}.{name[:40]}: this attribute is not read; {instead}")
    rate, delay_us, loss_pct, queue_pkts = (
        _checked_number(f"{where}.{name}", link.get(name, 0), *limits)
        for name, limits in LINK_NUMBERS.items()
    )
    if queue_pkts != int(queue_pkts):
        raise UsageError(f"{where}.queue_pkts: {queue_pkts:g} must be a whole number")
    names = [graph.names[end] for end in ends]
    if ends[0] == ends[1]:
        raise UsageError(f"{where}: both ends are {names[0]}")
    other = graph.joined.setdefault(frozenset(ends), where)
    if other is not where:
        raise UsageError(
            f"{where}: {other.removeprefix(graph.what).lstrip(':, ')} joins {names[0]} and {names[1]}, too; "
            "give one link with the rate of both"
        )
    graph.links.append(Link(ends[0], ends[1], rate, delay_us, loss_pct / 100, int(queue_pkts)))


def _checked_number(where: str, value: Any, least: float, most: float) -> float:
    """Return a number in its range; 0 also stands for none."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not (value == 0 or least <= value <= most):
        raise UsageError(f"{where}: {json.dumps(value)[:40]} must be a number from {least:g} to {most:g}")
    return float(value)


def _add_hosts(graph: _Graph, hosts: int) -> None:
    """Link more hosts to each node that is no host by its kind, at the lowest rate of the file."""
    rate = min(link.speed for link in graph.links)
    switches = [node for node, kind in enumerate(graph.kinds) if kind != "host"]
    for switch in switches:
        graph.kinds[switch] = "switch"
        for number in range(hosts):
            graph.links.append(Link(len(graph.names), switch, rate))
            graph.names.append(f"h{switch}x{number}")
            graph.kinds.append("host")
            graph.layers.append(None)


def _settle_kinds(graph: _Graph) -> None:
    """Decide which nodes are hosts, and check how these are linked. Raises UsageError."""
    near = graph.neighbours()
    for node, kind in enumerate(graph.kinds):
        graph.kinds[node] = kind or ("host" if len(near[node]) == 1 else "switch")
    hosts = [node for node, kind in enumerate(graph.kinds) if kind == "host"]
    if len(hosts) < 2:
        raise UsageError(f"{graph.what}: it has {len(hosts)} hosts; give two or more nodes the kind host")
    for host in hosts:
        if not near[host] or any(graph.kinds[other] == "host" for other in near[host]):
            wrong = "no link" if not near[host] else "a link to another host"
            raise UsageError(f"{graph.what}: host {graph.names[host]} has {wrong}; link it to a switch")


def _settle_layers(graph: _Graph) -> None:
    """Give each switch without a layer one by its distance from the nearest host. Raises UsageError."""
    distance = {node: 0 for node, kind in enumerate(graph.kinds) if kind == "host"}
    near = graph.neighbours()
    waiting = deque(distance)
    while waiting:
        node = waiting.popleft()
        for other in near[node]:
            if other not in distance:
                distance[other] = distance[node] + 1
                waiting.append(other)
    for node, name in enumerate(graph.names):
        if node not in distance:
            raise UsageError(f"{graph.what}: no path leads from {name} to a host")
        given = graph.layers[node]
        graph.layers[node] = given or Layer(min(distance[node], int(Layer.CORE)))


def _written(graph: _Graph) -> str:
    """Return the text for the spec: rates as multiples of the lowest one. Raises UsageError."""
    rates = [link.speed for link in graph.links]
    lowest = min(rates)
    if lowest == 0 and any(rates):
        ends = " and ".join(graph.names[end] for end in graph.links[rates.index(0)].ends)
        raise UsageError(
            f"{graph.what}: the link between {ends} has no rate_mbps and others have one; give it to all "
            "links or to none"
        )
    layers = [int(layer or Layer.HOST) for layer in graph.layers]
    links = []
    for link in graph.links:
        lower, upper = sorted(link.ends, key=layers.__getitem__)
        links.append(link._replace(a=lower, b=upper, speed=link.speed / lowest if lowest else 1.0))
    return from_file.written(list(zip(graph.names, layers, strict=True)), links, lowest)
