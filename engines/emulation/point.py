"""One point inside its private namespaces: start network and flows, warm up, measure, collect."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import chain
from pathlib import Path

from common.errors import RefabricError
from controllers.hashing import PROTO_TCP, FiveTuple
from engines import app, wire
from engines.emulation.app import SYSCTLS, AppRun
from engines.emulation.congestion.agent import Agents, installed, with_agent
from engines.emulation.congestion.ranks import HIDE_SACKS, STAMP, RankPrograms, on_interfaces
from engines.emulation.congestion.registration import BuiltIn, Registered
from engines.emulation.dataplanes.control import (
    KernelConnections,
    LinkEvents,
    LoopClock,
    SchedulerClock,
    bytes_sent,
)
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.hosts.hosts import HostOptions, steer_ends, steer_hosts, steering_sysctls, sysctls_of
from engines.emulation.hosts.network import FabricNet
from engines.emulation.hosts.processes import go_first
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.namespaces import HostRef, sysctl_path
from engines.emulation.measure.observing import Readings, Sample, Sampler
from engines.emulation.measure.path_pings import PathPinger, decided, probes_for
from engines.emulation.measure.socket_table import SocketTable
from engines.emulation.measure.summarise import sample_parts, summarise
from engines.emulation.measure.verdict import saturated, silent_flows, stall_error, stalled_and_waiting
from engines.emulation.noise import stalling
from engines.emulation.path_manager import (
    MptcpConnection,
    MptcpWatcher,
    PathManager,
    signal_path_manager,
)
from engines.emulation.sandbox.inside import NOBODY, Caller, Inside
from engines.emulation.traffic.driver import TrafficDriver, any_port, default_cc, is_data, paths_of_each
from engines.emulation.traffic.iperf3 import Iperf3Traffic, mptcp_library, prefer_congestion_control
from engines.emulation.traffic.native import NativeDriver, worth_reading
from engines.kernel_hosts import MINTCP, connect_s, route_metrics
from model.congestion import in_force, kernel_name
from model.flows import PlannedFlow, planned_flows
from model.network_plan import by_rank, port_rates_bps
from model.result import RunResult
from model.schedulers import Driver, application_of, loop_of, opens_subflows, scheduled
from model.spec import SENT, RunSpec

SLACK_S = 30.0
STALL_S = 10.0
"""A flow that delivers nothing for this long before the window will deliver nothing in it either."""


def run_point(inside: Inside) -> int:
    """Run the RunSpec of the request and report its result."""
    go_first()
    relay.take(inside.given)
    spec = RunSpec.from_json(inside.request["spec"])
    result, samples = EmulatedPoint(spec, inside.raw, inside.report, inside.caller).run()
    for message in wire.messages(result, samples):
        inside.report(message)
    return 0


class EmulatedPoint:
    """One point: its network, flows and timings, which all stages share."""

    def __init__(
        self, spec: RunSpec, raw: Path, report: Callable[[object], None], caller: Caller = NOBODY
    ) -> None:
        self._spec = spec
        self._raw = raw
        self._report = report
        self._caller = caller
        self._topology = spec.network()
        self._flows = planned_flows(spec, self._topology)
        self._app = app.app_of(spec)
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
        timeouts_alone = any(flow.cc == MINTCP for flow in self._flows)
        wanted = [STAMP] * ranked + [HIDE_SACKS] * timeouts_alone
        metrics = route_metrics(self._spec.stack)
        options = HostOptions(sysctls=self._sysctls(), metrics=metrics, single_segments=ranked)
        with ExitStack() as stack:
            ccs = app.congestion_controls(self._spec, self._flows)
            congestion, self._agent = installed(self._spec, ccs, self._caller.user, stack)
            with self._phase("network", 1.0, "setup_s"):
                net = stack.enter_context(FabricNet(self._topology, self._dataplane, options))
                stack.enter_context(self._data_plane_first())
                hosts = {host.name: host for host in net.host_refs()}
                congestion.admit(hosts.values())
                steer_hosts([host.pid for host in hosts.values()], self._cpus)
                steer_ends(self._cpus.core_mask)
            with self._phase("connect", 3.0, "connect_s"):
                watcher = self._watcher(stack, hosts)
                usual = self._usual_cc(hosts) | default_cc(self._flows)
                prefer_congestion_control({hosts[name]: cc for name, cc in usual.items()})
                programs = stack.enter_context(on_interfaces(wanted, hosts, self._topology))
                traffic = stack.enter_context(self._traffic(hosts, programs))
                started_s, up_s = self._connect(traffic, watcher)
            own = self._programs(stack, hosts)
            sampler, pinger = self._samplers(stack, hosts, traffic, congestion, own)
            connections = watcher.reports() if watcher else ()
            last_up_s = _last_up(self._flows, up_s, connections, started_s)
            links = LinkEvents(self._dataplane.changes(self._spec)) if self._spec.events else nullcontext()
            with links, self._controlled(hosts, watcher) as scheduler, stalling(self._spec) as stalls:
                readings = self._measure(sampler, pinger, traffic, watcher, last_up_s, scheduler, own)
            connections = watcher.reports() if watcher else ()
            with self._phase("collect", 2.0, "collect_s"):
                found = own.stop() if own else None
                delivered = traffic.stop()
                programs.check()
                ranks = programs.counts()
            account = self._agent.stop() if self._agent else None
        provenance = {**self._provenance(net.sysctls, connections), **ranks}
        result = summarise(
            self._spec, self._topology, self._flows, readings, delivered, self._timings, provenance
        )
        result = dataclasses.replace(result, metrics={**result.metrics, **stalls})
        samples = sample_parts(readings, port_rates_bps(self._topology, self._spec.link))
        if found:
            result = dataclasses.replace(result, metrics={**result.metrics, **found[1]})
            samples = chain(samples, found[0].items())
        return with_agent(result, account) if account else result, samples

    def _sysctls(self) -> dict[str, str]:
        needed = sysctls_of(self._spec, self._topology, self._flows)
        ours = {**needed, **steering_sysctls(self._cpus.receive_mask)}
        programs = SYSCTLS if self._app else {}
        return {**ours, **programs, **self._spec.transport.sysctls}

    def _usual_cc(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the congestion control of programs' connections by host, by the kernel's name."""
        transport = self._spec.transport
        cc = kernel_name(in_force(transport.cc, transport.subflows))
        return dict.fromkeys(hosts, cc) if self._app else {}

    def _programs(self, stack: ExitStack, hosts: dict[str, HostRef]) -> AppRun | None:
        """Start the programs that must be ready before traffic; None where hosts run flows alone."""
        if self._app is None:
            return None
        setting = app.setting_of(self._spec, self._topology)
        preload = str(mptcp_library()) if self._spec.transport.subflows > 1 else ""
        with self._phase("programs", 1.0, "programs_s"):
            own = stack.enter_context(AppRun(self._app, setting, hosts, self._caller, self._raw, preload))
            own.make_ready()
        return own

    def _watcher(self, stack: ExitStack, hosts: dict[str, HostRef]) -> MptcpWatcher | None:
        """Start the path manager that this kernel supports, before any MPTCP socket; None for TCP."""
        subflows = self._spec.transport.subflows
        if subflows == 1:
            return None
        refs, accept = list(hosts.values()), any_port if self._app else is_data
        if mptcp_genl.support().level is mptcp_genl.PathManagement.USERSPACE:
            paths = paths_of_each(self._topology, self._flows, subflows)
            retry_s = self._connect_s / 2
            late = self._spec.transport.joins_late or opens_subflows(self._spec)
            return stack.enter_context(PathManager(refs, subflows, accept, paths, retry_s, late))
        self._report({"note": "in-kernel MPTCP path manager only: subflows' paths differ between runs"})
        servers = {hosts[flow.dst]: flow.dst_ip for flow in self._flows}
        if self._app:
            servers = {
                hosts[name]: ip for name, ip in app.setting_of(self._spec, self._topology).addresses.items()
            }
        return stack.enter_context(signal_path_manager(refs, subflows, accept, servers))

    def _traffic(self, hosts: dict[str, HostRef], programs: RankPrograms) -> TrafficDriver:
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

    def _samplers(
        self,
        stack: ExitStack,
        hosts: dict[str, HostRef],
        traffic: TrafficDriver,
        congestion: Registered | BuiltIn | Agents,
        own: AppRun | None,
    ) -> tuple[Sampler, PathPinger | None]:
        """Start everything that samples."""
        refs = list(hosts.values())
        table = stack.enter_context(SocketTable(refs, self._flows))
        sampling = self._spec.sampling
        sockets_s = sampling.sockets_ms / 1000
        sampler = Sampler(traffic, self._dataplane, refs, table, congestion.counts, sockets_s, own)
        if not (sampling.pings_ms and self._dataplane.foretells_paths):
            return sampler, None
        probes = probes_for(self._spec, self._topology, self._flows, table.read())
        pinger = stack.enter_context(PathPinger(probes, hosts, sampling.pings_ms, cpu=self._cpus.helper))
        pinger.start()
        return sampler, pinger

    @contextmanager
    def _controlled(
        self, hosts: dict[str, HostRef], watcher: MptcpWatcher | None
    ) -> Iterator[SchedulerClock | LoopClock | None]:
        """Run the spec's central controller, if there is one, from the start of the warm-up."""
        opens = opens_subflows(self._spec)
        if not opens and not scheduled(self._spec):
            yield None
            return
        interval_ms = self._spec.scheduler.interval_ms
        with SocketTable(list(hosts.values()), self._flows) as table:
            octets = dict if opens else bytes_sent(table, self._flows)
            with self._dataplane.network(self._spec, octets) as network, ExitStack() as stack:
                if opens:
                    loop = loop_of(self._spec, self._topology, look_ns=round(interval_ms * 1e6))
                    manager = watcher if isinstance(watcher, PathManager) else None
                    connections = KernelConnections(self._topology, self._flows, table, network, manager)
                    yield stack.enter_context(LoopClock(loop, connections))
                    return
                application = application_of(self._spec, self._topology)
                driver = Driver(application, network, len(self._topology.switches))
                yield stack.enter_context(SchedulerClock(driver, interval_ms))

    def _measure(
        self,
        sampler: Sampler,
        pinger: PathPinger | None,
        traffic: TrafficDriver,
        watcher: MptcpWatcher | None,
        up_s: Sequence[float],
        scheduler: SchedulerClock | LoopClock | None,
        own: AppRun | None,
    ) -> Readings:
        """Warm up, then measure between two readings of all cumulative counters."""
        with self._phase("warm-up", self._spec.warmup_s, "warmup_s"):
            sampler.sample()
            opens_s = time.monotonic() + self._spec.warmup_s
            if own:
                own.open(opens_s)

            def follow() -> None:
                """Show the last sample to followers of the run; without followers too, so that a guest does
                the same in both cases."""
                self._report({"instant": sampler.instant(opens_s).to_json()})

            sampler.observe_for(self._spec.warmup_s, follow)
            self._check_warm(sampler)
            follow()
        with self._phase("measure", self._spec.seconds, "measure_s"):
            totals = sampler.measure(self._spec.seconds, follow)
            follow()
        window = sampler.samples[sampler.opened_at :]
        silent = self._silent(window, window[-1].t_s - window[0].t_s)
        acked_bytes = totals.after.acked_since(totals.before, len(self._flows))
        stalled, waiting = stalled_and_waiting(silent, acked_bytes.tolist())
        connections = watcher.reports() if watcher else ()
        opened = {(c.path.laddr, c.path.lport): len(c.ever) for c in connections}
        return Readings(
            samples=sampler.samples,
            opened_at=sampler.opened_at,
            sockets=sampler.sockets,
            totals=totals,
            queues=self._dataplane.queue_samples() if self._spec.sampling.queues_ms else None,
            pings=decided(pinger.take(final=True), time.monotonic()) if pinger else None,
            up_s=up_s,
            started_s=traffic.started_s(),
            completed_s=traffic.completed_s(),
            retransmitted=traffic.retransmitted(),
            opened_subflows=[opened.get((flow.src_ip, flow.cport), 0) for flow in self._flows],
            acked_bytes=acked_bytes,
            stalled=stalled,
            waiting=waiting,
            scheduler=scheduler.metrics if scheduler else {},
            granted=self._granted(scheduler, totals.opened_s) if isinstance(scheduler, LoopClock) else None,
        )

    def _granted(self, control: LoopClock, before_s: float) -> list[int]:
        """Return how many subflows each flow had been granted at a monotonic time, at least one."""
        granted = control.subflows(before_s)
        firsts = (FiveTuple(f.src_ip, f.dst_ip, PROTO_TCP, f.cport, f.port) for f in self._flows)
        return [granted.get(first, 1) for first in firsts]

    def _silent(self, samples: Sequence[Sample], seconds: float) -> list[int]:
        """Return silent flows; none if links fail, because flows then may deliver nothing."""
        return [] if self._spec.events else silent_flows(self._flows, samples, seconds, self._spec.link)

    def _check_warm(self, sampler: Sampler) -> None:
        """Raise StalledFlowError if a flow stands still on an idle machine; it would not recover.

        This needs samples of subflows; without them a waiting flow looks the same.
        """
        silent = self._silent(sampler.samples, STALL_S)
        earlier = [look for look in sampler.sockets if look.t_s <= sampler.samples[-1].t_s - STALL_S]
        if not silent or not earlier:
            return
        acked = sampler.sockets[-1].acked_since(earlier[-1], len(self._flows))
        stalled, _ = stalled_and_waiting(silent, acked.tolist())
        if stalled and not saturated([sample.cpu.machine.busy_pct for sample in sampler.samples[1:]]):
            raise stall_error(self._flows, stalled, STALL_S)

    def _provenance(
        self, sysctls: dict[str, str], connections: Sequence[MptcpConnection]
    ) -> dict[str, object]:
        errors = [f"{c.host.name}: {error}" for c in connections for error in c.errors]
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


def _give_hosts_small_tcp_tables() -> None:
    """Give hosts their own small TCP hash tables (Linux >= 6.1).

    Otherwise hosts share the machine's table, and reading one host's sockets walks all of it
    (net/ipv4/inet_diag.c).
    """
    entries = sysctl_path("net.ipv4.tcp_child_ehash_entries")
    if entries.exists():
        entries.write_text("1024")


def _last_up(
    flows: Sequence[PlannedFlow],
    up_s: Sequence[float],
    connections: Sequence[MptcpConnection],
    started_s: float,
) -> list[float]:
    """Return seconds from the start of traffic until each flow's last subflow was established."""
    joined = {(c.path.laddr, c.path.lport): c.established_s + c.up_s - started_s for c in connections}
    return [joined.get((flow.src_ip, flow.cport), seconds) for flow, seconds in zip(flows, up_s, strict=True)]
