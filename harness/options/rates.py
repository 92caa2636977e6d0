"""Link rates as options and figures give them: a number, or what `auto` means for a figure. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from engines.registry import LINUX
from harness.points.labels import named
from model.spec import TopologySpec

SIMULATED_MBPS = 100.0
GUEST_MBPS = 10.0
FIXED = "fixed"

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


def virtual_mbps(engines: Collection[str]) -> float:
    """The rate of engines in virtual time, where nothing names one."""
    return GUEST_MBPS if LINUX in engines else SIMULATED_MBPS
