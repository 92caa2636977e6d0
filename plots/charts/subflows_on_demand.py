"""Schemes that add subflows on demand beside others: throughput or completion of jobs against subflows per
flow, and the effect of one option or one assumption changed at a time.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from analysis.completion import mean_job_s
from analysis.quantities import CONTROLLER_MESSAGES, GOODPUT_MBPS_MEAN
from harness.results.point_results import PointResult
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.schedulers import is_responsive, option_words, scheduled, scheduler_title
from model.spec import RunSpec
from model.transports import USUAL_ROUTING, transport
from plots.data import Inputs, Panel, good
from plots.kinds.axis import Axis
from plots.kinds.curves import Number, mean
from plots.kinds.plane import Plane
from plots.kinds.rows import Rows
from plots.picture import Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import Look, Mean
from workloads import matrices

APART = ("scheduler", "transport.cc", "routing", "link.ecn_pkts")
"""Fields in which the schemes of one chart differ."""
RESPONSIVE, CENTRAL, HASHED = "subflows added on demand", "central scheduler", "without a controller"
TRADE_OFF_LOOKS = {
    look.label: look
    for look in (
        Look(RESPONSIVE, "#D55E00", "o", ""),
        Look(CENTRAL, "#009E73", "*", ""),
        Look(HASHED, "#0072B2", "^", ""),
    )
}
USUAL_MOST = 4
_HEIGHT_IN = 3.1
_MAX_LABELS = 12
_SIZE_PT = 290.0, 72 * _HEIGHT_IN
"""The axes' size, for the places of names."""
ValueOf = Callable[[PointResult], float | None]


def ran(point: PointResult) -> bool:
    return bool(point.under_test) and not point.failed


def job_s(point: PointResult) -> float | None:
    """Return the mean completion time of jobs in s; None where flows have no size or a job is incomplete."""
    known = matrices.MATRICES[point.spec.workload.matrix].defaults | dict(point.spec.workload.params)
    each = int(known.get("maps", 1)) * int(known.get("reduces", 1))
    return mean_job_s(point.under_test, each)


def value_of(panel: Panel) -> ValueOf:
    """Return what schemes are compared by: completion of jobs if the flows have sizes, else goodput."""
    return job_s if _has_sizes(panel) else goodput_mbps


def marks(panel: Panel) -> list[Series]:
    """Return a series for each scheme: its points that have a value, by subflows per flow; suspect points
    count where no seed is good."""
    value, found = value_of(panel), []
    for called, of in by_scheme(panel.points, name).items():
        if known := [point for point in of if value(point) is not None]:
            found.append(Series(called, TRADE_OFF_LOOKS[kind_of(known[0])], known))
    return sorted(found, key=lambda one: statistics.fmean(map(subflows, one.points)))


def by_scheme(
    points: Iterable[PointResult], named: Callable[[PointResult], str]
) -> dict[str, Sequence[PointResult]]:
    """Return the good points of each scheme, by its name; the suspect ones where none is good."""
    return {called: good(of) for called, of in kinds.grouped(points, named).items()}


def name(point: PointResult) -> str:
    """Return a scheme's name: transport and controller, and the most subflows of a connection."""
    chosen = point.spec.scheduler
    if is_responsive(chosen):
        return f"{chosen.interval_ms:g} ms, gap {chosen.demand_gap:g}" + _unusual(point)
    usual = point.cc in {BASELINE, COUPLED_DEFAULT} and point.spec.routing == USUAL_ROUTING
    if usual and scheduled(point.spec) and point.subflows == 1:
        return scheduler_title(chosen)
    called = style.transport(point.subflows)
    if not usual:
        called = transport(point.cc, point.subflows, point.spec.routing)
    return ", ".join(filter(None, (called, scheduler_title(chosen))))


