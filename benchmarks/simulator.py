"""Speed and memory of the simulator: FatTrees with a random permutation of long flows.

    python benchmarks/simulator.py --k 8,16,32 [--subflows 8] [--cc lia] [--seconds 2] [--runs 3] [--json]

Links have 100 Mb/s, 10 us and queues of 100 packets; acknowledgements are routed. Hosts behave as in
csg-htsim's MPTCP program (NewReno without SACK or delayed acknowledgements), for comparison with it, or as
Linux (`--stack linux`). The engine's own functions build the simulation. Every run has its own process;
values are medians.

`packet_hops_per_cpu_s` divides by the CPU time of the events only. `setup_s` is the time before the first
event (topology, tables, plan, flows, Simulation). `rss_mb` is the peak memory of the process. Goodput is
measured in the second half of the simulated time, in percent of the link rate.
"""

from __future__ import annotations

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

from analysis.stats import jain
from common.errors import RefabricError
from engines.core_setup import PS_PER_S, core_flows, plan_of, transport_options
from engines.provenance import machine
from fabric._core import Simulation
from model.flows import planned_flows
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec

STACKS = {
    "htsim": StackSpec(
        payload_bytes=1460,
        header_bytes=40,
        ack_bytes=40,
        initial_window=2,
        ssthresh=25,
        min_rto_ms=10.0,
        delayed_ack_ms=0.0,
        sack=False,
        reinject=False,
        start_spread_ms=50.0,
    ),
    "linux": StackSpec(),
}
FIGURES = ("packet_hops_per_cpu_s", "run_cpu_s", "setup_s", "rss_mb")


def measure(spec: RunSpec) -> dict[str, float]:
    """Run the point once in this process. Raises RefabricError."""
    began = time.perf_counter()
    topology = spec.network()
    flows = planned_flows(spec, topology)
    simulation = Simulation(
        plan_of(spec, topology), transport_options(spec), core_flows(spec, topology, flows)
    )
    ready, cpu_s = time.perf_counter(), time.thread_time()
    simulation.run_until(round(spec.warmup_s * PS_PER_S))
    opened = simulation.flows()["delivered_bytes"]
    simulation.run_until(round((spec.warmup_s + spec.seconds) * PS_PER_S))
    cpu_s = time.thread_time() - cpu_s
    received = simulation.flows()["delivered_bytes"] - opened
    hops = simulation.ports()["hops"]
    goodput = (received * 8 / spec.seconds / (spec.link.rate_mbps * 1e6)).tolist()
    return {
        "packet_hops_per_cpu_s": hops / cpu_s,
        "run_cpu_s": cpu_s,
        "setup_s": ready - began,
        "rss_mb": peak_rss_mb(),
        "packet_hops": hops,
        "goodput_pct_mean": 100 * statistics.mean(goodput),
        "jain": jain(goodput),
    }


def peak_rss_mb() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in status if line.startswith("VmHWM:")).split()[1]) / 1024


def report(spec: RunSpec, stack: str, runs: int) -> dict[str, Any]:
    """Return one JSON object: what was run, what was measured, and the machine."""
    found = []
    for _ in range(runs):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            found.append(alone.submit(measure, spec).result())
    medians = {name: statistics.median(one[name] for one in found) for name in FIGURES}
    return {
        "benchmark": "simulator",
        "k": spec.topology.k,
        "subflows": spec.transport.subflows,
        "cc": spec.transport.cc,
        "stack": stack,
        "seconds": spec.warmup_s + spec.seconds,
        "seed": spec.seed,
        "runs": runs,
        "packet_hops_per_cpu_s": round(medians["packet_hops_per_cpu_s"]),
        **{name: round(medians[name], 3) for name in FIGURES[1:]},
        "packet_hops": found[0]["packet_hops"],
        "goodput_pct_mean": round(found[0]["goodput_pct_mean"], 3),
        "jain": round(found[0]["jain"], 4),
        "machine": machine(),
    }


@click.command()
@click.option("--k", "sizes", default="8", show_default=True, help="FatTree sizes, comma-separated.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--cc", default="lia", show_default=True, help="Congestion control.")
@click.option(
    "--stack", type=click.Choice(list(STACKS)), default="htsim", show_default=True, help="TCP model."
)
@click.option("--seconds", default=2.0, show_default=True, help="Simulated time, in seconds.")
@click.option("--seed", default=1, show_default=True, help="Seed of the point.")
@click.option("--runs", default=1, show_default=True, help="Report medians of this many runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per line on stdout, one per size.")
def main(sizes: str, runs: int, as_json: bool, **point: Any) -> None:
    """Measure the simulator and print the results."""
    for k in sizes.split(","):
        try:
            found = report(spec_of(int(k), **point), point["stack"], runs)
        except RefabricError as error:
            click.echo(f"simulator: {error}", err=True)
            sys.exit(error.exit_code)
        if as_json:
            click.echo(json.dumps(found))
            continue
        for name, value in found.items():
            click.echo(f"{name:22} {value}")


def spec_of(k: int, subflows: int, cc: str, stack: str, seconds: float, seed: int) -> RunSpec:
    """Return the point, which is measured in the second half of `seconds`."""
    return RunSpec(
        link=LinkSpec(rate_mbps=100.0, delay_us=10.0),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows, cc),
        stack=STACKS[stack],
        engine="simulator",
        warmup_s=seconds / 2,
        seconds=seconds / 2,
        seed=seed,
    )


if __name__ == "__main__":
    main()
