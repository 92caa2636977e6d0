"""What of a spec makes no sense to the simulator, beside what its flows, paths and events ask for. Pure."""

from __future__ import annotations

from common.errors import UsageError
from model.congestion import CONGESTION_CONTROLS
from model.network_plan import check_discipline
from model.noise import check_clock, check_noise
from model.spec import PORT, RunSpec, TransportSpec, stack_words


def check_spec(spec: RunSpec) -> None:
    """Raises UsageError, one line."""
    _check_links(spec)
    check_noise(spec.noise)
    check_clock(spec.clock)
    check_joins(spec.transport)
    _check_real(spec)
    _check_stack(spec)


def check_joins(transport: TransportSpec) -> None:
    """Raises UsageError for subflows that would join before there is a connection."""
    if transport.join_after_ms < 0 or transport.join_after_bytes < 0:
        raise UsageError("further subflows join after 0 ms and 0 bytes at the earliest, not before")


def _check_links(spec: RunSpec) -> None:
    link = spec.link
    if not link.rate_mbps > 0:
        raise UsageError(f"a link rate of {link.rate_mbps:g} Mb/s: must be above 0")
    if not link.delay_us >= 0:
        raise UsageError(f"a delay of {link.delay_us:g} us: no link is that fast; give 0 or more")
    check_discipline(link)
    if not (spec.seconds > 0 and spec.warmup_s >= 0):
        raise UsageError(f"{spec.seconds:g} s after {spec.warmup_s:g} s of warm-up: time runs forwards only")


def _check_real(spec: RunSpec) -> None:
    """Settings of what simulated hosts lack: they would change nothing but the point's name."""
    transport = spec.transport
    sysctls = [f"{name}={value}" for name, value in sorted(transport.sysctls.items())]
    given = [
        *([f"--sysctl {sysctls[0]}"] if sysctls else []),
        *([f"--write {transport.write_bytes}"] if transport.write_bytes else []),
        *([f"--host-queue {spec.link.host_queue}"] if spec.link.host_queue != PORT else []),
    ]
    if given:
        raise UsageError(
            f"{given[0]}: simulated hosts have no kernel and run no programs: choose --engine mininet, or "
            "what --stack offers"
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
        raise UsageError(f"stack {stack_words(stack)}: a segment has a byte and a window a segment at least")
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    if stack.acks == "at_once" and (spec.link.ecn_pkts or (cc is not None and cc.ecn)):
        raise UsageError(
            "stack acks=at_once with ECN: acknowledgements that take no time would bring marks back before "
            "the queue they tell of has changed; choose acks=routed"
        )
