"""The cost of sampling: CPU time of each kind of sampling while a network carries traffic, and of all
together.

    python benchmarks/sampling.py --k 8 --subflows 8 --rate 5 [--seconds 4] [--rounds 5] [--json]

Each round measures some seconds without sampling, and as long with each kind: link counters every second,
queues at 10 Hz, every subflow's socket every second, a ping per second along every subflow's path, then all
of them. `machine_pct` is the increase of the whole machine's CPU use over the same round without sampling
(median and range over rounds); it includes noise. `direct_pct` is the CPU time of the sampling itself, by the
clocks of its threads. It is exact, but excludes the hosts' kernels' work for pings in softirqs. Both are in
percent of the machine. Needs root.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

sys.path.append(str(Path(__file__).resolve().parents[1]))

from common.errors import RefabricError, RunError
from engines.emulation.dataplanes.fabric_dataplane import FabricDataPlane, default_tuning
from engines.emulation.hosts.hosts import HostOptions, steering_sysctls
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel.namespaces import sysctl_path
from engines.emulation.kernel.proc import CpuSampler
from engines.emulation.measure.path_pings import PathPinger, Probe, probes_for
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.path_manager import PathManager
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside
from engines.emulation.traffic.driver import default_cc, is_data, subflow_paths
from engines.emulation.traffic.iperf3 import Iperf3Traffic, prefer_congestion_control
from engines.provenance import machine
from model.flows import planned_flows
from model.network_plan import plan_for
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec
from topos.topology import Topology

KINDS = ("links", "queues", "sockets", "pings")
OFF, ALL = "off", "all"
QUEUES_MS, PINGS_MS, SECOND_S = 100.0, 1000.0, 1.0
WARMUP_S, CONNECT_S = 6.0, 30.0
BOUND_PCT = 3.0


@dataclass
class Clocks:
    """Statistics of one kind of sampling: number of samples, values found, and CPU time of the calls."""

    looks: int = 0
    found: int = 0
    own_s: float = 0.0


@dataclass
class Network:
    """A network under traffic, and its samplers."""

    plane: FabricDataPlane
    table: SocketTable
    pinger: PathPinger
    hops_a_ping: float
    clocks: dict[str, Clocks] = field(default_factory=lambda: {kind: Clocks() for kind in KINDS})

    def watch(self, seconds: float, kinds: Sequence[str]) -> None:
        """Sample `kinds` for `seconds`: all but queues once per second."""
        if "queues" in kinds:
            self.plane.sample_queues_every(QUEUES_MS)
        if "pings" in kinds:
            self.pinger.resume()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(SECOND_S, left))
            for kind in kinds:
                self._look(kind)
        self.plane.sample_queues_every(0)
        self.pinger.pause()

    def _look(self, kind: str) -> None:
        start = time.thread_time()
        clocks = self.clocks[kind]
        if kind == "links":
            clocks.found += len(self.plane.snapshot()["tx_bytes"])
        elif kind == "queues":
            clocks.found += self.plane.queue_samples()[1].size
        elif kind == "sockets":
            clocks.found += len(self.table.read())
        else:
            clocks.found += len(self.pinger.take())
        clocks.own_s += time.thread_time() - start
        clocks.looks += 1

    def own_s(self) -> float:
        return sum(clocks.own_s for clocks in self.clocks.values())


@dataclass(frozen=True)
class Window:
    """CPU use in one window, in percent: of the whole machine, and of the sampling by its own clocks."""

    kind: str
    busy_pct: float
    direct_pct: float


def measured(net: Network, seconds: float, name: str) -> Window:
    """Sample for that long, and read all clocks before and after."""
    kinds = {OFF: (), ALL: KINDS}.get(name, (name,))
    pings = net.clocks["pings"].found
    cpu, opened, ping_s, own_s = CpuSampler(), net.plane.snapshot(), net.pinger.cpu_s(), net.own_s()
    start = time.monotonic()
    net.watch(seconds, kinds)
    busy_pct = cpu.sample().machine.busy_pct
    passed_s = time.monotonic() - start
    closed = net.plane.snapshot()
    direct_s = net.own_s() - own_s + closed["sampling_s"] - opened["sampling_s"]
    hop_s = (closed["cpu_s"] - opened["cpu_s"]) / max(1, closed["hops"] - opened["hops"])
    direct_s += net.pinger.cpu_s() - ping_s
    direct_s += (net.clocks["pings"].found - pings) * net.hops_a_ping * hop_s
    return Window(name, busy_pct, 100 * direct_s / passed_s / len(os.sched_getaffinity(0)))


def inside(inside: Inside) -> int:
    """Start traffic in the private namespaces, then measure rounds of windows."""
    with under_traffic(RunSpec.from_json(inside.request["spec"])) as net:
        for _ in range(inside.request["rounds"]):
            for name in (OFF, *KINDS, ALL):
                inside.report({"window": vars(measured(net, inside.request["seconds"], name))})
        inside.report({"clocks": {kind: vars(clocks) for kind, clocks in net.clocks.items()}})
    return 0


@contextmanager
def under_traffic(spec: RunSpec) -> Iterator[Network]:
    """Start the network of `spec`; yield it after slow start, with pings ready but paused."""
    small_tables = sysctl_path("net.ipv4.tcp_child_ehash_entries")
    if small_tables.exists():
        small_tables.write_text("1024")
    topology, tuning = (
        spec.network(),
        default_tuning(spec.link.rate_mbps),
    )
    planned = planned_flows(spec, topology)
    plane = FabricDataPlane(topology, plan_for(spec, topology), tuning)
    raw = Path(tempfile.mkdtemp())
    with ExitStack() as stack:
        options = HostOptions(sysctls=steering_sysctls(plane.cpus.receive_mask))
        refs = stack.enter_context(FabricNet(topology, plane, options)).host_refs()
        hosts = {host.name: host for host in refs}
        subflows = spec.transport.subflows
        if subflows > 1:
            paths = subflow_paths(topology, subflows)
            watcher = stack.enter_context(PathManager(refs, subflows, is_data, paths))
        prefer_congestion_control({hosts[name]: cc for name, cc in default_cc(planned).items()})
        traffic = stack.enter_context(Iperf3Traffic(planned, hosts, raw, seconds=3600))
        traffic.open()
        traffic.connect(CONNECT_S)
        if subflows > 1 and not watcher.wait_all(len(planned), CONNECT_S):
            raise RunError(f"not all subflows were established after {CONNECT_S:g} s: run again")
        table = stack.enter_context(SocketTable(refs, planned))
        probes = probes_for(spec, topology, planned)
        pinger = stack.enter_context(PathPinger(probes, hosts, PINGS_MS))
        pinger.pause()
        pinger.start()
        time.sleep(WARMUP_S)
        yield Network(plane, table, pinger, 2 * statistics.mean(_hops(topology, probe) for probe in probes))
        traffic.stop()


def _hops(topology: Topology, probe: Probe) -> int:
    """Return the number of links on the path; all paths between two hosts are shortest ones."""
    return len(next(iter(topology.shortest_paths(topology.index(probe.src), topology.index(probe.dst))))) - 1


def report(spec: RunSpec, windows: Sequence[Window], clocks: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return one JSON object: what was run, what was measured, and the machine."""
    of = {name: [w for w in windows if w.kind == name] for name in (OFF, *KINDS, ALL)}
    found: dict[str, Any] = {"busy_pct_without": _median([w.busy_pct for w in of[OFF]])}
    for name in (*KINDS, ALL):
        more = [w.busy_pct - off.busy_pct for w, off in zip(of[name], of[OFF], strict=True)]
        found[name] = {
            "direct_pct": _median([w.direct_pct for w in of[name]]),
            "machine_pct": _median(more),
            "machine_pct_from_to": [round(min(more), 2), round(max(more), 2)],
        }
        if name in clocks:
            own = clocks[name]
            found[name]["a_look"] = round(own["found"] / own["looks"])
            found[name]["ms_a_look"] = round(1000 * own["own_s"] / own["looks"], 2)
    return {
        "benchmark": "sampling",
        "k": spec.topology.k,
        "subflows": spec.transport.subflows,
        "rate_mbps": spec.link.rate_mbps,
        "rounds": len(of[OFF]),
        **found,
        "bound_pct": BOUND_PCT,
        "within_bound": found[ALL]["direct_pct"] < BOUND_PCT,
        "machine": machine(),
    }


