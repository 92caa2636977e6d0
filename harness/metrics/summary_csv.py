"""summary.csv: one row per point. Its columns are the point's setting, its status, and the metrics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import topos
from common import files
from common.text import one_line
from harness.labels import digest, settings
from harness.metrics.metrics import TABLES, Metric, ShownIn, of_programs, shown_in
from harness.results.point_results import PointResult, judge
from harness.results.store import SUMMARY, Store
from harness.results.tables import Cell, csv_bytes
from model.congestion import in_force
from model.reasons import texts
from workloads import matrices

ValueOf = Callable[[PointResult], Cell | None]


def _sysctls(judged: PointResult) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(judged.spec.transport.sysctls.items()))


def _workload(judged: PointResult) -> str:
    """Return the workload as one types it, and a digest of the user's flows or programs."""
    of = judged.spec.workload
    data = "".join(str(of.params.get(name, "")) for name in matrices.MATRICES[of.matrix].data)
    return f"{matrices.label(of.matrix, of.params)}{f' sha256:{digest(data)}' if data else ''}"


def _topology_params(judged: PointResult) -> str:
    topology = judged.spec.topology
    numbers = (f"{name}={value}" for name, value in topos.shape(topology.kind, topology.params))
    return " ".join((*_network_file(topology.params), *numbers))


def _network_file(params: Mapping[str, int | str]) -> tuple[str, ...]:
    """Return the name of a network of the user and a digest of its text; nothing for other networks."""
    text = params.get("network")
    return (f"{params['name']} sha256:{digest(str(text))}",) if text else ()


def _algorithm(judged: PointResult) -> str:
    """Return a digest of the user's congestion control, so that a changed file of the same name differs."""
    text = judged.spec.transport.algorithm_text
    return f"sha256:{digest(text)}" if text else ""


def _faults(judged: PointResult) -> str:
    return ", ".join(dict.fromkeys(r.fault.value for r in judged.reasons if r.fault.value))


def _kinds(judged: PointResult) -> str:
    return ", ".join(dict.fromkeys(reason.kind for reason in judged.reasons))


