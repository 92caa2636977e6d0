"""The page as HTML: self-contained with finished points in it, or as `refabric watch` serves it; and what it
shows of a point, as JSON: the network as drawn, its flows with their paths, the steps of stored samples.

It has one script and one style, and a content security policy that names their hashes and allows no fetch
(a served page: none but from its own server). What files and tools say enters as JSON, and the script puts it
on the page as text only.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from analysis.live_page import Drawing, View, draw, encode, longest, short_floats, stored, used
from common.errors import RefabricError, StoreError
from controllers.routing import per_packet
from engines.core_setup import built, plan_of, transport_options
from engines.emulation.dataplanes.dataplane import FABRIC
from engines.registry import STEADY_STATE
from engines.workload import kind_of
from harness import labels
from harness.baseline import is_baseline
from harness.results.point_results import PointResult
from harness.results.store import finite
from model.flows import PlannedFlow, planned_flows
from model.links import ports_of
from model.network_plan import port_rates_bps
from model.reasons import texts
from model.result import Table
from model.schedulers import opens_subflows, scheduled
from model.spec import RunSpec
from topos.topology import Topology

if TYPE_CHECKING:
    from jinja2 import Template

TEMPLATES = Path(__file__).parent / "templates"
SCRIPTS = ("data.js", "network.js", "details.js", "panel.js", "player.js", "source.js")
MAX_PAGE_BYTES = 4_500_000
"""Largest data of a self-contained page. With script and style it stays below 5 MB."""
MAX_POINT_BYTES = 2_000_000
MAX_POINTS = 8
MAX_ROWS = 4_000_000
"""Most rows of samples that are read for one page."""


@dataclass(frozen=True)
class WatchPage:
    """A self-contained page, how many points it shows, and how many there was no room for."""

    html: str
    points: int
    left_out: int


def served(title: str) -> str:
    """Return the page that gets everything from its server."""
    return _render(title, {"live": True}, live=True)


def self_contained(title: str, points: Iterable[PointResult]) -> WatchPage:
    """Return the page with the points in it, as many as fit: pairs of TCP and the most subflows
    first. Points that cannot be drawn are left out."""
    wanted = order([point for point in points if is_shown(point.spec)])
    networks: dict[str, int] = {}
    drawn: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    room = MAX_PAGE_BYTES
    axes = labels.shared([point.spec for point in wanted]).axes
    for point in _not_too_many(wanted):
        try:
            scene = scene_of(point.spec)
            about = stored_json(point, scene, MAX_POINT_BYTES)
            about["label"] = labels.label(point.spec, axes)
        except Exception:  # whatever is in somebody's point, the others are drawn
            continue
        network = network_json(scene.drawing)
        key = json.dumps(network)
        size = len(json.dumps(finite(about))) + (0 if key in networks else len(key))
        if size > room:
            continue
        room -= size
        if key not in networks:
            networks[key] = len(drawn)
            drawn.append(network)
        shown.append({**about, "network": networks[key], "name_shown": about["label"]})
    left_out = len(wanted) - len(shown)
    data = {"live": False, "networks": drawn, "points": shown, "left_out": left_out}
    return WatchPage(_render(title, data, live=False), len(shown), left_out)


def _not_too_many(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the first points whose samples can be read in seconds."""
    rows = 0
    few: list[PointResult] = []
    for point in points:
        needed = sum(point.samples[name].rows for name in TABLES if name in point.samples)
        if len(few) < MAX_POINTS and rows + needed <= MAX_ROWS:
            few.append(point)
            rows += needed
    return few


def is_shown(spec: RunSpec) -> bool:
    """Whether a point has a page: it can be drawn, and is not a baseline."""
    return is_drawable(spec) and not is_baseline(spec)


def is_drawable(spec: RunSpec) -> bool:
    """Whether `scene_of` draws points with the kind of its workload."""
    return kind_of(spec).drawn


