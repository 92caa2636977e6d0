"""One point inside its private namespaces: start network and flows, warm up, measure, collect."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import topos
from common.errors import RefabricError
from controllers.hashing import PROTO_TCP, FiveTuple
from engines import wire
from engines.emulation.congestion.agent import Agents, needed, started, with_agent
from engines.emulation.congestion.ranks import Programs, Wanted, on_interfaces
from engines.emulation.congestion.registration import BuiltIn, Registered, registered
from engines.emulation.dataplanes.control import (
    Controlling,
    KernelConnections,
    Ticking,
    bytes_sent,
    carried_out,
    controlling,
    ticking,
)
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.hosts.hosts import HostOptions, steer_ends, steer_hosts, steering_sysctls, sysctls_of
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.namespaces import HostRef, sysctl_path
from engines.emulation.measure import observing
from engines.emulation.measure.observing import Counted, Counting, Observing, Readings, Sample
from engines.emulation.measure.path_pings import PathPinger, PingReadings, decided, probes_for
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.measure.summarise import sample_parts, summarise
from engines.emulation.measure.verdict import saturated, silent_flows, stall_error, stalled_and_waiting
from engines.emulation.noise import stalling
from engines.emulation.path_manager import (
    ConnectionReport,
    MptcpWatcher,
    PathManager,
    SignalPathManager,
)
from engines.emulation.sandbox.inside import NOBODY, Caller, Inside
from engines.emulation.traffic.driver import TrafficDriver, default_cc, is_data, paths_of_each
from engines.emulation.traffic.iperf3 import Iperf3Traffic, prefer_congestion_control
from engines.emulation.traffic.native import NativeDriver, worth_reading
from engines.kernel_hosts import MINTCP, connect_s, route_metrics
from model.congestion import CONGESTION_CONTROLS
from model.flows import PlannedFlow, planned_flows
from model.network_plan import by_rank, port_rates_bps
from model.result import RunResult
from model.schedulers import Driver, application_of, loop_of, opens_subflows, scheduled
from model.spec import SENT, VIRTUAL, RunSpec

SLACK_S = 30.0
STALL_S = 10.0
"""A flow that delivers nothing for this long before the window will deliver nothing in it either."""


def run_point(inside: Inside) -> int:
    """Run the RunSpec of the request and report its result."""
    observing.go_first()
    relay.take(inside.given)
    spec = RunSpec.from_json(inside.request["spec"])
    result, samples = Point(spec, inside.raw, inside.report, inside.caller).run()
    for message in wire.messages(result, samples):
        inside.report(message)
    return 0


@dataclass(frozen=True)
class Running:
    """The flows of a running point, and the means to observe them."""

    traffic: TrafficDriver
    watcher: MptcpWatcher | None
    pinger: PathPinger | None
    observing: Observing
    counted: Counted


class Point:
    """One point: its network, flows and timings, which all stages share."""

    def __init__(
        self, spec: RunSpec, raw: Path, report: Callable[[object], None], caller: Caller = NOBODY
    ) -> None:
        self._spec = spec
        self._raw = raw
        self._report = report
        self._caller = caller
        self._topology = topos.build(spec.topology.kind, spec.topology.params)
        self._flows = planned_flows(spec, self._topology)
        self._connect_s = connect_s(len(self._flows), spec.transport.subflows)
        self._dataplane = DATAPLANES[spec.dataplane].make(spec, self._topology, raw, caller)
        self._cpus = self._dataplane.cpus
        self._timings: dict[str, float] = {}
        self._agent: Agents | None = None

    def run(self) -> tuple[RunResult, wire.Parts]:
        """Run all stages in order; return the result and its sample tables, which are made as they are read.

        Raises RefabricError if the point gives no number.
        """
        _give_hosts_small_tcp_tables()
        ranked = by_rank(self._spec.link.discipline)
        metrics = route_metrics(self._spec.stack)
        options = HostOptions(sysctls=self._sysctls(), metrics=metrics, single_segments=ranked)
        with ExitStack() as stack:
            congestion = self._congestion(stack)
            with self._phase("network", 1.0, "setup_s"):
                net = stack.enter_context(FabricNet(self._topology, self._dataplane, options))
                stack.enter_context(self._data_plane_first())
                hosts = {host.name: host for host in net.host_refs()}
                congestion.admit(hosts.values())
                steer_hosts([host.pid for host in hosts.values()], self._cpus)
                steer_ends(self._cpus.core_mask)
            with self._phase("connect", 3.0, "connect_s"):
                watcher = self._watcher(stack, hosts)
                prefer_congestion_control({hosts[name]: cc for name, cc in default_cc(self._flows).items()})
                programs = stack.enter_context(on_interfaces(self._wanted(), hosts, self._topology))
                traffic = stack.enter_context(self._traffic(hosts, programs))
                started_s, up_s = self._connect(traffic, watcher)
                running = self._look(stack, hosts, traffic, watcher, congestion)
            connections = watcher.reports() if watcher else ()
            last_up_s = _last_up(self._flows, up_s, connections, started_s)
            events = carried_out(self._spec.events, self._dataplane)
            with events, self._controlled(hosts, watcher) as scheduler, stalling(self._spec) as stalls:
                readings = self._measure(running, last_up_s, scheduler)
            connections = watcher.reports() if watcher else ()
            with self._phase("collect", 2.0, "collect_s"):
                delivered = traffic.stop()
                programs.check()
                ranks = programs.counts()
            account = self._agent.stop() if self._agent else None
        provenance = {**self._provenance(net.sysctls, connections), **ranks}
        result = summarise(
            self._spec, self._topology, self._flows, readings, delivered, self._timings, provenance
        )
        result = dataclasses.replace(result, metrics={**result.metrics, **stalls.metrics})
        samples = sample_parts(readings, port_rates_bps(self._topology, self._spec.link))
        return with_agent(result, account) if account else result, samples

    def _congestion(self, stack: ExitStack) -> Registered | BuiltIn | Agents:
        """Register refabric's congestion controls, unless the kernel was built with them."""
        ours = _ours(self._flows)
        if needed(self._spec):
            self._agent = started(self._spec, self._caller.user)
            stack.callback(self._agent.close)
            return self._agent
        settings = {MINTCP: self._spec.stack.max_window} if MINTCP in ours else {}
        if self._spec.clock == VIRTUAL:
            return BuiltIn(ours, settings)
        return stack.enter_context(registered(ours, settings))

    def _sysctls(self) -> dict[str, str]:
        needed = sysctls_of(self._spec, self._topology, self._flows)
        ours = {**needed, **steering_sysctls(self._cpus.receive_mask)}
        return {**ours, **self._spec.transport.sysctls}

    def _watcher(self, stack: ExitStack, hosts: dict[str, HostRef]) -> MptcpWatcher | None:
        """Start the path manager that this kernel supports, before any MPTCP socket; None for TCP."""
        subflows = self._spec.transport.subflows
        if subflows == 1:
            return None
        refs = list(hosts.values())
        if mptcp_genl.support().level is mptcp_genl.PathManagement.USERSPACE:
            paths = paths_of_each(self._topology, self._flows)
            retry_s = self._connect_s / 2
            late = self._spec.transport.joins_late or opens_subflows(self._spec)
            return stack.enter_context(PathManager(refs, subflows, is_data, paths, retry_s, late))
        self._report({"note": "in-kernel MPTCP path manager only: subflows' paths differ between runs"})
        servers = {hosts[flow.dst]: flow.dst_ip for flow in self._flows}
        return stack.enter_context(SignalPathManager(refs, subflows, is_data, servers))

    def _wanted(self) -> Wanted:
        ranks = by_rank(self._spec.link.discipline)
        return Wanted(ranks, any(flow.cc == MINTCP for flow in self._flows))

    def _traffic(self, hosts: dict[str, HostRef], programs: Programs) -> TrafficDriver:
        write_bytes = self._spec.transport.write_bytes
        if self._spec.traffic == "native":
            read_bytes = worth_reading(self._spec.link.rate_mbps)
            cpu = self._cpus.helper
            return NativeDriver(
                self._flows,
                hosts,
                cpu=cpu,
                write_bytes=write_bytes,
                read_bytes=read_bytes,
                sizes_map=programs.sizes_map,
                rank_by_sent=self._spec.stack.rank == SENT,
            )
        seconds = self._connect_s + self._spec.warmup_s + self._spec.seconds + SLACK_S
        return Iperf3Traffic(self._flows, hosts, self._raw, seconds=seconds, write_bytes=write_bytes)

    def _connect(self, traffic: TrafficDriver, watcher: MptcpWatcher | None) -> tuple[float, list[float]]:
        """Connect all flows; return when this began, and each flow's seconds until it was established.

        If subflows are missing at the deadline, the verdict reports it.
        """
        traffic.open()
        started_s = time.monotonic()
        traffic.connect(self._connect_s)
        if watcher:
            mptcp = sum(flow.mptcp for flow in self._flows)
            watcher.wait_all(mptcp, max(0.0, started_s + self._connect_s - time.monotonic()))
        traffic.release()
        if isinstance(watcher, PathManager) and self._spec.transport.joins_late:
            zero_s = time.monotonic() + self._spec.transport.join_after_ms / 1000
            watcher.join_at({(f.src_ip, f.cport): zero_s + f.start_s for f in self._flows if f.mptcp})
        return started_s, traffic.up_s()

    def _look(
        self,
        stack: ExitStack,
        hosts: dict[str, HostRef],
        traffic: TrafficDriver,
        watcher: MptcpWatcher | None,
        congestion: Counting,
    ) -> Running:
        """Start everything that samples."""
        refs = list(hosts.values())
        table = stack.enter_context(SocketTable(refs, self._flows))
        sampling = self._spec.sampling
        watch = Observing(traffic, self._dataplane, table, sampling.sockets_ms / 1000)
        pinger = None
        if sampling.pings_ms and self._dataplane.foretells_paths:
            probes = probes_for(self._spec, self._topology, self._flows, table.read())
            pinger = stack.enter_context(PathPinger(probes, hosts, sampling.pings_ms, cpu=self._cpus.helper))
            pinger.start()
        counted = Counted(self._dataplane, refs, table, congestion)
        return Running(traffic, watcher, pinger, watch, counted)

    @contextmanager
    def _controlled(
        self, hosts: dict[str, HostRef], watcher: MptcpWatcher | None
    ) -> Iterator[Ticking | Controlling | None]:
        """Run the spec's central controller, if there is one, from the start of the warm-up."""
        if not opens_subflows(self._spec):
            with self._scheduled(hosts) as clock:
                yield clock
            return
        manager = watcher if isinstance(watcher, PathManager) else None
        look_ns = round(self._spec.scheduler.interval_ms * 1e6)
        loop = loop_of(self._spec, self._topology, look_ns=look_ns)
        with (
            SocketTable(list(hosts.values()), self._flows) as table,
            self._dataplane.network(self._spec, dict) as paths,
        ):
            network = KernelConnections(self._topology, self._flows, table, paths, manager)
            with controlling(loop, network) as control:
                yield control

    @contextmanager
    def _scheduled(self, hosts: dict[str, HostRef]) -> Iterator[Ticking | None]:
        """Run the spec's scheduler, if there is one, from the start of the warm-up."""
        if not scheduled(self._spec):
            yield None
            return
        with SocketTable(list(hosts.values()), self._flows) as table:
            octets = bytes_sent(table, self._flows)
            with self._dataplane.network(self._spec, octets) as network:
                application = application_of(self._spec, self._topology)
                driver = Driver(application, network, len(self._topology.switches))
                with ticking(driver, self._spec.scheduler.interval_ms) as clock:
                    yield clock

    def _measure(
        self, running: Running, up_s: Sequence[float], scheduler: Ticking | Controlling | None
    ) -> Readings:
        """Warm up, then measure between two readings of all cumulative counters."""
        watch = running.observing
        follow = self._warm_up(watch)
        with self._phase("measure", self._spec.seconds, "measure_s"):
            totals = running.counted.while_running(lambda: watch.observe_window(self._spec.seconds, follow))
            follow()
        window = watch.samples[watch.opened_at :]
        silent = self._silent(window, window[-1].t_s - window[0].t_s)
        acked_bytes = totals.after.acked_since(totals.before, len(self._flows))
        stalled, waiting = stalled_and_waiting(silent, acked_bytes.tolist())
        return Readings(
            samples=watch.samples,
            opened_at=watch.opened_at,
            sockets=watch.sockets,
            totals=totals,
            queues=self._dataplane.queue_samples() if self._spec.sampling.queues_ms else None,
            pings=_pings(running.pinger),
            up_s=up_s,
            started_s=running.traffic.started_s(),
            completed_s=running.traffic.completed_s(),
            retransmitted=running.traffic.retransmitted(),
            opened_subflows=_opened(self._flows, running.watcher.reports() if running.watcher else ()),
            acked_bytes=acked_bytes,
            stalled=stalled,
            waiting=waiting,
            scheduler=scheduler.metrics if scheduler else {},
            granted=self._granted(scheduler, totals.opened_s) if isinstance(scheduler, Controlling) else None,
        )

    def _warm_up(self, watch: Observing) -> Callable[[], None]:
        """Warm up; return a function that shows the last sample to followers of the run."""
        with self._phase("warm-up", self._spec.warmup_s, "warmup_s"):
            watch.sample()
            follow = self._following(watch, time.monotonic() + self._spec.warmup_s)
            watch.observe_for(self._spec.warmup_s, follow)
            self._check_warm(watch)
            follow()
        return follow

    def _following(self, watch: Observing, opens_s: float) -> Callable[[], None]:
        """Return a function that shows the last sample to followers of the run. It runs without followers
        too, so that a guest does the same in both cases."""
        return lambda: self._report({"instant": watch.instant(opens_s).to_json()})

    def _granted(self, control: Controlling, before_s: float) -> list[int]:
        """Return how many subflows each flow had been granted at a monotonic time, at least one."""
        granted = control.subflows(before_s)
        firsts = (FiveTuple(f.src_ip, f.dst_ip, PROTO_TCP, f.cport, f.port) for f in self._flows)
        return [granted.get(first, 1) for first in firsts]

    def _silent(self, samples: Sequence[Sample], seconds: float) -> list[int]:
        """Return silent flows; none if links fail, because flows then may deliver nothing."""
        return [] if self._spec.events else silent_flows(self._flows, samples, seconds, self._spec.link)

    def _check_warm(self, watch: Observing) -> None:
        """Raise StalledFlowError if a flow stands still on an idle machine; it would not recover.

        This needs samples of subflows; without them a waiting flow looks the same.
        """
        silent = self._silent(watch.samples, STALL_S)
        earlier = [look for look in watch.sockets if look.t_s <= watch.samples[-1].t_s - STALL_S]
        if not silent or not earlier:
            return
        acked = watch.sockets[-1].acked_since(earlier[-1], len(self._flows))
        stalled, _ = stalled_and_waiting(silent, acked.tolist())
        if stalled and not saturated([sample.cpu.machine.busy_pct for sample in watch.samples[1:]]):
            raise stall_error(self._flows, stalled, STALL_S)

    def _provenance(
        self, sysctls: dict[str, str], connections: Sequence[ConnectionReport]
    ) -> dict[str, object]:
        errors = [f"{c.host}: {error}" for c in connections for error in c.errors]
        return {
            "sysctls": sysctls,
            "path_manager": mptcp_genl.support().level.value,
            "path_manager_errors": errors[:50],
            **self._dataplane.provenance(),
        }

    @contextmanager
    def _data_plane_first(self) -> Iterator[None]:
        """Report the death of the data plane instead of the errors that it causes."""
        try:
            yield
        except RefabricError:
            self._dataplane.check()
            raise

    @contextmanager
    def _phase(self, name: str, seconds: float, timing: str) -> Iterator[None]:
        self._report({"phase": name, "seconds": seconds})
        start = time.monotonic()
        yield
        self._timings[timing] = time.monotonic() - start


