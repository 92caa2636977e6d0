"""The chart of benchmarks/agents.py: ratios to the kernel's control by the number of flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.shared import style
from plots.shared.sheet import Caption, Sheet, Text

KERNEL = "kernel"
"""The variant without an agent."""
_HEIGHT_IN = 2.0
_LOOKS = {"ack": ("#0072B2", "o", "a report per ACK"), "10ms": ("#D55E00", "s", "a report every 10 ms")}
_OTHER = ("#009E73", "D", "a report per round trip")
Row = Mapping[str, Any]


def draw(rows: Sequence[Row], out: Path, *, by_cpu: bool, words: Sequence[str]) -> None:
    """Draw the ratios into the file `out`, suspect ones hollow. `words` are the settings."""
    agents = [row for row in rows if row["variant"] != KERNEL]
    what = "CPU time" if by_cpu else "throughput"
    ratios = [row["ratio"] for row in agents]
    title = f"In an agent, {what} is {min(ratios):.2f} to {max(ratios):.2f} times the kernel's"
    doubts = ["Hollow: other programs used the machine."] if any(_doubtful(row) for row in agents) else []
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
        text = Text(title, "iperf3 between two real hosts on a veth", Caption(words, notes))
        sheet.finish(text, keys).savefig(out)


def _doubtful(row: Row) -> bool:
    return bool(row["status"] != "ok")


def _curve(axes: Axes, rows: Sequence[Row], name: str) -> Line2D:
    colour, marker, label = _LOOKS.get(name, _OTHER)
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