def order(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the points in the order to show them: by setting and seed, of each first TCP and the point with
    the most subflows, which are worth seeing side by side; then all others."""
    groups: dict[tuple[str, int], list[PointResult]] = {}
    for point in points:
        groups.setdefault(beside(point.spec), []).append(point)
    pairs: list[PointResult] = []
    rest: list[PointResult] = []
    for group in groups.values():
        ranked = sorted(group, key=lambda point: point.spec.transport.subflows)
        pairs += [ranked[0], *ranked[-1:][: len(ranked) - 1]]
        rest += ranked[1:-1]
    return [*pairs, *rest]


def beside(spec: RunSpec) -> tuple[str, int]:
    """Return what points have in common that are worth seeing side by side."""
    return labels.family(spec), spec.seed


def script() -> str:
    """Return the script of the page, which is one function: it leaves no names behind."""
    parts = "\n".join((TEMPLATES / name).read_text() for name in SCRIPTS)
    return f'(() => {{\n"use strict";\n{parts}}})();\n'


def policy_hash(text: str) -> str:
    """Return the hash of an inline script or style for a content security policy."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _render(title: str, data: dict[str, Any], *, live: bool) -> str:
    style, code = (TEMPLATES / "page.css").read_text(), script()
    # A data block ends at `</script`, so it must not have a `<`.
    text = json.dumps(finite(data), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return _template().render(
        title=title,
        live=live,
        style=Markup(style),
        style_hash=policy_hash(style),
        script=Markup(code),
        script_hash=policy_hash(code),
        data=Markup(text),
    )


@functools.cache
def _template() -> Template:
    import jinja2  # noqa: PLC0415

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined
    )
    return environment.get_template("page.html")


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
    """Return the scene of a point."""
    topology = spec.network()
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
    """Return what is known of a point before it ran, for the page, but for its label: that names what varies
    among the points beside it."""
    spec = scene.spec
    return {
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
        simulation = built(spec, topology, scene.flows, plan_of(spec, topology), transport_options(spec))
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


MAX_SERVED_BYTES = 4_000_000
_NEEDED = ("links", "goodput")
TABLES = (*_NEEDED, "ports", "queues", "sockets")


def stored_json(point: PointResult, scene: Scene, most_bytes: int = MAX_SERVED_BYTES) -> dict[str, Any]:
    """Return everything that a page shows of a stored point, in about `most_bytes` at most.

    A point without samples has no steps, and a note that says so; its means are still there.
    """
    shown, about = scene.shown, point_json(scene)
    fixed = sum(map(len, map(str, about["paths"]))) + 100 * len(about["flows"]) + 20_000
    most = max(1, (most_bytes - fixed) // shown.step_bytes)
    tables, notes = _tables(point)
    steps = stored(tables, shown, most) if all(name in tables for name in _NEEDED) else []
    goodput = {flow.flow: flow.goodput_mbps for flow in point.flows}
    return {
        **about,
        "id": point.name,
        "state": str(point.status),
        "reasons": texts(point.reasons),
        "notes": [*about["notes"], *notes, *_lacking(tables, len(steps))],
        "goodput": short_floats(np.array([goodput.get(i, np.nan) for i in range(shown.flows)])),
        "mean": short_floats(_mean(point, shown)),
        "longest": short_floats(_longest(point, shown)),
        "steps": [encode(step) for step in steps],
        "running": False,
    }


def _tables(point: PointResult) -> tuple[dict[str, Table], list[str]]:
    """Return the samples that can be read, and what is wrong with the others."""
    tables, notes = {}, []
    for name in TABLES:
        if name in point.samples:
            try:
                tables[name] = point.sample(name)
            except StoreError as error:
                notes.append(f"Samples left out: {error}")
    return tables, notes


def _lacking(tables: dict[str, Table], steps: int) -> list[str]:
    if not steps:
        return ["This point has no samples over time: links show their mean over the whole window."]
    lacking = []
    if not {"ports", "queues"} & tables.keys():
        lacking.append("Queues and drops over time were not sampled: this point is from an older version.")
    if "sockets" not in tables:
        lacking.append("Windows of subflows were not sampled.")
    return lacking


def _mean(point: PointResult, shown: View) -> Any:
    """Return the mean use of each half in the whole window."""
    bps = np.zeros(len(shown.half_of))
    for row in point.ports:
        if 0 <= row.port < len(bps) and np.isfinite(row.utilisation_pct):
            bps[row.port] = row.utilisation_pct / 100 * shown.rates_bps[row.port]
    return used(shown, bps)


def _longest(point: PointResult, shown: View) -> Any:
    pkts = np.zeros(len(shown.half_of))
    for row in point.ports:
        if 0 <= row.port < len(pkts):
            pkts[row.port] = row.max_queue_pkts
    return longest(shown, pkts)
