"""Files that users name in options: networks, flow sizes, flows and link traces.

Their content becomes part of the spec, so results do not depend on the file. All readers raise UsageError
with the place in the file.
"""

from __future__ import annotations

import csv
import json
import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import topos
from common import stored_json
from common.errors import UsageError
from common.files import label_of, text_of
from model.links import MAX_OPPORTUNITIES, MAX_PERIOD_MS, checked, link_trace, packed
from model.spec import TopologySpec, WorkloadSpec
from topos import Layer, Link, from_file
from workloads.flow import Flow
from workloads.sizes import INLINE, MAX_POINTS, PACKET
from workloads.sizes import written as sizes_text
from workloads.trace import MAX_BYTES, MAX_FLOWS
from workloads.trace import NAME as TRACE
from workloads.trace import written as flows_text

FILE, SIZES, LINK_TRACE = "file:", "sizes=@", "@"
COLUMNS = ("start_s", "src", "dst", "bytes")
"""Columns of a file of flows, in any order."""
LAYERS = {"edge": Layer.EDGE, "agg": Layer.AGG, "core": Layer.CORE}
RATES_MBPS = (0.01, 400_000.0)
LINK_NUMBERS = {
    "rate_mbps": RATES_MBPS,
    "delay_us": (0, from_file.MAX_DELAY_US),
    "loss_pct": (0, 100 * from_file.MAX_LOSS),
    "queue_pkts": (0, from_file.MAX_QUEUE_PKTS),
}
"""The attributes of a link and their ranges. 0 stands for none."""
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


def topologies(option: str, texts: tuple[str, ...]) -> tuple[TopologySpec, ...]:
    """Parse networks, `ls,4` or `file:net.json`; keep the order. Raises UsageError."""
    found = []
    for text in texts:
        if text.startswith(FILE):
            found.append(network_of(text.removeprefix(FILE)))
            continue
        try:
            kind, params = topos.parse(text)
            topos.check(kind, params)
        except UsageError as error:
            raise UsageError(f"{option} {text}: {error}") from None
        found.append(TopologySpec(kind, params))
    return tuple(found)


def network_of(path: str) -> TopologySpec:
    """Return the network of `--topology file:net.json`, node-link JSON as networkx.node_link_data writes it.

    Nodes may have `kind` (host or switch) and `layer` (edge, agg or core, of a switch), links what
    LINK_NUMBERS names. Without `kind`, a node with one link is a host. Without `layer`, the distance from the
    nearest host decides.
    """
    what = f"network {path}"
    try:
        data = stored_json.loads(text_of(what, Path(path)).encode())
    except ValueError as error:
        raise UsageError(f"{what}: it is not JSON: {error}") from None
    graph = _graph(what, data)
    _settle_kinds(graph)
    _settle_layers(graph)
    text, spec_name = _written(graph), label_of(Path(path))
    params = {"name": spec_name, "network": text}
    try:
        topos.build(from_file.KIND, params)
    except UsageError as error:
        raise UsageError(f"{what}: {error}") from None
    return TopologySpec(from_file.KIND, params)


def _graph(what: str, data: Any) -> _Graph:
    nodes, links = _part(what, data, "nodes"), _part(what, data, "links", "edges")
    if isinstance(data, Mapping) and data.get("directed"):
        raise UsageError(
            f"{what}: directed is true; links carry packets both ways, so give an undirected graph"
        )
    graph = _Graph(what)
    position: dict[Any, int] = {}
    for number, node in enumerate(nodes[1]):
        _add_node(graph, f"{what}: {nodes[0]}[{number}]", node, position)
    for number, link in enumerate(links[1]):
        _add_link(graph, f"{what}: {links[0]}[{number}]", link, position)
    if not graph.names or not graph.links:
        raise UsageError(f"{what}: it has no {'links' if graph.names else 'nodes'}")
    return graph


def _part(what: str, data: Any, *names: str) -> tuple[str, list[Any]]:
    """Return the list under the first of `names` that is there."""
    for name in names:
        if isinstance(data, Mapping) and isinstance(data.get(name), list):
            if len(data[name]) > from_file.MAX_NODES * 4:
                raise UsageError(f"{what}: {name} has {len(data[name])} entries, which is too many")
            return name, data[name]
    raise UsageError(f"{what}: it has no list {' or '.join(names)}; write it with networkx.node_link_data")


