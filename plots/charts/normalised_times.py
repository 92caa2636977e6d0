"""Completion times over the time alone under several arms (model/arms.py), by load, size, part and flow;
losses and queues beside them (Alizadeh et al., pFabric, SIGCOMM 2013, figures 6 to 8).
"""

from __future__ import annotations

import dataclasses
import functools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator

from analysis.completion import (
    ALL,
    COUNTED_SHARE,
    LARGE,
    MIDDLE,
    SMALL,
    Normalised,
    Range,
    ended_times,
    normalised,
)
from analysis.quantities import DROPS, INJECTED
from analysis.stats import rank_correlation
from common.text import counted
from harness.results.point_results import PointResult
from model.arms import ARMS, IDEAL, ON_LINUX, PFABRIC_QUEUE_BYTES, PFABRIC_RTO_MS, TWINS, arm_of
from model.result import array
from model.spec import RunSpec, WorkloadSpec
from plots.data import MIN_REPETITIONS_FOR_INTERVAL, MIN_SEEDS_FOR_INTERVAL, Inputs, Panel, good, of_switch
from plots.kinds.axis import FROM_ZERO, Axis
from plots.kinds.cdf import Cdf
from plots.kinds.curves import Curves, Number
from plots.kinds.lines import Line, Lines
from plots.kinds.pairs import Pairs
from plots.kinds.rows import Rows
from plots.picture import Page, Picture, Row, Series
from plots.shared import axis_labels, style
from plots.shared.kinds import Look, Mean, grouped, mean_of
from workloads.sizes import parse as parse_sizes

APART = (
    "engine", "transport.cc", "link.discipline", "link.queue_bytes", "link.ecn_pkts", "link.nic_queue_pkts",
    "routing", "stack", "traffic", "warmup_s", "seconds", "seed",
)  # fmt: skip
"""Fields in which the points of one chart may differ, apart from the load."""
_SIZES = {
    "websearch": "web search",
    "datamining": "data mining",
    "websearch-steps": "web search (steps)",
    "datamining-steps": "data mining (steps)",
}
USUAL_SIZES = "websearch"
BOUND_PCT = 5.0
"""Share of the flows: if more have not ended, a mean or percentile is shown as a lower bound."""
HOLLOW = f"Hollow: over {BOUND_PCT:g} %, a lower bound."
ValueOf = Callable[[PointResult], float | None]


def number_of(points: Sequence[PointResult], value: ValueOf, of: Range | None = None) -> Mean | None:
    """Return the mean of what `value` reads off the good points of one arm, or the suspect ones where none is
    good; None if none has it. It is a lower bound, and hollow, if many flows in the range `of` have not
    ended."""
    points = good(points)
    return mean_of(map(value, points), hollow=bool(of and _is_bound(points, of)), least=_least(points))


def _least(points: Iterable[PointResult]) -> int:
    """Return how many values an interval needs. Simulated twins get one where real hosts do."""
    beside = {arm_of(point.spec) for point in points} <= {*ON_LINUX, *TWINS}
    return MIN_REPETITIONS_FOR_INTERVAL if beside else MIN_SEEDS_FOR_INTERVAL


def _is_bound(points: Sequence[PointResult], of: Range) -> bool:
    found = [normalised(point.under_test, point.spec.seconds, of) for point in points]
    flows, unfinished = sum(len(one.values) for one in found), sum(one.unfinished for one in found)
    return 100 * unfinished > BOUND_PCT * flows


def value_of(of: Range, read: Callable[[Normalised], float | None]) -> ValueOf:
    """Return the function that reads a point's flows in a range of sizes."""
    return lambda point: read(normalised(point.under_test, point.spec.seconds, of))


def _times(of: Range, read: Callable[[Normalised], float | None]) -> Number:
    return functools.partial(number_of, value=value_of(of, read), of=of)


