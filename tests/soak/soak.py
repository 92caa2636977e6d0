"""Durability: many points in a row, and a sweep that is killed and resumed again and again.

    python tests/soak/soak.py [--points 100] [--every 1] [--kills 50] [--seconds 2] [--warmup 1] [--seed 1]
                              [--json]

Points: that many k=4 points at 10 Mb/s (TCP, 2 and 8 subflows in turn, every one with a seed of its own)
through engine and store in one process, one in `--every` emulated and the others simulated; after each, what
is new in that process (memory, descriptors, threads) and on the machine (processes, namespaces, interfaces,
mounts, files, sockets). Kills: a sweep of four such points is ended by SIGKILL at moments drawn uniformly
over its length from `--seed`, looked at at once, and resumed by the same command; whenever one gets to its
end, its results folder is compared with an undisturbed one's.

Both happen in namespaces of their own, where nothing but their own processes can be seen or killed. 0 leaves
a part out. Exit code 1 when anything was left behind, lost, half written or of another shape. Needs root; the
defaults take about 8 and 12 minutes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RefabricError
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.isolation import spawn_inside
from engines.provenance import machine, revision
from tests.soak import kills, points

POINT_S = 30.0
"""The longest that a point may take besides its traffic, on average."""


def soak_through_points(count: int, request: dict[str, Any]) -> dict[str, Any]:
    """`count` points in a row. Raises RefabricError."""
    seen = _inside("tests.soak.points:inside", {**request, "points": count}, count)
    return points.findings([points.Footprint(**report) for report in seen])


def soak_through_kills(count: int, request: dict[str, Any]) -> dict[str, Any]:
    """`count` kills. Raises RefabricError."""
    seen = _inside("tests.soak.kills:inside", {**request, "kills": count}, 8 + 4 * count)
    return kills.findings(seen)


def _inside(target: str, request: dict[str, Any], points: int) -> list[dict[str, Any]]:
    reports: list[dict[str, Any]] = []

    def hear(report: dict[str, Any]) -> None:
        click.echo(report.pop("line"), err=True)
        reports.append(report)

    deadline_s = 120 + points * (request["seconds"] + request["warmup"] + POINT_S)
    spawn_inside(target, request, deadline_s=deadline_s, on_report=hear)
    return reports


@click.command()
@click.option("--points", default=100, show_default=True, type=click.IntRange(0))
@click.option(
    "--every", default=1, show_default=True, type=click.IntRange(1), help="Emulate one point of this many."
)
@click.option("--kills", default=50, show_default=True, type=click.IntRange(0))
@click.option("--seconds", default=2.0, show_default=True, help="Measured seconds of a point.")
@click.option("--warmup", default=1.0, show_default=True, help="Seconds of warm-up of a point.")
@click.option(
    "--seed", default=1, show_default=True, help="Of the points' seeds and the moments of the kills."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(
    points: int, every: int, kills: int, seconds: float, warmup: float, seed: int, as_json: bool
) -> None:
    """Run both parts and print what was found."""
    request = {"every": every, "seconds": seconds, "warmup": warmup, "seed": seed}
    found: dict[str, Any] = {"benchmark": "soak", **request, "revision": revision(), "machine": machine()}
    try:
        with emulation_lock(wait_s=60.0):
            if points:
                found["points"] = soak_through_points(points, request)
            if kills:
                found["kills"] = soak_through_kills(kills, request)
    except RefabricError as error:
        click.echo(f"soak: {error}", err=True)
        sys.exit(error.exit_code)
    faults = [fault for part in ("points", "kills") for fault in found.get(part, {}).get("faults", [])]
    if as_json:
        click.echo(json.dumps(found))
    else:
        for part in ("points", "kills"):
            for name, value in found.get(part, {}).items():
                click.echo(f"{part}: {name:22} {value}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
