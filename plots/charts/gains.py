"""The same traffic on several networks: throughput and gain by load, by traffic matrix and by network
(SIGCOMM 2011).

A gain is goodput divided by that of TCP on the first network, whose hosts have one NIC, for the same seed.
"""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN
from controllers.routing import DIGITS
from harness.results.point_results import PointResult
from model.spec import RunSpec, TopologySpec, WorkloadSpec
from model.transports import USUAL_ROUTING
from plots.data import Inputs, Panel, common, good, jain, panels, together
from plots.kinds.axis import FROM_ZERO, Axis
from plots.kinds.curves import Curves, Number, mean
from plots.kinds.rows import Rows
from plots.picture import Picture, Row, Series
from plots.shared import kinds, style
from plots.shared.kinds import Look, grouped
from plots.shared.naming import shape
from topos import TOPOLOGIES
from workloads import matrices

ValueOf = Callable[[PointResult], float]
_MARKERS = ("o", "^", "D", "v")
_LINES = ("-", (0, (1, 1.1)), "-.", (0, (5, 1, 1, 1, 1, 1)))
"""Line styles of the first network, the second, and so on; dashes mark suspect points."""


def _network(point: PointResult) -> str:
    return style.network(point.spec)


def networks(panel: Panel) -> list[str]:
    """Return the names of the networks, in the order of the registry of topologies."""
    of_registry = list(TOPOLOGIES)
    place = {_network(p): (of_registry.index(p.spec.topology.kind), shape(p.spec)) for p in panel.points}
    return sorted(place, key=place.__getitem__)


def curves(panel: Panel) -> list[Series]:
    """Return a series for each transport on each network, the first network's first; its name has the network
    where there are several."""
    names = networks(panel)
    found = grouped(panel.points, lambda point: (names.index(_network(point)), point.subflows))
    made = []
    for (place, subflows), of in sorted(found.items()):
        transport = style.transport(subflows)
        label = f"{transport}, {names[place]}" if len(names) > 1 else transport
        at = place % len(_MARKERS)
        made.append(Series(label, Look(label, style.colour(subflows), _MARKERS[at], _LINES[at]), of))
    return made


def _dubious(points: Sequence[PointResult]) -> bool:
    """Whether any mark of a curve rests on suspect points."""
    each = grouped(points, lambda point: point.matrix).values()
    return any(point.suspect for of in each for point in good(of))


def _number(points: Sequence[PointResult], panel: Panel, value: Callable[[PointResult], Any]) -> Any:
    curve = points[0].subflows, _network(points[0])
    series = [point for point in panel.points if (point.subflows, _network(point)) == curve]
    return kinds.mean_of(map(value, good(points)), hollow=_dubious(series))


def reached(panel: Panel, value: ValueOf) -> Number:
    """Return the function that gives the mean; hollow where any mark of the curve rests on suspect points."""
    return lambda points: _number(points, panel, value)


def gain(panel: Panel, value: ValueOf) -> Number:
    """Return the function that gives the mean gain, of the seeds that TCP ran on the first network."""
    first = networks(panel)[0]
    found = grouped(
        (p for p in panel.points if p.subflows == 1 and _network(p) == first), lambda point: point.matrix
    )
    tcp = {(p.matrix, p.seed): value(p) for of in found.values() for p in good(of)}

    def of_seed(point: PointResult) -> float | None:
        of_tcp = tcp.get((point.matrix, point.seed))
        return value(point) / of_tcp if of_tcp else None

    return lambda points: _number(points, panel, of_seed)


def baseline(panel: Panel) -> str:
    """Return what gains are relative to."""
    names = networks(panel)
    return f"TCP on {names[0]}" if len(names) > 1 else "TCP"


