"""Link rates of sweeps that have finished points. Pure.

The names of these points contain the rate, so the sweep continues at it.
"""

from __future__ import annotations

from collections.abc import Iterable

from engines.registry import real_time
from harness.experiment import Figure
from harness.options.options import SweepOptions
from harness.options.rates import RateChoice, RateKey, rate_key
from harness.plan import rate
from harness.results.store import StoredPoint, point_name
from model.spec import RunSpec

Shared = tuple[RateKey, tuple[str, ...]]
"""A topology, and the engines that share one rate on it."""


def rates(
    asked: Iterable[tuple[Figure, SweepOptions]], stored: Iterable[StoredPoint]
) -> dict[Shared, RateChoice]:
    """Return, by topology and engines, the rate at which the newest finished point of these figures ran.

    Only rates chosen by `auto` count.
    """
    chosen = [entry for entry in stored if entry.finished and entry.rate_choice.startswith("auto")]
    found: dict[Shared, tuple[str, float]] = {}
    for figure, options in asked:
        if options.rate_mbps is None and real_time(options.engines):
            for shared, at, carried_mbps in _found(figure, options, chosen):
                found[shared] = max(found.get(shared, ("", 0.0)), (at, carried_mbps))
    return {shared: rate.begun(carried_mbps) for shared, (_, carried_mbps) in found.items()}


def _found(
    figure: Figure, options: SweepOptions, chosen: Iterable[StoredPoint]
) -> Iterable[tuple[Shared, str, float]]:
    """Yield the figure's points among those: the basis of the rate, the time, and the rate carried on that
    basis."""
    by_rate: dict[float, dict[str, StoredPoint]] = {}
    for entry in chosen:
        by_rate.setdefault(entry.spec.link.rate_mbps, {})[entry.name] = entry
    for rate_mbps, entries in by_rate.items():
        names = {point_name(spec): spec.topology for spec in _points(figure, options, rate_mbps)}
        for name in names.keys() & entries.keys():
            basis = rate_key(options.auto.basis(names[name]))
            at, carried_mbps = entries[name].attempts[-1].started_at, rate_mbps / options.auto.overload
            yield (basis, options.engines), at, carried_mbps


def _points(figure: Figure, options: SweepOptions, rate_mbps: float) -> list[RunSpec]:
    return [options.window.of(spec) for spec in figure.points(options, lambda _topology: rate_mbps)]
