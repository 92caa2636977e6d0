"""The emulation engine: runs one RunSpec at a time, in private namespaces."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import topos
from common.errors import HostUnfitError, RunError, StalledFlowError, UsageError
from engines.emulation.congestion import support as bpf
from engines.emulation.dataplanes.registry import DATAPLANES
from engines.emulation.kernel.netns import sysctl_path
from engines.emulation.measure.tool_versions import tools
from engines.emulation.mptcp import mptcp_genl
from engines.emulation.mptcp.path_manager_inkernel import MAX_EXTRA_SUBFLOWS
from engines.emulation.sandbox import wire
from engines.emulation.sandbox.isolation import require_root, spawn_inside
from engines.emulation.sandbox.lock import emulation_lock
from engines.emulation.traffic.demands import connect_s
from engines.emulation.traffic.iperf3 import iperf3_program, mptcp_library
from engines.emulation.verdict import purposeful_stalls
from engines.engine import Observer
from engines.provenance import machine, revision
from model import tuning
from model.congestion import BASELINE, CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.flows import PlannedFlow, check_ports, planned_flows
from model.link_events import check_events
from model.network_plan import check_discipline
from model.result import RunResult
from model.schedulers import check_scheduler, scheduled, scheduler_words
from model.spec import HOST_QUEUES, RunSpec, StackSpec, stack_words
from topos import Topology

DEADLINE_SLACK_S = 180.0
UNKEPT = Path("/tmp")
"""Value of `raw` if tool output is not needed: the run's private /tmp, which ends with it (inside.py)."""
ATTEMPTS = 3
TRAFFIC = ("iperf3", "native")
MAX_IPERF3_FLOWS = 1000


