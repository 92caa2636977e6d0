"""One point, inside its private namespaces: network up, flows up, warm-up, measured window, collection."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import topos
from engines.emulation import mptcp_genl, netstat, steering, wire
from engines.emulation.cpu import CpuSampler, read_softnet
from engines.emulation.fabric_dataplane import FabricDataPlane, default_tuning, receive_cpu_mask
from engines.emulation.hosts import HostOptions
from engines.emulation.inside import Inside
from engines.emulation.iperf3 import Iperf3Driver, Iperf3Flow, prefer_congestion_control
from engines.emulation.mptcp_watch import ConnectionReport, MptcpWatcher
from engines.emulation.netns import HostRef, sysctl_path
from engines.emulation.network import FabricNet
from engines.emulation.path_manager import PathManager
from engines.emulation.path_manager_inkernel import SignalPathManager
from engines.emulation.sock_diag import ReceiveMeter, SocketSampler, TcpSocket
from engines.emulation.summarise import Readings, Sample, check_progress, sockets_of, summarise
from engines.emulation.traffic import PlannedFlow, is_data, planned_flows, subflow_paths
from engines.network_plan import plan_for
from engines.result import RunResult
from engines.spec import RunSpec
from fabric.errors import DeadlineError

CONNECT_S = 60.0
"""Deadline for all flows to be connected and all their subflows to have joined."""
SLACK_S = 30.0
SAMPLE_S = 1.0
POLL_S = 0.05
STALL_S = 10.0
"""A flow that delivers nothing this long before the window opens will not in the window either."""


def run_point(inside: Inside) -> int:
    """Carry out the RunSpec of the request and report its result."""
    spec = RunSpec.from_json(inside.request["spec"])
    result = Point(spec, Path(inside.request["raw"]), inside.report).run()
    inside.report({"result": wire.encode(result)})
    return 0


@dataclass(frozen=True)
class Running:
    """The flows of a point while they run, and the ways to look at them."""

    driver: Iperf3Driver
    meter: ReceiveMeter
    sampler: SocketSampler


class Sampling:
    """Looks at flows and CPUs once a second."""

    def __init__(self, flows: Running) -> None:
        self.samples: list[Sample] = []
        self._flows = flows
        self._cpu = CpuSampler()

    def sample_for(self, seconds: float) -> None:
        """Sample about every `SAMPLE_S`, the last time exactly `seconds` from now.

        Raises RunError when an iperf3 has ended.
        """
        start = time.monotonic()
        steps = max(1, round(seconds / SAMPLE_S))
        for step in range(1, steps + 1):
            time.sleep(max(0.0, start + seconds * step / steps - time.monotonic()))
            self.samples.append(Sample(time.monotonic(), self._flows.meter.sample(), self._cpu.sample()))
            self._flows.driver.check()


class Point:
    """What the stages share: the network, its flows, and the clock."""

    def __init__(self, spec: RunSpec, raw: Path, report: Callable[[object], None]) -> None:
        self._spec = spec
        self._raw = raw
        self._report = report
        self._topology = topos.build(spec.topology.kind, spec.topology.params)
        self._flows = planned_flows(spec, self._topology)
        self._tuning = default_tuning(spec.link.rate_mbps)
        plan = plan_for(spec, self._topology)
        self._dataplane = FabricDataPlane(self._topology, plan, self._tuning, float(spec.sampling.queues_ms))
        self._timings: dict[str, float] = {}

    def run(self) -> RunResult:
        """All stages in order. Raises RefabricError when there is no number to be had."""
        _give_hosts_small_tcp_tables()
        options = HostOptions(sysctls=self._sysctls())
        with ExitStack() as stack:
            with self._phase("network", 1.0, "setup_s"):
                net = stack.enter_context(FabricNet(self._topology, self._dataplane, options))
                hosts = {host.name: host for host in net.host_refs()}
                self._steer(hosts)
            with self._phase("connect", 3.0, "connect_s"):
                sampler = stack.enter_context(SocketSampler(list(hosts.values())))
                watcher = self._watcher(stack, hosts)
                prefer_congestion_control(hosts.values(), self._spec.transport.cc)
                driver = stack.enter_context(self._driver(hosts, sampler))
                driver.start_servers()
                started_s = time.monotonic()
                driver.start_clients()
                meter = ReceiveMeter(sampler, [(hosts[f.dst], f.seen_by_receiver) for f in self._flows])
                up_s = self._await_flows(driver, meter, watcher, started_s)
            connections = watcher.reports() if watcher else ()
            last_up_s = _last_up(self._flows, up_s, connections, started_s)
            readings = self._measure(Running(driver, meter, sampler), hosts, last_up_s)
            with self._phase("collect", 2.0, "collect_s"):
                outcomes = driver.stop()
        provenance = self._provenance(net.sysctls, connections)
        return summarise(
            self._spec, self._topology, self._flows, readings, outcomes, self._timings, provenance
        )

    def _sysctls(self) -> dict[str, str]:
        sysctls = {"net.ipv4.tcp_no_metrics_save": "1"}  # nothing one connection learns may help the next
        return {**sysctls, **steering.sysctls(receive_cpu_mask(self._tuning))}

    def _steer(self, hosts: dict[str, HostRef]) -> None:
        """On kernels without a default mask the NICs must exist first."""
        mask = receive_cpu_mask(self._tuning)
        if mask and not steering.sysctls(mask):
            steering.steer([host.pid for host in hosts.values()], mask)

    def _watcher(self, stack: ExitStack, hosts: dict[str, HostRef]) -> MptcpWatcher | None:
        """The path manager this kernel allows, before any MPTCP socket exists; none for plain TCP."""
        subflows = self._spec.transport.subflows
        if subflows == 1:
            return None
        refs = list(hosts.values())
        if mptcp_genl.support().level is mptcp_genl.PathManagement.USERSPACE:
            paths = subflow_paths(self._topology, subflows)
            return stack.enter_context(PathManager(refs, subflows, is_data, paths, retry_s=CONNECT_S / 2))
        self._report({"note": "in-kernel MPTCP path manager only: subflows' paths vary from run to run"})
        servers = {hosts[flow.dst]: flow.dst_ip for flow in self._flows}
        return stack.enter_context(SignalPathManager(refs, subflows, is_data, servers))

    def _driver(self, hosts: dict[str, HostRef], sampler: SocketSampler) -> Iperf3Driver:
        flows = [
            Iperf3Flow(f.flow, hosts[f.src], hosts[f.dst], f.src_ip, f.dst_ip, f.port, f.cport)
            for f in self._flows
        ]
        seconds = CONNECT_S + self._spec.warmup_s + self._spec.seconds + SLACK_S
        transport = self._spec.transport
        return Iperf3Driver(
            flows, sampler, self._raw, seconds=seconds, cc=transport.cc, mptcp=transport.subflows > 1
        )

    def _await_flows(
        self, driver: Iperf3Driver, meter: ReceiveMeter, watcher: MptcpWatcher | None, started_s: float
    ) -> list[float]:
        """Seconds until each flow's connection was seen at its receiver. Subflows that are still short at the
        deadline are left to the verdict; a flow without a connection ends the run."""
        deadline = started_s + CONNECT_S
        up_s: list[float | None] = [None] * len(self._flows)
        while None in up_s:
            now = time.monotonic()
            for i, received in enumerate(meter.sample()):
                if received is not None and up_s[i] is None:
                    up_s[i] = now - started_s
            driver.check()
            if None in up_s:
                if now > deadline:
                    missing = self._flows[up_s.index(None)]
                    raise DeadlineError(
                        f"{up_s.count(None)} of {len(up_s)} flows had no connection after {CONNECT_S:g} s, "
                        f"the first from {missing.src} to {missing.dst}"
                    )
                time.sleep(POLL_S)
        if watcher:
            watcher.wait_all(len(self._flows), max(0.0, deadline - time.monotonic()))
        return [seconds for seconds in up_s if seconds is not None]

    def _measure(self, flows: Running, hosts: dict[str, HostRef], up_s: Sequence[float]) -> Readings:
        """Warm-up, then the window between two readings of everything that only counts up."""
        clock = Sampling(flows)
        with self._phase("warm-up", self._spec.warmup_s, "warmup_s"):
            clock.sample_for(self._spec.warmup_s)
            check_progress(self._flows, clock.samples, STALL_S)
        with self._phase("measure", self._spec.seconds, "measure_s"):
            first = len(clock.samples) - 1
            start_s = clock.samples[first].t_s
            before, kernel = self._sockets(flows.sampler, hosts), netstat.read(list(hosts.values()))
            softnet = read_softnet()
            self._dataplane.restart_max_queues()
            opened, opened_s = self._dataplane.snapshot(), time.monotonic()
            clock.sample_for(self._spec.seconds - (time.monotonic() - start_s))
            closed, closed_s = self._dataplane.snapshot(), time.monotonic()
            dropped = (read_softnet() - softnet).dropped
            check_progress(self._flows, clock.samples[first:], clock.samples[-1].t_s - start_s)
            after, counted = self._sockets(flows.sampler, hosts), netstat.read(list(hosts.values()))
        return Readings(
            samples=clock.samples,
            opened_at=first,
            opened=opened,
            closed=closed,
            core_seconds=closed_s - opened_s,
            sockets_before=before,
            sockets_after=after,
            softnet_dropped=dropped,
            kernel=netstat.difference(kernel, counted),
            queues=self._dataplane.queue_samples() if self._spec.sampling.queues_ms else None,
            up_s=up_s,
        )

    def _sockets(self, sampler: SocketSampler, hosts: dict[str, HostRef]) -> list[list[TcpSocket]]:
        """Each flow's sockets at its sender."""
        found = {name: sampler.tcp(hosts[name]) for name in {flow.src for flow in self._flows}}
        return [sockets_of(flow, found[flow.src]) for flow in self._flows]

    def _provenance(
        self, sysctls: dict[str, str], connections: Sequence[ConnectionReport]
    ) -> dict[str, object]:
        errors = [f"{c.host}: {error}" for c in connections for error in c.errors]
        return {
            "sysctls": sysctls,
            "path_manager": mptcp_genl.support().level.value,
            "path_manager_errors": errors[:50],
            "fabric": {
                "quantum_us": self._tuning.quantum_us,
                "cpu": self._tuning.cpu,
                "priority": self._tuning.priority,
                "receive_cpus": receive_cpu_mask(self._tuning),
            },
        }

    @contextmanager
    def _phase(self, name: str, seconds: float, timing: str) -> Iterator[None]:
        self._report({"phase": name, "seconds": seconds})
        start = time.monotonic()
        yield
        self._timings[timing] = time.monotonic() - start


def _give_hosts_small_tcp_tables() -> None:
    """Hosts share the machine's TCP hash table otherwise, and every look at one host's sockets walks
    all of it (net/ipv4/inet_diag.c; Linux >= 6.1)."""
    entries = sysctl_path("net.ipv4.tcp_child_ehash_entries")
    if entries.exists():
        entries.write_text("1024")


def _last_up(
    flows: Sequence[PlannedFlow],
    up_s: Sequence[float],
    connections: Sequence[ConnectionReport],
    started_s: float,
) -> list[float]:
    """Seconds from the start of traffic until each flow's last subflow was up."""
    joined = {(c.path.laddr, c.path.lport): c.established_s + c.up_s - started_s for c in connections}
    return [joined.get((flow.src_ip, flow.cport), seconds) for flow, seconds in zip(flows, up_s, strict=True)]
