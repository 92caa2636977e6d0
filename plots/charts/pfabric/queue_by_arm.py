"""The distribution of queue lengths of switch ports under each arm at the highest load that ran."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from model.arms import ARMS
from plots.data import Inputs, Point, of_switch
from plots.shared import arms, axis_labels
from plots.shared.sheet import Sheet, Text

CHART = "queue_by_arm"
_HEIGHT_IN = 2.2
_MIN_PCT = 0.01


def draw(inputs: Inputs) -> list[Path]:
    """Draw one chart per network and distribution of sizes whose queues were sampled; see
    `registry.Chart.draw`."""
    sampled = [point for point in inputs.points if point.read_table("queue_times") is not None]
    return arms.draw_each(CHART, sampled, inputs.out, _chart)


def beyond_pct(points: Sequence[Point]) -> npt.NDArray[np.float64]:
    """Return, for each length in packets from 0 on, the percentage of samples of switch ports beyond it."""
    counts = np.zeros(1)
    samples = 0
    for point in points:
        times, queues = point.read_table("queue_times"), point.read_table("queues")
        if times is None or queues is None:
            continue
        ports = [port.port for port in point.ports if of_switch(port)]
        lengths = np.asarray(queues["pkts"])[np.isin(queues["port"], ports)].astype(np.int64)
        found = np.bincount(lengths, minlength=len(counts)).astype(float)
        found[: len(counts)] += counts
        counts = found
        samples += len(times["t_s"]) * len(ports)
    tail = counts[::-1].cumsum()[::-1]
    beyond: npt.NDArray[np.float64] = 100 * np.append(tail[1:], 0.0) / max(1, samples)
    return beyond


def _chart(study: arms.Study) -> Figure | None:
    sheet = Sheet((_HEIGHT_IN, 1))
    axes = sheet.axes[0][0]
    load, parts = study.loads[-1], []
    for name in study.arms:
        beyond = beyond_pct(study.of(name, load))
        if not beyond.any():
            continue
        shown = beyond >= _MIN_PCT
        axes.step(np.flatnonzero(shown) + 1, beyond[shown], where="post", color=ARMS[name].colour, lw=1.5)
        parts.append(f"{ARMS[name].label} {int((beyond > 1).sum())}")
    if not parts:
        return None
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda percent, _: f"{percent:g}"))
    axes.set_ylabel("samples of ports (%)\nwith this many packets or more")
    axes.set_xlabel(axis_labels.QUEUE)
    words = Text(
        f"Packets that 1 % of the queues exceed at {load} % load: {', '.join(parts)}",
        f"{arms.network_words(study)}: queues of switches",
        arms.caption(study, "ACKs count as packets."),
    )
    handles = [line for line in arms.legend(study) if any(str(line.get_label()) in one for one in parts)]
    return sheet.finish(words, handles)
