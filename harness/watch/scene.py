"""What a page shows of a point before anything has happened: network, flows, paths, link events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

import topos
from analysis.live_page import Drawing, View, draw
from common.errors import RefabricError
from controllers.routing import per_packet
from engines.core_setup.setup import built, plan_of
from engines.core_setup.stack import stack_of
from engines.emulation.dataplanes.dataplane import FABRIC
from engines.registry import STEADY_STATE
from harness.points import labels
from model.flows import PlannedFlow, planned_flows
from model.links import ports_of
from model.network_plan import port_rates_bps
from model.schedulers import opens_subflows, scheduled
from model.spec import RunSpec
from topos.topology import Topology

MAX_FLOWS = 256
MAX_SUBFLOWS = 2048
FRAME_BYTES = 1514
MAX_ROUTES = 4_000_000
"""Most pairs of a forwarder and a destination for which the core makes tables here: a FatTree with k=48 has
3.3 million, which take 2 s and 120 MB; a BCube of 15 625 servers has 250 million."""


@dataclass(frozen=True)
class Scene:
    """A point's network as drawn, its first flows, and how much of it is shown."""

    spec: RunSpec
    topology: Topology
    drawing: Drawing
    shown: View
    flows: tuple[PlannedFlow, ...]
    all_flows: int


def scene_of(spec: RunSpec) -> Scene:
    """Return the scene of a point. Raises UsageError for a point about calls, which has no flows."""
    topology = topos.build(spec.topology.kind, spec.topology.params)
    drawing, flows = draw(topology), planned_flows(spec, topology)
    firsts = list(accumulate((max(1, flow.subflows) for flow in flows[:MAX_FLOWS]), initial=0))
    count = sum(end <= MAX_SUBFLOWS for end in firsts[1:])
    rates = port_rates_bps(topology, spec.link)
    first = np.array(firsts[: count + 1], np.int64)
    shown = View(drawing.half_of, drawing.halves, rates, count, first)
    return Scene(spec, topology, drawing, shown, flows[:count], len(flows))


def network_json(drawing: Drawing) -> dict[str, Any]:
    """Return the drawing as JSON: spots [name, layer, x, y, nodes], lines [lower, upper], pods [name, left,
    right]."""
    return {
        "spots": [[s.name, int(s.layer), round(s.x, 5), round(s.y, 5), s.nodes] for s in drawing.spots],
        "lines": [list(line) for line in drawing.lines],
        "pods": [[pod.name, round(pod.left, 5), round(pod.right, 5)] for pod in drawing.pods],
        "whole": drawing.whole,
    }


def point_json(scene: Scene) -> dict[str, Any]:
    """Return what is known of a point before it ran, for the page."""
    spec = scene.spec
    return {
        "label": labels.label(spec),
        "short": labels.transport(spec),
        "setting": labels.family(spec.neutral("engine")),
        "subflows": spec.transport.subflows,
        "seed": spec.seed,
        "rate_mbps": spec.link.rate_mbps,
        "full_pkts": spec.link.queue_pkts or spec.link.queue_bytes // FRAME_BYTES,
        "queue": f"{labels.queue_label(spec)} queues",
        "starts": -spec.warmup_s,
        "ends": spec.seconds,
        "flows": [
            [flow.src, flow.dst, *_ends(scene, flow), max(1, flow.subflows), flow.size_bytes]
            for flow in scene.flows
        ],
        "all_flows": scene.all_flows,
        "paths": paths(scene),
        "events": _events(scene),
        "notes": _notes(scene),
    }


def _ends(scene: Scene, flow: PlannedFlow) -> tuple[int, int]:
    nodes = scene.topology.index(flow.src), scene.topology.index(flow.dst)
    return scene.drawing.spot_of[nodes[0]], scene.drawing.spot_of[nodes[1]]


def paths(scene: Scene) -> list[list[int]]:
    """Return the halves of lines along the path of each shown subflow at its start; empty if not known.

    The core chooses them, as it does in a run: same 5-tuples, same tables, same seed.
    """
    if _unknown_paths(scene) or not scene.flows:
        return []
    spec, topology = scene.spec, scene.topology
    try:
        simulation = built(spec, topology, scene.flows, plan_of(spec, topology), stack_of(spec))
        subflows = sum(flow.subflows for flow in scene.flows)
        ports = [simulation.path(subflow) for subflow in range(subflows)]
    except (RefabricError, ValueError, IndexError):  # such flows have no path before they start
        return []
    found = [_halves(scene.drawing, path) for path in ports]
    return found + [[]] * (scene.shown.subflows - subflows)  # flows of constant rate come last


def _unknown_paths(scene: Scene) -> bool:
    spec, topology = scene.spec, scene.topology
    if per_packet(spec.routing) or spec.dataplane != FABRIC or spec.engine in STEADY_STATE:
        return True
    destinations = len({topology.attachment(nic) for nic in topology.nics})
    return destinations * len(topology.forwarders) > MAX_ROUTES


def _halves(drawing: Drawing, ports: Sequence[int]) -> list[int]:
    halves = (int(drawing.half_of[port]) for port in ports)
    return list(dict.fromkeys(halves))


def _events(scene: Scene) -> list[list[Any]]:
    """Return [time, halves, share of the rate, link] of each link event, in order of time."""
    found = []
    for event in sorted(scene.spec.events, key=lambda event: event.t_s):
        halves = sorted({int(scene.drawing.half_of[port]) for port in ports_of(event, scene.topology)})
        found.append([round(event.t_s - scene.spec.warmup_s, 6), halves, event.share, f"{event.a}-{event.b}"])
    return found


def _notes(scene: Scene) -> list[str]:
    """Return what the reader must know about this picture."""
    spec, notes = scene.spec, []
    if not scene.drawing.whole:
        notes.append("Drawn by pod: a line stands for all cables between two groups of nodes.")
    if len(scene.flows) < scene.all_flows:
        notes.append(f"The list has the first {len(scene.flows)} of {scene.all_flows} flows.")
    if per_packet(spec.routing):
        notes.append("Packets choose their paths one by one, so flows have no path to show.")
    elif _unknown_paths(scene):
        notes.append("The paths of flows are not known here.")
    elif scheduled(spec) or opens_subflows(spec):
        notes.append("Paths are those at the start: a controller may have moved flows since.")
    return notes
