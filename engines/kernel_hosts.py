"""Hosts with a Linux kernel, in real or in virtual time: checks, stack, deadlines, memory of samples. Pure.

May import `common`, `topos`, `controllers` and `model`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.errors import UsageError
from controllers.routing import check_routing, per_packet
from model import tuning
from model.congestion import CONGESTION_CONTROLS
from model.flows import PlannedFlow, check_ports, planned_flows
from model.links import check_events
from model.network_plan import by_rank, check_trace, is_measured
from model.schedulers import check_scheduler, scheduled, scheduler_words
from model.spec import PORT, RunSpec, StackSpec, check_tcp
from model.words import stack_words
from topos.topology import Topology

MAX_IPERF3_FLOWS = 1000
DEADLINE_SLACK_S = 180.0
FOLLOWED = ("initial_window", "min_rto_ms", "delayed_ack_ms", "max_window", "rank")
"""Fields of a StackSpec that real hosts can follow."""
MINTCP = "mintcp"
TIMESTAMPS = "net.ipv4.tcp_timestamps"
TIMEOUTS_ALONE: Mapping[str, str] = {
    "net.ipv4.tcp_early_retrans": "0",
    "net.ipv4.tcp_frto": "0",
    "net.ipv4.tcp_dsack": "0",
    TIMESTAMPS: "0",
    "net.ipv4.tcp_thin_linear_timeouts": "1",
}
"""minTCP reacts to timeouts alone and never undoes a reduction: no tail loss probes, and nothing by which
Linux finds that a timeout was spurious (F-RTO, DSACK, timestamps). With fewer than four packets in flight
timeouts are not doubled (Documentation/networking/tcp-thin.rst); with more they are, unlike in the paper."""
_LINUX = StackSpec()
_QUEUE_SAMPLE, _SOCKET_SAMPLE, _PING_SAMPLE = 8, 190, 60
"""Bytes per port, per subflow and per subflow in each sample, in the program that runs the hosts. The core
copies queue lengths once, when it hands them over."""
_QUEUE_ROW, _SOCKET_ROW, _PING_ROW = 24, 96, 40
"""Bytes of the rows made of them, if no queue is empty."""


def check_spec(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> None:
    """Raise UsageError, in one line, for a spec that no Linux hosts can run."""
    check_tcp(spec)
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
    if spec.reroute_ms and spec.sampling.pings_ms and not per_packet(spec.routing):
        raise UsageError(
            f"--reroute {spec.reroute_ms:g}: pings do not follow flows to other paths: sample none"
        )
    if spec.routing == "valiant":
        raise UsageError("routing 'valiant': pings cannot follow its paths; choose --engine simulator")
    check_stack(spec)
    _check_flows(spec, flows)
    _check_ranks(spec, flows)
    _check_joins(spec)
    if is_measured(spec):
        raise UsageError(
            f"--cc {spec.transport.cc}: it reads what switches write into packets (Hop.*), and a kernel's "
            "TCP does not return that: choose --engine simulator"
        )
    for cc in {flow.cc for flow in flows}:
        if cc in CONGESTION_CONTROLS and not CONGESTION_CONTROLS[cc].emulated:
            raise UsageError(f"congestion control {cc}: no kernel has it; choose --engine simulator")


def check_hosts(topology: Topology) -> None:
    """Raise UsageError for a topology whose hosts forward packets."""
    if topology.hosts_forward:
        raise UsageError(
            f"topology {topology.kind}: emulated hosts do not forward packets; use --engine simulator"
        )


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


@dataclass(frozen=True)
class RouteMetrics:
    """Metrics of a host's default route (ip-route(8)); 0 and False keep the kernel's own."""

    initcwnd: int = 0
    rto_min_ms: int = 0
    quickack: bool = False


def route_metrics(stack: StackSpec) -> RouteMetrics:
    """Return the metrics that give connections this stack."""
    initcwnd = 0 if stack.initial_window == _LINUX.initial_window else stack.initial_window
    rto_ms = 0 if stack.min_rto_ms == _LINUX.min_rto_ms else round(stack.min_rto_ms)
    return RouteMetrics(initcwnd, rto_ms, stack.delayed_ack_ms == 0)


def sysctls(cc: str) -> Mapping[str, str]:
    """Return the sysctls that hosts with this congestion control need.

    minTCP's window is limited by our congestion control, and another program hides selective acknowledgements
    from it (engines/emulation/congestion/ranks.py).
    """
    return TIMEOUTS_ALONE if cc == MINTCP else {}


def on_the_wire(spec: RunSpec) -> StackSpec:
    """Return the sizes of real hosts' full segments and acknowledgements, with Ethernet's header."""
    timestamps = {**sysctls(spec.transport.cc), **spec.transport.sysctls}.get(TIMESTAMPS, "1") != "0"
    return _LINUX if timestamps else StackSpec(payload_bytes=1460, header_bytes=54, ack_bytes=54)


def check_stack(spec: RunSpec) -> None:
    """Raise UsageError for settings that no Linux kernel can follow."""
    stack = spec.stack
    rest = dataclasses.replace(stack, **{name: getattr(_LINUX, name) for name in FOLLOWED})
    if rest != _LINUX:
        raise UsageError(
            f"stack {stack_words(rest)}: real hosts use their kernel's stack, of which --stack sets only "
            f"{', '.join(FOLLOWED)} (and see --sysctl); choose --engine simulator"
        )
    if stack.min_rto_ms != round(stack.min_rto_ms) or stack.min_rto_ms < 1:
        raise UsageError(f"--stack min_rto_ms={stack.min_rto_ms:g}: real hosts take whole ms, 1 or more")
    if stack.delayed_ack_ms not in (0, _LINUX.delayed_ack_ms):
        raise UsageError(
            f"--stack delayed_ack_ms={stack.delayed_ack_ms:g}: real hosts delay acknowledgements as Linux "
            "does, or not at all (0)"
        )
    if stack.max_window and spec.transport.cc != MINTCP:
        raise UsageError(f"--stack max_window={stack.max_window}: of real hosts, only --cc {MINTCP} has it")
    if stack.rank != _LINUX.rank and not by_rank(spec.link.discipline):
        raise UsageError(f"--stack rank={stack.rank}: only queues of --discipline pfabric read ranks")


def connect_s(flows: int, subflows: int) -> float:
    """Return the deadline in seconds for connecting all flows and joining all their subflows.

    A saturated machine needs 30 ms per flow (k=10 at 20 Mb/s: 40 s for 250 flows with 8 subflows).
    """
    return 60.0 + 0.01 * flows * subflows


def slack_s(spec: RunSpec) -> float:
    """Return the time allowed beyond warm-up and window, for connecting on a saturated machine."""
    flows = planned_flows(spec, spec.network())
    return connect_s(len(flows), spec.transport.subflows) + DEADLINE_SLACK_S


def samples_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of all samples in the program that runs the hosts."""
    return _bytes(spec, ports * _QUEUE_SAMPLE, subflows * _SOCKET_SAMPLE, subflows * _PING_SAMPLE)


def tables_bytes(spec: RunSpec, ports: int, subflows: int) -> float:
    """Return the memory of the tables made of all samples."""
    return _bytes(spec, ports * _QUEUE_ROW, subflows * _SOCKET_ROW, subflows * _PING_ROW)


def _bytes(spec: RunSpec, queues: int, sockets: int, pings: int) -> float:
    """Return the memory of samples of these sizes. Samples begin with the warm-up."""
    sampling = spec.sampling
    each = ((sampling.queues_ms, queues), (sampling.sockets_ms, sockets), (sampling.pings_ms, pings))
    ms = 1000 * (spec.warmup_s + spec.seconds)
    return sum(ms / interval_ms * size for interval_ms, size in each if interval_ms)