def _add_node(graph: _Graph, where: str, node: Any, position: dict[Any, int]) -> None:
    if not isinstance(node, Mapping) or not isinstance(node.get("id"), str | int):
        raise UsageError(f"{where}: it has no id")
    number, kind, layer = node["id"], node.get("kind", ""), node.get("layer")
    name = f"n{number}" if isinstance(number, int) else number
    if not (name.isascii() and name.isalnum() and name[0].isalpha() and len(name) <= 10):
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
    if graph.joined.setdefault(frozenset(ends), where) is not where:
        raise UsageError(
            f"{where}: {graph.joined[frozenset(ends)].rpartition(': ')[2]} joins {names[0]} and {names[1]}, "
            "too; give one link with the rate of both"
        )
    graph.links.append(Link(ends[0], ends[1], rate, delay_us, loss_pct / 100, int(queue_pkts)))


def _checked_number(where: str, value: Any, least: float, most: float) -> float:
    """Return a number in its range; 0 also stands for none."""
    fits = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not fits or not (value == 0 or least <= value <= most):
        raise UsageError(f"{where}: {json.dumps(value)[:40]} must be a number from {least:g} to {most:g}")
    return float(value)


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
        without = rates.index(0)
        raise UsageError(
            f"{graph.what}: link {without} has no rate_mbps and others have one; give it to all links or to "
            "none"
        )
    layers = [int(layer or Layer.HOST) for layer in graph.layers]
    links = []
    for link in graph.links:
        lower, upper = sorted(link.ends, key=layers.__getitem__)
        links.append(replace(link, a=lower, b=upper, speed=link.speed / lowest if lowest else 1.0))
    return from_file.written(list(zip(graph.names, layers, strict=True)), links, lowest)


def expanded(workload: str) -> str:
    """Return the text of a workload, `pairs:60:sizes=@FILE`, with the numbers of the file for its name.

    Each line of FILE has a size in bytes and the share of flows that are no larger, from 0 to 1 or from 0 to
    100 %, with straight lines between them. With a column between them (ns-2's files), sizes are packets of
    PACKET bytes. Text after # is a comment. Raises UsageError.
    """
    parts = workload.split(":")
    for number, part in enumerate(parts):
        if part.strip().startswith(SIZES):
            parts[number] = f"sizes={INLINE}{sizes_text(_sizes(part.strip().removeprefix(SIZES)))}"
    return ":".join(parts)


def _sizes(path: str) -> list[tuple[int, float]]:
    lines = text_of(f"sizes file {path}", Path(path)).removeprefix("\ufeff").splitlines()
    points: list[tuple[int, float]] = []
    columns = 0
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        where = f"sizes file {path}, line {number}"
        cells = text.split()
        columns = columns or len(cells)
        try:
            if len(cells) != columns or columns not in (2, 3):
                raise ValueError
            size, share = float(cells[0]) * (PACKET if columns == 3 else 1), float(cells[-1])
        except ValueError:
            raise UsageError(
                f"{where}: '{text[:40]}' is not a size in bytes and a share, as in: 8760 0.15 (or packets, "
                "any number and a share, the same on all lines)"
            ) from None
        if not points and (size, share) == (0, 0):
            size = 1
        if not 1 <= size <= 10**12 or size != int(size):
            raise UsageError(f"{where}: sizes are whole numbers from 1 to 10^12 bytes, not {cells[0]}")
        if not 0 <= share <= 100:
            raise UsageError(f"{where}: shares are from 0 to 1, or 0 to 100 %, not {share:g}")
        if points and (size < points[-1][0] or share < points[-1][1]):
            raise UsageError(f"{where}: sizes and shares must not fall from line to line")
        points.append((int(size), share))
    if len(points) < 2 or points[-1][1] not in (1, 100):
        raise UsageError(
            f"sizes file {path}: give two points or more, the last one with a share of 1 (or 100 %)"
        )
    if len(points) > MAX_POINTS:
        raise UsageError(f"sizes file {path}: {len(points)} points; give {MAX_POINTS} or fewer")
    return [(size, share / points[-1][1]) for size, share in points]