def studies(points: Iterable[PointResult], by: Callable[[PointResult], str]) -> list[Panel]:
    """Group points by what they have in common: their size, all of the setting but network and matrix, and
    what `by` returns. Points without flows, failed ones and baselines are left out."""
    usable = (point for point in points if point.under_test and not point.failed)
    of = panels(usable, (), ("topology", "workload"), lambda p: (p.spec.topology.k, by(p)))
    return sorted(of, key=lambda panel: panel.points[0].spec.topology.k)


def _named(panel: Panel) -> RunSpec:
    """Return the setting that names the chart's files: the first network's size and the first matrix."""
    first = panel.points[0].spec
    sized = TopologySpec(params={"k": first.topology.k})
    return dataclasses.replace(panel.spec, topology=sized, workload=WorkloadSpec(first.workload.matrix))


def _settings(panel: Panel) -> list[str]:
    """Return the settings of every network."""
    each = grouped(panel.points, _network)
    of = [
        Panel(
            dataclasses.replace(panel.spec, topology=each[name][0].spec.topology),
            tuple(sorted({point.subflows for point in each[name]})),
            tuple(each[name]),
        )
        for name in networks(panel)
    ]
    return style.parameters(*of)


def _study(about: Callable[[Panel], str], **record: Any) -> Picture:
    return Picture(
        series=curves, settings=_settings, about=lambda panel: " and ".join(networks(panel)) + about(panel),
        notes=lambda panel: [style.intervals(len(panel.seeds))], key={}, **record,
    )  # fmt: skip


def per_host_pct(point: PointResult) -> float:
    """Return the goodput of all flows in % of the rate of one link of every host."""
    return 100 * _total_mbps(point) / point.hosts / point.rate_mbps


def per_sender_pct(point: PointResult) -> float:
    """Return the mean goodput of a sending host in % of one link; above 100 where it fills several."""
    return 100 * _total_mbps(point) / len({flow.src for flow in point.under_test}) / point.rate_mbps


def _total_mbps(point: PointResult) -> float:
    return math.fsum(flow.goodput_mbps for flow in point.under_test)


def _loads(panel: Panel) -> dict[str, float]:
    """Return the mean number of connections per host of each matrix, ascending, from the first network that
    has it."""
    found: dict[str, float] = {}
    for point in panel.points:
        found.setdefault(point.matrix, len(point.under_test) / point.hosts)
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


