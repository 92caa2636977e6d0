"""The settings of a StackSpec that a Linux kernel can follow: first window, minimum RTO and the like. Pure.

The first window, the minimum RTO and immediate acknowledgements are metrics of a host's route (ip-route(8):
initcwnd, rto_min, quickack). minTCP also needs sysctls. Our congestion control limits its window, and another
program hides selective acknowledgements from it (engines/emulation/ranks/).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from common.errors import UsageError
from model.fields.words import stack_words
from model.network_plan import by_rank
from model.spec import RunSpec, StackSpec

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


@dataclass(frozen=True)
class RouteMetrics:
    """Metrics of a host's default route; 0 and False keep the kernel's own."""

    initcwnd: int = 0
    rto_min_ms: int = 0
    quickack: bool = False


def route_metrics(stack: StackSpec) -> RouteMetrics:
    """Return the metrics that give connections this stack."""
    initcwnd = 0 if stack.initial_window == _LINUX.initial_window else stack.initial_window
    rto_ms = 0 if stack.min_rto_ms == _LINUX.min_rto_ms else round(stack.min_rto_ms)
    return RouteMetrics(initcwnd, rto_ms, stack.delayed_ack_ms == 0)


def sysctls(cc: str) -> Mapping[str, str]:
    """Return the sysctls that hosts with this congestion control need."""
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
