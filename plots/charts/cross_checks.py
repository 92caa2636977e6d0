"""Two engines or simulators compared: flow by flow, by subflows, and by rank.

Points belong together if they differ in the engine alone: the same flows over the same paths.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.patches import Patch

from analysis.quantities import GOODPUT_PCT_MEAN, JAIN, LINK_PCT_MEAN
from analysis.stats import correlation, rank_correlation
from engines.registry import FLOW_LEVEL, LINUX_HOSTS, MAX_MIN, SIMULATED_HOSTS, SIMULATOR
from harness.results.point_results import PointResult
from model import transports
from model.spec import RunSpec
from plots.data import Inputs, Panel, good, jain, of_both_engines
from plots.kinds.axis import Axis
from plots.kinds.bars import DOTS, Bars, Repeats, published, sample
from plots.kinds.pairs import Pairs
from plots.kinds.ranks import Ranks, flows_pct, note, percent
from plots.picture import Page, Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look

MAX_COLUMNS = 3


@dataclass(frozen=True)
class EnginePairs:
    """One transport: its points in both engines, one pair per seed."""

    name: str
    subflows: int
    pairs: tuple[tuple[PointResult, PointResult], ...]

    @property
    def dubious(self) -> bool:
        return any(here.suspect for here, _ in self.pairs)

    @property
    def flows(self) -> tuple[list[float], list[float]]:
        """Goodput in %, emulated and simulated, of all flows of all seeds."""
        both = [
            (x, y) for here, there in self.pairs for x, y in zip(here.flows_pct, there.flows_pct, strict=True)
        ]
        return [x for x, _ in both], [y for _, y in both]

    @property
    def difference(self) -> float:
        """The simulated minus the emulated mean, in points of optimal."""
        emulated, simulated = self.flows
        return statistics.fmean(simulated) - statistics.fmean(emulated)

    @property
    def title(self) -> str:
        """The title in two lines, for a narrow chart."""
        return "\nTCP" if self.subflows == 1 else f"MPTCP {self.subflows}\n{transports.title(self.name)}"


def _traffic(spec: RunSpec) -> str:
    """Return the traffic in common: simulated flows all start at once, as those of `native` traffic do."""
    return "native" if spec.engine in SIMULATED_HOSTS else spec.traffic


def columns_of(panel: Panel) -> list[EnginePairs]:
    """Return the transports of a panel that both engines ran, TCP first, at most `MAX_COLUMNS`. Others are
    compared with the engine that has Linux hosts."""
    usable = [point for point in panel.points if point.flows_pct and not point.failed]
    known = {point.spec.engine for point in usable}
    standard = next((name for name in LINUX_HOSTS if name in known), "")
    emulated = {_key(point): point for point in usable if point.spec.engine == standard}
    pairs: dict[tuple[int, int, str], list[tuple[PointResult, PointResult]]] = {}
    for point in usable:
        if point.spec.engine != standard and _key(point) in emulated:
            rank = (transports.rank(point.algorithm), point.subflows, point.algorithm)
            pairs.setdefault(rank, []).append((emulated[_key(point)], point))
    ordered = sorted(pairs.items(), key=lambda item: item[0])
    return [EnginePairs(name, count, tuple(both)) for (_, count, name), both in ordered][:MAX_COLUMNS]


def _key(point: PointResult) -> tuple[str, int, int]:
    return point.algorithm, point.subflows, point.seed


def corner(column: EnginePairs) -> str:
    """Return the text in the corner of a scatter plot."""
    r, rho = correlation(*column.flows), rank_correlation(*column.flows)
    lines = [
        f"r {r:.2f}" if r is not None else "",
        f"\N{GREEK SMALL LETTER RHO} {rho:.2f}" if rho is not None else "",
    ]
    return "\n".join([*filter(None, lines), f"mean {column.difference:+.1f}"])


_SIDES = Look("emulated", style.FAINT, ""), Look("simulated", style.INK, "", (0, (2, 1)))


def _cross_check(panel: Panel, _: Inputs) -> Page | None:
    """Draw points that differ at most in engine, transport and seed."""
    columns = columns_of(panel)
    if not columns:
        return None
    y = Axis(low=0, high=1.06 * max(100.0, *(max(map(max, of.flows)) for of in columns)), ticks=(0, 50, 100))
    scatters, ranks, series = [], [], list[list[Series]]()
    for of in columns:
        (emulated, simulated), colour = of.flows, transports.look(of.name).colour
        limits, ticks = scale([*emulated, *simulated])
        scatters.append(Pairs(emulated, simulated, colour, limits, of.title, corner(of), ticks=ticks,
                              x_label="emulated (%)", suspect=of.dubious))  # fmt: skip
        sides = dataclasses.replace(_SIDES[0], colour=colour), _SIDES[1]
        series.append([Series("", look, [pair[n] for pair in of.pairs]) for n, look in enumerate(sides)])
        ranks.append(Ranks(flows_pct, percent(50, axis_labels.FLOWS_SHORT), y, series=series[-1],
                           hatched=of.dubious))  # fmt: skip
    shown = [point for of in columns for pair in of.pairs for point in pair]
    network = f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    return Page(
        rows=[Row(1.35, scatters, y="simulated (%)"), Row(1.35, ranks, y=axis_labels.GOODPUT_PCT)],
        about=f"{network}: goodput of every flow in both engines",
        numbers={"off": [(transports.title(of.name), of.difference) for of in columns]},
        points=shown,
        settings=style.parameters(dataclasses.replace(panel, points=tuple(shown)), congestion="TCP: reno"),
        notes=[
            *note(series[0], flows_pct), "r: Pearson's, \N{GREEK SMALL LETTER RHO}: Spearman's correlation.",
            style.definition(panel),
        ],
        keys=[look.key() for look in _SIDES],
    )  # fmt: skip


cross_check = Picture(
    groups=alike(
        "engine", "stack", "traffic", "transport.cc", apart=lambda point: _traffic(point.spec),
        made=lambda panel: of_both_engines(panel, _traffic(panel.points[0].spec)),
    ),
    page=_cross_check,
    finding="Simulated minus emulated: {{ off | listed('{:+.1f}') }} points",
)  # fmt: skip


def scale(values: Sequence[float]) -> tuple[tuple[float, float], list[float]]:
    """Return the limits of an axis and its ticks: from a multiple of 20 below 100 to above the largest value,
    so that high values spread; ticks end at 100 %, which flows may exceed."""
    low, high = min(20 * (min(values) // 20), 80.0), max(100.0, *values)
    return (low, high + 0.03 * (high - low)), [low, (low + 100) / 2, 100.0]


ENGINES = {
    SIMULATOR: Look("packet level", "#111111", ""),
    FLOW_LEVEL: Look("flow level, equilibrium", "#0072B2", "", (0, (5, 1.5))),
    MAX_MIN: Look("flow level, max-min", "#E69F00", "", (0, (1.5, 1.5))),
}
"""The look of each engine, the same in bars and curves."""


def _in_engines(panel: Panel) -> Panel:
    subflows = tuple(sorted({point.subflows for point in panel.points}))
    spec = dataclasses.replace(panel.spec, engine=SIMULATOR)
    return dataclasses.replace(panel, spec=spec, subflows=subflows)


def _of(panel: Panel, engine: str, subflows: int) -> Sequence[PointResult]:
    """Return the good points of an engine; the suspect ones where none is good."""
    return good([p for p in panel.points if (p.spec.engine, p.subflows) == (engine, subflows)])


def mean_goodput_pct(panel: Panel, engine: str, subflows: int) -> float | None:
    """Return the mean goodput in % over the seeds; None if the engine did not run it."""
    found = kinds.mean_of(statistics.fmean(point.flows_pct) for point in _of(panel, engine, subflows))
    return found.value if found else None


def difference(panel: Panel, engine: str) -> tuple[float, float] | None:
    """Return the mean of a model minus that of packets, in points: on average over subflow counts, and the
    extreme."""
    off = [
        model - packets
        for count in panel.subflows
        if (model := mean_goodput_pct(panel, engine, count)) is not None
        and (packets := mean_goodput_pct(panel, SIMULATOR, count)) is not None
    ]
    return (statistics.fmean(off), max(off, key=abs)) if off else None


def flow_level_numbers(panel: Panel) -> Mapping[str, object] | None:
    """Return the difference of the equilibrium from packets, or its goodput if there are no packets."""
    most, off = panel.subflows[-1], difference(panel, FLOW_LEVEL)
    mean = mean_goodput_pct(panel, FLOW_LEVEL, most)
    if off is None and mean is None:
        return None
    return {"off": off, "mean": mean, "most": style.transport(most)}


def _flow_level(panel: Panel, inputs: Inputs) -> Page:
    """Draw points of each engine, with published means."""
    ends = sorted({panel.subflows[0], panel.subflows[-1]})
    beside = [lv for lv in inputs.beside(panel, GOODPUT_PCT_MEAN) if not lv.shape]
    here = [engine for engine in ENGINES if any(point.spec.engine == engine for point in panel.points)]
    names = dict(zip(panel.subflows, style.short_names(panel.subflows), strict=True))
    bars = Bars(
        {name: [sample(ENGINES[engine], _of(panel, engine, n), lambda p: statistics.fmean(p.flows_pct))
                for engine in here] for n, name in names.items()},
        optimum=100.0,
        levels={name: published([lv for lv in beside if lv.subflows == n]) for n, name in names.items()},
    )  # fmt: skip
    series = [
        [
            Series("", ENGINES[engine].doubted(of[0].suspect), of)
            for engine in here
            if (of := _of(panel, engine, n))
        ]
        for n in ends
    ]
    ranks = [
        Ranks(flows_pct, percent(50, axis_labels.FLOWS), Axis(low=0, high=106, ticks=range(0, 101, 25)),
              title=style.transport(n), series=of)
        for n, of in zip(ends, series, strict=True)
    ]  # fmt: skip
    off = difference(panel, MAX_MIN)
    doubtful = any(p.suspect for engine in here for n in panel.subflows for p in _of(panel, engine, n))
    return Page(
        rows=[
            Row(1.9, [bars], axis_labels.TRANSPORTS, axis_labels.on_two_lines(GOODPUT_PCT_MEAN.axis)),
            Row(1.9, ranks, y=axis_labels.GOODPUT_PCT),
        ],
        about=style.subtitle(panel, "mean, and goodput of every flow"), numbers=flow_level_numbers(panel),
        points=panel.points, settings=style.parameters(panel),
        notes=[
            *note(series[-1], flows_pct),
            f"Max-min minus packets: {off[0]:+.1f} points on average." if off else "",
            "" if SIMULATOR in here else "No packet-level points here.", style.definition(panel),
            *style.sources(beside),
        ],
        keys=[
            *(Patch(facecolor=ENGINES[e].colour, label=ENGINES[e].label) for e in here),
            *kinds.doubt_key(doubtful, hatched=True),
        ],
        more_keys=style.published_key(beside, panel),
    )  # fmt: skip


flow_level = Picture(
    groups=alike(
        "engine", made=_in_engines,
        where=lambda point: bool(point.flows_pct) and not point.failed and point.spec.engine in ENGINES,
    ),
    page=_flow_level,
    finding="{% if off %}Equilibrium minus packets: {{ '%+.1f' % off[0] }} points on average, "
    "{{ '%+.1f' % off[1] }} at most{% else %}"
    "{{ most }} at equilibrium: {{ '%.0f' % mean }} % of optimal{% endif %}",
)  # fmt: skip


OURS = Look("refabric, mean over seeds", "#0072B2", dash="")


def of_link_pct(point: PointResult) -> float:
    """Mean goodput of the point's flows in % of the link rate."""
    return 100 * statistics.fmean(flow.goodput_mbps for flow in point.under_test) / point.rate_mbps


