"""The look all charts share: figure, palette, caption, saving. No pyplot, so no global state.

Colours: TCP has Okabe-Ito's vermillion; subflow counts run along viridis from light to dark without
its yellow end, so they are ordered for every reader, in print too, and stay readable on white.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from fabric.errors import StoreError
from plots.data import Level, Panel

FORMATS = ("svg", "pdf", "png")
DPI = 200
TCP_COLOUR = "#D55E00"
PUBLISHED_DASH = (0, (3, 1.6))
INK = "#222222"
FAINT = "#6b6b6b"
GRID = "#e3e3e3"
TOPOLOGY_TITLES = {
    "fat_tree": "FatTree",
    "dual_homed_fat_tree": "Dual-homed FatTree",
    "star": "Star",
}
_RC: Any = {  # Any: matplotlib types the keys as one long Literal
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "hatch.linewidth": 1.2,
    "pdf.fonttype": 42,
    "svg.hashsalt": "refabric",
}
_WIDTH, _PLOT_HEIGHT = 6.6, 3.3
_LEFT, _RIGHT, _GAP_BELOW = 0.62, 0.15, 0.55
_TITLE_LINE, _CAPTION_LINE, _MARGIN = 0.21, 0.135, 0.12
_TITLE_CHARS, _CAPTION_CHARS = 70, 124


@dataclass(frozen=True)
class Text:
    """The words of a chart: the finding, what is plotted, and the parameters as sentences."""

    title: str
    subtitle: str
    caption: Sequence[str]


def look() -> AbstractContextManager[None]:
    """Matplotlib's settings for the time of a `with`; draw and save inside it."""
    return mpl.rc_context(_RC)


def colour(subflows: int, most: int = 8) -> str:
    """The colour of TCP (1) or of a subflow count: lightest at 2, darkest at `most` and beyond."""
    if subflows <= 1:
        return TCP_COLOUR
    position = min(1.0, (subflows - 2) / max(most - 2, 1))
    return to_hex(mpl.colormaps["viridis"](0.83 * (1 - position)))


def transport(subflows: int) -> str:
    """`TCP` or `MPTCP 4`: how legends and titles call a transport."""
    return "TCP" if subflows == 1 else f"MPTCP {subflows}"


def figure(text: Text) -> tuple[Figure, Axes]:
    """A figure with title and caption around one pair of axes of fixed size; call inside `look()`."""
    title = textwrap.wrap(text.title, _TITLE_CHARS)
    caption = [line for part in text.caption for line in textwrap.wrap(part, _CAPTION_CHARS)]
    above = _MARGIN + _TITLE_LINE * len(title) + 0.30
    below = _GAP_BELOW + _CAPTION_LINE * len(caption) + _MARGIN
    height = above + _PLOT_HEIGHT + below
    fig = Figure(figsize=(_WIDTH, height))
    FigureCanvasAgg(fig)
    left = _LEFT / _WIDTH
    axes = fig.add_axes(
        (left, below / height, 1 - left - _RIGHT / _WIDTH, _PLOT_HEIGHT / height), axisbelow=True
    )
    margin = _MARGIN / _WIDTH
    top = 1 - _MARGIN / height
    fig.text(margin, top, "\n".join(title), va="top", fontsize=11.5, fontweight="bold", linespacing=1.15)
    under_title = top - (_TITLE_LINE * len(title) + 0.02) / height
    fig.text(margin, under_title, text.subtitle, va="top", fontsize=9, color=FAINT)
    bottom = _MARGIN / height
    fig.text(margin, bottom, "\n".join(caption), va="bottom", fontsize=6.8, color=FAINT, linespacing=1.25)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.tick_params(length=3)
    return fig, axes


