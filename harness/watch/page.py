"""The page as HTML: self-contained with finished points in it, or as `refabric watch` serves it.

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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from harness.points import labels
from harness.points.baseline import is_baseline
from harness.results.store import StoredPoint, finite
from harness.watch.scene import network_json, scene_of
from harness.watch.stored import TABLES, stored_json
from model.spec import RunSpec
from workloads.matrices import has_flows

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
class Page:
    """A self-contained page, how many points it shows, and how many there was no room for."""

    html: str
    points: int
    left_out: int


def served(title: str) -> str:
    """Return the page that gets everything from its server."""
    return _render(title, {"live": True}, live=True)


def self_contained(title: str, points: Iterable[StoredPoint]) -> Page:
    """Return the page with the points in it, as many as fit: pairs of TCP and the most subflows
    first. Points that cannot be drawn are left out."""
    wanted = order([point for point in points if is_shown(point.spec)])
    networks: dict[str, int] = {}
    drawn: list[dict[str, Any]] = []
    shown: list[dict[str, Any]] = []
    room = MAX_PAGE_BYTES
    for point in _not_too_many(wanted):
        try:
            scene = scene_of(point.spec)
            about = stored_json(point, scene, MAX_POINT_BYTES)
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
        shown.append({**about, "network": networks[key], "name_shown": labels.label(point.spec)})
    left_out = len(wanted) - len(shown)
    data = {"live": False, "networks": drawn, "points": shown, "left_out": left_out}
    return Page(_render(title, data, live=False), len(shown), left_out)


def _not_too_many(points: Sequence[StoredPoint]) -> list[StoredPoint]:
    """Return the first points whose samples can be read in seconds."""
    rows = 0
    few: list[StoredPoint] = []
    for point in points:
        needed = sum(point.sample_rows.get(name, 0) for name in TABLES)
        if len(few) < MAX_POINTS and rows + needed <= MAX_ROWS:
            few.append(point)
            rows += needed
    return few


def is_shown(spec: RunSpec) -> bool:
    """Whether a point has a page: it has flows, and is not a baseline."""
    return has_flows(spec.workload.matrix) and not is_baseline(spec)


def order(points: Sequence[StoredPoint]) -> list[StoredPoint]:
    """Return the points in the order to show them: by setting and seed, of each first TCP and the point with
    the most subflows, which are worth seeing side by side; then all others."""
    groups: dict[tuple[str, int], list[StoredPoint]] = {}
    for point in points:
        groups.setdefault(beside(point.spec), []).append(point)
    pairs: list[StoredPoint] = []
    rest: list[StoredPoint] = []
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