def _ours(flows: Sequence[PlannedFlow]) -> set[str]:
    """Return the congestion controls that must be registered for these flows."""
    return {
        cc for cc in {flow.cc for flow in flows} & CONGESTION_CONTROLS.keys() if CONGESTION_CONTROLS[cc].bpf
    }


def _pings(pinger: PathPinger | None) -> PingReadings | None:
    return None if pinger is None else decided(pinger.take(final=True), time.monotonic())


def _give_hosts_small_tcp_tables() -> None:
    """Give hosts their own small TCP hash tables (Linux >= 6.1).

    Otherwise hosts share the machine's table, and reading one host's sockets walks all of it
    (net/ipv4/inet_diag.c).
    """
    entries = sysctl_path("net.ipv4.tcp_child_ehash_entries")
    if entries.exists():
        entries.write_text("1024")


def _opened(flows: Sequence[PlannedFlow], connections: Sequence[ConnectionReport]) -> list[int]:
    """Return for each flow the number of subflows that were ever established."""
    opened = {(c.path.laddr, c.path.lport): len(c.subflows) for c in connections}
    return [opened.get((flow.src_ip, flow.cport), 0) for flow in flows]


def _last_up(
    flows: Sequence[PlannedFlow],
    up_s: Sequence[float],
    connections: Sequence[ConnectionReport],
    started_s: float,
) -> list[float]:
    """Return seconds from the start of traffic until each flow's last subflow was established."""
    joined = {(c.path.laddr, c.path.lport): c.established_s + c.up_s - started_s for c in connections}
    return [joined.get((flow.src_ip, flow.cport), seconds) for flow, seconds in zip(flows, up_s, strict=True)]
