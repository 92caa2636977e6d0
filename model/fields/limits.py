"""The range of every number in a RunSpec, for command lines, Python and stored specs alike. Pure."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from common.errors import UsageError
from model.congestion import BASELINE, CONGESTION_CONTROLS
from model.fields.ranges import RANGE, Limits, exact_digits
from model.spec import LinkSpec, RunSpec


def _ranges(part: Any, prefix: str = "") -> Iterator[tuple[str, Limits]]:
    for field in dataclasses.fields(part):
        value = getattr(part, field.name)
        if dataclasses.is_dataclass(value):
            yield from _ranges(value, f"{prefix}{field.name}.")
        elif limits := field.metadata.get(RANGE):
            yield prefix + field.name, dataclasses.replace(limits, whole=field.type in ("int", int))


LIMITS: Mapping[str, Limits] = dict(_ranges(RunSpec(LinkSpec(1.0))))
"""Limits by the field's path in the spec, from the field's metadata. Events, topologies and workloads check
their own numbers."""


def check_limits(spec: RunSpec) -> None:
    """Raise UsageError, in one line, for a number outside the range of its field."""
    for path, limits in LIMITS.items():
        value = operator.attrgetter(path)(spec)
        if wrong := limits.problem(value):
            raise UsageError(f"{path} of {shown(value)}: {wrong}")
    stack = spec.stack
    if stack.mptcp_bytes >= stack.payload_bytes:
        raise UsageError(
            f"stack.mptcp_bytes of {stack.mptcp_bytes}: leaves no payload of {stack.payload_bytes} bytes; "
            "choose fewer"
        )


def check_marks(spec: RunSpec) -> None:
    """Raise UsageError for a congestion control that needs marks if no queue marks: it would run as Reno.

    The baseline is exempt: its flow is alone, so no queue would mark its packets.
    """
    known = CONGESTION_CONTROLS.get(spec.transport.cc)
    if known is None or not known.ecn or spec.link.ecn_pkts or spec.workload.matrix == "reference":
        return
    raise UsageError(
        f"--cc {spec.transport.cc}: it reacts to marks, but no queue marks packets, so it would run as "
        f"{BASELINE}: add --ecn PKTS, e.g. --ecn 20"
    )


def shown(value: Any) -> str:
    """Return a field's value for a message; numbers of more than 15 digits are shortened."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number:
        return repr(value)
    return exact_digits(value) if abs(value) < 1e15 else f"{value:g}"