MEAN, P99_OF_SMALL, MEAN_OF_LARGE = (
    _times(ALL, lambda one: one.mean),
    _times(SMALL, lambda one: one.p99),
    _times(LARGE, lambda one: one.mean),
)


def dropped_pct(point: PointResult) -> float | None:
    """Return the packets dropped in percent of those that hosts sent, acknowledgements included."""
    sent = point.metric(INJECTED.name)
    return 100 * (point.metric(DROPS.name) or 0.0) / sent if sent else None


def retransmitted_pct(point: PointResult) -> float | None:
    """Return the segments retransmitted in percent of full segments delivered."""
    received, retransmits = (
        int(array(point.under_test, name).sum()) for name in ("bytes_received", "retransmits")
    )
    segments = received / point.spec.stack.payload_bytes
    return 100 * retransmits / segments if segments else None


def load_of(point: PointResult) -> int:
    """Return the load that a point offers, in percent."""
    return int(point.spec.workload.params.get("load", 0))


def studies(points: Iterable[PointResult]) -> list[Panel]:
    """Group the points that ran by network and flow sizes."""
    groups: dict[str, list[PointResult]] = {}
    common: dict[str, RunSpec] = {}
    for point in points:
        if point.is_baseline or point.failed or not point.under_test:
            continue
        spec = point.spec.neutral(*APART)
        sizes = {k: v for k, v in spec.workload.params.items() if k != "load"}
        spec = dataclasses.replace(spec, workload=WorkloadSpec(spec.workload.matrix, sizes))
        common[spec.canonical()] = spec
        groups.setdefault(spec.canonical(), []).append(point)
    made = [Panel(common[key], (1,), tuple(group)) for key, group in groups.items()]
    return sorted(made, key=lambda of: (of.spec.topology.kind, _sizes(of) != "web search", _sizes(of)))


def _size_name(spec: RunSpec) -> str:
    return str(spec.workload.params.get("sizes", USUAL_SIZES))


def _sizes(panel: Panel) -> str:
    """Return `web search` or `data mining`, or the name of other sizes."""
    return _SIZES.get(_size_name(panel.spec), _size_name(panel.spec))


def highest(panel: Panel) -> int:
    """Return the highest load in percent."""
    return max(map(load_of, panel.points))


def at_load(panel: Panel, load: int) -> dict[str, Sequence[PointResult]]:
    """Return the good points of each arm at a load, in the order of the arms' records; suspect ones where
    none is good."""
    found = grouped((p for p in panel.points if load_of(p) == load), lambda point: arm_of(point.spec))
    return {name: good(found[name]) for name in ARMS if name in found}


def by_arm(panel: Panel) -> list[Series]:
    """Return a series for each arm; dashed if suspect points are all that it has at a load."""
    found = grouped(panel.points, lambda point: arm_of(point.spec))
    made = []
    for name in [name for name in ARMS if name in found]:
        doubt = any(p.suspect for of in grouped(found[name], load_of).values() for p in good(of))
        look = Look(ARMS[name].label, ARMS[name].colour, ARMS[name].marker).doubted(doubt)
        made.append(Series(name, look, found[name]))
    return made


def reached(panel: Panel, number: Number, without: str = "") -> dict[str, float]:
    """Return the mean at the highest load, of each arm that has one."""
    found = {name: number(of) for name, of in at_load(panel, highest(panel)).items() if name != without}
    return {name: mean.value for name, mean in found.items() if mean}


def _labelled(values: Mapping[str, float]) -> dict[str, float]:
    return {ARMS[name].label: value for name, value in values.items()}


def _settings(panel: Panel, means: bool) -> list[str]:
    """Return how the points ran, how many flows count, and whether `means` have intervals."""
    seeds, rate = len(panel.seeds), panel.spec.link.rate_mbps
    lengths = [len(normalised(point.under_test, point.spec.seconds).values) for point in panel.points]
    return [
        *style.unlike(panel.points),
        counted(seeds, "seed") + (", 95 % intervals" if means and seeds >= _least(panel.points) else ""),
        f"{rate / 1000:g} Gb/s" if rate >= 1000 else f"{rate:g} Mb/s",
        f"{' to '.join(map(str, dict.fromkeys((min(lengths), max(lengths)))))} flows count per point",
    ]


