"""The link rate of a sweep: the requested one, or the rate that this machine carries for this topology."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from engines.engine import Engine, Observer
from engines.registry import LINUX, MADE_UP, VIRTUAL_TIME
from harness.points.labels import named
from model.spec import TopologySpec

FAKE_MBPS = 10.0
FAKE = "auto, fake"
UNMEASURED_MBPS = 10.0
UNMEASURED = "auto, not measured: nothing here runs in real time"
SIMULATED_MBPS = 100.0
SIMULATED = "auto, the paper's: any will do in virtual time"
GUEST_MBPS = 10.0
GUEST = "auto: guests run at any rate, and at this one in about real time"
FIXED = "fixed"
MEASURED = "auto, measured on this machine"
TO_BE_MEASURED = "auto: will be measured first"
BEGUN = "auto, as at the points that are finished"
NOT_CARRIED = "auto, this machine carries none now"

RateKey = tuple[str, tuple[tuple[str, int | str], ...]]


def rate_key(topology: TopologySpec) -> RateKey:
    """Return a topology as a dictionary key."""
    return topology.kind, tuple(sorted(topology.params.items()))


def itself(topology: TopologySpec) -> TopologySpec:
    """Return the topology: the usual basis of a rate."""
    return topology


@dataclass(frozen=True)
class Auto:
    """The meaning of `--rate auto` for a figure: `overload` times the rate that this machine carries on
    `basis(topology)`.

    An overload above 1 is more than the machine carries, whatever machine it is. With a basis other than the
    topology itself, networks of different sizes share one rate.
    """

    overload: float = 1.0
    basis: Callable[[TopologySpec], TopologySpec] = itself

    def of(self, carried: RateChoice, topology: TopologySpec) -> RateChoice:
        """Return the rate for `topology`, given the rate `carried` on its basis."""
        basis = self.basis(topology)
        basis_words = "" if basis == topology else f" of {named(basis)}"
        times = "" if self.overload == 1.0 else f" x {self.overload:g}"
        rate = None if carried.rate_mbps is None else self.overload * carried.rate_mbps
        return RateChoice(rate, f"auto{basis_words}{times}{carried.how.removeprefix('auto')}", carried.begun)


@dataclass(frozen=True)
class RateChoice:
    """A link rate in Mb/s and how it was chosen; None if it is not known before it is measured.

    `begun` says that finished points have this rate, so it is not measured again.
    """

    rate_mbps: float | None
    how: str
    begun: bool = False


AUTO = Auto()
UNTOLD = RateChoice(None, "")


def fixed(rate_mbps: float) -> RateChoice:
    """Return the rate that an option, a figure or a profile gives."""
    return RateChoice(rate_mbps, FIXED)


def begun(rate_mbps: float) -> RateChoice:
    """Return the rate of a sweep's finished points."""
    return RateChoice(rate_mbps, BEGUN, begun=True)


def unmeasured() -> RateChoice:
    """Return a rate for runs that do not depend on what the machine carries."""
    return RateChoice(UNMEASURED_MBPS, UNMEASURED)


def virtual_mbps(engines: Collection[str]) -> float:
    """The rate of engines in virtual time, where nothing names one."""
    return GUEST_MBPS if LINUX in engines else SIMULATED_MBPS


def known_rate(
    topology: TopologySpec, engines: Collection[str], highest_mbps: float = math.inf
) -> RateChoice:
    """Return the rate that this machine carries where these engines share a rate, as far as it is known.

    Needs no root and starts nothing. `highest_mbps` is the upper limit of the search.
    """
    if MADE_UP in engines:
        return RateChoice(FAKE_MBPS, FAKE)
    if VIRTUAL_TIME.issuperset(engines):
        how = GUEST if LINUX in engines else SIMULATED
        return RateChoice(virtual_mbps(engines), how)
    from engines.emulation.calibration import calibrate  # noqa: PLC0415

    cached = calibrate.cached(topology, highest_mbps)
    if cached is None:
        return RateChoice(None, TO_BE_MEASURED)
    return RateChoice(float(cached), MEASURED)


def choose_rate(
    topology: TopologySpec,
    engines: Collection[str],
    engine: Engine,
    observer: Observer,
    highest_mbps: float = math.inf,
) -> RateChoice:
    """Return the rate that this machine carries for `topology`.

    It is measured now, unless it was measured within the last day with similar noise. Raises HostUnfitError
    if calibration needs what this machine or user lacks.
    """
    choice = known_rate(topology, engines, highest_mbps)
    if choice.rate_mbps is not None and choice.how != MEASURED:
        return choice
    from engines.emulation.calibration import calibrate  # noqa: PLC0415

    why = calibrate.outdated(topology, highest_mbps)
    if choice.rate_mbps is not None and not why:
        return choice
    again = f" again: {why}" if why else ""
    observer.note(f"measuring which link rate this machine carries at {named(topology)}{again}")
    return RateChoice(float(calibrate.calibrate(topology, observer, engine, highest_mbps)), MEASURED)