def _unusual(point: PointResult) -> str:
    """Return what else is set: `, checks=6`, `, M=8`."""
    words = [word for word in option_words(point.spec.scheduler).split(":") if not word.startswith("gap=")]
    most = [f"M={point.subflows}"] if point.subflows != USUAL_MOST else []
    return "".join(f", {word}" for word in (*words, *most) if word)


def subflows(point: PointResult) -> float:
    """Return the mean number of subflows per flow; the point must have flows."""
    return statistics.fmean(flow.subflows_joined for flow in point.under_test)


def goodput_mbps(point: PointResult) -> float:
    """Return the mean goodput per flow; the point must have flows."""
    return statistics.fmean(flow.goodput_mbps for flow in point.under_test)


def _has_sizes(panel: Panel) -> bool:
    return any(flow.size_bytes for point in panel.points for flow in point.under_test)


def kind_of(point: PointResult) -> str:
    """Return what chooses the paths of its subflows: one of TRADE_OFF_LOOKS."""
    if is_responsive(point.spec.scheduler):
        return RESPONSIVE
    return CENTRAL if scheduled(point.spec) else HASHED


def trade_off_numbers(panel: Panel) -> dict[str, object] | None:
    """Return the best scheme that adds subflows on demand, and the best of the others."""
    value, best = value_of(panel), (min if _has_sizes(panel) else max)
    means = {
        one.name: (one.look.label == RESPONSIVE, statistics.fmean(value(p) or 0.0 for p in one.points),
                   statistics.fmean(map(subflows, one.points)))
        for one in marks(panel)
    }  # fmt: skip
    ours, others = ({n: of for n, of in means.items() if of[0] is on} for on in (True, False))
    if not ours:
        return None
    own = ours[best(ours, key=lambda called: ours[called][1])]
    other = best(others, key=lambda called: others[called][1], default="")
    return {
        "unit": "%.2f s" if _has_sizes(panel) else "%.0f Mb/s", "own": own[1], "subflows": own[2],
        "other": other, "of_other": others[other][1] if other else 0.0,
    }  # fmt: skip


def settings_of(panel: Panel, *ignored: str, queues: bool = True) -> list[str]:
    """Return the settings of a caption whatever the schemes and the fields `ignored`."""
    bare = dataclasses.replace(panel, spec=panel.spec.neutral(*APART, *ignored))
    return style.parameters(bare, congestion="", queues=queues)


def _trade_off(panel: Panel) -> list[Row]:
    of = marks(panel)
    words = "completion of a job (s)" if _has_sizes(panel) else GOODPUT_MBPS_MEAN.axis
    plane = Plane(
        mean(subflows), mean(value_of(panel)), Axis(f"{axis_labels.SUBFLOWS_PER_FLOW}, mean"), Axis(words),
        margins=(0.12, 0.15), size_pt=_SIZE_PT if len(of) <= _MAX_LABELS else None,
    )  # fmt: skip
    return [Row(_HEIGHT_IN, [plane])] if of else []


def _about(panel: Panel) -> str:
    return f"{style.network(panel.spec)}, {style.workload(panel.spec)}"


trade_off = Picture(
    groups=alike(*APART, where=ran), series=marks, rows=_trade_off,
    about=lambda panel: (
        f"{style.network(panel.spec)}, {panel.hosts} hosts, {style.workload(panel.spec)}"
    ),
    settings=settings_of, notes=lambda panel: [style.intervals(len(panel.seeds))],
    keys=lambda panel: [
        TRADE_OFF_LOOKS[label].key(size=6) for label in dict.fromkeys(one.look.label for one in marks(panel))
    ],
    numbers=trade_off_numbers,
    finding="On demand: {{ unit % own }} with {{ '%.1f' % subflows }} subflows per flow"
    "{% if other %}; best of the others: {{ unit % of_other }} ({{ other }}){% endif %}",
)  # fmt: skip


@dataclass(frozen=True)
class SchemeOption:
    """An option as rows show it: what it is called, its unit, where a spec has it, and whether it is on or
    off, so that its row shows no value."""

    words: str
    unit: str
    of: Callable[[RunSpec], float]
    is_switch: bool = False