def _notes(panel: Panel, *own: str) -> list[str]:
    """Return how many flows have not ended, and which count."""
    each = [normalised(point.under_test, point.spec.seconds) for point in panel.points]
    unfinished = max(100 * one.unfinished / max(1, len(one.values)) for one in each)
    return [
        f"At most {unfinished:.1f} % had not ended and count with their time so far.",
        *own,
        f"Arrivals of the first {100 * COUNTED_SHARE:g} % of the window count.",
    ]


def _about(panel: Panel, what: str) -> str:
    mean_bytes = parse_sizes(_size_name(panel.spec)).mean_bytes
    sizes = f"{_sizes(panel)} sizes ({mean_bytes / 1e6:.3g} MB on average)"
    return f"{style.network(panel.spec)}, {panel.hosts} hosts, {sizes}: {what.format(highest(panel))}"


def _of_arms(
    about: str,
    *notes: str,
    means: bool = False,
    where: Callable[[PointResult], bool] = lambda _: True,
    **record: Any,
) -> Picture:
    """Return a chart of each network and distribution of flow sizes, with a series for each arm. `{}` in
    `about` is the highest load."""

    def groups(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
        return [(panel.spec, panel) for panel in studies(filter(where, inputs.points))]

    return Picture(
        groups=groups, series=by_arm, named=lambda s: f"{s.topology.kind}-{_size_name(s)}",
        about=lambda panel: _about(panel, about), settings=lambda panel: _settings(panel, means),
        notes=lambda panel: _notes(panel, *notes), **record,
    )  # fmt: skip


_TIMES = Axis(log=True, covers=(0.95, 2.05))
_LOAD = Axis(at_values=True)


def _mean_numbers(panel: Panel) -> dict[str, object]:
    """Return what each arm reaches, the simulated twin of Linux hosts beside them."""
    known = reached(panel, MEAN)
    both = {real: twin for real, twin in zip(ON_LINUX, TWINS, strict=True) if {real, twin} <= known.keys()}
    alone = {name: value for name, value in known.items() if name not in {*both, *both.values()}}
    beside = [(ARMS[real].sender, known[real], known[twin]) for real, twin in both.items()]
    return {"load": highest(panel), "alone": _labelled(alone), "beside": beside}


normalised_by_load = _of_arms(
    "mean of all flows", HOLLOW, means=True,
    rows=lambda _: [Row(2.4, [Curves(MEAN, load_of, _LOAD, _TIMES)], axis_labels.LOAD,
                        axis_labels.COMPLETION_OVER_ALONE)],
    numbers=_mean_numbers,
    finding="Completion time over time alone at {{ load }} % load{{ ', Linux (simulated)' if beside }}: "
    "{{ alone | listed('{:.2f}') }}{{ ', ' if alone and beside }}"
    "{% for arm, real, twin in beside %}{{ ', ' if not loop.first }}"
    "{{ '%s %.2f (%.2f)' % (arm, real, twin) }}{% endfor %}",
)  # fmt: skip


def _by_size(panel: Panel) -> list[Row]:
    loads = sorted({load_of(point) for point in panel.points})
    sizes = {
        "(0, 100 kB]: mean": _times(SMALL, lambda one: one.mean),
        "(0, 100 kB]: 99th percentile": P99_OF_SMALL,
        "(100 kB, 10 MB]: mean": _times(MIDDLE, lambda one: one.mean),
        "above 10 MB: mean": MEAN_OF_LARGE,
    }
    upper, lower = (
        Axis(words, ticks=loads[:: 2 if len(loads) > 4 else 1]) for words in ("", axis_labels.LOAD)
    )
    each = [
        Curves(of, load_of, lower if place > 1 else upper, _TIMES, title, title_size=8.5)
        for place, (title, of) in enumerate(sizes.items())
    ]
    return [Row(1.7, of, y=axis_labels.OVER_ALONE) for of in (each[:2], each[2:])]


normalised_by_size = _of_arms(
    "by size of flow", f"{HOLLOW} p99 from a hundred flows on.", means=True,
    rows=_by_size,
    numbers=lambda panel: {
        "load": highest(panel), "p99": _labelled(reached(panel, P99_OF_SMALL, without=IDEAL))
    },
    finding="{% if p99 %}p99 of small flows at {{ load }} % load, over their time alone: "
    "{{ p99 | listed('{:.3g}') }}{% endif %}",
)  # fmt: skip


def times_of(points: Sequence[PointResult], of: Range, load: int) -> list[float]:
    """Return the normalised times of all good seeds of one arm at a load."""
    chosen = good([point for point in points if load_of(point) == load])
    return [v for point in chosen for v in normalised(point.under_test, point.spec.seconds, of).values]


def _cdfs(panel: Panel) -> list[Row]:
    x = Axis(log=True, fit=lambda axes: axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0))))
    each = [
        Cdf(functools.partial(times_of, of=of, load=highest(panel)), x, title=of.label) for of in (ALL, SMALL)
    ]
    return [Row(1.8, [each[0]]), Row(1.8, [each[1]], axis_labels.COMPLETION_OVER_ALONE)]


