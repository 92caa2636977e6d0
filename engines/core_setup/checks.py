"""Checks of a spec for the simulator, except for flows, paths and events. Pure."""

from __future__ import annotations

from common.errors import UsageError
from model.congestion import CONGESTION_CONTROLS
from model.fields.limits import check_limits, check_marks
from model.network_plan import check_discipline
from model.noise import check_clock, check_noise
from model.spec import PORT, RunSpec


def check_spec(spec: RunSpec) -> None:
    """Raise UsageError, in one line, for a spec that the simulator does not support."""
    check_limits(spec)
    check_discipline(spec.link)
    check_noise(spec.noise)
    check_clock(spec.clock)
    _check_real(spec)
    _check_stack(spec)
    check_marks(spec)


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
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    if stack.acks == "at_once" and (spec.link.ecn_pkts or (cc is not None and cc.ecn)):
        raise UsageError(
            "stack acks=at_once with ECN: marks would return before the queue that they describe has "
            "changed; choose acks=routed"
        )
