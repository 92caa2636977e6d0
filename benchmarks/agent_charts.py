"""The charts of benchmarks/agents.py and benchmarks/messages.py: what an agent costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from plots.shared import style
from plots.shared.sheet import Sheet

KERNEL = "kernel"
"""The variant without an agent."""
_HEIGHT_IN = 2.0
_LOOKS = {"ack": ("#0072B2", "o", "a report per ACK"), "10ms": ("#D55E00", "s", "a report every 10 ms")}
_PER_ROUND_TRIP = ("#009E73", "D", "a report per round trip")
LABELS = {
    "woken": "ring buffer, woken",
    "polled": "ring buffer, 1 ms",
    "netlink": "netlink",
    "unix": "unix socket",
}
PUBLISHED_US = {"woken": (5.1, 5.3), "netlink": (9.7, 9.8), "unix": (13.1, 16.9)}
"""Medians of Narayan et al., SIGCOMM 2018, digitised; `woken` is compared with their character device."""
_SHARES = (
    ("median_us", "o", "median"),
    ("p95_us", "s", "95th percentile"),
    ("p99_us", "D", "99th percentile"),
)
_COLOUR, _OTHER = "#0072B2", "0.45"
_HOLLOW = "Hollow: other programs used the machine."
Row = Mapping[str, Any]


def draw_ratios(rows: Sequence[Row], out: Path, *, by_cpu: bool, words: Sequence[str]) -> None:
    """Draw the ratios into the file `out`, suspect ones hollow. `words` are the settings."""
    agents = [row for row in rows if row["variant"] != KERNEL]
    what = "CPU time" if by_cpu else "throughput"
    ratios = [row["ratio"] for row in agents]
    title = f"In an agent, {what} is {min(ratios):.2f} to {max(ratios):.2f} times the kernel's"
    doubts = [_HOLLOW] if any(_doubtful(row) for row in agents) else []
    notes = [*doubts, "Medians; whiskers: smallest and largest ratio of alternated runs."]
    with style.look():
        sheet = Sheet((_HEIGHT_IN, 1))
        axes = sheet.axes[0][0]
        names = list(dict.fromkeys(row["variant"] for row in agents))
        keys = [_curve(axes, [row for row in agents if row["variant"] == name], name) for name in names]
        axes.axhline(1.0, color="0.6", lw=0.8)
        axes.set_xscale("log", base=2)
        counts = sorted({row["flows"] for row in rows})
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_ylim(0, 1.1 * max(1.2, axes.dataLim.y1))
        axes.set(xlabel="flows", ylabel=f"{what}, x the kernel's")
        sheet.finish(title, "iperf3 between two real hosts on a veth", words, notes, keys).savefig(out)


def _doubtful(row: Row) -> bool:
    return bool(row["status"] != "ok")


def _curve(axes: Axes, rows: Sequence[Row], name: str) -> Line2D:
    colour, marker, label = _LOOKS.get(name, _PER_ROUND_TRIP)
    x, y = [row["flows"] for row in rows], [row["ratio"] for row in rows]
    axes.plot(x, y, color=colour, lw=1.2)
    for row in rows:
        low, high = row["ratio_range"]
        ends = [[row["ratio"] - low], [high - row["ratio"]]]
        face = "white" if _doubtful(row) else colour
        axes.errorbar(
            [row["flows"]], [row["ratio"]], yerr=ends, color=colour, marker=marker, ms=5, capsize=2,
            markerfacecolor=face,
        )  # fmt: skip
    return Line2D([], [], color=colour, marker=marker, ms=5, lw=1.2, label=label)


def draw_messages(rows: Sequence[Row], out: Path, words: Sequence[str]) -> None:
    """Draw the percentiles into the file `out`, suspect ones hollow. `words` are the settings."""
    doubtful = any(row["status"] != "ok" for row in rows)
    with style.look():
        sheet = Sheet((0.35 * len(rows) + 0.4, 1))
        axes = sheet.axes[0][0]
        for place, row in enumerate(rows):
            axes.plot([row["median_us"], row["p99_us"]], [place, place], color=_COLOUR, lw=1)
            for name, marker, _ in _SHARES:
                face = "white" if row["status"] != "ok" else _COLOUR
                axes.plot([row[name]], [place], marker=marker, ms=5, color=_COLOUR, markerfacecolor=face)
            for published in PUBLISHED_US.get(row["transport"], ()):
                axes.plot([published], [place], marker="|", ms=14, mew=2, color=_OTHER)
        axes.set_yticks(range(len(rows)), [LABELS[row["transport"]] for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.set_xlabel("round trip, us")
        keys = [
            Line2D([], [], color=_COLOUR, marker=marker, ls="", ms=5, label=label)
            for _, marker, label in _SHARES
        ]
        keys.append(Line2D([], [], color=_OTHER, marker="|", ls="", ms=10, mew=2, label="published median"))
        notes = [_HOLLOW] if doubtful else []
        title = ", ".join(f"{LABELS[row['transport']]} {row['median_us']:.0f} us" for row in rows)
        about = "Messages to a Python agent and back"
        sheet.finish(f"Medians: {title}", about, words, notes, keys).savefig(out)