def _near_alone(panel: Panel) -> dict[str, object]:
    load = highest(panel)
    times = {one.name: times_of(one.points, ALL, load) for one in by_arm(panel)}
    near = {name: 100 * sum(v <= 1.1 for v in of) / max(1, len(of)) for name, of in times.items()}
    return {"load": load, "near": _labelled(near)}


normalised_cdf = _of_arms(
    "load {} %", rows=_cdfs, numbers=_near_alone,
    finding="Flows within 1.1 times their time alone at {{ load }} % load: {{ near | listed('{:.0f} %') }}",
)  # fmt: skip
_DROPPED, _RETRANSMITTED = (functools.partial(number_of, value=of) for of in (dropped_pct, retransmitted_pct))
normalised_losses = _of_arms(
    "drops and retransmissions", where=lambda point: point.spec.engine != IDEAL,
    rows=lambda _: [
        Row(1.8, [Curves(_DROPPED, load_of, _LOAD, FROM_ZERO)], y="packets dropped (%)"),
        Row(1.8, [Curves(_RETRANSMITTED, load_of, _LOAD, FROM_ZERO)], axis_labels.LOAD, "retransmitted (%)"),
    ],
    numbers=lambda panel: {"load": highest(panel), "dropped": _labelled(reached(panel, _DROPPED))},
    finding="Packets dropped at {{ load }} % load: {{ dropped | listed('{:.2g} %') }}",
)  # fmt: skip


def _parts_axis(axes: Axes) -> None:
    low, high = axes.get_xlim()
    axes.set_xlim(0.95, max(2.5, high * (high / max(low, 0.9)) ** 0.45))
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 10 else (1.0, 2.0, 5.0)))


def _parts(panel: Panel) -> list[Row]:
    of = {ARMS[name].label: points for name, points in at_load(panel, highest(panel)).items()}
    looks = {ARMS[one.name].label: one.look for one in by_arm(panel)}
    shown = {"all: mean": MEAN, "up to 100 kB: p99": P99_OF_SMALL, "> 10 MB: mean": MEAN_OF_LARGE}
    columns = [
        Rows(
            of, number, Axis(log=True, fit=_parts_axis), title, words="{:.3g}", stems=True, size=5,
            name_size=7, title_size=7, look_of=looks.__getitem__,
        )
        for title, number in shown.items()
    ]  # fmt: skip
    return [Row(0.15 + 0.2 * len(of), columns, axis_labels.COMPLETION_OVER_ALONE)]


