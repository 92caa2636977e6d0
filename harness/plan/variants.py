"""Which engines run a figure, and under which settings: in virtual time its own, real hosts those of its
emulated counterpart, whose size and seconds a machine can carry in real time. Pure."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from engines.registry import SIMULATOR, VIRTUAL_TIME
from harness.experiment import Figure
from harness.plan.fields import Hosts
from harness.plan.options import ENGINE, Defaults, Given

NO_COUNTERPART = "simulated only: nothing that real hosts could run here in real time would show the same"


@dataclass(frozen=True)
class EngineVariant:
    """What some of a figure's engines run: options as typed, as far as these have a use for
    them, over `defaults`."""

    given: Given
    defaults: Defaults

    @property
    def engines(self) -> tuple[str, ...]:
        return self.given.engine or self.defaults.engines


def engine_variants(figure: Figure, given: Given) -> tuple[EngineVariant, ...]:
    """Return the simulated and the emulated variant, as far as asked for and there; one variant for all
    engines where both run the same."""
    chosen = given.engine or figure.defaults.engines
    if not has_variants(figure):
        return (EngineVariant(given, figure.defaults),)
    virtual, emulated = _virtual(figure, chosen), figure.emulated if ENGINE in chosen else None
    found = []
    if virtual:
        suited = given.without(Hosts.REAL) if emulated else given
        found.append(EngineVariant(dataclasses.replace(suited, engine=virtual), figure.defaults))
    if emulated:
        suited = given.without(Hosts.SIMULATED) if virtual else given
        found.append(EngineVariant(dataclasses.replace(suited, engine=(ENGINE,)), emulated))
    return tuple(found)


def has_variants(figure: Figure) -> bool:
    """Whether real hosts run something else than simulated ones, or nothing."""
    return figure.separate_variants or figure.emulated is not None


def lacks_counterpart(figure: Figure, given: Given) -> bool:
    """Whether real hosts were asked for and have nothing to run."""
    return has_variants(figure) and figure.emulated is None and ENGINE in (given.engine or ())


def with_engines(figures: Sequence[Figure], given: Given, root: bool) -> Given:
    """Return `given` with engines, if it names none: both, as root, where figures have emulated variants."""
    named = given.engine is not None or not any(
        figure.separate_variants and figure.emulated for figure in figures
    )
    engines = (SIMULATOR, ENGINE) if root else (SIMULATOR,)
    return given if named else dataclasses.replace(given, engine=engines)


def _virtual(figure: Figure, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the engines in virtual time. In a figure with separate variants `simulator` stands for all that
    the figure compares."""
    own = figure.defaults.engines if figure.separate_variants and SIMULATOR in chosen else ()
    compared = (name for name in own if name in VIRTUAL_TIME)
    return tuple(dict.fromkeys((*compared, *(name for name in chosen if name != ENGINE))))