def trace_of(path: str) -> WorkloadSpec:
    """Return the workload of `--workload trace:flows.csv`: a line with COLUMNS, then one line per flow."""
    what = f"trace {path}"
    lines = text_of(what, Path(path)).splitlines()
    while lines and not lines[-1].strip():
        lines.pop()
    header = lines[0].removeprefix("\ufeff") if lines else ""
    order = [name.strip() for name in header.split(",")]
    if sorted(order) != sorted(COLUMNS):
        raise UsageError(f"{what}, line 1: its columns are '{header[:80]}'; write {','.join(COLUMNS)}")
    if len(lines) < 2:
        raise UsageError(f"{what}: it has no flows; write a line {','.join(COLUMNS)} and one line per flow")
    if len(lines) - 1 > MAX_FLOWS:
        raise UsageError(f"{what}: it has {len(lines) - 1} flows; give {MAX_FLOWS} or fewer")
    flows = [_flow(f"{what}, line {number}", line, order) for number, line in enumerate(lines[1:], 2)]
    return WorkloadSpec(TRACE, {"name": label_of(Path(path)), "flows": flows_text(flows)})


def _flow(where: str, line: str, order: list[str]) -> Flow:
    cells = next(csv.reader([line]), [])
    if len(cells) != len(order):
        raise UsageError(f"{where}: {len(cells)} values, not {len(order)} ({','.join(order)})")
    values = {name: cell.strip() for name, cell in zip(order, cells, strict=True)}
    start_s, size = (_number(where, name, values[name]) for name in ("start_s", "bytes"))
    if start_s < 0:
        raise UsageError(f"{where}: start_s is {start_s:g}; give seconds from 0, the start of traffic")
    if size != int(size) or not 1 <= size <= MAX_BYTES:
        raise UsageError(f"{where}: bytes is {values['bytes']}; give a whole number from 1 to 10^15")
    for end in ("src", "dst"):
        if not (values[end].isascii() and values[end].isalnum()):
            raise UsageError(f"{where}: {end} is '{values[end][:40]}'; give the name of a host, e.g. p0e0h0")
    if values["src"] == values["dst"]:
        raise UsageError(f"{where}: {values['src']} sends to itself; give two hosts")
    return Flow(values["src"], values["dst"], int(size), start_s)


def _number(where: str, name: str, cell: str) -> float:
    try:
        value = float(cell)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise UsageError(f"{where}: {name} is '{cell[:40]}', not a number")
    return value


def link_trace_of(option: str, text: str) -> str:
    """Return the text of a spec for `--link-trace`: `lte:SEED`, a stored trace, or `@FILE` as mahimahi's.

    Each line of FILE has the time in whole milliseconds of one delivery opportunity; times do not fall. The
    trace repeats from its last line on. Text after # is a comment. Raises UsageError.
    """
    if not text.startswith(LINK_TRACE):
        link_trace(text)
        return text
    path = text.removeprefix(LINK_TRACE)
    times = [0]
    lines = text_of(f"trace file {path}", Path(path)).splitlines()
    for number, line in enumerate(lines, start=1):
        written = line.partition("#")[0].strip()
        if not written:
            continue
        where = f"trace file {path}, line {number}"
        if not written.isdecimal() or int(written) > MAX_PERIOD_MS:
            raise UsageError(
                f"{where}: '{written}' is not a time in whole milliseconds from 0 to {MAX_PERIOD_MS}"
            )
        if int(written) < times[-1]:
            raise UsageError(f"{where}: times must not fall from line to line ({times[-1]}, then {written})")
        times.append(int(written))
    if times[-1] == 0:
        raise UsageError(f"trace file {path}: give opportunities after 0 ms, one per line")
    if len(times) - 1 > MAX_OPPORTUNITIES:
        raise UsageError(
            f"trace file {path}: {len(times) - 1} opportunities, and at most {MAX_OPPORTUNITIES} fit; take "
            f"its beginning, which repeats: head -n {MAX_OPPORTUNITIES} {path} > shorter"
        )
    # An opportunity at 0 ms comes at the end of the first millisecond, like one at 1 ms.
    opportunities = np.bincount(np.maximum(np.array(times[1:], np.int64), 1) - 1, minlength=times[-1])
    return packed(checked(opportunities.astype(np.int64), f"{option} {text}"))