def _worst(panel: Panel) -> dict[str, object] | None:
    known = _labelled(reached(panel, MEAN))
    arm = max(known, key=known.__getitem__, default="")
    return {"arm": arm, "times": known[arm]} if arm else None


normalised_parts = _of_arms(
    "load {} %", HOLLOW, means=True, rows=_parts, keys=lambda _: (), numbers=_worst,
    finding="pFabric {{ arm }}: {{ '%.3g' % times }} times the time alone, the largest change",
)  # fmt: skip
_READINGS = (
    (Look("all flows, mean", "#0072B2", "o"), MEAN),
    (Look("(0, 100 kB], 99th percentile", "#D55E00", "s"), P99_OF_SMALL),
    (Look("above 10 MB, mean", "#009E73", "^"), MEAN_OF_LARGE),
)


def _sensitivity(panel: Panel) -> list[Row]:
    """Draw the size of a port's buffer in units of 1024 bytes, and the fixed timeout in us."""
    shown: list[tuple[str, Callable[[PointResult], float], list[PointResult]]] = [
        ("buffer of a port (kB of 1024 bytes)", lambda p: p.spec.link.queue_bytes / 1024,
         [p for p in panel.points if p.spec.stack.min_rto_ms == PFABRIC_RTO_MS]),
        ("timeout (us)", lambda p: 1000 * p.spec.stack.min_rto_ms,
         [p for p in panel.points if p.spec.link.queue_bytes == PFABRIC_QUEUE_BYTES]),
    ]  # fmt: skip
    if not all(points for _, _, points in shown) or _range(panel) is None:
        return []
    rows = []
    for words, over, points in shown:
        doubt = any(p.suspect for of in grouped(points, over).values() for p in good(of))
        series = [Series("", look.doubted(doubt), points, number) for look, number in _READINGS]
        curves = Curves(MEAN, over, Axis(log=True, at_values=True), _TIMES, series=series)
        rows.append(Row(1.7, [curves], words, axis_labels.OVER_ALONE))
    return rows


def _range(panel: Panel) -> dict[str, object] | None:
    """Return the least and the largest mean of a point with the usual buffer or timeout."""
    usual = [
        point
        for point in panel.points
        if point.spec.stack.min_rto_ms == PFABRIC_RTO_MS or point.spec.link.queue_bytes == PFABRIC_QUEUE_BYTES
    ]
    means = [mean.value for point in good(usual) if (mean := MEAN([point]))]
    return {"low": min(means), "high": max(means)} if means else None


normalised_sensitivity = _of_arms(
    "load {} %, minTCP + pFabric", HOLLOW, means=True, rows=_sensitivity, numbers=_range,
    keys=lambda _: [look.key(size=4.5) for look, _number in _READINGS],
    finding="Mean over all flows: {{ '%.2f' % low }} to {{ '%.2f' % high }} times the time alone",
)  # fmt: skip


@dataclass(frozen=True)
class Twins:
    """Times over times alone of the flows that ended in both, in one order."""

    arm: str
    linux: tuple[float, ...]
    simulated: tuple[float, ...]
    suspect: bool = False

    @property
    def ratio(self) -> float:
        """The median of the Linux hosts' time over the simulated one."""
        return statistics.median(a / b for a, b in zip(self.linux, self.simulated, strict=True))

    @property
    def agreement(self) -> float | None:
        """Spearman's rank correlation; None for fewer than three flows."""
        return rank_correlation(self.linux, self.simulated) if len(self.linux) > 2 else None


def twins(panel: Panel, load: int) -> list[Twins]:
    """Return the flows of all seeds at a load, for each arm that both kinds of hosts ran."""
    of, found = at_load(panel, load), []
    for linux, simulated in zip(ON_LINUX, TWINS, strict=True):
        real, twin = (
            {point.seed: ended_times(point.under_test, point.spec.seconds) for point in of.get(arm, ())}
            for arm in (linux, simulated)
        )
        both = [
            (real[seed][flow], twin[seed][flow])
            for seed in sorted(real.keys() & twin.keys())
            for flow in sorted(real[seed].keys() & twin[seed].keys())
        ]
        if both:
            doubt = any(point.suspect for arm in (linux, simulated) for point in of[arm])
            found.append(Twins(linux, tuple(a for a, _ in both), tuple(b for _, b in both), doubt))
    return found


