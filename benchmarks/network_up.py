"""Time to start and stop a network, and the memory it needs.

    python benchmarks/network_up.py --k 8 [--topology ft] [--dataplane fabric|ovs] [--runs 3] [--json]

`up_s` counts from the command (after Python and its imports) until every host has its NICs, addresses and
routes, the data plane carries frames (Open vSwitch: under its controller), and the first host has pinged the
last. `network_s` is FabricNet's part of it. `down_s` counts from the request to stop until the last process
has ended. All are medians of `--runs`. `rss_mb` sums the proportional set size of the run's processes.
`memory_mb` is the decrease of the machine's MemAvailable, so it includes the kernel's namespaces and
interfaces. Needs root.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

import topos
from common.errors import RefabricError, RunError
from engines.emulation.dataplanes.dataplane import DATAPLANES, FABRIC
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.sandbox.isolation import spawn_inside
from model.spec import LinkSpec, RunSpec, TopologySpec

DEADLINE_S = 300.0
RATE_MBPS, QUEUE_PKTS = 10.0, 100


def measure(kind: str, params: dict[str, int], dataplane: str) -> dict[str, float]:
    """Start and stop one network. Raises RefabricError."""
    marks: dict[str, float] = {}
    free_kb = _available_kb()
    start = time.monotonic()

    def mark(report: dict[str, float]) -> None:
        marks.update(report)
        if "rss_mb" in report:
            marks["memory_mb"] = round((free_kb - report["available_kb"]) / 1024, 1)

    link = LinkSpec(RATE_MBPS, queue_pkts=QUEUE_PKTS, nic_queue_pkts=QUEUE_PKTS)
    request = RunSpec(link, TopologySpec(kind, params), dataplane=dataplane).to_json()
    spawn_inside("benchmarks.network_up:inside", request, deadline_s=DEADLINE_S, on_report=mark)
    end = time.monotonic()
    return {
        "up_s": marks["up"] - start,
        "network_s": marks["up"] - marks["began"],
        "down_s": end - marks["stopping"],
        "rss_mb": marks["rss_mb"],
        "memory_mb": marks["memory_mb"],
    }


def inside(inside: Inside) -> int:
    """Start the network in the private namespaces, ping, measure memory, and stop it."""
    from engines.emulation.hosts.network import FabricNet  # noqa: PLC0415

    spec = RunSpec.from_json(inside.request)
    topology = spec.network()
    began = time.monotonic()
    net = FabricNet(topology, DATAPLANES[spec.dataplane].make(spec, topology, Path("/tmp"), Caller()))
    net.start()
    first, last = net.hosts[0], net.hosts[-1]
    out, err, status = first.pexec(f"ping -c1 -W5 {last.IP()}")
    if status != 0:
        raise RunError(f"pinging {last} from {first} failed: {out}{err}")
    inside.report({"began": began, "up": time.monotonic()})
    inside.report({"available_kb": _available_kb(), "rss_mb": round(_pss_kb() / 1024, 1)})
    inside.report({"stopping": time.monotonic()})
    net.stop()
    return 0


def machine() -> dict[str, Any]:
    """Return the machine's hardware and software."""
    cpuinfo = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":", 1)[1].strip() for line in cpuinfo if line.startswith("model name")), "")
    return {
        "cpus": os.cpu_count(),
        "cpu_model": model,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "memory_mb": round(_meminfo_kb("MemTotal") / 1024),
    }


def _available_kb() -> int:
    return _meminfo_kb("MemAvailable")


def _meminfo_kb(field: str) -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def _pss_kb() -> int:
    """Return the proportional set size of this PID namespace; pages shared by n processes count 1/n."""
    total = 0
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            lines = (entry / "smaps_rollup").read_text().splitlines()
        except OSError:
            continue  # the process has just ended
        total += next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return total


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the topology.")
@click.option("--topology", default="ft", show_default=True, help="Topology: ft, dhft or star.")
@click.option(
    "--dataplane", default=FABRIC, show_default=True, type=click.Choice(list(DATAPLANES)), help="Data plane."
)
@click.option("--runs", default=3, show_default=True, help="Report medians of this many runs.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(k: int, topology: str, dataplane: str, runs: int, as_json: bool) -> None:
    """Measure how long a network takes to start and stop, and print it."""
    try:
        kind, params = topos.parse(f"{topology},{k}")
        hosts = len(topos.build(kind, params).hosts)
        with emulation_lock(wait_s=60.0):
            found = [measure(kind, params, dataplane) for _ in range(max(1, runs))]
    except RefabricError as error:
        print(f"network_up: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    medians = {name: round(statistics.median(run[name] for run in found), 3) for name in found[0]}
    result = {
        "benchmark": "network_up",
        "topology": kind,
        "dataplane": dataplane,
        "k": k,
        "hosts": hosts,
        "runs": len(found),
        **medians,
        "machine": machine(),
    }
    if as_json:
        print(json.dumps(result))
    else:
        print("\n".join(f"{name:10} {value}" for name, value in result.items()))


if __name__ == "__main__":
    main()
