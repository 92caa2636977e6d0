"""Speed of a simulation in parts: FatTrees with a random permutation, undivided and by several threads.

    python benchmarks/parts.py --k 16,32 [--parts 8] [--threads 1,2] [--subflows 8] [--cc lia] [--seconds 0.2]
        [--runs 3] [--json]

The point is that of benchmarks/simulator.py with the stack `linux`. Each run is a process of its own, and
runs alternate: undivided, then with each number of threads. Values are medians. `wall_s` is the time of the
events only; `faster` is the undivided runs' time divided by this one, and `faster_than_one` is the time of
one thread divided by it. Goodput is that of the second half of the simulated time, in percent of the link
rate.
"""

from __future__ import annotations

import dataclasses
import json
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from benchmarks.simulator import peak_rss_mb, spec_of
from common.errors import RefabricError
from engines.core_setup import PS_PER_S, core_flows, plan_of, transport_options
from engines.provenance import machine
from fabric._core import Simulation
from model.flows import planned_flows
from model.spec import RunSpec

UNDIVIDED = 0


def measure(spec: RunSpec, threads: int) -> dict[str, float]:
    """Run the point once in this process, undivided if `threads` is UNDIVIDED. Raises RefabricError."""
    spec = spec if threads else dataclasses.replace(spec, parts=1)
    topology = spec.network()
    flows = planned_flows(spec, topology)
    tuples = core_flows(spec, topology, flows)
    simulation = Simulation(plan_of(spec, topology), transport_options(spec), tuples, threads=max(1, threads))
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    simulation.run_until(round(spec.warmup_s * PS_PER_S))
    opened = simulation.flows()["delivered_bytes"]
    simulation.run_until(round((spec.warmup_s + spec.seconds) * PS_PER_S))
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    received = simulation.flows()["delivered_bytes"] - opened
    return {
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "packet_hops": simulation.hops(),
        "goodput_pct": float(800 * received.mean() / spec.seconds / (spec.link.rate_mbps * 1e6)),
        "peak_mb": peak_rss_mb(),
    }


def compare(spec: RunSpec, threads: list[int], runs: int) -> list[dict[str, Any]]:
    """Return one JSON object for the undivided network and each number of threads."""
    found: dict[int, list[dict[str, float]]] = {count: [] for count in (UNDIVIDED, *threads)}
    for _ in range(runs):
        for count, each in found.items():
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
                each.append(alone.submit(measure, spec, count).result())
    medians = {
        count: {name: statistics.median(run[name] for run in each) for name in each[0]}
        for count, each in found.items()
    }
    one = medians.get(1)
    return [
        {
            "benchmark": "parts",
            "k": spec.topology.k,
            "seconds": spec.warmup_s + spec.seconds,
            "parts": spec.parts if count else 1,
            "threads": count or 1,
            "runs": runs,
            **{name: round(value, 3) for name, value in median.items()},
            "packet_hops_per_s": round(median["packet_hops"] / median["wall_s"]),
            "faster": round(medians[UNDIVIDED]["wall_s"] / median["wall_s"], 3),
            "faster_than_one": round(one["wall_s"] / median["wall_s"], 3) if one and count else None,
            "machine": machine(),
        }
        for count, median in medians.items()
    ]


@click.command()
@click.option("--k", "sizes", default="16", show_default=True, help="FatTree sizes, comma-separated.")
@click.option("--parts", default=8, show_default=True, help="Parts of the network.")
@click.option("--threads", default="1,2", show_default=True, help="Numbers of threads, comma-separated.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--cc", default="lia", show_default=True, help="Congestion control.")
@click.option("--seconds", default=0.2, show_default=True, help="Simulated time, in seconds.")
@click.option("--seed", default=1, show_default=True, help="Seed of the point.")
@click.option("--runs", default=1, show_default=True, help="Report medians of this many runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line on stdout.")
def main(sizes: str, parts: int, threads: str, runs: int, as_json: bool, **point: Any) -> None:
    """Measure the simulator with a divided network and print the results."""
    for k in sizes.split(","):
        try:
            spec = dataclasses.replace(spec_of(int(k), stack="linux", **point), parts=parts)
            found = compare(spec, [int(count) for count in threads.split(",")], runs)
        except RefabricError as error:
            click.echo(f"parts: {error}", err=True)
            sys.exit(error.exit_code)
        for each in found:
            if as_json:
                click.echo(json.dumps(each))
                continue
            click.echo(
                f"k={k} {each['parts']} parts, {each['threads']} threads: {each['wall_s']} s, "
                f"{each['packet_hops_per_s'] / 1e6:.1f} M hops/s, x {each['faster']}, "
                f"goodput {each['goodput_pct']} %"
            )


if __name__ == "__main__":
    main()
