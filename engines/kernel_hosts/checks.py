"""Checks of a spec for hosts with a Linux kernel, on whatever machine they run. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from common.errors import UsageError
from controllers.routing import check_routing
from engines.kernel_hosts.kernel_stack import check_stack
from model import tuning
from model.congestion import CONGESTION_CONTROLS
from model.flows import PlannedFlow, check_ports
from model.link_events import check_events
from model.network_plan import by_rank, check_discipline, check_trace
from model.schedulers import check_scheduler, scheduled, scheduler_words
from model.spec import HOST_QUEUES, PORT, RunSpec
from topos.topology import Topology

TRAFFIC = ("iperf3", "native")
MAX_IPERF3_FLOWS = 1000


def check_spec(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> None:
    """Raise UsageError, in one line, for a spec that no Linux hosts can run."""
    if spec.traffic not in TRAFFIC:
        raise UsageError(
            f"traffic '{spec.traffic}' is not available: choose --traffic {' or '.join(TRAFFIC)}"
        )
    _check_network(spec, topology)
    check_stack(spec)
    _check_flows(spec, flows)
    _check_ranks(spec, flows)
    _check_joins(spec)
    _check_emulated({flow.cc for flow in flows})


def check_hosts(topology: Topology) -> None:
    """Raise UsageError for a topology whose hosts forward packets."""
    if topology.hosts_forward:
        raise UsageError(
            f"topology {topology.kind}: emulated hosts do not forward packets; use --engine simulator"
        )


def _check_network(spec: RunSpec, topology: Topology) -> None:
    check_hosts(topology)
    check_events(spec, topology)
    check_trace(spec, topology)
    check_scheduler(spec, topology)
    if scheduled(spec) and spec.scheduler.ideal:
        raise UsageError(
            f"--scheduler {scheduler_words(spec.scheduler)}: an ideal scheduler must know when flows begin, "
            f"which real hosts do not report; give an interval, e.g. {spec.scheduler.name}:100, or choose "
            "--engine simulator"
        )
    check_routing(spec.routing, topology)
    if spec.routing == "valiant":
        raise UsageError("routing 'valiant': pings cannot follow its paths; choose --engine simulator")
    if spec.link.host_queue not in HOST_QUEUES:
        raise UsageError(f"host queue '{spec.link.host_queue}': choose {' or '.join(HOST_QUEUES)}")
    check_discipline(spec.link)


def _check_ranks(spec: RunSpec, flows: Sequence[PlannedFlow]) -> None:
    """Raise UsageError for queues by rank unless one process, which knows flow sizes, sends plain TCP."""
    if not by_rank(spec.link.discipline):
        return
    what = f"queue discipline {spec.link.discipline} (--discipline)"
    if spec.traffic != "native":
        raise UsageError(f"{what}: iperf3 does not report the sizes of flows; choose --traffic native")
    if spec.link.host_queue != PORT:
        raise UsageError(
            f"{what}: a kernel's own queue sends in order of arrival; leave out --host-queue "
            f"{spec.link.host_queue}"
        )
    if any(flow.mptcp for flow in flows):
        raise UsageError(f"{what}: real hosts stamp ranks on TCP alone; choose --subflows 1")


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


def _check_emulated(ccs: Iterable[str]) -> None:
    for cc in ccs:
        if cc in CONGESTION_CONTROLS and not CONGESTION_CONTROLS[cc].emulated:
            raise UsageError(f"congestion control {cc}: no kernel has it; choose --engine simulator")
