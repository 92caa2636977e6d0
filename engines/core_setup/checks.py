"""Checks of a spec for the simulator, except for flows, paths and events. Pure."""

from __future__ import annotations

from common.errors import UsageError
from model.congestion import CONGESTION_CONTROLS
from model.network_plan import check_discipline
from model.noise import check_clock, check_noise
from model.spec import PORT, RunSpec, TransportSpec, stack_words


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError, in one line, for a spec that the simulator does not support."""
    _check_links(spec)
    check_noise(spec.noise)
    check_clock(spec.clock)
    check_joins(spec.transport)
    _check_real(spec)
    _check_stack(spec)


def check_joins(transport: TransportSpec) -> None:
    """Raise UsageError for subflows that would join before there is a connection."""
    if transport.join_after_ms < 0 or transport.join_after_bytes < 0:
        raise UsageError("further subflows cannot join before 0 ms or 0 bytes; give 0 or more")


def _check_links(spec: RunSpec) -> None:
    link = spec.link
    if not link.rate_mbps > 0:
        raise UsageError(f"a link rate of {link.rate_mbps:g} Mb/s is not possible; give a rate above 0")
    if not link.delay_us >= 0:
        raise UsageError(f"a delay of {link.delay_us:g} us is not possible; give 0 or more")
    check_discipline(link)
    if not (spec.seconds > 0 and spec.warmup_s >= 0):
        raise UsageError(
            f"{spec.seconds:g} s after {spec.warmup_s:g} s of warm-up are not possible; give --seconds above "
            "0 and --warmup of 0 or more"
        )


def _check_real(spec: RunSpec) -> None:
    """Raise UsageError for settings of real hosts, which would only change the point's name."""
    transport = spec.transport
    sysctls = [f"{name}={value}" for name, value in sorted(transport.sysctls.items())]
    given = [
        *([f"--sysctl {sysctls[0]}"] if sysctls else []),
        *([f"--write {transport.write_bytes}"] if transport.write_bytes else []),
        *([f"--host-queue {spec.link.host_queue}"] if spec.link.host_queue != PORT else []),
    ]
    if given:
        raise UsageError(
            f"{given[0]}: simulated hosts have no kernel and no programs: choose --engine mininet, or "
            "an option of --stack"
        )


def _check_stack(spec: RunSpec) -> None:
    stack = spec.stack
    for name in (
        "min_rto_ms",
        "delayed_ack_ms",
        "start_spread_ms",
        "ssthresh",
        "send_buffer",
        "receive_buffer",
        "subflow_buffer",
        "dup_threshold",
    ):
        if not getattr(stack, name) >= 0:
            raise UsageError(f"stack {stack_words(stack)}: {name} cannot be negative")
    if stack.payload_bytes < 1 or stack.initial_window < 1:
        raise UsageError(f"stack {stack_words(stack)}: payload_bytes and initial_window must be 1 or more")
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    if stack.acks == "at_once" and (spec.link.ecn_pkts or (cc is not None and cc.ecn)):
        raise UsageError(
            "stack acks=at_once with ECN: marks would return before the queue that they describe has "
            "changed; choose acks=routed"
        )
