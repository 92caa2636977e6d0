"""Comparison of the data planes: the highest rate that each sustains with valid results, and its cost.

    python benchmarks/dataplanes.py --k 4 --subflows 1 [--rates 1,2,5,10,20,50,100] [--seconds 5]
        [--repeats 3] [--chart FILE] [--json]

All runs use one topology, one traffic matrix (one_to_one, native driver) and one machine. At each rate every
remaining data plane runs one point per repeat, in a rotating order. A plane is out when half or more of its
points at a rate are not `ok`. `valid_mbps` is the highest rate before that. At the lowest rate:
`cpu_us_a_hop` is the whole machine's busy time per packet-hop, hosts included; `plane_us_a_hop` is the
forwarding process's own (at the highest valid rate: `plane_us_a_hop_best`); `late_p99_us` is the lateness, if
known. `up_s` is the start of FabricNet; for stock Mininet it is the start of the same tree with shaped links,
under the run's own Open vSwitch, without a controller. All values are medians of the repeats. They are not
valid if other programs use the machine. Needs root.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

import topos
from common.errors import RefabricError, RunError
from engines.emulation.engine import MininetEngine
from engines.emulation.outside import UNKEPT
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.engine import Silent
from engines.provenance import machine
from model.reasons import texts
from model.result import RunResult, Status
from model.spec import LinkSpec, OpenFlowSpec, RunSpec, TopologySpec, TransportSpec

FORWARDERS = {"fabric": "fabric_cpu_pct", "ovs": "ovs_cpu_pct"}
STOCK = "stock Mininet"
WARMUP_S, STOCK_DEADLINE_S, LOCK_S = 4.0, 600.0, 60.0


@dataclass(frozen=True)
class Plane:
    """A data plane with its options."""

    name: str
    dataplane: str
    openflow: OpenFlowSpec = OpenFlowSpec()  # noqa: RUF009 (frozen)


PLANES = (
    Plane("fabric", "fabric"),
    Plane("ovs, kernel datapath", "ovs", OpenFlowSpec(datapath="kernel")),
    Plane("ovs, user-space datapath", "ovs", OpenFlowSpec(datapath="user")),
)


@dataclass
class Seen:
    """Results of one plane by rate, and the reason if it is out."""

    results: dict[float, list[RunResult]] = field(default_factory=dict)
    why_out: str = ""

    def valid_mbps(self) -> float:
        return max((rate for rate, results in self.results.items() if mostly_ok(results)), default=0.0)


def mostly_ok(results: Sequence[RunResult]) -> bool:
    return 2 * sum(result.status is Status.OK for result in results) > len(results)


def race(spec: RunSpec, rates: Sequence[float], repeats: int) -> dict[str, Seen]:
    """Run every plane at increasing rates until it is out. Raises RefabricError."""
    seen = {plane.name: Seen() for plane in PLANES}
    engine = MininetEngine()
    try:
        for rate in rates:
            for repeat in range(repeats):
                turned = PLANES[repeat % len(PLANES) :] + PLANES[: repeat % len(PLANES)]
                for plane in turned:
                    if not seen[plane.name].why_out:
                        _run(engine, _at(spec, plane, rate), seen[plane.name])
            for plane in PLANES:
                _judge(seen[plane.name], rate)
    finally:
        engine.close()
    return seen


def _at(spec: RunSpec, plane: Plane, rate_mbps: float) -> RunSpec:
    link = LinkSpec(rate_mbps)
    return RunSpec(
        link, spec.topology, spec.transport, spec.workload, dataplane=plane.dataplane, traffic="native",
        warmup_s=spec.warmup_s, seconds=spec.seconds, openflow=plane.openflow,
    )  # fmt: skip


def _run(engine: MininetEngine, spec: RunSpec, seen: Seen) -> None:
    try:
        engine.check(spec)
        result = engine.run(spec, Silent(), UNKEPT)
    except RefabricError as error:
        seen.why_out = str(error)
        return
    seen.results.setdefault(spec.link.rate_mbps, []).append(result)


def _judge(seen: Seen, rate: float) -> None:
    results = seen.results.get(rate, [])
    if not seen.why_out and not mostly_ok(results):
        seen.why_out = texts(dict.fromkeys(reason for result in results for reason in result.reasons))


def row(plane: Plane, seen: Seen) -> dict[str, Any]:
    """Return a line of the table; values are None if unknown."""
    if not seen.results:
        return {"plane": plane.name, "not_here": seen.why_out}
    lowest = min(seen.results)
    at = seen.results[lowest]
    cpus = machine()["cpus"]

    def median(of: Sequence[float]) -> float:
        return round(statistics.median(of), 2)

    hops = [result.metrics["packet_hops_per_s"] for result in at]
    busy_us = [1e4 * cpus * result.metrics["cpu_busy_pct"] for result in at]
    best = seen.results[seen.valid_mbps() or lowest]
    late = [r.metrics["late_p99_us"] for r in at if "late_p99_us" in r.metrics]
    return {
        "plane": plane.name,
        "valid_mbps": seen.valid_mbps(),
        "packet_hops_per_s": median([result.metrics["packet_hops_per_s"] for result in best]),
        "at_mbps": lowest,
        "cpu_us_a_hop": median([us / n for us, n in zip(busy_us, hops, strict=True)]),
        "plane_us_a_hop": median([_own_us(plane, result) for result in at]),
        "plane_us_a_hop_best": median([_own_us(plane, result) for result in best]),
        "late_p99_us": median(late) if late else None,
        "up_s": median([result.metrics["setup_s"] for result in at]),
        "out_because": seen.why_out or None,
    }


def _own_us(plane: Plane, result: RunResult) -> float:
    """Return the CPU time of the forwarding process per packet-hop."""
    return 1e4 * result.metrics[FORWARDERS[plane.dataplane]] / result.metrics["packet_hops_per_s"]


def stock_up_s(k: int, rate_mbps: float) -> float:
    """Return the start time of stock Mininet for the same tree and link rate, in s. Raises RefabricError."""
    reports: list[float] = []
    request = {"k": k, "rate_mbps": rate_mbps}
    with emulation_lock(wait_s=LOCK_S):
        spawn_inside(
            "benchmarks.dataplanes:stock", request, deadline_s=STOCK_DEADLINE_S, on_report=reports.append
        )
    return reports[0]


def stock(inside: Inside) -> int:
    """Run `mn --topo ft,K --switch ovs --link tc,bw=RATE --controller none` in the private namespaces."""
    from functools import partial  # noqa: PLC0415

    from mininet.link import TCLink  # noqa: PLC0415
    from mininet.net import Mininet  # noqa: PLC0415
    from mininet.node import OVSSwitch  # noqa: PLC0415

    from engines.emulation.dataplanes.ovs.daemons import (  # noqa: PLC0415
        Daemons,
        choose,
        command,
    )
    from topos.mininet_topos import topos as families  # noqa: PLC0415

    datapath = choose("auto")
    daemons = Daemons([], datapath.value, "")
    daemons.start({})
    words = "user" if datapath.value == "netdev" else "kernel"
    began = time.monotonic()
    net = Mininet(
        topo=families["ft"](inside.request["k"]),
        switch=partial(OVSSwitch, datapath=words),
        link=partial(TCLink, bw=inside.request["rate_mbps"]),
        controller=None,
    )
    net.start()
    inside.report(time.monotonic() - began)
    made = command("ovs-vsctl", "list-br").split()
    if len(made) != len(net.switches):
        raise RunError(f"stock Mininet made {len(made)} of {len(net.switches)} bridges")
    return 0  # No clean stop, which takes as long again; the namespaces end with this process.


def draw(rows: Sequence[dict[str, Any]], path: Path, title: str) -> None:
    """Draw the highest valid rate, CPU per packet-hop and set-up time, one bar per plane."""
    import matplotlib  # noqa: PLC0415

    matplotlib.use("Agg")
    from matplotlib import pyplot  # noqa: PLC0415

    panels = (
        ("valid_mbps", "highest valid link rate (Mb/s)"),
        ("cpu_us_a_hop", "CPU of the machine per packet-hop (\N{MICRO SIGN}s)"),
        ("up_s", "network up (s)"),
    )
    figure, axes = pyplot.subplots(1, len(panels), figsize=(10, 2.6), constrained_layout=True)
    for axis, (name, label) in zip(axes, panels, strict=True):
        shown = [entry for entry in reversed(rows) if entry.get(name) is not None]
        bars = axis.barh(
            [entry["plane"] for entry in shown], [entry[name] for entry in shown], color="#0072B2"
        )
        axis.bar_label(bars, fmt="%.3g", padding=2)
        axis.set_xlim(0, 1.25 * max([entry[name] for entry in shown], default=0) or 1)
        axis.set_xlabel(label)
        axis.spines[["top", "right"]].set_visible(False)
    figure.suptitle(title)
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=1, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--rates", default="1,2,5,10,20,50,100", show_default=True, help="Link rates in Mb/s.")
@click.option("--seconds", default=5.0, show_default=True, help="Measured time of each run, in seconds.")
@click.option("--repeats", default=1, show_default=True, help="Runs per data plane and rate.")
@click.option("--chart", type=click.Path(path_type=Path), help="Write a chart to this file.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(
    k: int, subflows: int, rates: str, seconds: float, repeats: int, chart: Path | None, as_json: bool
) -> None:
    """Measure the data planes and print the results."""
    topology, transport = TopologySpec("fat_tree", {"k": k}), TransportSpec(subflows)
    spec = RunSpec(LinkSpec(1.0), topology, transport, warmup_s=WARMUP_S, seconds=seconds)
    steps = sorted(float(rate) for rate in rates.split(","))
    try:
        seen = race(spec, steps, repeats)
        rows = [row(plane, seen[plane.name]) for plane in PLANES]
        rows.append({"plane": STOCK, "up_s": round(stock_up_s(k, steps[0]), 2)})
    except RefabricError as error:
        raise SystemExit(f"dataplanes: {error}") from error
    hosts = len(topos.build("fat_tree", {"k": k}).hosts)
    what = {"k": k, "hosts": hosts, "subflows": subflows, "seconds": seconds, "repeats": repeats}
    if chart is not None:
        draw(rows, chart, f"FatTree k={k}, {hosts} hosts, {'TCP' if subflows == 1 else f'MPTCP {subflows}'}")
    if as_json:
        print(json.dumps({"benchmark": "dataplanes", **what, "planes": rows, "machine": machine()}))
        return
    for entry in rows:
        print("  ".join(f"{name}={value}" for name, value in entry.items() if value is not None))


if __name__ == "__main__":
    main()