def percent_axis(axes: Axes, top: float) -> None:
    """Goodput axis from 0 to 100 %, or as far as `top`, where the highest mark or label ends."""
    axes.set_ylim(0, max(106.0, top * 1.02))
    axes.set_yticks(range(0, max(100, int(top) // 20 * 20) + 1, 20))
    axes.axhline(100, color=FAINT, linewidth=0.8, zorder=1)


def subtitle(panel: Panel, what: str) -> str:
    """`FatTree k=8, 128 hosts, one_to_one: mean goodput ...`."""
    return f"{network(panel)}, {panel.setting.workload.replace('_', ' ')}: {what}"


def network(panel: Panel) -> str:
    """`FatTree k=8, 128 hosts`."""
    setting = panel.setting
    name = TOPOLOGY_TITLES.get(setting.topology, setting.topology)
    size = "" if setting.topology == "star" else f" k={setting.k}"
    return f"{name}{size}, {panel.hosts} hosts"


def parameters(panel: Panel) -> str:
    """The caption's first sentence: every parameter that decides the numbers."""
    s = panel.setting
    how = panel.distinct(lambda point: point.rate_choice)
    plural = "s" if len(panel.seeds) > 1 else ""
    seeds = f"n = {len(panel.seeds)} (seed{plural} {_ranges(panel.seeds)})".replace(" ", "\N{NO-BREAK SPACE}")
    parts = [
        network(panel),
        f"links {s.rate_mbps:g} Mb/s" + (f" ({how})" if how else ""),
        f"queues {s.queue_pkts} packets",
        f"{s.seconds:g} s measured",
        seeds,
        f"congestion control {s.cc}",
        s.variant,
        f"engine {s.engine}, data plane {s.dataplane}",
        panel.distinct(lambda point: point.kernel),
    ]
    return "; ".join(part for part in parts if part) + "."


def definition(panel: Panel) -> str:
    """What 100 % stands for."""
    references = sorted({p.reference_mbps for p in panel.points if p.reference_mbps})
    shown = "".join(f" ({'-'.join(f'{r:.3g}' for r in _ends(references))} Mb/s)" for _ in references[:1])
    return f"100 % (optimal): goodput of one uncongested TCP flow on the same links{shown}."


def doubts(panel: Panel) -> list[str]:
    """Caption sentence on suspect points and the first reason given; empty when there are none."""
    suspect = [point for count in panel.subflows for point in panel.cell(count).suspect]
    if not suspect:
        return []
    reasons = list(dict.fromkeys(reason for point in suspect for reason in point.reasons))
    told = textwrap.shorten("; ".join(reasons), 200, placeholder=" ...") or "no reason was given"
    return [f"Suspect (hatched, hollow or dashed; in no mean): {told}."]


def levels_of(panel: Panel, levels: Sequence[Level], quantity: str) -> list[Level]:
    """The published numbers that stand beside this panel's `quantity`."""
    s = panel.setting
    return [
        level
        for level in levels
        if (level.topology, level.workload, level.quantity) == (s.topology, s.workload, quantity)
        and level.subflows in panel.subflows
    ]


def sources(levels: Sequence[Level]) -> list[str]:
    """Caption sentence on where published numbers stand."""
    if not levels:
        return []
    cited = sorted({f"{level.paper} (source: {level.source}; FatTree k={level.k})" for level in levels})
    return [f"Dashed black: published, {'; '.join(cited)}."]


def save(fig: Figure, directory: Path, stem: str) -> list[Path]:
    """Write `stem`.svg, .pdf and .png; each appears whole. Raises StoreError when the folder refuses."""
    paths = [directory / f"{stem}.{suffix}" for suffix in FORMATS]
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path in paths:
            aside = path.with_name(f".{path.name}.part")
            kind = path.suffix[1:]
            undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
            fig.savefig(aside, format=kind, dpi=DPI, metadata=undated)
            aside.replace(path)
    except OSError as error:
        raise StoreError(
            f"writing charts to {directory}: {error}; give a writable folder by --results"
        ) from error
    return paths


def _ends(values: Sequence[float]) -> list[float]:
    """First and last of sorted values, once if they print alike."""
    first, last = values[0], values[-1]
    return [first] if f"{first:.3g}" == f"{last:.3g}" else [first, last]


def _ranges(numbers: Sequence[int]) -> str:
    """`1-6` for consecutive numbers, else `1, 3, 4`."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers))
