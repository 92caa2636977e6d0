"""Draw the pictures of docs/learn: a FatTree, two flows that collide, and the subflows of one.

    .venv/bin/python docs/tools/learn_pictures.py

Network and paths are the ones that runs use: topos, and the hash of controllers/routing.py.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import topos
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.routing import path
from topos.topology import Kind, Layer, Topology

FOLDER = Path(__file__).resolve().parents[1] / "images" / "learn"
K = 4
SEED = 1
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7")
"""Colours of Okabe and Ito, which colour-blind readers can distinguish."""
HEIGHTS = {Layer.HOST: 0.0, Layer.EDGE: 1.0, Layer.AGG: 2.0, Layer.CORE: 3.0}
FROM, TO = "p0e0h0", "p2e0h0"
"""The flow of the pictures."""
OTHER_FROM, OTHER_TO = "p0e1h0", "p2e1h1"
TCP, PORT = 6, 5001
Route = tuple[int, ...]


def network() -> Topology:
    """Return the FatTree of the pictures."""
    return topos.build("fat_tree", {"k": K})


def route(net: Topology, source: str, target: str, source_port: int) -> Route:
    """Return the nodes that packets of this TCP flow pass."""

    def address(name: str) -> str:
        return net.nics_of(net.index(name))[0].ip

    flow = FiveTuple(address(source), address(target), TCP, source_port, PORT)
    return path(net, ecmp_groups(net), "hashed", SEED, flow)


def shared(one: Route, other: Route) -> list[tuple[int, int]]:
    """Return the links that two routes have in common, in their direction."""
    links = set(pairwise(other))
    return [link for link in pairwise(one) if link in links]


def colliding(net: Topology) -> tuple[Route, Route]:
    """Return the routes of two flows between four hosts that the hash puts on one link of the core."""
    one = route(net, FROM, TO, 40000)
    for port in range(40001, 40100):
        other = route(net, OTHER_FROM, OTHER_TO, port)
        if shared(one, other):
            return one, other
    raise AssertionError("a hundred flows take other paths")


def subflows(net: Topology, count: int = 4) -> list[Route]:
    """Return the routes of subflows of one connection: only their source ports differ."""
    return [route(net, FROM, TO, 40000 + each) for each in range(count)]


def places(net: Topology) -> dict[int, tuple[float, float]]:
    """Return where each node is drawn: layers above each other, each spread over the whole width."""
    found: dict[int, tuple[float, float]] = {}
    for layer, height in HEIGHTS.items():
        members = [index for index, node in enumerate(net.nodes) if node.layer is layer]
        for position, index in enumerate(members):
            found[index] = ((position + 0.5) / len(members), height)
    return found


def drawn(axes: Axes, net: Topology) -> dict[int, tuple[float, float]]:
    """Draw every link and node; return where the nodes are."""
    at = places(net)
    for link in net.links:
        axes.plot(*zip(at[link.a], at[link.b], strict=True), color="#c8c8c8", linewidth=0.8, zorder=1)
    for index, node in enumerate(net.nodes):
        host = node.kind is Kind.HOST
        axes.plot(*at[index], "o" if host else "s", color="#444444", markersize=4 if host else 9, zorder=3)
    for layer, words in zip(HEIGHTS, ("16 hosts", "edge", "aggregation", "core"), strict=True):
        axes.text(-0.01, HEIGHTS[layer], words, ha="right", va="center", fontsize=9)
    axes.set_axis_off()
    return at


def along(axes: Axes, at: dict[int, tuple[float, float]], routes: Sequence[Route]) -> None:
    """Draw routes, each in its colour, side by side where they share a link."""
    for number, nodes in enumerate(routes):
        shift = 0.006 * (number - (len(routes) - 1) / 2)
        points = [(at[node][0] + shift, at[node][1]) for node in nodes]
        axes.plot(*zip(*points, strict=True), color=COLOURS[number], linewidth=2.2, zorder=2)


def label(axes: Axes, net: Topology, at: dict[int, tuple[float, float]], node: str) -> None:
    """Write a node's name: below a host, to the right of a switch, to the left of a core switch."""
    x, y = at[net.index(node)]
    of = net.nodes[net.index(node)]
    if of.kind is Kind.HOST:
        axes.text(x, y - 0.15, node, ha="center", va="top", fontsize=9)
        return
    paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.5, "alpha": 0.85}
    side, place = (-1, "right") if of.layer is Layer.CORE else (1, "left")
    axes.text(
        x + 0.012 * side, y - 0.19 * side, node, ha=place, va="center", fontsize=9, zorder=4, bbox=paper
    )


def switches(net: Topology, routes: Sequence[Route]) -> list[str]:
    """Return the names of the switches that all these routes pass."""
    common = set(routes[0]).intersection(*routes[1:])
    return [
        net.nodes[node].name for node in routes[0] if node in common and net.nodes[node].kind is not Kind.HOST
    ]


def picture(name: str, routes: Sequence[Route], named: Sequence[str] = ()) -> None:
    """Write one picture."""
    net = network()
    with mpl.rc_context({"svg.hashsalt": "refabric", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(8, 3.2))
        axes = figure.add_axes((0.11, 0.09, 0.88, 0.87))
        at = drawn(axes, net)
        along(axes, at, routes)
        for node in named:
            label(axes, net, at, node)
        figure.savefig(FOLDER / f"{name}.svg", format="svg", metadata={"Date": None})


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    net = network()
    ends = ["p0e0h0", "p3e1h1"]
    picture("fat-tree", [], [*ends, "p0e1h0", "p0e1", "p0a1", "c2"])
    both = colliding(net)
    picture("ecmp", both, [FROM, OTHER_FROM, TO, OTHER_TO, *switches(net, both)])
    taken = subflows(net)
    cores = sorted(
        {net.nodes[node].name for nodes in taken for node in nodes if net.nodes[node].layer is Layer.CORE}
    )
    picture("mptcp", taken, [FROM, TO, *cores])


if __name__ == "__main__":
    main()