_SETTING: Mapping[str, tuple[str, ValueOf]] = {
    "engine": ("what ran it", lambda j: j.spec.engine),
    "dataplane": ("what forwarded packets between real hosts", lambda j: j.spec.dataplane),
    "topology": ("kind of network", lambda j: j.spec.topology.kind),
    "k": ("its main size: a FatTree's k, a star's hosts, a bottleneck's pairs", lambda j: j.spec.topology.k),
    "hosts": ("number of hosts", lambda j: j.hosts),
    "workload": ("the workload as one types it, and a digest of the user's flows", _workload),
    "transport": ("`tcp`, `mptcp` or another transport", lambda j: j.spec.transport.name),
    "subflows": ("subflows of each flow that were asked for", lambda j: j.spec.transport.subflows),
    "cc": ("congestion control in force", lambda j: in_force(j.spec.transport.cc, j.spec.transport.subflows)),
    "rate_mbps": ("rate of a host's link, Mb/s", lambda j: j.spec.link.rate_mbps),
    "queue_pkts": ("queue of a port, in packets; 0 is unbounded", lambda j: j.spec.link.queue_pkts),
    "seconds": ("measured window, s", lambda j: j.spec.seconds),
    "seed": ("seed of all random choices", lambda j: j.spec.seed),
    "routing": ("routing policy", lambda j: j.spec.routing),
    "loss_pct": ("random loss of each link", lambda j: 100 * j.spec.link.loss),
    "ecn_pkts": ("queue length from which packets are marked; 0 is never", lambda j: j.spec.link.ecn_pkts),
    "write_bytes": (
        "bytes that a sender writes at a time; 0 is as much as fits",
        lambda j: j.spec.transport.write_bytes,
    ),
    "sysctls": ("sysctls of real hosts", _sysctls),
    "topology_params": ("the network's other parameters, and a digest of a user's file", _topology_params),
    "algorithm": ("digest of the user's congestion control", _algorithm),
    "settings": ("warm-up, and every other setting that is not the default", lambda j: settings(j.spec)),
}
_STATUS: Mapping[str, tuple[str, ValueOf]] = {
    "point": ("name of the point's folder", lambda j: j.name),
    "status": ("`ok`, `suspect` or `failed`", lambda j: j.status.value),
    "reasons": ("why it is not ok", lambda j: texts(j.reasons)),
    "faults": ("what was at fault: this run's load, other processes or the hypervisor", _faults),
    "cautions": ("doubts about some of its metrics", lambda j: texts(j.cautions)),
    "attempts": ("how often it was run", lambda j: max(1, len(j.attempts))),
    "kinds": (
        "kinds of the reasons, for scripts",
        _kinds,
    ),
}
METRICS: Mapping[str, ValueOf] = {metric.name: metric.at for metric in shown_in(ShownIn.SUMMARY, TABLES)}
_OTHERS = {**_SETTING, **_STATUS}
_VALUES: Mapping[str, ValueOf] = {**{name: value for name, (_, value) in _OTHERS.items()}, **METRICS}
_ORDER = (
    "engine", "dataplane", "topology", "k", "hosts", "workload", "transport", "subflows", "cc",
    "rate_mbps", "queue_pkts", "seconds", "seed", "status", "reasons", "goodput_mbps_mean", "reference_mbps",
    "goodput_pct_mean", "goodput_pct_min", "goodput_pct_median", "goodput_pct_max", "jain", "cpu_busy_pct",
    "late_p99_us", "retransmits", "drops", "routing", "loss_pct", "ecn_pkts", "write_bytes", "sysctls",
    "flows_started", "flows_completed", "fct_ms_mean", "fct_ms_median", "fct_ms_p99", "slowdown_mean",
    "slowdown_p99", "topology_params", "faults", "cautions", "attempts", "kinds",
)  # fmt: skip
"""The order of files written so far; the columns of newer metrics follow."""

COLUMNS = ("experiment", *dict.fromkeys((*_ORDER, *_VALUES)))
MEANINGS: Mapping[str, str] = {
    "experiment": "name of the folder of results",
    **{name: words for name, (words, _) in _OTHERS.items()},
    **{metric.name: metric.about for metric in shown_in(ShownIn.SUMMARY, TABLES)},
}
"""What each of COLUMNS is."""


def record(experiment: str, judged: PointResult, own: Sequence[Metric] = ()) -> dict[str, Cell | None]:
    """Return one row as COLUMNS and values; None where the point has no such number.

    `own` are metrics of a user's file, which follow under their names.
    """
    row = {"experiment": experiment, **{name: _VALUES[name](judged) for name in COLUMNS[1:]}}
    return {**row, **{metric.name: metric.at(judged) for metric in own if metric.name not in row}}


_FORMULA = ("=", "+", "-", "@")
"""Spreadsheets evaluate texts that begin so, but not after a quotation mark (OWASP, CSV injection)."""


def cells(experiment: str, judged: PointResult, own: Sequence[Metric] = ()) -> dict[str, str]:
    """Return the cells of a row by column. Raises UsageError for a metric of the user's that fails."""
    return {name: _text(value) for name, value in record(experiment, judged, own).items()}


def write(store: Store, points: Sequence[PointResult], own: Sequence[Metric] = ()) -> None:
    """Rewrite the experiment's summary.csv atomically. Raises StoreError, and UsageError for a metric of the
    user's that fails."""
    more = (*of_programs(points), *own)
    found = [cells(store.directory.name, judged, more) for judged in judge(points)]
    heads = list(found[0]) if found else COLUMNS
    text = csv_bytes(heads, [list(row.values()) for row in found])
    files.replace_file(store.directory / SUMMARY, text, store.tag)


def _text(value: Cell | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    text = one_line(str(value))
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA) else text
