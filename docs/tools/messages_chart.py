"""The chart of benchmarks/messages.py: round trips by transport, beside the published medians."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullFormatter

from plots.shared import style
from plots.shared.sheet import Caption, Sheet, Text

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


def draw(rows: Sequence[Mapping[str, Any]], out: Path, words: Sequence[str]) -> None:
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
        notes = ["Hollow: other programs used the machine."] if doubtful else []
        title = ", ".join(f"{LABELS[row['transport']]} {row['median_us']:.0f} us" for row in rows)
        text = Text(f"Medians: {title}", "Messages to a Python agent and back", Caption(words, notes))
        sheet.finish(text, keys).savefig(out)
