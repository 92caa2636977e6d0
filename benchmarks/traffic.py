"""Comparison of iperf3 and the native driver with the same flows and network: goodput and cost of each.

    python benchmarks/traffic.py --k 4 --subflows 8 --rate 50 [--workload one_to_one] [--runs 3] [--json]

Runs alternate between the two, each on its own network; values are medians. `goodput_mbps` is the mean over
flows, by the receivers' kernels, in `--seconds` after `--warmup`. `source_cpu_s_per_gb` is user and system
time of the traffic source (all iperf3 processes, or the driver's thread) per 1e9 payload bytes.
`machine_cpu_pct` is all CPUs' busy time without the fabric core's. `start_s` counts from the first socket to
the last subflow of the last flow, `stop_s` from the request to the end of the last flow. `source_mb` is the
proportional set size of the iperf3 processes, or the growth of this process. Needs root.
"""

from __future__ import annotations

import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import DeadlineError, RefabricError, RunError
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.hosts.hosts import HostOptions, steering_sysctls
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import HostRef, sysctl_path
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.kernel.sock_diag import ReceiveMeter, SocketSampler
from engines.emulation.path_manager import PathManager
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.emulation.traffic.driver import TrafficDriver, default_cc, is_data, subflow_paths
from engines.emulation.traffic.iperf3 import Iperf3Traffic, prefer_congestion_control
from engines.emulation.traffic.native import NativeDriver
from engines.kernel_hosts import connect_s
from engines.provenance import machine
from model.flows import PlannedFlow, planned_flows
from model.network_plan import plan_for
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, WorkloadSpec

DRIVERS = ("iperf3", "native")
SLACK_S = 120.0


@dataclass(frozen=True)
class Cost:
    """Results of one run of one driver."""

    goodput_mbps: float
    goodput_mbps_least: float
    source_cpu_s_per_gb: float
    source_cpu_pct: float
    machine_cpu_pct: float
    start_s: float
    stop_s: float
    source_mb: float


def inside(inside: Inside) -> int:
    """Run one driver on one network in the private namespaces."""
    spec = RunSpec.from_json(inside.request)
    sysctl_path("net.ipv4.tcp_child_ehash_entries").write_text("1024")
    topology = spec.network()
    tuning = default_tuning(spec.link.rate_mbps)
    plane = FabricDataPlane(topology, plan_for(spec, topology), tuning)
    sysctls = {"net.ipv4.tcp_no_metrics_save": "1", **steering_sysctls(plane.cpus.receive_mask)}
    with FabricNet(topology, plane, HostOptions(sysctls=sysctls)) as net:
        hosts = {host.name: host for host in net.host_refs()}
        flows = planned_flows(spec, topology)
        inside.report(asdict(_run(spec, flows, hosts, plane, plane.cpus.helper)))
    return 0


def _run(
    spec: RunSpec, flows: tuple[PlannedFlow, ...], hosts: dict[str, HostRef], plane: FabricDataPlane, cpu: int
) -> Cost:
    transport, refs = spec.transport, list(hosts.values())
    deadline_s = connect_s(len(flows), transport.subflows)
    with ExitStack() as stack:
        watcher = None
        if transport.subflows > 1:
            paths = subflow_paths(spec.network(), transport.subflows)
            watcher = stack.enter_context(PathManager(refs, transport.subflows, is_data, paths))
        prefer_congestion_control({hosts[name]: cc for name, cc in default_cc(flows).items()})
        sampler = stack.enter_context(SocketSampler(refs))
        meter = ReceiveMeter(sampler, [(hosts[flow.dst], flow.seen_by_receiver) for flow in flows])
        before_mb = _pss_mb("self")
        start = time.monotonic()
        driver = _driver(spec, flows, hosts, cpu)
        stack.enter_context(driver)
        driver.open()
        driver.connect(deadline_s)
        if watcher and not watcher.wait_all(len(flows), deadline_s):
            raise DeadlineError(f"not all subflows joined within {deadline_s:g} s")
        start_s = time.monotonic() - start
        driver.release()
        time.sleep(spec.warmup_s)
        measured = _measure(driver, meter, plane, spec.seconds)
        source_mb = _pss_mb("self") - before_mb if isinstance(driver, NativeDriver) else _iperf3(_pss_mb)
        stopping = time.monotonic()
        driver.stop()
        return dataclasses.replace(
            measured, start_s=start_s, stop_s=time.monotonic() - stopping, source_mb=source_mb
        )


def _driver(
    spec: RunSpec, flows: tuple[PlannedFlow, ...], hosts: dict[str, HostRef], cpu: int
) -> TrafficDriver:
    if spec.traffic == "native":
        return NativeDriver(flows, hosts, cpu=cpu)
    lasts = connect_s(len(flows), spec.transport.subflows) + spec.warmup_s + spec.seconds + SLACK_S
    return Iperf3Traffic(flows, hosts, Path("/tmp"), seconds=lasts)