def _median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2)


@click.command()
@click.option("--k", default=8, show_default=True, help="Size k of the FatTree.")
@click.option("--subflows", default=8, show_default=True, help="Subflows per connection; 1 is plain TCP.")
@click.option("--rate", "rate_mbps", default=5.0, show_default=True, help="Link rate in Mb/s.")
@click.option("--seconds", default=4.0, show_default=True, help="Length of each window.")
@click.option("--rounds", default=5, show_default=True, help="Rounds of six windows.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def main(k: int, subflows: int, rate_mbps: float, seconds: float, rounds: int, as_json: bool) -> None:
    """Measure the cost of sampling and print it."""
    spec = RunSpec(LinkSpec(rate_mbps), TopologySpec("fat_tree", {"k": k}), TransportSpec(subflows))
    windows: list[Window] = []
    clocks: dict[str, dict[str, float]] = {}

    def hear(message: dict[str, Any]) -> None:
        if "window" in message:
            windows.append(Window(**message["window"]))
        clocks.update(message.get("clocks", {}))

    request = {"spec": spec.to_json(), "seconds": seconds, "rounds": rounds}
    deadline_s = 120 + 2 * rounds * seconds * (len(KINDS) + 2)
    try:
        with emulation_lock(wait_s=60.0):
            spawn_inside("benchmarks.sampling:inside", request, deadline_s=deadline_s, on_report=hear)
    except RefabricError as error:
        click.echo(f"sampling: {error}", err=True)
        sys.exit(error.exit_code)
    found = report(spec, windows, clocks)
    if as_json:
        click.echo(json.dumps(found))
        return
    for name, value in found.items():
        click.echo(f"{name:20} {value}")


if __name__ == "__main__":
    main()
