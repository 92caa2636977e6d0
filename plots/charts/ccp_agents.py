"""Congestion control in an agent (Narayan et al., SIGCOMM 2018): by its delay, its reporting interval and the
kind of link, and windows over time.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

import numpy as np

from analysis.completion import tail_ms
from analysis.quantities import DROPS
from ccp.names import is_agents
from harness.results.point_results import PointResult
from model import transports
from model.congestion import BASELINE
from model.links import CELL, DROP, FIXED, link_kind
from plots.data import TRANSPORT, Inputs, Panel, good
from plots.kinds.axis import Axis
from plots.kinds.curves import Curves, Number, mean
from plots.kinds.lines import Line, Lines
from plots.kinds.plane import Plane
from plots.picture import Page, Picture, Row, Series, alike
from plots.shared import axis_labels, kinds, style
from plots.shared.kinds import JOINED, Look, by_transport, grouped


def _goodput(point: PointResult) -> float:
    return sum(flow.goodput_mbps for flow in point.under_test)


def _dropped(point: PointResult) -> float:
    """Return the segments dropped in each second of the window."""
    return (point.metric(DROPS.name) or 0.0) / point.spec.seconds


def _ordered(points: Sequence[PointResult]) -> list[PointResult]:
    return sorted(points, key=lambda point: transports.rank(point.cc))


def _by_control(panel: Panel) -> list[Series]:
    found = grouped(_ordered([point for point in panel.points if point.under_test]), lambda point: point.cc)
    made = []
    for cc, of in found.items():
        look = transports.look(cc)
        marks = (look.marker, "-") if is_agents(cc) else ("", ":")
        made.append(Series(cc, Look(look.label, look.colour, *marks), of))
    return made


def _by_delay(panel: Panel) -> list[Row]:
    """Draw points with several agents; a control of the kernel has none and is a level."""
    if len({point.spec.agent for point in panel.points if point.under_test}) < 2:
        return []
    curves = [
        Curves(
            mean(value), lambda point: point.spec.agent.delay_us / 1000, Axis(log=True),
            Axis(words, low=0, room=1.08), is_level=lambda one: len({p.spec.agent for p in one.points}) == 1,
        )
        for words, value in ((axis_labels.GOODPUT_MBPS, _goodput), ("drops per second", _dropped))
    ]  # fmt: skip
    return [Row(1.8, curves[:1]), Row(1.8, curves[1:], "delay of the agent (ms)")]


by_agent_delay = Picture(
    groups=alike(*TRANSPORT, "agent"), series=_by_control, rows=_by_delay,
    about=lambda panel: style.subtitle(panel, "all flows"),
    settings=lambda panel: style.parameters(panel, congestion=""),
)  # fmt: skip
KINDS = {FIXED: "fixed rate", CELL: "cellular", DROP: "random loss"}


def queueing_ms(point: PointResult) -> float | None:
    """Return the mean time that packets wait in queues: the senders' round-trip time less what the links'
    delay takes; None without a measured round trip."""
    hops = 3
    idle_ms = 2 * (hops * point.spec.link.delay_us + 2 * point.spec.link.host_delay_us) / 1000
    known = [flow.srtt_ms_mean for flow in point.under_test if math.isfinite(flow.srtt_ms_mean)]
    return max(0.0, statistics.fmean(known) - idle_ms) if known else None


def mean_mbps(point: PointResult) -> float:
    """Return the mean goodput of the point's flows."""
    return statistics.fmean(flow.goodput_mbps for flow in point.under_test)


def on_links(panel: Panel, kind: str) -> list[Series]:
    """Return a series for each congestion control on one kind of link: its good points with a round trip, the
    suspect ones where none is good."""
    found = grouped(_ordered(panel.points), lambda point: point.cc)
    made = []
    for cc, of in found.items():
        known = good([p for p in of if p.under_test and link_kind(p.spec.link) == kind])
        known = [point for point in known if queueing_ms(point) is not None]
        if known:
            look = transports.look(cc)
            label = look.label if is_agents(cc) else f"{cc} without an agent"
            made.append(Series(cc, Look(label, look.colour, look.marker, ""), known))
    return made