def _at_highest(panel: Panel) -> list[Twins]:
    loads = sorted({load_of(point) for point in panel.points}, reverse=True)
    return next((found for load in loads if (found := twins(panel, load))), [])


def _pair(of: Twins) -> Pairs:
    agreement = "" if of.agreement is None else f"\nrank corr. {of.agreement:.2f}"
    return Pairs(
        of.linux, of.simulated, ARMS[of.arm].colour, (0.9, 1.2 * max(*of.linux, *of.simulated)),
        ARMS[of.arm].sender, f"{len(of.linux)} flows{agreement}", log=True, suspect=of.suspect, title_size=7,
    )  # fmt: skip


normalised_by_flow = _of_arms(
    "load {} %, flow by flow", "Flows that ended in both are drawn.", keys=lambda _: (),
    rows=lambda panel: [
        Row(1.9, list(map(_pair, found)), f"Linux: {axis_labels.OVER_ALONE}",
            f"simulated: {axis_labels.OVER_ALONE}")
        for found in [_at_highest(panel)] if found
    ],
    numbers=lambda panel: {"ratios": {ARMS[of.arm].sender: of.ratio for of in _at_highest(panel)}},
    finding="Median of each flow's time between Linux hosts over the simulated one: "
    "{{ ratios | listed('{:.2f}') }}",
)  # fmt: skip
_MIN_PCT = 0.01


def beyond_pct(points: Sequence[PointResult]) -> npt.NDArray[np.float64]:
    """Return, for each length in packets from 0 on, the percentage of samples of switch ports beyond it."""
    counts = np.zeros(1)
    samples = 0
    for point in points:
        times, queues = point.read_table("queue_times"), point.read_table("queues")
        if times is None or queues is None:
            continue
        ports = [port.port for port in point.ports if of_switch(port)]
        lengths = np.asarray(queues["pkts"])[np.isin(queues["port"], ports)].astype(np.int64)
        found = np.bincount(lengths, minlength=len(counts)).astype(float)
        found[: len(counts)] += counts
        counts = found
        samples += len(times["t_s"]) * len(ports)
    tail = counts[::-1].cumsum()[::-1]
    beyond: npt.NDArray[np.float64] = 100 * np.append(tail[1:], 0.0) / max(1, samples)
    return beyond


def _queues(panel: Panel, _: Inputs) -> Page | None:
    """Draw the arms of which a queue was not empty at the highest load."""
    load = highest(panel)
    at = at_load(panel, load)
    found = [(one, of) for one in by_arm(panel) if (of := beyond_pct(at.get(one.name, ()))).any()]
    lines = []
    for one, of in found:
        shown = np.flatnonzero(of >= _MIN_PCT)
        lines.append(Line(shown + 1, of[shown], one.look, 1.5, step="post"))
    y = "samples of ports (%)\nwith this many packets or more"
    return Page(
        rows=[Row(2.2, [Lines(lines, y=Axis(log=True))], axis_labels.QUEUE, y)] if lines else [],
        about=_about(panel, "queues of switches"), points=panel.points,
        settings=_settings(panel, means=False), notes=_notes(panel, "ACKs count as packets."),
        keys=[one.look.key(size=4.5) for one, _of in found],
        numbers={"load": load, "packets": _labelled({one.name: int((of > 1).sum()) for one, of in found})},
    )  # fmt: skip


queue_by_arm = _of_arms(
    "", where=lambda point: point.read_table("queue_times") is not None, page=_queues,
    finding="Packets that 1 % of the queues exceed at {{ load }} % load: {{ packets | listed('{}') }}",
)  # fmt: skip