class MininetEngine:
    """An Engine with real Linux hosts and one of DATAPLANES between them."""

    name = "mininet"
    parallel = 1

    def __init__(self) -> None:
        self._lock = ExitStack()
        self._locked = False

    def close(self) -> None:
        """Release the machine's emulation lock. The end of the process releases it too."""
        self._lock.close()
        self._locked = False

    def check(self, spec: RunSpec) -> None:
        """Raise UsageError for a spec this engine does not support, HostUnfitError for an unfit machine.

        Takes and keeps the machine's emulation lock; BusyError names the process that holds it.
        """
        plane = DATAPLANES.get(spec.dataplane)
        if plane is None:
            known = " or ".join(DATAPLANES)
            raise UsageError(f"data plane '{spec.dataplane}' is not available: choose --dataplane {known}")
        if spec.traffic not in TRAFFIC:
            raise UsageError(
                f"traffic '{spec.traffic}' is not available: choose --traffic {' or '.join(TRAFFIC)}"
            )
        topology = topos.build(spec.topology.kind, spec.topology.params)
        _check_network(spec, topology)
        plane.check(spec, topology)
        if spec.stack != StackSpec():
            raise UsageError(
                f"stack {stack_words(spec.stack)}: real hosts use their kernel's stack (see --sysctl); "
                "choose --engine simulator"
            )
        flows = planned_flows(spec, topology)
        _check_flows(spec, flows)
        _check_joins(spec)
        purposeful_stalls.check(spec)
        _check_emulated({flow.cc for flow in flows})
        check_sysctls(spec.transport.sysctls)
        require_root("refabric run ... (or ./run_mptcp.sh ...)")
        plane.check_machine(spec)
        for cc in {flow.cc for flow in flows}:
            _check_congestion_control(cc)
        if spec.traffic == "iperf3":
            iperf3_program()
        if spec.transport.subflows > 1:
            _check_mptcp(spec, flows)
        self._take_machine()

    def memory_mb(self, spec: RunSpec) -> float:
        """See `Engine.memory_mb`."""
        del spec
        return 0.0

    def coupled_cc(self) -> tuple[str, str]:
        """See `Engine.coupled_cc`."""
        found = bpf.support()
        return (COUPLED_DEFAULT, "") if found.ok else (BASELINE, found.text)

    def expected_s(self, spec: RunSpec) -> float:
        """Return the time of traffic plus start, connection and collection (about 2 s + 12 ms per host)."""
        hosts = len(topos.build(spec.topology.kind, spec.topology.params).hosts)
        return spec.warmup_s + spec.seconds + 2.0 + 0.012 * hosts

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`. A point with a stalled connection is repeated, up to `ATTEMPTS` times in total;
        the result's provenance lists the failed attempts."""
        stalled: list[str] = []
        while True:
            try:
                result = self._attempt(spec, observer, raw)
            except StalledFlowError as error:
                stalled.append(str(error))
                if len(stalled) == ATTEMPTS:
                    raise
                observer.note(f"{error}; trying again")
                continue
            where = {**_origin(), **result.provenance, "stalled_attempts": stalled}
            return dataclasses.replace(result, provenance=where)

    def _attempt(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        results: list[RunResult] = []

        def hear(message: dict[str, Any]) -> None:
            if "phase" in message:
                observer.phase(message["phase"], message["seconds"])
            elif "note" in message:
                observer.note(message["note"])
            else:
                results.append(wire.decode(message["result"]))

        self._take_machine()
        spawn_inside(
            "engines.emulation.point:run_point",
            {"spec": spec.to_json(), "raw": str(raw.resolve())},
            deadline_s=spec.warmup_s + spec.seconds + _slack_s(spec),
            on_report=hear,
            keep=[raw],
        )
        if not results:
            raise RunError("running the emulation: it ended without a result; run the point again")
        return results[0]

    def _take_machine(self) -> None:
        if not self._locked:
            self._lock.enter_context(emulation_lock())
            self._locked = True


def _slack_s(spec: RunSpec) -> float:
    """Return the time allowed beyond warm-up and window, for connecting on a saturated machine."""
    flows = planned_flows(spec, topos.build(spec.topology.kind, spec.topology.params))
    return connect_s(len(flows), spec.transport.subflows) + DEADLINE_SLACK_S


@functools.cache
def _origin() -> dict[str, Any]:
    return {**machine(), "tools": tools(), "revision": revision()}


def check_sysctls(names: Iterable[str]) -> None:
    """Raise UsageError for a sysctl that this kernel does not have."""
    for name in names:
        if not sysctl_path(name).is_file():
            raise UsageError(f"--sysctl {name}: this kernel has no such sysctl; `sysctl -a` lists all")


def _check_emulated(ccs: Iterable[str]) -> None:
    for cc in ccs:
        if cc in CONGESTION_CONTROLS and not CONGESTION_CONTROLS[cc].emulated:
            raise UsageError(f"congestion control {cc}: no kernel has it; choose --engine simulator")


def _check_congestion_control(cc: str) -> None:
    if cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf:
        found = bpf.support()
        if not found.ok:
            raise HostUnfitError(f"congestion control {cc}: {found.text}, or choose --cc {BASELINE}")
        return
    available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split()
    if cc not in available:
        raise HostUnfitError(
            f"congestion control {cc} is not in this kernel (it has: {', '.join(available)}); "
            f"choose one of those with --cc, or run: modprobe tcp_{cc}"
        )


def check_hosts(topology: Topology) -> None:
    """Raise UsageError for a topology whose hosts forward packets."""
    if topology.hosts_forward:
        raise UsageError(
            f"topology {topology.kind}: emulated hosts do not forward packets; use --engine simulator"
        )


def _check_network(spec: RunSpec, topology: Topology) -> None:
    check_hosts(topology)
    check_events(spec, topology)
    check_scheduler(spec, topology)
    if scheduled(spec) and spec.scheduler.ideal:
        raise UsageError(
            f"--scheduler {scheduler_words(spec.scheduler)}: an ideal scheduler must know when flows begin, "
            f"which real hosts do not report; give an interval, e.g. {spec.scheduler.name}:100, or choose "
            "--engine simulator"
        )
    if spec.routing == "valiant":
        raise UsageError("routing 'valiant': pings cannot follow its paths; choose --engine simulator")
    if spec.link.host_queue not in HOST_QUEUES:
        raise UsageError(f"host queue '{spec.link.host_queue}': choose {' or '.join(HOST_QUEUES)}")
    check_discipline(spec.link)


def _check_flows(spec: RunSpec, flows: Sequence[PlannedFlow]) -> None:
    check_ports(flows)
    if any(flow.rate_mbps for flow in flows):
        raise UsageError(
            f"workload {spec.workload.matrix}: real hosts cannot send at a constant rate yet; choose "
            "--engine simulator"
        )
    if spec.traffic != "iperf3":
        return
    if len(flows) > MAX_IPERF3_FLOWS:
        raise UsageError(
            f"{len(flows)} flows need two iperf3 processes each; the tested limit is {MAX_IPERF3_FLOWS} "
            "flows: choose --traffic native, which uses one process for all"
        )
    if any(flow.size_bytes or flow.start_s for flow in flows):
        raise UsageError("iperf3 does not support flow sizes or start times: choose --traffic native")


def _check_joins(spec: RunSpec) -> None:
    transport = spec.transport
    if not transport.joins_late:
        return
    if transport.join_after_bytes:
        raise UsageError(
            f"subflows that join {tuning.joins(transport)}: the kernel has no event for acknowledged bytes; "
            "choose a time instead, or --engine simulator"
        )
    if transport.join_after_ms >= 1000 * spec.warmup_s:
        raise UsageError(
            f"subflows that join {tuning.joins(transport)} with {spec.warmup_s:g} s of warm-up: the measured "
            "window needs all subflows; use a longer --warmup"
        )


def _check_mptcp(spec: RunSpec, flows: Sequence[PlannedFlow]) -> None:
    subflows = spec.transport.subflows
    if spec.traffic == "iperf3":
        mptcp_library()
    support = mptcp_genl.support()
    if support.level is mptcp_genl.PathManagement.NONE:
        raise HostUnfitError(support.advice)
    mixed = len({flow.subflows for flow in flows if flow.mptcp}) > 1
    in_kernel = support.level is mptcp_genl.PathManagement.IN_KERNEL
    if in_kernel and spec.transport.joins_late:
        raise HostUnfitError(f"subflows that join late need refabric's path manager; {support.advice}")
    if in_kernel and (mixed or subflows > MAX_EXTRA_SUBFLOWS + 1):
        raise HostUnfitError(support.advice)
