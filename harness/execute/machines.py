"""Where a sweep is carried out, as a session sees it: this machine, or a cluster's workers (cluster.py)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Protocol

from common.errors import HostUnfitError
from engines.dispatch import only
from engines.engine import Engine, Observer
from harness.execute.executor import Crew
from harness.execute.workers import CrewHere
from harness.plan import rate
from harness.plan.rate import RateChoice
from harness.results.store import Store
from model.spec import RunSpec, TopologySpec


class Site(Protocol):
    """Knows what the machines that carry out points can do."""

    engine: Engine
    """The engine of the points, to plan with."""

    def at_once(self, spec: RunSpec) -> int:
        """How many points of this one's engine are carried out side by side."""

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """As `Engine.coupled_cc`, of these engines on the machines that run their points."""

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """The link rate that these engines carry there, as far as it is known; at most `highest_mbps`."""

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """The link rate that they carry, measured if need be. Raises HostUnfitError."""

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """Engines that cannot run these points of theirs, and why. Raises UsageError for impossible ones."""

    def crew(self, where: Store, observer: Observer) -> Crew:
        """Who carries out the points."""


class Here:
    """This machine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def at_once(self, spec: RunSpec) -> int:
        """As many as its engine bears."""
        return only(self.engine, {spec.engine}).parallel

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """As the engines say."""
        return only(self.engine, names).coupled_cc()

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """As calibrated before."""
        return rate.known_rate(topology, names, highest_mbps)

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """Calibrated now, unless it was before and still holds."""
        return rate.choose_rate(topology, names, self.engine, observer, highest_mbps)

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """By the engines' own checks."""
        return unfit_here(self.engine, specs)

    def crew(self, where: Store, observer: Observer) -> Crew:
        """As many processes as the engine bears."""
        return CrewHere(self.engine, where, observer)


def unfit_here(engine: Engine, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
    """Engines that cannot run these points on this machine, and why. Raises UsageError."""
    unfit: dict[str, HostUnfitError] = {}
    for spec in specs:
        try:
            engine.check(spec)
        except HostUnfitError as error:
            unfit.setdefault(spec.engine, error)
    return unfit