def _measure(driver: TrafficDriver, meter: ReceiveMeter, plane: FabricDataPlane, seconds: float) -> Cost:
    """Measure goodput and CPU between two readings; the readings cost the same with both drivers."""
    cpus = CpuSampler()
    got, spent, core_s, start = (
        meter.sample(),
        _source_cpu_s(driver),
        plane.snapshot()["cpu_s"],
        time.monotonic(),
    )
    time.sleep(seconds)
    driver.check()
    later, spent_later, core_later_s = meter.sample(), _source_cpu_s(driver), plane.snapshot()["cpu_s"]
    elapsed_s, use = time.monotonic() - start, cpus.sample().machine
    if None in got or None in later:
        raise RunError("measuring goodput: a flow's socket is gone")
    bytes_ = [(b or 0) - (a or 0) for a, b in zip(got, later, strict=True)]
    core_pct = 100 * (core_later_s - core_s) / elapsed_s
    return Cost(
        goodput_mbps=statistics.mean(bytes_) * 8e-6 / elapsed_s,
        goodput_mbps_least=min(bytes_) * 8e-6 / elapsed_s,
        source_cpu_s_per_gb=(spent_later - spent) / (sum(bytes_) / 1e9),
        source_cpu_pct=100 * (spent_later - spent) / elapsed_s,
        machine_cpu_pct=use.busy_pct * len(os.sched_getaffinity(0)) - core_pct,
        start_s=0.0,
        stop_s=0.0,
        source_mb=0.0,
    )


def _source_cpu_s(driver: TrafficDriver) -> float:
    return driver.readings()["cpu_s"] if isinstance(driver, NativeDriver) else _iperf3(_cpu_s)


def _iperf3(of: Callable[[str], float]) -> float:
    """Return the sum over this run's iperf3 processes, which are all in its private /proc."""
    pids = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return sum(of(pid) for pid in pids if Path("/proc", pid, "comm").read_text().strip() == "iperf3")


def _cpu_s(pid: str) -> float:
    fields = Path("/proc", pid, "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _pss_mb(pid: str) -> float:
    lines = Path("/proc", pid, "smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024


def measure(spec: RunSpec) -> Cost:
    """Run once. Raises RefabricError."""
    costs: list[Any] = []
    deadline_s = 2 * connect_s(10_000, spec.transport.subflows) + spec.warmup_s + spec.seconds
    spawn_inside("benchmarks.traffic:inside", spec.to_json(), deadline_s=deadline_s, on_report=costs.append)
    return Cost(**costs[0])


def medians(costs: list[Cost]) -> dict[str, Any]:
    """Return medians and, for compared values, minimum and maximum."""
    rows = [asdict(cost) for cost in costs]
    out: dict[str, Any] = {name: round(statistics.median(r[name] for r in rows), 3) for name in rows[0]}
    for name in ("goodput_mbps", "source_cpu_s_per_gb", "machine_cpu_pct"):
        values = [row[name] for row in rows]
        out[f"{name}_range"] = [round(min(values), 3), round(max(values), 3)]
    return out


@click.command()
@click.option("--k", default=4, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=1, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--rate", "rate_mbps", default=10.0, show_default=True, help="Link rate in Mb/s.")
@click.option("--workload", default="one_to_one", show_default=True, help="Traffic matrix.")
@click.option("--traffic", "only", type=click.Choice(DRIVERS), help="Measure only this driver.")
@click.option("--warmup", "warmup_s", default=5.0, show_default=True, help="Warm-up of each run, in seconds.")
@click.option("--seconds", default=10.0, show_default=True, help="Measured time of each run, in seconds.")
@click.option("--runs", default=3, show_default=True, help="Runs per driver.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(runs: int, only: str | None, as_json: bool, **options: Any) -> None:
    """Measure the traffic drivers and print the results."""
    spec = RunSpec(
        link=LinkSpec(options["rate_mbps"]),
        topology=TopologySpec("fat_tree", {"k": options["k"]}),
        transport=TransportSpec(options["subflows"]),
        workload=WorkloadSpec(options["workload"]),
        warmup_s=options["warmup_s"],
        seconds=options["seconds"],
    )
    found: dict[str, list[Cost]] = {name: [] for name in ((only,) if only else DRIVERS)}
    try:
        with emulation_lock(wait_s=60.0):
            for _ in range(max(1, runs)):
                for name, costs in found.items():
                    costs.append(measure(dataclasses.replace(spec, traffic=name)))
    except RefabricError as error:
        click.echo(f"traffic: {error}", err=True)
        sys.exit(error.exit_code)
    result = {name: medians(costs) for name, costs in found.items()}
    if as_json:
        head = {"benchmark": "traffic", **options, "runs": runs}
        click.echo(json.dumps({**head, **result, "machine": machine()}))
        return
    for name, row in result.items():
        click.echo("\n".join([name, *(f"  {key:28} {value}" for key, value in row.items())]))


if __name__ == "__main__":
    main()
