"""Cost against size: set-up, speed and memory of the simulator and of the flow-level engine on FatTrees.

    python benchmarks/scaling.py [--k 4,8,16,24,32,48] [--flow-level-k 16,32,48,74] [--subflows 1,8]
        [--runs 3] [--chart docs/images/scaling.png] [--json]

A random permutation of unlimited flows, LIA (TCP: Reno), 100 Mb/s links, queues of 100 packets and the
default stack; acknowledgements are routed. Each run is a process of its own; values are those of the run
with the least CPU time. Times are CPU seconds of one thread, so other programs disturb them less.

The window is chosen so that most sizes have about 40 million packet-hops: 2 s at most, 0.1 s at least. At the
largest sizes that is the time in which queues fill. `setup_cpu_s` is the time before the first event:
topology, tables, flows and paths. `run_cpu_s` is that of events, or of the flow-level solution. `peak_mb` is
the process's peak memory, and `bytes_per_host` that without the memory of a process that has loaded the
program and nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.simulator import peak_rss_mb, spec_of
from common.errors import RefabricError
from engines.core_setup import PS_PER_S, prepared
from engines.flow_level.engine import fluid_network
from engines.flow_level.models import equilibrium
from engines.provenance import machine
from engines.registry import FLOW_LEVEL, SIMULATOR
from model.flows import planned_flows
from model.spec import RunSpec, TransportSpec

HOPS, HOPS_A_HOST_S = 40e6, 75e3
MIN_S, MAX_S = 0.1, 2.0
DEADLINE_S = 3600.0


def window_s(k: int) -> float:
    """Return the simulated time, shorter in larger networks."""
    return min(MAX_S, max(MIN_S, HOPS / HOPS_A_HOST_S / (k**3 / 4)))


def measure(spec: RunSpec) -> dict[str, float]:
    """Run the point once in this process, whose memory must be as small as the program allows. Raises
    RefabricError."""
    loaded_mb = peak_rss_mb()
    cost = _packets(spec) if spec.engine == SIMULATOR else _flow_level(spec)
    cost["peak_mb"] = peak_rss_mb()
    cost["bytes_per_host"] = (cost["peak_mb"] - loaded_mb) * 2**20 / cost["hosts"]
    return cost


def _packets(spec: RunSpec) -> dict[str, float]:
    began = time.thread_time()
    topology = spec.network()
    simulation = prepared(spec, topology, planned_flows(spec, topology))
    ready = time.thread_time()
    simulation.run_until(round(spec.seconds * PS_PER_S))
    run_s = time.thread_time() - ready
    hops = simulation.ports()["hops"]
    return {
        "hosts": len(topology.hosts),
        "setup_cpu_s": ready - began,
        "run_cpu_s": run_s,
        "packet_hops": hops,
        "packet_hops_per_cpu_s": hops / run_s,
    }


def _flow_level(spec: RunSpec) -> dict[str, float]:
    began = time.thread_time()
    topology = spec.network()
    network = fluid_network(spec, topology, planned_flows(spec, topology))
    ready = time.thread_time()
    rates, rounds = equilibrium(network, DEADLINE_S)
    return {
        "hosts": len(topology.hosts),
        "setup_cpu_s": ready - began,
        "run_cpu_s": time.thread_time() - ready,
        "rounds": rounds,
        "mean_mbps": float(rates.sum()) / len(topology.hosts),
    }


def best_of(spec: RunSpec, runs: int) -> dict[str, Any]:
    """Return the figures of the quickest of some runs, each in its own process."""
    found = []
    for _ in range(runs):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            found.append(alone.submit(measure, spec).result())
    figures = min(found, key=lambda cost: cost["setup_cpu_s"] + cost["run_cpu_s"])
    point = {"engine": spec.engine, "k": spec.topology.k, "subflows": spec.transport.subflows}
    return {**point, "seconds": spec.seconds, **{name: float(f"{v:.4g}") for name, v in figures.items()}}


def points(packet_ks: Sequence[int], flow_ks: Sequence[int], subflows: Sequence[int]) -> list[RunSpec]:
    """Return all points, small ones first."""
    specs = []
    for count in subflows:
        for engine, ks in ((SIMULATOR, packet_ks), (FLOW_LEVEL, flow_ks)):
            for k in ks:
                spec = spec_of(k, count, "lia" if count > 1 else "reno", "linux", 2 * window_s(k), 1)
                specs.append(
                    dataclasses.replace(
                        spec, engine=engine, transport=TransportSpec(count, spec.transport.cc)
                    )
                )
    return sorted(specs, key=lambda spec: spec.topology.k)


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw speed, memory and time by number of hosts, one curve per transport and engine."""
    from plots.shared import style  # noqa: PLC0415
    from plots.shared.sheet import Sheet  # noqa: PLC0415

    panels = (
        ("packet_hops_per_cpu_s", 1e-6, "million packet-hops\nper CPU second"),
        ("bytes_per_host", 1e-3, "memory per host (kB)"),
        ("setup_cpu_s", 1.0, "set-up (CPU s)"),
        ("run_cpu_s", 1.0, "flow level: solution\n(CPU s)"),
    )
    with style.look():
        sheet = Sheet(*((1.25, 1) for _ in panels))
        for (axes,), (name, unit, label) in zip(sheet.axes, panels, strict=True):
            _curves(
                axes, [row for row in rows if name != "run_cpu_s" or row["engine"] == FLOW_LEVEL], name, unit
            )
            style.plain_log(axes.xaxis, "{:,g}")
            style.plain_log(axes.yaxis, "{:,g}")
            axes.set_ylabel(label)
            axes.set_xlim(min(row["hosts"] for row in rows) / 1.3, max(row["hosts"] for row in rows) * 1.3)
        sheet.axes[0][0].set(yscale="linear", ylim=(0, None))
        sheet.axes[-1][0].set_xlabel("hosts of the FatTree")
        sheet.finish(
            "Cost against size",
            "FatTree, random permutation, one CPU",
            ("100 Mb/s links", "100-packet queues", "LIA (TCP: Reno)"),
            ("Every point is a process of its own.",),
            _key(rows),
        ).savefig(path)


