"""What a controller of an IMS does over time: load, instances, receive buffers, setup times."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from analysis import quantities
from model.result import Table
from plots.data import Inputs
from plots.shared import axis_labels, calls, saving
from plots.shared.calls import Group
from plots.shared.sheet import Sheet, Text

CHART = "controlled"
_HEIGHTS_IN = (1.6, 0.9, 1.2, 1.3)
Floats = npt.NDArray[np.float64]


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per setting, of its first seed; see `registry.Chart.draw`."""
    groups = calls.grouped(inputs.points, lambda point: point.spec.key(ignoring=("seed",)))
    return saving.draw_each(
        CHART, [(group.points[0].spec, group) for group in groups], inputs.out, _chart, calls.named
    )


def of_role(table: Table, letter: str, column: str) -> tuple[Floats, Floats]:
    """Return times, and the largest value of an instance of the function `p` or `s` at each."""
    ours = np.char.startswith(table["name"].astype(str), letter)
    times, where = np.unique(table["t_s"][ours].astype(float), return_inverse=True)
    most = np.zeros(len(times))
    np.maximum.at(most, where, table[column][ours].astype(float))
    return times, most


def active(table: Table, letter: str) -> tuple[Floats, Floats]:
    """Return times, and how many instances of the function take new calls at each."""
    ours = np.char.startswith(table["name"].astype(str), letter)
    times, where = np.unique(table["t_s"][ours].astype(float), return_inverse=True)
    counts = np.bincount(where, table["active"][ours].astype(float), len(times))
    return times, counts.astype(np.float64)


def _chart(group: Group) -> Figure | None:
    point = sorted(calls.good(group.points), key=lambda one: one.seed)[0]
    of, parts = point.read_table("calls"), point.read_table("components")
    if of is None or parts is None or not len(of) or not len(parts):
        return None
    sheet = Sheet(*((height, 1) for height in _HEIGHTS_IN))
    rate, count, queue, setup = (row[0] for row in sheet.axes)
    rate.step(of["t_s"], of["offered"], where="pre", color=calls.OFFERED_COLOUR, lw=1)
    rate.step(of["t_s"], of["completed"], where="pre", color=calls.CALLS_COLOUR, lw=1.3)
    rate.set_ylabel(axis_labels.CALLS)
    rate.set_ylim(bottom=0)
    for letter, colour in (("p", calls.P_COLOUR), ("s", calls.S_COLOUR)):
        count.step(*active(parts, letter), where="pre", color=colour, lw=1.5)
        queue.plot(*of_role(parts, letter, "waiting"), color=colour, lw=1.2)
    count.set_ylabel("instances")
    count.yaxis.set_major_locator(MaxNLocator(4, integer=True))
    count.set_ylim(0, float(max(active(parts, letter)[1].max() for letter in "ps")) + 0.6)
    queue.set_ylabel("messages waiting")
    _setup(setup, of)
    notes = [f"Curves of seed {point.seed}."] if group.seeds > 1 else []
    return sheet.finish(Text(_finding(group), _subtitle(group), calls.caption(group, *notes)), _legend())


def _setup(axes: Axes, of: Table) -> None:
    axes.plot(of["t_s"], of["setup_ms"].astype(float), color=calls.CALLS_COLOUR, lw=1.2)
    calls.log_ms(axes)
    axes.set_ylabel(quantities.SETUP_MS_P50.axis)
    axes.set_xlabel(axis_labels.SECONDS)


def _finding(group: Group) -> str:
    ims = calls.ims_of(group.points[0])
    lost = calls.values(calls.good(group.points), quantities.CALLS_LOST_PCT)
    late = f" after {ims.react_s} s" if ims.policy != "static" and ims.react_s > 1 else ""
    return f"Policy {ims.policy}{late}: {np.mean(lost):.1f} % of calls are lost"


def _subtitle(group: Group) -> str:
    ims = calls.ims_of(group.points[0])
    return f"from P{ims.pcscf} S{ims.scscf}, {calls.load_words(group)}"


def _legend() -> list[Line2D]:
    return [
        Line2D([], [], color=calls.OFFERED_COLOUR, lw=1.5, label="offered"),
        Line2D([], [], color=calls.CALLS_COLOUR, lw=1.5, label="completed, setup"),
        Line2D([], [], color=calls.P_COLOUR, lw=1.5, label="P-CSCF"),
        Line2D([], [], color=calls.S_COLOUR, lw=1.5, label="S-CSCF"),
    ]