def _by_link(panel: Panel) -> list[Row]:
    columns = []
    for kind, title in KINDS.items():
        if series := on_links(panel, kind):
            every = [point for one in series for point in one.points]
            longest = max(1.0, *(queueing_ms(point) or 0.0 for point in every))
            columns.append(
                Plane(
                    mean(queueing_ms), mean(mean_mbps), Axis(low=0, high=1.25 * longest, tick_size=7),
                    Axis(low=0, high=1.15 * max(map(mean_mbps, every)), tick_size=7), title, 8,
                    series=series, is_hollow=lambda one: not is_agents(one.name),
                )
            )  # fmt: skip
    return [Row(2.0, columns, "time in queues (ms)", axis_labels.GOODPUT_MBPS)] if columns else []


def link_numbers(panel: Panel) -> dict[str, object] | None:
    """Return the least and the largest difference in goodput between an agent and the kernel, in %."""
    shares = []
    for kind in KINDS:
        mbps = {one.name: statistics.fmean(map(mean_mbps, one.points)) for one in on_links(panel, kind)}
        shares += [
            100 * (value / mbps[plain] - 1)
            for cc, value in mbps.items()
            if is_agents(cc) and (plain := cc.partition(":")[2]) in mbps
        ]
    return {"low": round(min(shares)), "high": round(max(shares))} if shares else None


by_link = Picture(
    groups=alike(
        *TRANSPORT, "link.trace", "link.loss", "link.queue_pkts", where=lambda point: not point.failed
    ),
    rows=_by_link, about=lambda _: "One flow; filled: in an agent",
    settings=lambda panel: [
        *style.unlike(panel.points), f"round trip {6 * panel.spec.link.delay_us / 1000:g} ms",
        f"{panel.spec.seconds:g} s", panel.spec.engine,
    ],
    notes=lambda panel: [style.intervals(len(panel.seeds))],
    keys=lambda panel: [
        one.look.key(hollow=not is_agents(one.name), size=6)
        for one in {one.name: one for kind in KINDS for one in on_links(panel, kind)}.values()
    ],
    numbers=link_numbers,
    finding="In an agent, goodput differs by {{ '%+d' % low }} to {{ '%+d' % high }} % from goodput without "
    "one",
)  # fmt: skip
_INCASTS = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "D"), ("#CC79A7", "^"))


def _packets(point: PointResult) -> int:
    return int(point.spec.workload.params.get("packets", 100))


def over_plain(panel: Panel) -> Number:
    """Return the function that gives how many times as long the last completion takes as with the kernel's
    Reno. A seed counts where all flows completed, with the agent and without."""

    def incast(point: PointResult) -> tuple[object, ...]:
        return point.rate_mbps, _packets(point), point.subflows, point.seed

    kernels = grouped((point for point in panel.points if point.cc == BASELINE), incast)
    plain = {key: tail_ms(good(of)[0].under_test) for key, of in kernels.items()}

    def ratio(point: PointResult) -> float | None:
        tail = tail_ms(point.under_test)
        beside = plain.get(incast(point))
        return tail / beside if tail is not None and beside else None

    return mean(ratio)


def incasts(panel: Panel) -> list[Series]:
    """Return a series for each rate, size of flows and congestion control in an agent that has several
    intervals with a ratio."""
    number, sizes = over_plain(panel), sorted(set(map(_packets, panel.points)))
    of = [point for point in panel.points if is_agents(point.cc) and point.spec.agent.report_us]
    found = grouped(of, lambda point: (point.rate_mbps, _packets(point), point.cc))
    made = []
    for (_, packets, cc), points in sorted(found.items()):
        looks = _INCASTS[sizes.index(packets) % len(_INCASTS)]
        by_interval = grouped(points, lambda point: point.spec.agent.report_us)
        known = [each for each in by_interval.values() if number(each) is not None]
        if len(known) > 1:
            made.append(Series(cc, Look(f"{packets} packets", *looks), [p for each in known for p in each]))
    return made


def _by_interval(panel: Panel) -> list[Row]:
    by_rate: dict[float, list[Series]] = {}
    for one in incasts(panel):
        by_rate.setdefault(one.points[0].rate_mbps, []).append(one)
    values = [mean.value for mean in _ratios(panel)]
    columns = [
        Curves(
            over_plain(panel), lambda point: point.spec.agent.report_us,
            Axis(log=True, at_values=True, tick_size=6),
            Axis(low=0, high=1.1 * max(*values, 1.5), tick_size=6), f"{rate / 1000:g} Gb/s", 1.0, 4,
            series=series, title_size=8,
        )
        for rate, series in by_rate.items()
    ]  # fmt: skip
    return [Row(2.0, columns, "time between reports (us)", "last completion, x Reno's")] if columns else []


