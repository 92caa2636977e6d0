"""Which engines run a figure, and with which settings. Pure.

Simulated hosts use the figure's own settings. Real hosts use those of its emulated variant, whose size and
duration suit a machine in real time; in virtual time those of `guests`, if the figure has any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from engines.registry import LINUX, LINUX_HOSTS, MININET, SIMULATED_HOSTS, SIMULATOR
from harness.experiment import Figure
from harness.options.fields import Hosts
from harness.options.options import ENGINE, Defaults, Given

NO_COUNTERPART = "simulated only: no network that real hosts can run in real time would show the same"


@dataclass(frozen=True)
class EngineVariant:
    """Some engines of a figure: the user's options that apply to them, over `defaults`."""

    given: Given
    defaults: Defaults

    @property
    def engines(self) -> tuple[str, ...]:
        return self.given.engine or self.defaults.engines


def engine_variants(figure: Figure, given: Given) -> tuple[EngineVariant, ...]:
    """Return the requested variants that exist: simulated, emulated, or one for all engines if both run the
    same."""
    chosen = given.engine or figure.defaults.engines
    if not has_variants(figure):
        return (EngineVariant(given, figure.defaults),)
    virtual, emulated = _virtual(figure, chosen), _emulated(figure, chosen)
    found = []
    if virtual:
        suited = given.without(Hosts.REAL) if emulated else given
        found.append(EngineVariant(dataclasses.replace(suited, engine=virtual), figure.defaults))
    for defaults, engines in emulated:
        suited = given.without(Hosts.SIMULATED) if virtual else given
        found.append(EngineVariant(dataclasses.replace(suited, engine=engines), defaults))
    return tuple(found)


def _emulated(figure: Figure, chosen: Sequence[str]) -> list[tuple[Defaults, tuple[str, ...]]]:
    """Return the engines with real hosts, by the settings of the figure that they run."""
    real = tuple(name for name in chosen if name in LINUX_HOSTS)
    if figure.emulated is None or not real:
        return []
    if figure.guests is None:
        return [(figure.emulated, real)]
    variants = {MININET: figure.emulated, LINUX: figure.guests}
    return [(variants[name], (name,)) for name in real]


def has_variants(figure: Figure) -> bool:
    """Return whether real hosts run other points than simulated ones, or none."""
    return figure.separate_variants or figure.emulated is not None


def lacks_counterpart(figure: Figure, given: Given) -> bool:
    """Return whether real hosts were requested and have nothing to run."""
    asked = any(name in LINUX_HOSTS for name in given.engine or ())
    return has_variants(figure) and figure.emulated is None and asked


def with_engines(figures: Sequence[Figure], given: Given, root: bool) -> Given:
    """Return `given` with engines, if it names none: root gets both if figures have emulated variants."""
    named = given.engine is not None or not any(
        figure.separate_variants and figure.emulated for figure in figures
    )
    engines = (SIMULATOR, ENGINE) if root else (SIMULATOR,)
    return given if named else dataclasses.replace(given, engine=engines)


def _virtual(figure: Figure, chosen: Sequence[str]) -> tuple[str, ...]:
    """Return the engines with simulated hosts. If a figure has separate variants, `simulator` selects all
    simulated engines that the figure compares."""
    own = figure.defaults.engines if figure.separate_variants and SIMULATOR in chosen else ()
    compared = (name for name in own if name in SIMULATED_HOSTS)
    return tuple(dict.fromkeys((*compared, *(name for name in chosen if name not in LINUX_HOSTS))))