def _at_several_loads(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    for panel in studies(inputs.points, lambda point: point.spec.workload.matrix):
        loads = list(_loads(panel).values())
        if len(set(loads)) == len(loads) > 1:
            yield _named(panel), panel


def load_numbers(panel: Panel) -> dict[str, object] | None:
    """Return which curve gains most over TCP on the first network, and at what load.

    Curves with suspect points count only if there are no others."""
    others, number = curves(panel), gain(panel, per_host_pct)
    others = [one for one in others if one.points[0].subflows > 1 or one.look.marker != _MARKERS[0]]
    found = {}
    for one in [one for one in others if not _dubious(one.points)] or others:
        for matrix, of in grouped(one.points, lambda point: point.matrix).items():
            if (mean := number(of)) is not None:
                found[mean.value] = one, matrix
    if not found:
        return None
    one, matrix = found[max(found)]
    return {
        "curve": one.name, "suspect": _dubious(one.points), "gain": max(found), "tcp": baseline(panel),
        "load": _loads(panel)[matrix],
    }  # fmt: skip


def _by_load(panel: Panel) -> list[Row]:
    loads = _loads(panel)
    x = Axis(log=True, at_values=True)
    over_tcp = f"times {baseline(panel)}".replace(" on ", "\non ")

    def at(point: PointResult) -> float:
        return loads[point.matrix]

    return [
        Row(2.1, [Curves(reached(panel, per_host_pct), at, x, FROM_ZERO)],
            y="goodput per host\n(% of one NIC)"),
        Row(1.7, [Curves(gain(panel, per_host_pct), at, x, FROM_ZERO, line=1)],
            "mean number of connections per host", over_tcp),
    ]  # fmt: skip


by_load = _study(
    lambda panel: f": {style.workload(panel.points[0].spec)}, by load",
    groups=_at_several_loads, named=lambda spec: f"k{spec.topology.k}-{spec.workload.matrix}", rows=_by_load,
    numbers=load_numbers,
    finding="{{ curve }}{{ ' (suspect)' if suspect }}: up to {{ '%.2f' % gain }} times {{ tcp }}, at "
    "{{ '%.2g' % load }} connections per host",
)  # fmt: skip


def words(panel: Panel) -> dict[str, str]:
    """Return the names of the matrices: their text where that is unique, else as on command lines."""
    labels = {p.matrix: matrices.words(p.spec.workload.matrix, p.spec.workload.params) for p in panel.points}
    names = list(labels.values())
    return {m: name if name and names.count(name) == 1 else m for m, name in labels.items()}


def by_gain(panel: Panel) -> dict[str, float]:
    """Return the gain of the last curve (most subflows, last network) by matrix, the largest first; 0 without
    TCP."""
    last, number = curves(panel)[-1], gain(panel, per_sender_pct)
    of = grouped(last.points, lambda point: point.matrix)
    found = {matrix: number(of[matrix]) if matrix in of else None for matrix in words(panel)}
    values = {matrix: mean.value if mean else 0.0 for matrix, mean in found.items()}
    return dict(sorted(values.items(), key=lambda pair: -pair[1]))


def matrix_numbers(panel: Panel) -> dict[str, object] | None:
    """Return under which matrix the last curve gains most, and under which least."""
    gains, last = {name: gained for name, gained in by_gain(panel).items() if gained}, curves(panel)[-1]
    if not gains or last.points[0].subflows == 1:
        return None
    most, *_, least = [*gains, *gains]
    return {
        "curve": last.name, "suspect": _dubious(last.points), "tcp": baseline(panel),
        "gains": [(words(panel)[name], gains[name]) for name in dict.fromkeys((most, least))],
    }  # fmt: skip


def _by_matrix(panel: Panel) -> list[Row]:
    names = words(panel)
    rows = {names[name]: [point for point in panel.points if point.matrix == name] for name in by_gain(panel)}
    height = max(0.9, 0.3 * len(rows))
    return [
        Row(height, [Rows(rows, number(panel, per_sender_pct), Axis(label, low=0), line=line, apart=0.5,
                          margin=0.06)])
        for number, label, line in (
            (reached, "goodput per sending host (% of one NIC)", None),
            (gain, f"times {baseline(panel)}", 1.0),
        )
    ]  # fmt: skip


by_matrix = _study(
    lambda _: ", by traffic matrix",
    groups=lambda inputs: [(_named(panel), panel) for panel in studies(inputs.points, lambda _: "matrices")],
    named=lambda spec: f"k{spec.topology.k}", rows=_by_matrix, numbers=matrix_numbers,
    keys=lambda panel: [dataclasses.replace(one.look, dash="").key() for one in curves(panel)],
    finding="{{ curve }}{{ ' (suspect)' if suspect }}: {{ '%.2f' % gains[0][1] }} times {{ tcp }} with "
    "{{ gains[0][0] }}{% if gains | length > 1 %}, {{ '%.2f' % gains[1][1] }} with {{ gains[1][0] }}"
    "{% endif %}",
)  # fmt: skip
_NETWORK_MARKERS = {1: "s", 2: "v", 4: "o", 8: "^"}


def _usually_routed(panel: Panel) -> Panel:
    """Give BCube's own routing the name of the usual one, so that its row stands beside the others."""
    if panel.spec.routing != DIGITS:
        return panel
    return dataclasses.replace(panel, spec=dataclasses.replace(panel.spec, routing=USUAL_ROUTING))


def _measured(panel: Panel, subflows: int) -> list[PointResult]:
    return [point for point in panel.best(subflows) if point.mean_pct is not None and point.under_test]


def _goodput(point: PointResult) -> float:
    return point.mean_pct or 0.0


def network_gain(panel: Panel) -> float | None:
    """Return the goodput with the largest number of subflows over that of TCP; None without either."""
    most = max(panel.subflows)
    tcp, mptcp = _measured(panel, 1), _measured(panel, most)
    if most == 1 or not mptcp or not any(map(_goodput, tcp)):
        return None
    return statistics.fmean(map(_goodput, mptcp)) / statistics.fmean(map(_goodput, tcp))


def _networks(inputs: Inputs) -> Iterable[tuple[RunSpec, Panel]]:
    """Yield the measured points of each setting on all networks, those of the largest gain first."""
    measured = (p for p in panels(inputs.points, inputs.expected) if any(_measured(p, n) for n in p.subflows))
    for group in together(map(_usually_routed, measured), "topology"):
        of = sorted(group, key=lambda panel: -(network_gain(panel) or 0.0))
        known = [
            dataclasses.replace(p, points=tuple(q for n in p.subflows for q in _measured(p, n))) for p in of
        ]
        yield group[0].spec.neutral("topology"), common(known, "topology")


def _each_network(panel: Panel) -> Mapping[str, Panel]:
    return {
        name: dataclasses.replace(
            panel, points=tuple(of), spec=dataclasses.replace(panel.spec, topology=of[0].spec.topology)
        )
        for name, of in grouped(panel.points, _network).items()
    }


def network_numbers(panel: Panel) -> dict[str, object] | None:
    """Return where the largest number of subflows gains most over TCP, and where least."""
    found = {name: gained for name, of in _each_network(panel).items() if (gained := network_gain(of))}
    if not found:
        return None
    ends = max(found, key=found.__getitem__), min(found, key=found.__getitem__)
    return {"most": max(panel.subflows), "gains": [(name, found[name]) for name in ends[: len(found)]]}


def _transports(panel: Panel) -> list[Series]:
    found = grouped(panel.points, lambda point: point.subflows)
    return [
        Series(str(n), Look(style.transport(n), style.colour(n), _NETWORK_MARKERS.get(n, "D"), ""),
               found.get(n, ()))
        for n in panel.subflows
    ]  # fmt: skip


def _by_network(panel: Panel) -> list[Row]:
    of = {f"{name}\n{one.hosts} hosts": one.points for name, one in _each_network(panel).items()}
    height, apart = max(1.0, 0.36 * len(of)), 0.12 * len(panel.subflows)
    return [
        Row(height, [Rows(of, mean(value), x, line=line, apart=apart, name_size=7.5, ruled=range(len(of)))])
        for value, x, line in (
            (_goodput, Axis(GOODPUT_PCT_MEAN.axis_in(style.OF_ONE_FLOW), low=0), 100.0),
            (jain, Axis(JAIN.about, low=0, high=1.03), None),
        )
    ]  # fmt: skip


by_network = Picture(
    groups=_networks, named=lambda spec: spec.workload.matrix, series=_transports, rows=_by_network,
    settings=lambda panel: style.parameters(*_each_network(panel).values()),
    about=lambda panel: f"{style.workload(panel.spec)} on {len(_each_network(panel))} "
    f"network{'s' * (len(_each_network(panel)) > 1)}",
    notes=lambda panel: [
        style.intervals(max(len(of.seeds) for of in _each_network(panel).values())), "Networks by gain."
    ],
    keys=lambda panel: [one.look.key() for one in _transports(panel) if one.points],
    numbers=network_numbers,
    finding="MPTCP {{ most }} gains most on {{ gains[0][0] }}, {{ '%.2f' % gains[0][1] }} times TCP"
    "{% if gains | length > 1 %}, least on {{ gains[1][0] }}, {{ '%.2f' % gains[1][1] }} times{% endif %}",
)  # fmt: skip
