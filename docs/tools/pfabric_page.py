"""Write measured numbers into docs/pfabric.md: tables of completion times, verdicts and charts.

    python docs/tools/pfabric_page.py [--results results] [--page PAGE] [--experiment NAME]

Marked blocks are replaced; all other text stays:

    <!-- completion: FIGURE SIZES LOADS [TOPOLOGY] -->   completion times by load, range of sizes and arm
    <!-- arms: FIGURE SIZES LOAD -->          every arm of a figure at one load
    <!-- verdicts: FIGURE -->                 the paper's statements
    <!-- basis: FIGURE -->                    points, seeds, states

Numbers are means over seeds with 95 % intervals (Student). An image whose link is followed by `<!--
FIGURE/PATTERN.png -->` is replaced by the chart of that name.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from analysis.completion import ALL, LARGE, SMALL, Normalised, Range, normalised
from analysis.stats import mean_interval
from common.errors import RefabricError, UsageError
from common.text import counted
from docs.tools import pages
from experiments import cs244_2017, pfabric
from experiments.pfabric import WEB_SEARCH
from harness.load import FigureResults
from harness.report import sentences
from harness.results.point_results import PointResult
from model.arms import ARMS, arm_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "pfabric.md"
EXPERIMENTS = (pfabric.EXPERIMENT, cs244_2017.EXPERIMENT)
NONE = "-"
MIN_SEEDS, MAX_DECIMALS = 3, 3
"""Seeds for an interval."""
ROWS: Sequence[tuple[str, Range, Callable[[Normalised], float | None]]] = (
    ("all flows, mean", ALL, lambda found: found.mean),
    ("up to 100 kB, mean", SMALL, lambda found: found.mean),
    ("up to 100 kB, p99", SMALL, lambda found: found.p99),
    ("above 10 MB, mean", LARGE, lambda found: found.mean),
)


def text(values: Sequence[float | None]) -> str:
    """Return mean and interval of the values of several seeds, or `-` if a seed has no value."""
    known = [value for value in values if value is not None]
    if len(known) < max(1, len(values)):
        return NONE
    if len(known) < MIN_SEEDS:
        return f"{statistics.fmean(known):.3g}"
    found = mean_interval(known)
    decimals = MAX_DECIMALS if found.half < 1e-3 else max(0, -math.floor(math.log10(found.half / 2)))
    return f"{found.value:.{decimals}f} \N{PLUS-MINUS SIGN} {found.half:.{decimals}f}"


def completion(shown: FigureResults, sizes: str, loads: str, kind: str = "") -> str:
    """Return the table of a figure's arms at several loads, on topologies of one kind if it is given."""
    rows: list[Sequence[str]] = []
    names: list[str] = []
    for load in loads.split(","):
        arms = _arms(shown, sizes, int(load), kind)
        names = list(arms)
        here = [
            (label, [text([value(_times(p, of)) for p in points]) for points in arms.values()])
            for label, of, value in ROWS
        ]
        here.append(("not ended, %", [_unfinished(points) for points in arms.values()]))
        here.append(("packets dropped, %", [_dropped(points) for points in arms.values()]))
        shown_here = [(label, cells) for label, cells in here if not set(cells) <= {NONE, "0.0"}]
        rows += [("" if n else f"{load} %", label, *cells) for n, (label, cells) in enumerate(shown_here)]
    return pages.table(("load", "", *(ARMS[name].label for name in names)), rows)


def by_arm(shown: FigureResults, sizes: str, load: str) -> str:
    """Return the table of one load with one row per arm."""
    arms = _arms(shown, sizes, int(load))
    rows = [
        (ARMS[name].label, *(text([value(_times(p, of)) for p in points]) for _, of, value in ROWS))
        for name, points in arms.items()
    ]
    return pages.table(("", *(label for label, *_ in ROWS)), rows)


def verdicts(shown: FigureResults) -> str:
    """Return the table of a figure's statements; measured values have the unit of the published ones."""
    rows = [
        (
            found.published.words, found.published.workload, sentences.published_text(found.published),
            sentences.measured_text(found.measured, found.published.metric).replace(
                f"\N{NO-BREAK SPACE}{found.unit}", ""
            ),
            found.word,
        )
        for found in shown.verdicts
    ]  # fmt: skip
    return pages.table(*pages.basis_in_head(("claim", "workload", "published", "measured", "verdict"), rows))


def basis(shown: FigureResults) -> str:
    """Return how many points a figure has, of how many seeds, and how they ended."""
    seeds = {p.spec.seed for p in shown.points}
    states = Counter(p.state for p in shown.points)
    ended = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"{counted(len(shown.points), 'point')} of {counted(len(seeds), 'seed')}: {ended}."


def _arms(shown: FigureResults, sizes: str, load: int, kind: str = "") -> dict[str, list[PointResult]]:
    """Return the points of one workload by arm, in the order of ARMS. Raises UsageError without any."""
    chosen = [
        p for p in shown.points
        if p.spec.workload.params.get("load") == load
        and p.spec.workload.params.get("sizes", WEB_SEARCH) == sizes
        and p.spec.topology.kind.startswith(kind)
    ]  # fmt: skip
    if not chosen:
        raise UsageError(f"{shown.figure.name}: no point has {sizes} at {load} %")
    found = {name: [p for p in chosen if arm_of(p.spec) == name] for name in ARMS}
    return {name: points for name, points in found.items() if points}


def _times(point: PointResult, of: Range) -> Normalised:
    return normalised(point.flows, point.spec.seconds, of)


def _unfinished(points: Sequence[PointResult]) -> str:
    shares = [_times(p, ALL) for p in points]
    return f"{100 * sum(s.unfinished for s in shares) / max(1, sum(len(s.values) for s in shares)):.1f}"


def _dropped(points: Sequence[PointResult]) -> str:
    """Return the packets dropped in percent of those that hosts sent, acknowledgements included."""
    counts = [(p.metric("drops"), p.metric("injected")) for p in points]
    return text([None if not sent else 100 * (drops or 0) / sent for drops, sent in counts])


@click.command()
@pages.RESULTS
@pages.page_option(PAGE)
@click.option(
    "--experiment",
    "names",
    type=click.Choice([e.name for e in EXPERIMENTS]),
    multiple=True,
    default=[e.name for e in EXPERIMENTS],
    help="Use the results of this experiment. [default: all]",
)
def main(results: Path, path: Path, names: Sequence[str]) -> None:
    """Write the page from stored results. Blocks of experiments that have none stay."""
    try:
        for experiment in EXPERIMENTS:
            if experiment.name in names and (results / experiment.folder).is_dir():
                found = {shown.figure.name: shown for shown in pages.stored(experiment, results).figures}
                path.write_text(pages.filled(path.read_text(), _makers(found)))
                pages.copy_charts(path, results / experiment.folder / "charts", experiment.name)
    except (RefabricError, OSError) as error:
        click.echo(f"pfabric_page: {error}", err=True)
        sys.exit(2)


def _makers(figures: Mapping[str, FigureResults]) -> dict[str, pages.Maker]:
    """Return the maker of each kind of block; blocks of figures that are not in `figures` stay."""

    def of(make: Callable[..., str]) -> pages.Maker:
        def made(about: str) -> str | None:
            name, *more = about.split()
            return make(figures[name], *more) if name in figures else None

        return made

    return {
        "completion": of(completion),
        "arms": of(by_arm),
        "verdicts": of(verdicts),
        "basis": of(basis),
    }


if __name__ == "__main__":
    main()
