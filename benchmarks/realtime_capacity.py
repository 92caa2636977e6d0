"""Capacity of the real-time fabric: CPU load, lateness and packet-hops of one one_to_one point.

    python benchmarks/realtime_capacity.py --k 8 --subflows 8 --rate 5 [--seconds 20] [--runs 3] [--json]
        [--traffic native|iperf3]

Each run has its own network; values are medians, and the worst lateness. CPU time per packet-hop is that of
the whole machine, including hosts' kernels and traffic. Needs root.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import RefabricError
from engines.emulation.engine import MininetEngine
from engines.emulation.outside import UNKEPT
from engines.engine import Silent
from engines.provenance import machine
from harness.options.options import USUAL_TRAFFIC
from model.result import RunResult
from model.spec import TRAFFIC, LinkSpec, RunSpec, TopologySpec, TransportSpec

METRICS = (
    "packet_hops_per_s", "late_p50_us", "late_p99_us", "cpu_busy_pct", "busiest_cpu_pct", "fabric_cpu_pct",
    "clock_stretch_pct", "astray",
)  # fmt: skip


def measure(spec: RunSpec, runs: int) -> list[RunResult]:
    """Run the point `runs` times. Raises RefabricError."""
    engine = MininetEngine()
    engine.check(spec)
    results = []
    for _ in range(runs):
        results.append(engine.run(spec, Silent(), UNKEPT))
    engine.close()
    return results


def report(spec: RunSpec, results: list[RunResult]) -> dict[str, Any]:
    """Return one JSON object: what was run, what was measured, and the machine."""
    medians = {name: round(statistics.median(r.metrics[name] for r in results), 1) for name in METRICS}
    cpus = len(os.sched_getaffinity(0))
    us_per_hop = [r.metrics["cpu_busy_pct"] / 100 * cpus / r.metrics["packet_hops_per_s"] for r in results]
    goodput = statistics.median(statistics.mean(f.goodput_mbps for f in r.flows) for r in results)
    return {
        "benchmark": "realtime_capacity",
        "k": spec.topology.k,
        "subflows": spec.transport.subflows,
        "rate_mbps": spec.link.rate_mbps,
        "seconds": spec.seconds,
        "runs": len(results),
        "traffic": spec.traffic,
        "cpu_us_per_packet_hop": round(1e6 * statistics.median(us_per_hop), 3),
        **medians,
        "late_p99_us_worst": max(r.metrics["late_p99_us"] for r in results),
        "goodput_pct_of_rate": round(100 * goodput / spec.link.rate_mbps, 1),
        "status": [str(r.status) for r in results],
        "machine": machine(),
    }


@click.command()
@click.option("--k", default=8, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--rate", "rate_mbps", default=5.0, show_default=True, help="Link rate in Mb/s.")
@click.option("--seconds", default=20.0, show_default=True, help="Measured time of each run, in seconds.")
@click.option(
    "--traffic", default=USUAL_TRAFFIC, show_default=True, type=click.Choice(TRAFFIC), help="Traffic driver."
)
@click.option("--runs", default=1, show_default=True, help="Report medians of this many runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(
    k: int, subflows: int, rate_mbps: float, seconds: float, traffic: str, runs: int, as_json: bool
) -> None:
    """Measure the real-time fabric and print the results."""
    spec = RunSpec(
        link=LinkSpec(rate_mbps),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows),
        traffic=traffic,
        warmup_s=8.0,
        seconds=seconds,
    )
    try:
        found = report(spec, measure(spec, runs))
    except RefabricError as error:
        click.echo(f"realtime_capacity: {error}", err=True)
        sys.exit(error.exit_code)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name:20} {value}")


if __name__ == "__main__":
    main()