def _other_simulator(panel: Panel, inputs: Inputs) -> Page | None:
    measured = {n: points for n in panel.subflows if (points := [p for p in panel.best(n) if p.under_test])}
    if not measured:
        return None
    rows, off = [], []
    for quantity, value, high, unit in (
        (LINK_PCT_MEAN, of_link_pct, 104, " (points)"),
        (JAIN, jain, 1.03, ""),
    ):
        theirs = {level.subflows: level.value for level in inputs.beside(panel, quantity)}
        ours = {n: sample(OURS, points, value) for n, points in measured.items()}
        minus = {
            n: Repeats(OURS, *([v - theirs[n] for v in values] for values in (of.good, of.suspect)))
            for n, of in ours.items()
            if n in theirs
        }
        if quantity is LINK_PCT_MEAN:
            off = [abs(statistics.fmean(of.good or of.suspect)) for of in minus.values()]
        of_theirs = {f"{n}": [(value, "")] for n, value in theirs.items()}
        rows += [
            Row(1.3, [Bars({f"{n}": [of] for n, of in ours.items()}, DOTS, Axis(low=0, high=high),
                           levels=of_theirs)], y=axis_labels.on_two_lines(quantity.axis)),
            Row(0.9, [Bars({f"{n}": [minus[n]] if n in minus else [] for n in ours}, DOTS,
                           Axis(f"ours minus\ntheirs{unit}", size=8.5),
                           levels={name: [(0.0, "")] for name in of_theirs})],
                axis_labels.SUBFLOWS if quantity is JAIN else ""),
        ]  # fmt: skip
    papers = ", ".join(dict.fromkeys(level.paper for level in inputs.levels))
    return Page(
        rows=rows, about=style.subtitle(panel, "by subflows"),
        numbers={"off": max(off), "papers": papers} if off else None,
        points=[point for points in measured.values() for point in points], settings=style.parameters(panel),
        notes=[
            f"Dashed: {papers} at the same parameters." if papers else "",
            f"Dots: one seed each. {style.intervals(max(map(len, measured.values())))}",
        ],
        keys=[OURS.key(), *([kinds.dashed_key(papers)] if papers else [])],
    )  # fmt: skip


other_simulator = Picture(
    groups=alike(), page=_other_simulator, finding="At most {{ '%.1f' % off }} points from {{ papers }}"
)
