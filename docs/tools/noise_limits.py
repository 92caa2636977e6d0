"""Write the tables of docs/fidelity.md: the effect of stalls on each metric, and its limits.

    python docs/tools/noise_limits.py [--results DIR] [--engine simulator] [--scale delay|queue]

Reads the points that `refabric run noise` and `refabric run noise-short` stored. A change compares one point
with the quiet point of its setting and seed. Points are sorted into bins by lateness, a share of the delay.
A bin shows the mean change, in brackets half its 95 % interval (n: quiet points compared), and the largest
mean of a single setting. The limit is the largest share of delay up to which mean and interval stay within
the tolerance, bin by bin.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from analysis.noise_effects import (
    TOLERANCES,
    Change,
    ShareBin,
    binned,
    delay_share,
    largest_share,
    queue_share,
)
from common.errors import RefabricError
from engines.registry import SIMULATOR
from harness.results import point_results, store
from harness.results.point_results import PointResult
from model.spec import RunSpec
from plots.charts.cpu_stalls import StallSeries, effects, half
from plots.shared import style

SCALES: Mapping[str, Callable[[RunSpec], float]] = {"delay": delay_share, "queue": queue_share}
"""Lateness relative to the path's delay with one full queue, or to the time of that queue alone."""


def points_of(results: Path, experiments: Sequence[str], engine: str) -> list[PointResult]:
    """Return the stored points. Raises StoreError for a folder that cannot be read."""
    stored = [point for name in experiments for point in store.load(results / name)]
    return [judged for judged in point_results.judge(stored) if judged.spec.engine == engine]


def rows(groups: Iterable[tuple[str, Sequence[Change]]]) -> list[str]:
    """Return one row of a Markdown table for each group, metric and bin."""
    lines = ["| stalls | metric | share of delay | change | worst setting | n |", "|---|---|---|---|---|---|"]
    for name, of in groups:
        for metric in TOLERANCES:
            found = binned([change for change in of if change.metric == metric], half)
            lines += [f"| {name} | {metric} | {_bin(each)} | {each.n} |" for each in found]
    return lines


def _bin(each: ShareBin) -> str:
    ends = f"{each.low:g} to {each.high:g}" if math.isfinite(each.high) else f"above {each.low:g}"
    return f"{ends} | {each.mean:+.3g} ({each.half:.2g}) | {each.worst:+.3g}"


def limits(groups: Sequence[tuple[str, Sequence[Change]]]) -> list[str]:
    """Return a Markdown table with a row for each metric and a column for each group."""
    lines = [f"| metric | tolerance | {' | '.join(name for name, _ in groups)} |"]
    lines.append("|---|---|" + "---|" * len(groups))
    for metric, tolerance in TOLERANCES.items():
        shares = [
            largest_share(binned([c for c in of if c.metric == metric], half), tolerance.most)
            for _, of in groups
        ]
        cells = " | ".join(f"{share:.2g}" if share else "none" for share in shares)
        lines.append(f"| {metric} | {tolerance.most:g} {tolerance.unit} | {cells} |")
    return lines


def grouped(found: dict[StallSeries, list[Change]]) -> list[tuple[str, list[Change]]]:
    """Group the changes by stalled CPUs, transport and, where there are two, clock."""
    clocks = {series.clock for series in found}
    ordered = sorted(found, key=lambda series: (series.where, series.subflows, series.clock))
    return [(_name(series, len(clocks) > 1), found[series]) for series in ordered]


def _name(series: StallSeries, several: bool) -> str:
    parts = (series.where, style.transport(series.subflows), series.clock if several else "")
    return ", ".join(filter(None, parts))


@click.command()
@click.option(
    "--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True,
    help="Read the results in this folder.",
)  # fmt: skip
@click.option("--engine", default=SIMULATOR, show_default=True, help="Use the points of this engine.")
@click.option(
    "--experiment", default="noise,noise-short", show_default=True, help="Experiments, comma-separated."
)
@click.option(
    "--scale", type=click.Choice(sorted(SCALES)), default="delay", show_default=True,
    help="Divide lateness by the delay of a path with one full queue, or by the time of that queue alone.",
)  # fmt: skip
def main(results: Path, engine: str, experiment: str, scale: str) -> None:
    """Print both tables."""
    try:
        points = points_of(results, experiment.split(","), engine)
    except RefabricError as error:
        click.echo(f"noise_limits: {error}", err=True)
        sys.exit(error.exit_code)
    groups = grouped(effects(points, SCALES[scale]))
    click.echo("\n".join([*rows(groups), "", *limits(groups)]))


if __name__ == "__main__":
    main()
