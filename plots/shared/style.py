"""The look that all charts share: palette, marks and recurring texts.

TCP has the vermillion of Okabe and Ito; subflow counts run along viridis from light to dark without its
yellow end, so their order shows in print too. Algorithms have the colours and markers of their records
(model/transports.py), from the palettes of Okabe and Ito and of Tol. Suspect points are hatched, hollow or
dashed; published values are dashed black.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.axis import XAxis, YAxis
from matplotlib.colors import to_hex
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import AbstractPathEffect, withStroke
from matplotlib.ticker import FuncFormatter, NullFormatter

from analysis.quantities import GOODPUT_PCT_MEAN
from engines.registry import FLOW_LEVEL, IDEAL, LINUX, MAX_MIN, MININET, SIMULATOR
from harness.metrics.published import Published
from harness.results.point_results import PointResult
from model import transports as named
from model.congestion import described, in_force
from model.reasons import texts
from model.spec import RunSpec
from plots.data import MIN_SEEDS_FOR_INTERVAL, Panel, overrides_of
from plots.shared.naming import shape, special
from topos import TOPOLOGIES, size_words

TCP_COLOUR = named.look(named.TCP).colour
PUBLISHED_DASH = (0, (3, 1.6))
SUSPECT_DASH = (0, (4, 2))
INK = "#222222"
FAINT = "#5f5f5f"
GRID = "#e3e3e3"
HATCH = "////"
LABEL_SIZE, TITLE_SIZE = 9.5, 9.0
"""Of the axes, in points."""
OF_ONE_FLOW = "% of one flow alone"
MAX_REASON = 90
"""Characters of the reason for suspicion that a caption quotes."""
FEW = 20
"""Points of a curve that each have a mark."""
MOST_POINTS = 512
"""Points of a curve; more than its pixels would only enlarge the file."""
_BY_HOSTS = {"star", "dumbbell", "two_bottlenecks"}
"""Topologies whose number of hosts describes their size."""
_ENGINES = {
    MININET: "emulated",
    LINUX: "emulated, virtual time",
    SIMULATOR: "simulated",
    FLOW_LEVEL: "flow level",
    IDEAL: "ideal scheduler",
    MAX_MIN: "flow level, max-min",
}
_RC: Any = {  # Any: matplotlib types the keys as one long Literal
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": TITLE_SIZE,
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.labelcolor": INK,
    "axes.labelsize": LABEL_SIZE,
    "axes.labelpad": 3,
    "legend.fontsize": 8.5,
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
    "hatch.linewidth": 1.0,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "refabric",
}


def look() -> AbstractContextManager[None]:
    """Return a context with the charts' Matplotlib settings; draw and save inside it.

    Settings of the user's own become Matplotlib's defaults.
    """
    defaults: Any = mpl.rcParamsDefault
    changed = {
        name: value for name, value in defaults.items() if name != "backend" and mpl.rcParams[name] != value
    }
    return mpl.rc_context({**changed, **_RC})


def colour(subflows: int, most: int = 8) -> str:
    """Return the colour of TCP (1) or of a subflow count: lightest at 2, darkest at `most` and beyond."""
    if subflows <= 1:
        return TCP_COLOUR
    position = min(1.0, (subflows - 2) / max(most - 2, 1))
    return to_hex(mpl.colormaps["viridis"](0.83 * (1 - position)))


def transport(subflows: int) -> str:
    """Return the name of a transport in legends and titles: `TCP` or `MPTCP 4`."""
    return "TCP" if subflows == 1 else f"MPTCP {subflows}"


def short_names(counts: Iterable[int]) -> list[str]:
    """Return the names of transports on an axis: `TCP`, `4`."""
    return ["TCP" if count == 1 else str(count) for count in counts]


def thinned(count: int) -> npt.NDArray[np.int64]:
    """Return the places of at most `MOST_POINTS` of `count` values: both ends and evenly between."""
    return np.unique(np.linspace(0, max(0, count - 1), min(count, MOST_POINTS)).round().astype(np.int64))


def absences(why: Mapping[int, str]) -> str:
    """Return `missing: MPTCP 2, 3; failed: TCP`, from the reason at each subflow count."""
    by_reason: dict[str, list[int]] = {}
    for count, reason in sorted(why.items()):
        by_reason.setdefault(reason, []).append(count)
    return "; ".join(f"{reason}: {transports(counts)}" for reason, counts in by_reason.items())


def transports(counts: Sequence[int]) -> str:
    """Return `TCP, MPTCP 2-4, 8`."""
    mptcp = [count for count in counts if count > 1]
    parts = [*(["TCP"] if 1 in counts else []), *([f"MPTCP {_ranges(mptcp)}"] if mptcp else [])]
    return ", ".join(parts)


def hatch(axes: Axes) -> None:
    """Hatch the whole axes as suspect."""
    axes.add_patch(
        Rectangle(
            (0, 0), 1, 1, transform=axes.transAxes, facecolor="none", edgecolor=GRID, hatch=HATCH,
            linewidth=0, zorder=0,
        )
    )  # fmt: skip


def percent_axis(axes: Axes, top: float, optimum: float = 100.0) -> None:
    """Scale a goodput axis from 0 to `optimum`, drawn as a line, or to `top`, where the highest mark ends."""
    step = next((s for s in (1, 2, 5, 10, 20) if max(optimum, top) / s <= 7), 50)
    axes.set_ylim(0, max(1.06 * optimum, top * 1.02))
    axes.set_yticks(range(0, int(max(optimum, top)) // step * step + 1, step))
    axes.axhline(optimum, color=FAINT, linewidth=0.8, zorder=1)


def rank_ticks(flows: int) -> list[int]:
    """Return the first, the last, and round ranks between them."""
    step = next((s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000) if flows / s <= 7), 5000)
    between = [rank for rank in range(step, flows, step) if rank > 1 and flows - rank > 0.6 * step]
    return sorted({1, *between, flows})


def subtitle(panel: Panel, what: str) -> str:
    """`FatTree k=8, 128 hosts, one to one, LIA: mean goodput ...`, and before the colon what overrides the
    settings of the figure."""
    cc = panel.ccs if max(point.subflows for point in panel.points) > 1 and "+" not in panel.ccs else ""
    under = dict.fromkeys([*([named.title(cc)] if cc else []), *panel.overrides])
    about = [network(panel.spec), f"{panel.hosts} hosts", workload(panel.spec), *under]
    return f"{', '.join(about)}: {what}"


def workload(spec: RunSpec) -> str:
    return spec.workload.matrix.replace("_", " ")


def network(spec: RunSpec) -> str:
    """`FatTree k=8`, `FatTree k=8, 4:1`, `Star`."""
    if name := spec.topology.params.get("name"):
        return f"Network {name}"
    return _network(spec.topology.kind, spec.topology.k, shape(spec))


def _network(kind: str, k: int, shape: tuple[tuple[str, int], ...]) -> str:
    family = TOPOLOGIES[kind]
    title = family.title[0].upper() + family.title[1:]
    if kind in _BY_HOSTS:
        return ", ".join([title, *size_words(kind, dict(shape))])
    return f"{title} {', '.join(size_words(kind, {family.size.name: k, **dict(shape)}))}"


def plain_log(axis: XAxis | YAxis, shown: str = "{:g}") -> None:
    """Make an axis logarithmic, with plain numbers at the main ticks alone, formatted as `shown`."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_formatter(FuncFormatter(lambda value, _: shown.format(value)))
    axis.set_minor_formatter(NullFormatter())


