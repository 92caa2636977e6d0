"""What labels, titles and charts call a setting: one record for each field with words. Pure.

A field of a spec states its words beside its range (`called` in model/spec.py), unless a module of
its own writes them; those are listed here. What is usual has no words.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import topos
from model import links, noise, schedulers, tuning
from model.spec import USUAL, RunSpec, StackSpec, default_of, stated, typed
from model.spec import WORDS as IN_METADATA
from workloads import matrices

Words = Callable[[Any], str]
USUAL_OF_REAL_HOSTS: Mapping[str, Any] = {"traffic": "native"}
"""Usual values of real hosts, by path, where they are not the defaults of the spec. One process that sends
and reads for all hosts takes less CPU time than two per flow."""


def stack_texts(stack: StackSpec, *others: StackSpec) -> tuple[str, ...]:
    """Return `name=value`, as typed, of the fields in which `stack` or one of the others differs from the
    default."""
    usual = StackSpec()
    return tuple(
        f"{name}={typed(getattr(stack, name))}"
        for name in (field.name for field in dataclasses.fields(StackSpec))
        if any(getattr(each, name) != getattr(usual, name) for each in (stack, *others))
    )


def stack_words(stack: StackSpec) -> str:
    """Return the options that differ from the defaults, as typed (`acks=at_once min_rto_ms=10`), or ""."""
    return " ".join(stack_texts(stack))


def _sysctls(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(values.items()))


WORDS: Mapping[str, Words] = {
    **stated(IN_METADATA),
    "link.trace": links.trace_words,
    "events": links.events_words,
    "transport.sysctls": _sysctls,
    "scheduler": schedulers.scheduler_title,
    "noise": lambda stalls: f"stalls {noise.stalls_words(stalls)}",
    "stack": lambda stack: f"stack {stack_words(stack)}",
}
"""The words for an unusual value of a field, by the field's path in the spec."""


def _host_queues(spec: RunSpec) -> str:
    pkts = spec.link.nic_queue_pkts
    return f"host queues of {pkts} packets" if pkts != spec.link.queue_pkts else ""


def _joins(spec: RunSpec) -> str:
    late = spec.transport.joins_late
    return f"further subflows join {tuning.joins(spec.transport)}" if late else ""


def _replicas(spec: RunSpec) -> str:
    replicas = spec.topology.number(topos.LANES, 1)
    return f"{replicas} replicas" if replicas > 1 else ""


def _parameters(spec: RunSpec) -> str:
    return matrices.param_words(spec.workload.matrix, spec.workload.params)


RELATIONS: Mapping[str, Callable[[RunSpec], str]] = {
    "link.nic_queue_pkts": _host_queues,
    "transport.join_after_ms": _joins,
    "topology.params": _replicas,
    "workload.params": _parameters,
}
"""Words that depend on several fields, by the path of one of them; empty for what is usual."""
_ORDER = (
    "routing", "link.delay_us", "link.host_delay_us", "link.queue_bytes", "link.nic_queue_pkts", "traffic",
    "link.loss", "link.trace", "link.ecn_pkts", "link.random_pkts", "link.discipline", "link.host_queue",
    "events", "transport.protocol", "transport.write_bytes", "transport.join_after_ms", "transport.sysctls",
    "openflow.controller", "openflow.mode", "openflow.datapath", "scheduler", "noise", "clock",
    "agent.delay_us", "agent.jitter_us", "agent.report_us", "parts", "stack",
    "topology.params", "workload.params",
)  # fmt: skip
"""The order of the words. Fields that are not listed come last."""
_SHOWN = (*_ORDER, *(path for path in WORDS if path not in _ORDER))


_PLAIN: Mapping[str, Words] = {
    "link.rate_mbps": "{:g} Mb/s".format,
    "link.queue_pkts": lambda pkts: f"{pkts}-packet queues" if pkts else "unbounded queues",
    "warmup_s": "{:g} s warm-up".format,
    "seconds": "{:g} s".format,
}
_NAMED = frozenset({
    "topology", "workload", "engine", "seed", "sampling", "routing", "scheduler", "link.nic_queue_pkts",
    "link.trace", "transport.subflows", "transport.cc", "transport.algorithm", "transport.join_after_ms",
    "transport.join_after_bytes", "transport.sysctls",
})  # fmt: skip
"""What names of points have anyway (harness/labels.py), and what follows from another field."""


def varied(specs: Sequence[RunSpec]) -> tuple[str, ...]:
    """Return the paths of the fields in which specs differ, without those that the names of points have
    anyway. A field of a part that is set as a whole (`noise`) is a path of its own."""
    differing = []
    for part in dataclasses.fields(RunSpec):
        values = [getattr(spec, part.name) for spec in specs]
        if part.name in _NAMED or all(value == values[0] for value in values):
            continue
        if (part.name in WORDS and part.name != "stack") or not dataclasses.is_dataclass(values[0]):
            differing.append(part.name)
            continue
        for inner in dataclasses.fields(values[0]):
            first = getattr(values[0], inner.name)
            if any(getattr(value, inner.name) != first for value in values):
                differing.append(f"{part.name}.{inner.name}")
    return tuple(path for path in differing if path not in _NAMED)


def words_at(spec: RunSpec, path: str) -> str:
    """Describe the value of one field, whether it is usual or not: `50-packet queues`, `min_rto_ms=10`."""
    value = operator.attrgetter(path)(spec)
    if path in _PLAIN:
        return _PLAIN[path](value)
    if path in WORDS and (value or isinstance(value, float)) and (words := WORDS[path](value)):
        return words
    return f"{path.rpartition('.')[2]}={typed(value)}"


def _usual(path: str, simulated: bool) -> Any:
    """Return the value at `path` that labels omit, for simulated or for real hosts."""
    default = operator.attrgetter(path)(USUAL)
    return default if simulated else USUAL_OF_REAL_HOSTS.get(path, default)


def unusual(spec: RunSpec, *, simulated: bool, without: Collection[str] = ()) -> list[str]:
    """Describe what is unusual in a setting: `["ecmp routing", "1 % random loss"]`.

    `simulated` says which hosts the point has. `without` are paths that the reader sees elsewhere."""
    found = (_words(spec, path, simulated) for path in _SHOWN if path not in without)
    return [words for words in found if words]


def _words(spec: RunSpec, path: str, simulated: bool) -> str:
    if path in RELATIONS:
        return RELATIONS[path](spec)
    value = operator.attrgetter(path)(spec)
    return "" if value == _usual(path, simulated) else WORDS[path](value)


def beyond(honoured: Collection[str], spec: RunSpec, part: str) -> list[str]:
    """Describe the fields of a part of a spec, `link` or `stack`, that are off their defaults and not in
    `honoured`: `["--stack sack=off"]`, `["ECN from 20 packets (link.ecn_pkts)"]`.

    An engine refuses them, so that it ignores no field that was added after it."""
    of = getattr(spec, part)
    given = {field.name: getattr(of, field.name) for field in dataclasses.fields(of)}
    return [
        _typed(f"{part}.{name}", name, value)
        for name, value in given.items()
        if name not in honoured and value != default_of(of, name)
    ]


def _typed(path: str, name: str, value: Any) -> str:
    if path.startswith("stack."):
        return f"--stack {name}={typed(value)}"
    return f"{WORDS[path](value)} ({path})" if path in WORDS else f"{path}={typed(value)}"
