"""Loading an experiment: each figure with its stored points, as tables, charts and the report show it."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from common.errors import StoreError
from common.text import counted
from harness.claims.claims import Claim, Verdict, claims, verdicts
from harness.experiment import Experiment, Figure
from harness.plan.jobs import Plan
from harness.results import point_results, store
from harness.results.point_results import PointResult
from harness.results.store import Scan


@dataclass(frozen=True)
class FigureResults:
    """A figure and its stored points with baselines, in the order of tables; charts go to `folder`.

    The axes of its charts have the subflow counts `expected`, measured or not."""

    figure: Figure
    points: tuple[PointResult, ...]
    folder: Path
    expected: tuple[int, ...] = ()

    @functools.cached_property
    def verdicts(self) -> list[Verdict]:
        """The verdicts on all stored points. Some metrics read samples, so they are computed once."""
        return verdicts(self.figure, self.points)

    @functools.cached_property
    def claims(self) -> list[Claim]:
        """Each statement beside its simulated and its emulated value, if the figure has both variants."""
        return claims(self.figure, self.points)


@dataclass(frozen=True)
class ExperimentResults:
    """All figures of an experiment, and what in the folder could not be read."""

    figures: tuple[FigureResults, ...]
    broken: tuple[StoreError, ...]

    def store_readings(self, new: Collection[str] = ()) -> str:
        """Store with the points what was read off their rows for statements. Return a line for the user, if
        that concerns points other than the `new` ones of this run, or could not be stored."""
        try:
            names = set(store.store_readings(self.points)).difference(new)
        except StoreError as error:
            return f"{error}; the next command reads the rows again"
        points = counted(len(names), "stored point")
        return f"metrics new to {points} were computed from their rows, and stored" if names else ""

    @property
    def points(self) -> list[PointResult]:
        """Every point once, in the order of tables."""
        once = {judged.name: judged for shown in self.figures for judged in shown.points}
        return sorted(once.values(), key=lambda judged: point_results.order(judged.spec))


def load(experiment: Experiment, results: Path, plan: Plan) -> ExperimentResults:
    """Read the results folder of `experiment`, and return each of its figures with its stored points."""
    return loaded(experiment, results, plan, store.scan(results / experiment.folder))


def loaded(experiment: Experiment, results: Path, plan: Plan, found: Scan) -> ExperimentResults:
    """Return each figure of `experiment` with its points in `found`, the content of its results folder.

    A folder of one figure's own is shown whole. Where figures share one, a figure's points are those that
    runs asked for on its behalf (store.py), and those of `plan`, as far as link rates are known.
    """
    directory = results / experiment.folder
    broken = list(found.broken)
    stored = {point.name for point in found.points}
    members: dict[str, set[str]] = {}
    for figure in experiment.figures:
        if _alone(experiment, figure):
            members[figure.name] = stored
            continue
        try:
            noted = store.read_manifest(directory, figure.name)
        except StoreError as error:
            broken.append(error)
            noted = frozenset()
        members[figure.name] = stored & noted.union(*(p.names for p in plan.of(figure) if p.certain))
    meant = _cpu_bound(experiment.figures, members)
    judged = point_results.judge(found.points, meant)
    return ExperimentResults(
        tuple(
            FigureResults(
                figure,
                tuple(j for j in judged if j.name in members[figure.name]),
                charts_folder(experiment, figure, results),
            )
            for figure in experiment.figures
        ),
        tuple(broken),
    )


def charts_folder(experiment: Experiment, figure: Figure, results: Path) -> Path:
    """Return results/<folder>/charts, or a folder in it if figures share the results folder."""
    charts = results / experiment.folder / "charts"
    return charts if _alone(experiment, figure) else charts / figure.name


def _alone(experiment: Experiment, figure: Figure) -> bool:
    """Whether the experiment's folder belongs to this figure only: then it has the figure's name."""
    return experiment.folder == figure.name


def _cpu_bound(figures: Iterable[Figure], members: dict[str, set[str]]) -> set[str]:
    """The points that belong only to CPU-bound figures."""
    bound: set[str] = set()
    free: set[str] = set()
    for figure in figures:
        (bound if figure.cpu_bound else free).update(members[figure.name])
    return bound - free