def grid_of_rows(axes: Axes) -> None:
    """Draw vertical grid lines alone, for axes whose rows have names."""
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=GRID, linewidth=0.8)


def queue_limit(queue_pkts: int) -> str:
    return f"queues of {queue_pkts} packets" if queue_pkts else "unbounded queues"


def parameters(*of: Panel, congestion: str | None = None, queues: bool = True) -> list[str]:
    """Return the settings for a caption, the most important first; where panels differ, the values of all.
    `congestion` replaces the congestion control where a panel has several; without `queues` their limit is
    left out."""
    each = zip(*(_parameters(panel, congestion, queues) for panel in of), strict=True)
    points = [point for panel in of for point in panel.points]
    return [*unlike(points), *(_all_of(list(dict.fromkeys(filter(None, values)))) for values in each)]


def _all_of(values: Sequence[str]) -> str:
    """`a / b / c`, or `a / ... / z` of more than three."""
    return " / ".join(values if len(values) <= 3 else [values[0], "...", values[-1]])


def _parameters(panel: Panel, congestion: str | None, queues: bool) -> list[str]:
    spec = panel.spec
    n = f"n = {len(panel.seeds)}".replace(" ", "\N{NO-BREAK SPACE}")
    return [
        f"links of {spec.link.rate_mbps:g} Mb/s",
        queue_limit(spec.link.queue_pkts) if queues and not spec.link.queue_bytes else "",
        f"ECN from {panel.ecn_pkts} packets" if panel.ecn_pkts else "",
        f"{spec.seconds:g} s, {n}",
        _congestion(panel) if congestion is None else congestion,
        _ENGINES.get(spec.engine, spec.engine)
        + (f", {spec.dataplane}" if spec.dataplane != "fabric" else ""),
        ", ".join(words for words in special(spec) if words not in panel.overrides),
        f"{spec.warmup_s:g} s warm-up",
    ]