def _curves(axes: Any, rows: Sequence[dict[str, Any]], name: str, unit: float) -> None:
    for engine, subflows, line in _lines(rows):
        shown = [
            row for row in rows if (row["engine"], row["subflows"]) == (engine, subflows) and name in row
        ]
        axes.plot([row["hosts"] for row in shown], [row[name] * unit for row in shown], **line)


def _key(rows: Sequence[dict[str, Any]]) -> list[Any]:
    from matplotlib.lines import Line2D  # noqa: PLC0415

    return [Line2D([], [], **line) for *_, line in _lines(rows)]


def _lines(rows: Sequence[dict[str, Any]]) -> list[tuple[str, int, dict[str, Any]]]:
    """Return engine, subflows and line of each curve: colours are subflows, dashes the flow level."""
    from plots.shared import style  # noqa: PLC0415

    return [
        (engine, subflows, {
            "color": style.colour(subflows), "marker": "o", "markersize": 3, "linewidth": 1.5,
            "linestyle": "-" if engine == SIMULATOR else style.PUBLISHED_DASH,
            "label": f"{style.transport(subflows)}, {'packets' if engine == SIMULATOR else 'flow level'}",
        })
        for engine, subflows in sorted({(row["engine"], row["subflows"]) for row in rows}, reverse=True)
    ]  # fmt: skip


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


@click.command()
@click.option(
    "--k",
    "packet_ks",
    default="4,8,16,24,32,48",
    show_default=True,
    help="Sizes to simulate packet by packet.",
)
@click.option(
    "--flow-level-k", "flow_ks", default="16,32,48,74", show_default=True, help="Sizes for the flow level."
)
@click.option("--subflows", default="1,8", show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--runs", default=1, show_default=True, help="Take the quickest of this many runs.")
@click.option("--chart", type=click.Path(path_type=Path), help="Write a chart to this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(packet_ks: str, flow_ks: str, subflows: str, runs: int, chart: Path | None, as_json: bool) -> None:
    """Measure cost against size and print the results."""
    rows = []
    try:
        for spec in points(_numbers(packet_ks), _numbers(flow_ks), _numbers(subflows)):
            rows.append(best_of(spec, runs))
            if not as_json:
                click.echo("  ".join(f"{name} {value}" for name, value in rows[-1].items()))
    except RefabricError as error:
        click.echo(f"scaling: {error}", err=True)
        sys.exit(error.exit_code)
    if as_json:
        click.echo(json.dumps({"benchmark": "scaling", "runs": runs, "points": rows, "machine": machine()}))
    if chart is not None:
        draw(rows, chart)


if __name__ == "__main__":
    main()
