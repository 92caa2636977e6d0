"""Another valid value for each field of a spec, for tests that go through all fields."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterator, Mapping
from typing import Any

from fabric._core import queue_kinds
from model.noise import parse_stalls
from model.schedulers import parse_scheduler
from model.spec import LIMITS, NAMES, QDISC, STRICT, LinkEvent, LinkSpec, RunSpec, StackSpec, stated

DEFAULTS = RunSpec(LinkSpec(10.0))
_TEXTS: Mapping[str, Any] = {
    "engine": "simulator",
    "dataplane": "ovs",
    "routing": "ecmp",
    "traffic": "native",
    "clock": STRICT,
    "events": (LinkEvent(1.0, "p0a0", "c0"),),
    "link.discipline": queue_kinds()[1].name,
    "link.host_queue": QDISC,
    "link.trace": "lte:1",
    "transport.protocol": "ndp:window_pkts=10",
    "transport.sysctls": {"net.ipv4.tcp_sack": "0"},
    "openflow.controller": "pox",
    "openflow.mode": "proactive",
    "openflow.datapath": "user",
    "scheduler": parse_scheduler("first_fit:100"),
    "noise": parse_stalls("all:100:2-6"),
    "stack": StackSpec(min_rto_ms=10.0),
    **{name: tuple(choices)[-1] for name, (choices, _) in stated(NAMES).items() if name.startswith("stack.")},
}


def fields_of(part: Any, at: str = "") -> Iterator[str]:
    """Yield the paths of all fields of a part of a spec, those of inner parts one by one."""
    for field in dataclasses.fields(part):
        value, path = getattr(part, field.name), f"{at}{field.name}"
        if dataclasses.is_dataclass(value):
            yield from fields_of(value, f"{path}.")
        else:
            yield path


def other(path: str) -> Any:
    """Return a valid value for the field at `path` that is not its default."""
    default = operator.attrgetter(path)(DEFAULTS)
    if path in _TEXTS:
        value = _TEXTS[path]
    elif isinstance(default, bool):
        value = not default
    else:
        limits = LIMITS[path]
        value = default + 1
        if limits.problem(value):
            value = type(default)((limits.least + limits.most) / 2)
    assert value != default
    return value