def unlike(points: Iterable[PointResult]) -> list[str]:
    """Return the first phrase of a caption of points whose settings are not all their figure's; else
    nothing."""
    words = overrides_of(points)
    return [f"unlike the figure ({', '.join(words)})"] if words else []


def _congestion(panel: Panel) -> str:
    """Name what a subtitle leaves out: the congestion control of plain TCP, or several of them."""
    if "+" in panel.ccs:
        counts: dict[str, list[int]] = {}
        for point in sorted(panel.points, key=lambda point: named.rank(point.cc)):
            counts.setdefault(point.cc, []).append(point.subflows)
        return " / ".join(described(cc, of) for cc, of in counts.items())
    return f"TCP: {in_force(panel.ccs, 1)}" if any(point.subflows == 1 for point in panel.points) else ""


def percent_of(panel: Panel) -> str:
    """Return the unit of relative goodput for an axis: `% of optimal` where one flow alone is the optimum."""
    return GOODPUT_PCT_MEAN.unit if math.isclose(panel.optimum_pct, 100) else OF_ONE_FLOW


def definition(panel: Panel) -> str:
    """Say what 100 % is, and where the optimum lies if it is another value."""
    baselines = sorted({p.baseline_mbps for p in panel.points if p.baseline_mbps})
    shown = "".join(f" ({'-'.join(f'{one:.3g}' for one in _ends(baselines))} Mb/s)" for _ in baselines[:1])
    words = f"100 %: one uncongested TCP flow{shown}."
    if math.isclose(panel.optimum_pct, 100):
        return words
    return f"{words} Line at {panel.optimum_pct:.3g} %: the optimum where flows share host links."


def doubts(points: Iterable[PointResult]) -> list[str]:
    """Return a sentence on points that lack CPU time as intended, and one on suspect points with the first
    one's reasons; nothing where there are none."""
    points = list(points)
    doubtful = [point for point in points if point.suspect]
    lacking = sum(point.as_intended for point in points)
    purpose = [f"{lacking} of {len(points)} points lack CPU time, as intended."] if lacking else []
    if not doubtful:
        return purpose
    reasons = [plain(texts(point.reasons)) for point in doubtful]
    others = sum(reason != reasons[0] for reason in reasons)
    first = textwrap.shorten(reasons[0], MAX_REASON, placeholder=" ...") or "no reason was given"
    more = f" ({others} more for other reasons)" if others else ""
    words = f"Suspect, not in means: {first}{more}"
    return [*purpose, words if words.endswith("...") else f"{words}."]


