"""Values of several seeds in increasing order: all of them sorted together, between the lowest and the
highest seed.

An average of every rank over the seeds would be a flow that nobody had: its slowest flow is faster than the
slowest one, and its fastest is slower. A curve here has every flow, so its ends and its shares are those of
the data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from plots.shared import style

Key = TypeVar("Key")
Floats = npt.NDArray[np.float64]
_BAND_ALPHA = 0.18


@dataclass(frozen=True, eq=False)
class Ranks:
    """All values of one or more samples (seeds), sorted together.

    `x_pct` is the middle of each value's share of the axis, in percent of all values. `low` and `high` are
    the lowest and the highest seed there: the value below which that seed alone has the same share. `values`
    are between them everywhere.
    """

    x_pct: Floats
    values: Floats
    low: Floats
    high: Floats
    seeds: int


def pooled(samples: Iterable[Iterable[float]]) -> Ranks | None:
    """Sort the values of all samples together; None where no sample has a value."""
    each = [ordered for sample in samples if len(ordered := np.sort(np.fromiter(sample, float)))]
    if not each:
        return None
    values = np.sort(np.concatenate(each))
    odd = 2 * np.arange(len(values)) + 1  # the middle of value i is odd[i] / (2 n); integers, as ceil() needs
    of_seeds = np.array([one[(odd * len(one) - 1) // (2 * len(values))] for one in each])
    x_pct = 100 * odd / (2 * len(values))
    return Ranks(x_pct, values, of_seeds.min(axis=0), of_seeds.max(axis=0), len(each))


def each_pooled(samples: Mapping[Key, Iterable[Iterable[float]]]) -> dict[Key, Ranks]:
    """Sort the samples of every key together; keys without a value are left out."""
    return {key: found for key, of in samples.items() if (found := pooled(of)) is not None}


def line(axes: Axes, ranks: Ranks, count: int, most: int, doubt: bool) -> Line2D:
    """Draw the curve of a transport as `style.line` does; return it as the legend entry."""
    return style.line(axes, ranks.x_pct.tolist(), ranks.values.tolist(), count, most, doubt)


def bands(axes: Axes, curves: Mapping[int, Ranks], most: int) -> None:
    """Shade from the lowest to the highest seed below the curves of the fewest and of the most subflows; with
    more bands none could be told from another."""
    for count in _banded(curves):
        ranks = curves[count]
        shown = style.thinned(len(ranks.values))
        axes.fill_between(
            ranks.x_pct[shown], ranks.low[shown], ranks.high[shown], color=style.colour(count, most),
            alpha=_BAND_ALPHA, lw=0, zorder=2,
        )  # fmt: skip


def axis(axes: Axes, label: str, step: int = 20) -> None:
    """Scale the horizontal axis in percent of all values, with a tick every `step`."""
    axes.set_xlim(-2, 102)
    axes.set_xticks(range(0, 101, step))
    axes.set_xlabel(label)


def note(curves: Collection[Ranks], what: str = "flows", shaded: bool = False) -> list[str]:
    """Return a sentence on what the curves have, and what the bands are; nothing with one seed."""
    seeds = max((ranks.seeds for ranks in curves), default=0)
    if seeds < 2:
        return []
    count = max(len(ranks.values) for ranks in curves if ranks.seeds == seeds)
    words = f"Curves: all {count} {what} of {seeds} seeds, sorted"
    return [f"{words}; bands: lowest to highest seed." if shaded else f"{words}."]


def _banded(curves: Mapping[int, Ranks]) -> list[int]:
    several = [count for count, ranks in curves.items() if ranks.seeds > 1]
    return sorted({min(several), max(several)}) if several else []
