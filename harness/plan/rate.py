"""The link rate of a sweep: what was asked for, or what this machine carries for this topology."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from engines.engine import Engine, Observer
from engines.registry import MADE_UP, VIRTUAL_TIME
from model.spec import TopologySpec
from topos import TOPOLOGIES, size_words

FAKE_MBPS = 10.0
FAKE = "auto, fake"
UNMEASURED_MBPS = 10.0
UNMEASURED = "auto, not measured: nothing here runs in real time"
SIMULATED_MBPS = 100.0
SIMULATED = "auto, the paper's: any will do in virtual time"
FIXED = "fixed"
MEASURED = "auto, measured on this machine"
TO_BE_MEASURED = "auto: will be measured first"
BEGUN = "auto, as at the points that are finished"
NOT_CARRIED = "auto, this machine carries none now"

RateKey = tuple[str, tuple[tuple[str, int], ...]]


def rate_key(topology: TopologySpec) -> RateKey:
    """A topology as a dictionary key."""
    return topology.kind, tuple(sorted(topology.params.items()))


def itself(topology: TopologySpec) -> TopologySpec:
    """The usual basis of a rate."""
    return topology


@dataclass(frozen=True)
class Auto:
    """What `--rate auto` means to a figure: `overload` times the rate this machine carries on
    `basis(topology)`.

    An overload above 1 asks for more than the machine can do, on whatever machine. A basis other than the
    topology itself gives networks of different sizes one rate.
    """

    overload: float = 1.0
    basis: Callable[[TopologySpec], TopologySpec] = itself

    def of(self, carried: RateChoice, topology: TopologySpec) -> RateChoice:
        """The rate for `topology`, given the one `carried` on its basis."""
        basis = self.basis(topology)
        told = "" if basis == topology else f" of {named(basis)}"
        times = "" if self.overload == 1.0 else f" x {self.overload:g}"
        rate = None if carried.rate_mbps is None else self.overload * carried.rate_mbps
        return RateChoice(rate, f"auto{told}{times}{carried.how.removeprefix('auto')}", carried.begun)


@dataclass(frozen=True)
class RateChoice:
    """A link rate in Mb/s and how it was come by; `rate_mbps` None: not known before it is measured. `begun`
    says that finished points have it, so that it is not measured again."""

    rate_mbps: float | None
    how: str
    begun: bool = False


AUTO = Auto()
UNTOLD = RateChoice(None, "")


def fixed(rate_mbps: float) -> RateChoice:
    """The rate an option, a figure or a profile names."""
    return RateChoice(rate_mbps, FIXED)


def begun(rate_mbps: float) -> RateChoice:
    """The rate that finished points of a sweep have."""
    return RateChoice(rate_mbps, BEGUN, begun=True)


def unmeasured() -> RateChoice:
    """Where nothing that runs depends on what the machine carries."""
    return RateChoice(UNMEASURED_MBPS, UNMEASURED)


def known_rate(
    topology: TopologySpec, engines: Collection[str], highest_mbps: float = math.inf
) -> RateChoice:
    """What this machine carries where these engines share a rate, as far as it is known without root and
    without starting anything; `highest_mbps` bounds what is measured."""
    if MADE_UP in engines:
        return RateChoice(FAKE_MBPS, FAKE)
    if VIRTUAL_TIME.issuperset(engines):
        return RateChoice(SIMULATED_MBPS, SIMULATED)
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
    """The rate this machine carries for `topology`: measured now, unless it was within the last day and in
    noise like today's.

    Raises HostUnfitError where calibration needs what this machine or user lacks.
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


def named(topology: TopologySpec) -> str:
    """In a few letters: `k=8` or `k=8, 4:1` for a FatTree, `dual-homed FatTree k=8`, `star n=16`."""
    return sizes(topology) if topology.kind == "fat_tree" else network(topology)


def network(topology: TopologySpec) -> str:
    """A network with its kind always told: `FatTree k=8, 4:1`, `dumbbell n=2, lanes=6`."""
    return f"{TOPOLOGIES[topology.kind].title} {sizes(topology)}"


def sizes(topology: TopologySpec) -> str:
    """Its size and whatever is not as usual."""
    return ", ".join(size_words(topology.kind, topology.params))