CONTROLLER_OPTIONS = (
    SchemeOption("monitor interval", "ms", lambda spec: spec.scheduler.interval_ms),
    SchemeOption("demand gap", "", lambda spec: spec.scheduler.demand_gap),
    SchemeOption("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    SchemeOption("steady checks", "", lambda spec: spec.scheduler.checks),
    SchemeOption("demand change", "", lambda spec: spec.scheduler.demand_change),
    SchemeOption("message delay", "ms", lambda spec: spec.scheduler.message_ms),
    SchemeOption("message loss", "", lambda spec: spec.scheduler.message_loss),
    SchemeOption("one flow per tick", "", lambda spec: spec.scheduler.one_per_tick, is_switch=True),
    SchemeOption("controller down", "s", lambda spec: spec.scheduler.down_for_s),
    SchemeOption("most subflows", "", lambda spec: spec.transport.subflows),
)
Setting = tuple[float, ...]
"""The value of each of CONTROLLER_OPTIONS or ASSUMPTIONS."""


@dataclass(frozen=True)
class OptionRow:
    """A value of an option with its points, one per seed; `option` is None for the usual setting."""

    option: SchemeOption | None
    value: float
    points: tuple[PointResult, ...]

    @property
    def label(self) -> str:
        if self.option is None:
            return "usual setting"
        if self.option.is_switch:
            return self.option.words
        return f"{self.option.words} {self.value:g} {self.option.unit}".rstrip()


def messages(point: PointResult) -> float | None:
    """Return messages per second between monitors and controller, in thousands."""
    count = point.metric(CONTROLLER_MESSAGES.name)
    return None if count is None else count / (point.spec.warmup_s + point.spec.seconds) / 1000


def setting(spec: RunSpec, options: Sequence[SchemeOption] = CONTROLLER_OPTIONS) -> Setting:
    return tuple(option.of(spec) for option in options)


def rows(
    points: Sequence[PointResult], options: Sequence[SchemeOption] = CONTROLLER_OPTIONS
) -> list[OptionRow]:
    """Return the usual setting, then every setting that differs from it in one option, in their order.

    The usual value of an option is the one that most points have. Suspect points count where no seed is good.
    """
    usual = tuple(
        Counter(values).most_common(1)[0][0]
        for values in zip(*(setting(point.spec, options) for point in points), strict=True)
    )
    found = kinds.grouped(points, lambda point: setting(point.spec, options))
    made = [OptionRow(None, 0.0, tuple(good(found[usual])))] if usual in found else []
    for n, option in enumerate(options):
        others = {key[n]: of for key, of in found.items() if key != usual and _differs_in(key, usual) == [n]}
        made += [OptionRow(option, value, tuple(good(others[value]))) for value in sorted(others)]
    return made


def _differs_in(one: Setting, other: Setting) -> list[int]:
    return [n for n, (a, b) in enumerate(zip(one, other, strict=True)) if a != b]


def _by_option(panel: Panel) -> list[Row]:
    """Draw a row for each value of an option, beside the usual setting."""
    of = rows(panel.points)
    if len(of) < 2:
        return []
    usual = of[0] if of[0].option is None else None
    columns = {
        GOODPUT_MBPS_MEAN.axis: mean(goodput_mbps),
        axis_labels.SUBFLOWS_PER_FLOW: mean(subflows),
        "1000 messages per s": mean(messages),
    }
    each = []
    for title, number in columns.items():
        level = number(usual.points) if usual else None
        each.append(
            Rows(
                {row.label: row.points for row in of}, number, Axis(tick_size=7), title, size=3.5,
                level=(level.value, "#777777") if level else None, name_size=7, title_size=7, margin=0.12,
                ruled=[
                    y - 0.5 for y, row in enumerate(of) if row.option and row.option is not of[y - 1].option
                ],
                look_of=lambda label: Look(
                    "", "#777777" if usual and label == usual.label else "#D55E00"
                ),
            )
        )  # fmt: skip
    return [Row(0.15 + 0.17 * len(of), each)]


def option_numbers(panel: Panel) -> dict[str, object] | None:
    """Return the value that moves goodput most, against the usual setting."""
    of = rows(panel.points)
    means = {row.label: found.value for row in of if (found := kinds.mean_over(row.points, goodput_mbps))}
    base = means.pop(of[0].label, 0.0) if of[0].option is None else 0.0
    if not base or not means:
        return None
    most = max(means, key=lambda label: abs(means[label] - base))
    return {"option": most, "pct": 100 * (means[most] / base - 1)}


by_controller_option = Picture(
    groups=alike(*APART, where=lambda point: ran(point) and is_responsive(point.spec.scheduler)),
    rows=_by_option, about=_about, settings=settings_of,
    notes=lambda panel: ["Dashed: the usual setting.", style.intervals(len(panel.seeds))],
    numbers=option_numbers,
    finding="{{ option[0] | upper }}{{ option[1:] }} moves goodput most: {{ '%+.1f' % pct }} %",
)  # fmt: skip
_CENTRAL = "Hedera"
_SCHEMES = (("#D55E00", "o"), ("#E69F00", "D"), ("#0072B2", "^"), ("#009E73", "*"), ("#CC79A7", "v"))
"""Colours and markers of the schemes of a chart, in their order."""


def _of_central(value: Callable[[RunSpec], float]) -> Callable[[RunSpec], float]:
    return lambda spec: value(spec) if scheme(spec) == _CENTRAL else 0.0


ASSUMPTIONS = (
    SchemeOption("queue", "packets", lambda spec: spec.link.queue_pkts),
    SchemeOption("delay of a link", "us", lambda spec: spec.link.delay_us),
    SchemeOption("min RTO", "ms", lambda spec: spec.stack.min_rto_ms),
    SchemeOption("delayed ACK", "ms", lambda spec: spec.stack.delayed_ack_ms),
    SchemeOption("rate variation", "", lambda spec: spec.scheduler.rate_variation),
    SchemeOption("steady checks", "", lambda spec: spec.scheduler.checks),
    SchemeOption("Hedera: every", "ms", _of_central(lambda spec: spec.scheduler.interval_ms)),
    SchemeOption(
        "Hedera: first fit", "", _of_central(lambda spec: spec.scheduler.name != "annealing"), is_switch=True
    ),
)
IGNORED = (
    *APART, "link.queue_pkts", "link.nic_queue_pkts", "link.delay_us", "stack.min_rto_ms",
    "stack.delayed_ack_ms",
)  # fmt: skip


def scheme(spec: RunSpec) -> str:
    """Return the name of a scheme whatever the assumptions: `2 ms, gap 0.15`, `MPTCP 4`, `Hedera`."""
    if is_responsive(spec.scheduler):
        return f"{spec.scheduler.interval_ms:g} ms, gap {spec.scheduler.demand_gap:g}"
    return _CENTRAL if scheduled(spec) else style.transport(spec.transport.subflows)


def with_equal_seeds(points: Sequence[PointResult]) -> list[PointResult]:
    """Return the points of those seeds that every setting of every scheme has."""
    settings = kinds.grouped(points, lambda point: (scheme(point.spec), setting(point.spec, ASSUMPTIONS)))
    seeds = [{point.seed for point in of} for of in settings.values()]
    common = set.intersection(*seeds) if seeds else set()
    return [point for point in points if point.seed in common]


def changes(points: Sequence[PointResult]) -> dict[str, list[OptionRow]]:
    """Return the rows of each scheme that has its usual setting, which is the first, and others."""
    of_scheme = kinds.grouped(points, lambda point: scheme(point.spec))
    ordered = sorted(of_scheme.items(), key=lambda one: _order(one[1][0].spec))
    found = {name: rows(of, ASSUMPTIONS) for name, of in ordered}
    return {name: of for name, of in found.items() if of[0].option is None and len(of) > 1}


def _order(spec: RunSpec) -> tuple[bool, bool, float]:
    """Schemes on demand first, the fastest monitors before others, and a central scheduler last."""
    on_demand = is_responsive(spec.scheduler)
    return not on_demand, not on_demand and scheduled(spec), spec.scheduler.interval_ms if on_demand else 0.0


def against_usual(
    of: Mapping[str, Sequence[OptionRow]], value: Callable[[PointResult, PointResult], float]
) -> Number:
    """Return the function that gives the mean of what `value` makes of the usual point of a scheme and seed
    and of another point of them."""
    before = {(name, point.seed): point for name, (usual, *_) in of.items() for point in usual.points}

    def number(points: Sequence[PointResult]) -> Mean | None:
        keys = [((scheme(point.spec), point.seed), point) for point in points]
        pairs = [(before[key], point) for key, point in keys if key in before]
        doubt = any(point.suspect for pair in pairs for point in pair)
        return kinds.mean_of([value(*pair) for pair in pairs], hollow=doubt)

    return number


def goodput_change_pct(usual: PointResult, other: PointResult) -> float:
    return 100 * (goodput_mbps(other) / goodput_mbps(usual) - 1)


def assumption_numbers(panel: Panel) -> dict[str, object] | None:
    """Return the change that moves one scheme's goodput most."""
    of = changes(panel.points)
    number, others = against_usual(of, goodput_change_pct), [(n, row) for n in of for row in of[n][1:]]
    each = [(mean.value, row.label, name) for name, row in others if (mean := number(row.points))]
    if not each:
        return None
    pct, label, called = max(each, key=lambda one: abs(one[0]))
    return {"assumption": label, "pct": pct, "scheme": called}


def _by_assumption(panel: Panel) -> list[Row]:
    of = changes(panel.points)
    found: dict[tuple[int, str], list[PointResult]] = {}
    for row in (row for _usual, *others in of.values() for row in others if row.option):
        found.setdefault((ASSUMPTIONS.index(row.option), row.label), []).extend(row.points)
    shown = {label: points for (_, label), points in sorted(found.items(), key=lambda one: one[0][0])}
    columns = {
        "goodput, change in %": goodput_change_pct,
        f"{axis_labels.SUBFLOWS_PER_FLOW}, change": lambda usual, other: subflows(other) - subflows(usual),
    }
    each = [
        Rows(
            shown, against_usual(of, value), Axis(tick_size=7.5), title, 0.0, size=4, name_size=7.5,
            title_size=7.5, margin=0.12, ruled=[y + 0.5 for y in range(len(shown) - 1)],
        )
        for title, value in columns.items()
    ]  # fmt: skip
    return [Row(0.15 + 0.3 * len(shown), each)] if of else []


def _schemes(panel: Panel) -> list[Series]:
    return [
        Series(called, Look(called, *look, ""), [point for row in of for point in row.points])
        for (called, of), look in zip(changes(panel.points).items(), _SCHEMES, strict=False)
    ]


def _with_equal_seeds(inputs: Inputs) -> list[tuple[RunSpec, Panel]]:
    points = with_equal_seeds(list(filter(ran, inputs.points)))
    return list(alike(*IGNORED)(dataclasses.replace(inputs, points=points)))


by_assumption = Picture(
    groups=_with_equal_seeds, series=_schemes, rows=_by_assumption, about=_about, key={"size": 6},
    settings=lambda panel: settings_of(panel, *IGNORED, queues=False),
    notes=lambda panel: ["0 is the usual setting.", style.intervals(len(panel.seeds))],
    numbers=assumption_numbers,
    finding="{{ assumption[0] | upper }}{{ assumption[1:] }} moves goodput most: {{ '%+.0f' % pct }} % "
    "({{ scheme }})",
)  # fmt: skip
