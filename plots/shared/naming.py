"""Names of settings: file names of charts, labels that tell settings apart, and descriptions in words."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import topos
from engines.registry import SIMULATED_HOSTS
from model import tuning
from model.link_events import words
from model.noise import noisy, stalls_words
from model.openflow import openflow_words
from model.schedulers import scheduled, scheduler_title
from model.spec import ELASTIC, FIFO, QDISC, RunSpec, StackSpec, stack_words
from model.transports import USUAL_ROUTING
from workloads import matrices

MAX_STEM = 160
"""Characters of a chart's file name without its ending; file systems take 255 bytes."""
_USUAL_TRAFFIC = {True: "iperf3", False: "native"}
"""Traffic drivers that need no mention, by whether hosts are simulated."""
PartOf = Callable[[RunSpec], str]


def variant(spec: RunSpec) -> str:
    """Describe what else sets a setting apart: `10 s warm-up, ecmp routing, 1 % random loss`."""
    return ", ".join([f"{spec.warmup_s:g} s warm-up", *special(spec)])


def special(spec: RunSpec) -> list[str]:
    """Describe what is unusual in a setting: `["ecmp routing", "1 % random loss"]`."""
    link, workload, transport = spec.link, spec.workload, spec.transport
    replicas = spec.topology.number(topos.LANES, 1)
    params = matrices.param_words(workload.matrix, workload.params)
    parts: Iterable[tuple[bool, str]] = (
        (spec.routing != USUAL_ROUTING, f"{spec.routing} routing"),
        (link.delay_us != 0, f"{link.delay_us:g} us per link"),
        (link.queue_bytes != 0, f"queues of {link.queue_bytes} bytes"),
        (link.nic_queue_pkts != link.queue_pkts, f"host queues of {link.nic_queue_pkts} packets"),
        (spec.traffic != _USUAL_TRAFFIC[spec.engine in SIMULATED_HOSTS], f"{spec.traffic} traffic"),
        (link.loss != 0, f"{100 * link.loss:g} % random loss"),
        (link.random_pkts != 0, f"random drop in the last {link.random_pkts} slots"),
        (link.discipline != FIFO, f"{link.discipline} queues"),
        (link.host_queue == QDISC, "host queues in the kernel"),
        (bool(spec.events), words(spec.events)),
        (transport.write_bytes != 0, f"writes of {transport.write_bytes} bytes"),
        (transport.joins_late, f"further subflows join {tuning.joins(transport)}"),
        (bool(transport.sysctls), ", ".join(f"{k}={v}" for k, v in sorted(transport.sysctls.items()))),
        (bool(openflow_words(spec.openflow)), openflow_words(spec.openflow)),
        (scheduled(spec), scheduler_title(spec.scheduler)),
        (noisy(spec), f"stalls {stalls_words(spec.noise)}"),
        (spec.clock != ELASTIC, f"{spec.clock} clock"),
        (spec.stack != StackSpec(), f"stack {stack_words(spec.stack)}"),
        (replicas > 1, f"{replicas} replicas"),
        (bool(params), params),
    )
    return [text for applies, text in parts if applies]


def shape(spec: RunSpec) -> tuple[tuple[str, int], ...]:
    """Return the topology parameters, size aside, that are not at their defaults."""
    return topos.shape(spec.topology.kind, spec.topology.params)


def setting_order(spec: RunSpec) -> tuple[object, ...]:
    """Return a sort key of settings for readers."""
    return (
        spec.topology.kind, spec.topology.k, spec.workload.matrix, spec.engine, spec.dataplane,
        spec.transport.cc, spec.link.rate_mbps, spec.link.queue_pkts, spec.link.ecn_pkts, spec.seconds,
        variant(spec), shape(spec),
    )  # fmt: skip


def place(spec: RunSpec) -> str:
    """Return the first part of a chart's file name: `fat_tree-k8-one_to_one`."""
    named = spec.topology.params.get("name", f"k{spec.topology.k}")
    return f"{spec.topology.kind}-{named}-{spec.workload.matrix}"


def file_stems(chart: str, of: Sequence[RunSpec], named: PartOf = place) -> list[str]:
    """Return a file name for each setting: `throughput-fat_tree-k8-one_to_one`, and what sets it apart."""
    parts: tuple[PartOf, ...] = (
        lambda s: "-".join(f"{name}{value}" for name, value in shape(s)),
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: s.transport.cc,
        lambda s: f"{s.link.rate_mbps:g}mbps",
        lambda s: f"{s.link.queue_pkts}pkts",
        lambda s: f"ecn{s.link.ecn_pkts}" if s.link.ecn_pkts else "",
        lambda s: f"{s.seconds:g}s",
        lambda s: "".join(c if c.isalnum() else "_" for c in variant(s)),
    )
    return [
        _storable("-".join(filter(None, [chart, named(spec), *differing])))
        for spec, differing in zip(of, _differing(of, parts), strict=True)
    ]


def _storable(stem: str) -> str:
    """Shorten a stem that is too long for a file system; the digest keeps it unique."""
    if len(stem) <= MAX_STEM:
        return stem
    return f"{stem[: MAX_STEM - 9]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"


def setting_names(of: Sequence[RunSpec]) -> list[str]:
    """Name each setting beside the others: `k=8`, and as much else as sets it apart."""
    parts: tuple[PartOf, ...] = (
        lambda s: s.topology.kind.replace("_", " "),
        lambda s: ", ".join(topos.size_words(s.topology.kind, dict(shape(s)))),
        lambda s: s.workload.matrix.replace("_", " "),
        lambda s: f"{s.link.rate_mbps:g} Mb/s",
        lambda s: f"queue {s.link.queue_pkts}" if s.link.queue_pkts else "no queue limit",
        lambda s: f"ECN from {s.link.ecn_pkts}" if s.link.ecn_pkts else "no ECN",
        lambda s: s.transport.cc,
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: f"{s.seconds:g} s",
        variant,
    )
    names = [f"k={s.topology.k}" for s in of]
    for part in parts:
        longer = [f"{name}, {part(s)}" for name, s in zip(names, of, strict=True)]
        names = longer if len(set(longer)) > len(set(names)) else names
    return names


def _differing(of: Sequence[RunSpec], parts: Iterable[PartOf]) -> list[list[str]]:
    """Return those parts of each setting in which the settings differ."""
    telling = [part for part in parts if len({part(spec) for spec in of}) > 1]
    return [[text for part in telling if (text := part(spec))] for spec in of]
