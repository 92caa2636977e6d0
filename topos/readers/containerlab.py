"""Topology files of containerlab: their nodes and the `endpoints` of their links; the rest is not read.

Nodes of the kinds `bridge` and `ovs-bridge` are switches. Any other node is a host if it has one link.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml  # type: ignore[import-untyped]

from common.errors import UsageError
from topos.readers.graph import Part, names

SWITCHES = frozenset({"bridge", "ovs-bridge"})
VETH = "veth"
"""The one type of link that joins two nodes of the file."""


def read(what: str, text: str) -> tuple[list[Part], list[Part]]:
    """Return nodes and links. Raises UsageError."""
    try:
        data = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"{what}{line}: it is not YAML: {getattr(error, 'problem', error)}") from None
    topology = data.get("topology") if isinstance(data, Mapping) else None
    if not (isinstance(topology, Mapping) and isinstance(topology.get("nodes"), Mapping)):
        raise UsageError(f"{what}: it has no topology with nodes; give a topology file of containerlab")
    nodes: list[Part] = []
    for name, about in topology["nodes"].items():
        kind = about.get("kind") if isinstance(about, Mapping) else None
        entry = {"id": str(name)} | ({"kind": "switch"} if kind in SWITCHES else {})
        nodes.append((f"{what}: topology.nodes.{name}", entry))
    given = topology.get("links")
    links: list[Part] = [
        (where, _link(where, each))
        for number, each in enumerate(given if isinstance(given, list) else [])
        for where in [f"{what}: topology.links[{number}]"]
    ]
    return names(nodes, links)


def _link(where: str, given: Any) -> dict[str, str]:
    link = given if isinstance(given, Mapping) else {}
    endpoints = link.get("endpoints")
    if link.get("type", VETH) != VETH:
        raise UsageError(f"{where}: links of the type {str(link['type'])[:40]} are not read, only {VETH}")
    ends = [
        end.get("node") if isinstance(end, Mapping) else str(end).partition(":")[0]
        for end in (endpoints if isinstance(endpoints, list) else [])
    ]
    if len(ends) != 2:
        raise UsageError(f'{where}: it has no two endpoints, as in: endpoints: ["leaf1:e1-1", "spine:e1-1"]')
    return {"source": str(ends[0]), "target": str(ends[1])}