def _ratios(panel: Panel) -> list[kinds.Mean]:
    number = over_plain(panel)
    each = [grouped(one.points, lambda point: point.spec.agent.report_us) for one in incasts(panel)]
    return [found for of in each for points in of.values() if (found := number(points))]


def interval_numbers(panel: Panel) -> dict[str, object] | None:
    """Return the least and the largest ratio of last completions with an agent and without one."""
    ratios = [mean.value for mean in _ratios(panel)]
    return {"low": min(ratios), "high": max(ratios)} if ratios else None


by_report_interval = Picture(
    groups=alike(*TRANSPORT, "agent", "workload", "link.rate_mbps", where=lambda point: not point.failed),
    rows=_by_interval,
    about=lambda panel: f"Incast of {panel.hosts - 1} flows to one host, "
    + ", ".join(sorted({transports.title(one.name) for one in incasts(panel)})),
    settings=lambda panel: [
        *style.unlike(panel.points), f"round trip {4 * panel.spec.link.delay_us:g} us",
        style.queue_limit(panel.spec.link.queue_pkts),
        f"agent answers after {max(p.spec.agent.delay_us for p in panel.points if is_agents(p.cc)):g} us",
    ],
    notes=lambda panel: [style.intervals(len(panel.seeds))],
    keys=lambda panel: [
        look.key(size=4, width=1.4) for look in {one.look.label: one.look for one in incasts(panel)}.values()
    ],
    numbers=interval_numbers,
    finding="The last flow takes {{ '%.2f' % low }} to {{ '%.2f' % high }} times as long as without an agent",
)  # fmt: skip
_MAX_CURVES, _MAX_SAMPLES = 4, 400
Window = tuple[kinds.Floats, kinds.Floats, float]


def _window(point: PointResult) -> Window | None:
    """Return instants, the first flow's window at them, and its mean in the measured window; None without
    samples."""
    sockets = point.read_table("sockets")
    if sockets is None or not len(sockets):
        return None
    first = np.flatnonzero(sockets["flow"] == 0)
    t_s, cwnd = sockets["t_s"][first], sockets["cwnd_pkts"][first]
    if not (t_s >= 0).any():
        return None
    step = max(1, len(first) // _MAX_SAMPLES)
    return t_s[::step], cwnd[::step], float(cwnd[t_s >= 0].mean())


def _beside(panel: Panel, _: Inputs) -> Page | None:
    firsts = [group[0] for group in by_transport(panel)]
    shown = [(one, found) for one in firsts if (found := _window(one)) is not None][:_MAX_CURVES]
    if len(shown) < 2:
        return None
    top = 1.05 * max(float(cwnd.max()) for _, (_, cwnd, _) in shown)
    rows = []
    for point, (t_s, cwnd, pkts) in shown:
        look = Look("", transports.look(point.cc).colour, "").doubted(point.suspect)
        lines = Lines(
            [Line(t_s, cwnd, look, 1.0)], Axis(low=float(t_s.min()), high=max(float(t_s.max()), 1e-3)),
            Axis(axis_labels.CWND, low=0, high=top, size=8.5), hatched=point.suspect,
            title=f"{transports.title(point.cc)}: mean {pkts:.0f} packets",
        )  # fmt: skip
        rows.append(Row(1.5, [lines], axis_labels.SECONDS if point is shown[-1][0] else ""))
    return Page(
        rows=rows, about=style.subtitle(panel, "congestion windows"), points=panel.points,
        numbers={"pkts": [(transports.title(point.cc), pkts) for point, (_, _, pkts) in shown]},
        settings=style.parameters(panel, congestion=""),
        notes=["Seconds count from the opening of the measured window."],
    )  # fmt: skip


windows_beside = Picture(
    groups=alike(*JOINED), page=_beside,
    finding="Mean window in packets: {{ pkts | listed('{:.0f}') }}",
)  # fmt: skip