def name(point: PointResult) -> str:
    """`TCP`, `MPTCP 4 (suspect)`."""
    return transport(point.subflows) + (" (suspect)" if point.suspect else "")


def with_transports(values: Sequence[tuple[PointResult, str]]) -> str:
    """Return `47 % with TCP, 88 % with MPTCP 8 (suspect)`, from the value of each point."""
    if len(values) > 1 and all(point.suspect for point, _ in values):
        parts = [f"{value} with {transport(point.subflows)}" for point, value in values]
        return f"{', '.join(parts)} (all suspect)"
    return ", ".join(f"{value} with {name(point)}" for point, value in values)


def milliseconds(ms: float) -> str:
    """`1.2 s`, `240 ms`, `3.1 ms`."""
    return f"{ms / 1000:.1f} s" if ms >= 1000 else f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def choice(panel: Panel, shown: Sequence[PointResult], left_out: Sequence[int]) -> list[str]:
    """Return a sentence on which of several seeds and transports are shown."""
    seeds = f"seed {_ranges(sorted({point.seed for point in shown}))}" if len(panel.seeds) > 1 else ""
    others = f"not: {transports(left_out)}" if left_out else ""
    parts = "; ".join(part for part in (seeds, others) if part)
    return [f"Shown: {transports([point.subflows for point in shown])} ({parts})."] if parts else []


def plain(words: str) -> str:
    """Replace control characters, which an SVG may not contain."""
    return "".join(c if c.isprintable() else " " for c in words)


def bound(level: Published) -> str:
    """Return `< 50 %`."""
    relation = {">=": "\N{GREATER-THAN OR EQUAL TO}"}.get(level.relation, level.relation)
    return f"{relation} {level.value:g} %"


def paper(level: Published, k: int) -> str:
    """Return `SIGCOMM'11`, and the paper's size where ours is another: `SIGCOMM'11 (k=8)`."""
    return level.paper if k == level.k else f"{level.paper} (k={level.k})"


def published_key(levels: Sequence[Published], panel: Panel) -> list[Line2D]:
    """Return the legend entry of published values, if there are any."""
    papers = " / ".join(sorted({paper(level, panel.spec.topology.k) for level in levels}))
    label = f"published, {papers}"
    return [Line2D([], [], color="black", linestyle=PUBLISHED_DASH, linewidth=1.5, label=label)][
        : len(levels)
    ]


def halo() -> list[AbstractPathEffect]:
    """Return a white outline, which keeps marks visible on any background."""
    return [withStroke(linewidth=3.2, foreground="white")]


def sources(levels: Sequence[Published]) -> list[str]:
    """Return a sentence that cites the published numbers; nothing where there are none."""
    cited = sorted(
        {f"{one.paper} ({one.source}; {_network(one.topology, one.k, one.shape)})" for one in levels}
    )
    return [f"Published: {', '.join(cited)}."] if cited else []


def intervals(seeds: int) -> str:
    """Say what means and whiskers are."""
    if seeds < 2:
        return "One seed."
    whiskers = "; whiskers: 95 % interval (Student's t)" if seeds >= MIN_SEEDS_FOR_INTERVAL else ""
    return f"Means over {seeds} seeds{whiskers}."


def _ends(values: Sequence[float]) -> list[float]:
    """Return the first and last of sorted values, once if they print alike."""
    first, last = values[0], values[-1]
    return [first] if f"{first:.3g}" == f"{last:.3g}" else [first, last]


def _ranges(numbers: Sequence[int]) -> str:
    """`1-6, 8`: three and more consecutive numbers as a range."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    shown = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(shown)
