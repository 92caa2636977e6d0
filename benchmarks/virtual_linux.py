"""Speed of the engine `linux`: seconds of this machine for each second of virtual time, by size and rate.

    python benchmarks/virtual_linux.py --k 4 --subflows 8 --rate 10 [--seconds 10] [--warmup 5] [--runs 2]
        [--cc lia] [--traffic native|iperf3] [--json]

Each run is one guest. CPU time is that of the guest's whole session, with booting, connecting and collecting;
`starting_cpu_s` and `cpu_s_per_virtual_s` are the two terms of a line through a short and a full run. Runs
with equal seeds must have equal flows and ports: `same_bytes` says whether they have. Needs no root.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import RefabricError
from engines.engine import Silent
from engines.linux.engine import LinuxEngine
from engines.provenance import machine
from harness.options.options import USUAL_TRAFFIC
from model.result import RunResult
from model.spec import TRAFFIC, LinkSpec, RunSpec, TopologySpec, TransportSpec

SHORT = 0.2
"""Length of the short run, as a share of the full one."""


def measure(spec: RunSpec) -> RunResult:
    """Run the point once. Raises RefabricError."""
    engine = LinuxEngine()
    engine.check(spec)
    with tempfile.TemporaryDirectory() as raw:
        return engine.run(spec, Silent(), Path(raw))


def checksum(result: RunResult) -> str:
    """Return 12 hex digits over all flows and ports."""
    rows = [*map(dataclasses.astuple, result.flows), *map(dataclasses.astuple, result.ports)]
    return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]


def report(spec: RunSpec, short: RunResult, results: list[RunResult]) -> dict[str, Any]:
    """Return one JSON object: what was run, what was measured, and the machine."""
    virtual_s = spec.warmup_s + spec.seconds
    cpu_s = min(result.cost["guest_cpu_s"] for result in results)
    per_s = (cpu_s - short.cost["guest_cpu_s"]) / (virtual_s * (1 - SHORT))
    goodput = sum(flow.goodput_mbps for flow in results[0].flows) / len(results[0].flows)
    sums = [checksum(result) for result in results]
    return {
        "benchmark": "virtual_linux",
        "k": spec.topology.k,
        "subflows": spec.transport.subflows,
        "cc": spec.transport.cc,
        "rate_mbps": spec.link.rate_mbps,
        "traffic": spec.traffic,
        "virtual_s": virtual_s,
        "runs": len(results),
        "wall_s_per_virtual_s": round(min(r.cost["wall_s"] for r in results) / virtual_s, 3),
        "cpu_s_per_virtual_s": round(per_s, 3),
        "starting_cpu_s": round(cpu_s - per_s * virtual_s, 2),
        "cpu_us_per_packet_hop": round(1e6 * per_s / results[0].metrics["packet_hops_per_s"], 3),
        "packet_hops_per_s": round(results[0].metrics["packet_hops_per_s"]),
        "late_p99_us": results[0].metrics["late_p99_us"],
        "goodput_pct_of_rate": round(100 * goodput / spec.link.rate_mbps, 1),
        "checksums": sums,
        "same_bytes": len(set(sums)) == 1,
        "status": [str(result.status) for result in results],
        "kernel": results[0].provenance["kernel"],
        "machine": machine(),
    }


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--cc", default="lia", show_default=True, help="Congestion control.")
@click.option("--rate", "rate_mbps", default=10.0, show_default=True, help="Link rate in Mb/s.")
@click.option("--warmup", "warmup_s", default=5.0, show_default=True, help="Simulated warm-up, in seconds.")
@click.option("--seconds", default=10.0, show_default=True, help="Simulated measured time, in seconds.")
@click.option(
    "--traffic", default=USUAL_TRAFFIC, show_default=True, type=click.Choice(TRAFFIC), help="Traffic driver."
)
@click.option("--runs", default=2, show_default=True, help="Runs of full length.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(runs: int, as_json: bool, **options: Any) -> None:
    """Time one one_to_one point in a guest."""
    spec = RunSpec(
        link=LinkSpec(options["rate_mbps"]),
        topology=TopologySpec("fat_tree", {"k": options["k"]}),
        transport=TransportSpec(options["subflows"], options["cc"]),
        engine=LinuxEngine.name,
        traffic=options["traffic"],
        warmup_s=options["warmup_s"],
        seconds=options["seconds"],
    )
    brief = dataclasses.replace(spec, warmup_s=SHORT * spec.warmup_s, seconds=SHORT * spec.seconds)
    try:
        found = report(spec, measure(brief), [measure(spec) for _ in range(runs)])
    except RefabricError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name}: {value}")


if __name__ == "__main__":
    main()
