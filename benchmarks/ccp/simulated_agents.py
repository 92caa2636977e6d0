"""CPU time of simulated hosts under an agent, and under a datapath without one, beside the core's own Reno.

    python benchmarks/ccp/simulated_agents.py [--k 8] [--subflows 8] [--seconds 2] [--slice-ms 200] [--runs 5]
        [--json]

Each repetition compares three variants: the core's Reno; `ccp:reno`, whose agent gets a report per round
trip; and `fold`, whose program sets the window on every acknowledgement and never reports
(benchmarks/ccp/fold_reno.py). Networks are FatTrees with a random permutation at 100 Mb/s, hosts those of
Linux. A repetition is a process in which the three simulations take turns of `--slice-ms` of simulated time,
so that all meet the same changes of the machine's speed.

`run_cpu_s` is the CPU time of the events, `cpu_s` that of the whole point, set-up included. A ratio divides
the time per packet-hop, because the variants do not send exactly the same. Ratios are medians with their
range. `others_pct` is the CPU time that other programs used meanwhile, of all CPUs, and `load` the load
average at the beginning.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.other_programs import BusyTime
from ccp.names import PREFIX, OwnAlgorithm
from common.errors import RefabricError
from engines.core_setup import PS_PER_S, SimulatedAgent, built, plan_of, transport_options
from engines.provenance import machine
from model.flows import planned_flows
from model.spec import LINUX, LinkSpec, RunSpec, TopologySpec, TransportSpec

CORE, FOLD, AGENT = "reno", "fold", f"{PREFIX}reno"
VARIANTS = (CORE, FOLD, AGENT)
T = TypeVar("T")
PROGRAM = Path(__file__).with_name("fold_reno.py")


@dataclass(frozen=True)
class Cost:
    """One repetition of one variant."""

    variant: str
    run_cpu_s: float
    cpu_s: float
    packet_hops: int
    delivered_mb: float
    acks: int = 0
    reports: int = 0
    errors: int = 0
    others_pct: float = 0.0

    def per_hop(self, name: str) -> float:
        """Return a CPU time per packet-hop, in s."""
        return float(getattr(self, name)) / self.packet_hops


class Turns:
    """One variant's simulation, which runs in turn with others."""

    def __init__(self, spec: RunSpec, variant: str) -> None:
        began = time.process_time()
        self._variant = variant
        topology = spec.network()
        flows = planned_flows(spec, topology)
        self._agent = SimulatedAgent(spec, topology, flows)
        plan, options = plan_of(spec, topology), transport_options(spec)
        self._simulation = built(spec, topology, flows, plan, options, self._agent)
        self._set_up_s, self._run_s = time.process_time() - began, 0.0

    def run_until(self, seconds: float) -> None:
        began = time.process_time()
        self._simulation.run_until(round(seconds * PS_PER_S))
        self._run_s += time.process_time() - began

    def cost(self, others_pct: float) -> Cost:
        did = self._agent.metrics(self._simulation)
        return Cost(
            self._variant,
            self._run_s,
            self._set_up_s + self._run_s,
            self._simulation.ports()["hops"],
            float(self._simulation.flows()["delivered_bytes"].sum()) / 1e6,
            acks=int(did.get("agent_acks", 0)),
            reports=int(did.get("agent_reports", 0)),
            errors=int(did.get("agent_errors", 0)),
            others_pct=others_pct,
        )


def measure(point: Mapping[str, Any], slice_ms: float, first: int) -> list[Cost]:
    """Run all variants in this process; variant number `first` begins. Raises RefabricError."""
    specs = {variant: spec_of(variant, **point) for variant in VARIANTS}
    for spec in specs.values():
        spec.network()  # none of them is charged for it
    busy = BusyTime()
    running = [Turns(specs[variant], variant) for variant in rotated(VARIANTS, first)]
    slices = math.ceil(point["seconds"] * 1000 / slice_ms)
    for number in range(slices):
        for each in rotated(running, number):
            each.run_until(min(point["seconds"], (number + 1) * slice_ms / 1000))
    return [each.cost(busy.others_pct()) for each in running]


def rotated(items: Sequence[T], start: int) -> list[T]:
    """Return the items in their order, the one with number `start` first."""
    start %= len(items)
    return [*items[start:], *items[:start]]


def spec_of(variant: str, k: int, subflows: int, seconds: float, seed: int) -> RunSpec:
    """Return the point of a variant."""
    cc = OwnAlgorithm(PROGRAM.name, PROGRAM.read_text()) if variant == FOLD else variant
    return RunSpec(
        link=LinkSpec(rate_mbps=100.0, delay_us=10.0),
        topology=TopologySpec("fat_tree", {"k": k}),
        transport=TransportSpec(subflows, cc),
        stack=LINUX,
        engine="simulator",
        warmup_s=seconds / 2,
        seconds=seconds / 2,
        seed=seed,
    )


def row(of: Sequence[Cost], core: Sequence[Cost]) -> dict[str, Any]:
    """Return one variant's medians, and its ratios to the core's time of the same repetition."""
    ratios = {
        name: [a.per_hop(name) / b.per_hop(name) for a, b in zip(of, core, strict=True)]
        for name in ("run_cpu_s", "cpu_s")
    }
    medians = {
        name: round(statistics.median(getattr(cost, name) for cost in of), 3)
        for name in ("run_cpu_s", "cpu_s", "packet_hops", "delivered_mb", "acks", "reports", "errors")
    }
    return {
        "variant": of[0].variant,
        **medians,
        **{f"{name}_ratio": round(statistics.median(found), 3) for name, found in ratios.items()},
        **{f"{name}_ratio_range": [round(min(f), 3), round(max(f), 3)] for name, f in ratios.items()},
        "others_pct": round(max(cost.others_pct for cost in of), 1),
    }


def measured(point: Mapping[str, Any], slice_ms: float, runs: int) -> list[Cost]:
    """Repeat the comparison in new processes. Raises RefabricError."""
    found = []
    for repetition in range(runs):
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
            found += alone.submit(measure, point, slice_ms, repetition).result()
    return found


@click.command()
@click.option("--k", default=8, show_default=True, help="FatTree size.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--seconds", default=2.0, show_default=True, help="Simulated time, in seconds.")
@click.option("--seed", default=1, show_default=True, help="Seed of the point.")
@click.option(
    "--slice-ms", default=200.0, show_default=True, type=click.FloatRange(0.1),
    help="Simulated time of a turn, in ms.",
)  # fmt: skip
@click.option(
    "--runs", default=5, show_default=True, type=click.IntRange(1), help="Repetitions of every variant."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(runs: int, slice_ms: float, as_json: bool, **point: Any) -> None:
    """Measure what an agent and a datapath cost in the simulator, and print it."""
    load = os.getloadavg()[0]
    try:
        costs = measured(point, slice_ms, runs)
    except RefabricError as error:
        click.echo(f"simulated_agents: {error}", err=True)
        sys.exit(error.exit_code)
    by_variant = {name: [cost for cost in costs if cost.variant == name] for name in VARIANTS}
    rows = [row(of, by_variant[CORE]) for of in by_variant.values()]
    if as_json:
        head = {
            "benchmark": "simulated_agents",
            **point,
            "slice_ms": slice_ms,
            "runs": runs,
            "load": round(load, 2),
        }
        each = [asdict(cost) for cost in costs]
        click.echo(json.dumps({**head, "rows": rows, "costs": each, "machine": machine()}))
        return
    for found in rows:
        click.echo("  ".join(f"{key} {value}" for key, value in found.items()))


if __name__ == "__main__":
    main()
