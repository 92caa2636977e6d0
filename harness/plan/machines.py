"""The machines that run a sweep's points, as planning asks for them, and the link rates that they carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

from common.errors import BusyError, HostUnfitError, NoKernelError
from engines.engine import Engine, Observer
from engines.registry import LINUX, VIRTUAL_TIME, only, real_time
from harness.labels import named
from harness.options.rates import RateChoice, virtual_mbps
from model.spec import RunSpec, TopologySpec

UNMEASURED_MBPS = 10.0
UNMEASURED = "auto, not measured: nothing here runs in real time"
SIMULATED = "auto, the paper's: any will do in virtual time"
GUEST = "auto: guests run at any rate, and at this one in about real time"
MEASURED = "auto, measured on this machine"
TO_BE_MEASURED = "auto: will be measured first"
BEGUN = "auto, as at the points that are finished"
NOT_CARRIED = "auto, this machine carries none now"


class Machines(Protocol):
    """What planning asks of the machines that run points."""

    engine: Engine
    """The engine to plan with."""

    def at_once(self, spec: RunSpec) -> int:
        """Return how many points of this spec's engine run side by side."""

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """Return what `Engine.coupled_cc` returns for these engines on the machines that run their points."""

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """Return the link rate that these engines carry there, without measuring; at most `highest_mbps`."""

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """Return the link rate that they carry there; measure it if needed. Raises HostUnfitError."""

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """Return the engines that cannot run these points, each with the reason.

        Raises UsageError for points that no machine can run.
        """


class ThisMachine:
    """This machine alone.

    `build_kernel` is called if points need the engine linux and lack only its kernel; it raises
    HostUnfitError if this machine cannot build it.
    """

    def __init__(self, engine: Engine, build_kernel: Callable[[], None] | None = None) -> None:
        self.engine = engine
        self._build_kernel = build_kernel

    def at_once(self, spec: RunSpec) -> int:
        """Return how many points the spec's engine runs at once."""
        return max(1, only(self.engine, {spec.engine}).parallel // self.engine.cpus(spec))

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """Return what the engines return here."""
        return only(self.engine, names).coupled_cc()

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """Return the rate of an earlier calibration of this machine."""
        return known_rate(topology, names, highest_mbps)

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """Return the calibrated rate; calibrate now unless an earlier calibration is of the last day and had
        similar noise. Raises HostUnfitError if calibration needs what this machine or user lacks."""
        choice = known_rate(topology, names, highest_mbps)
        if choice.rate_mbps is not None and choice.how != MEASURED:
            return choice
        from engines.emulation import calibrate  # noqa: PLC0415

        why = calibrate.outdated(topology, highest_mbps)
        if choice.rate_mbps is not None and not why:
            return choice
        again = f" again: {why}" if why else ""
        observer.note(f"measuring which link rate this machine carries at {named(topology)}{again}")
        return RateChoice(float(calibrate.calibrate(topology, observer, self.engine, highest_mbps)), MEASURED)

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """Check every point with its engine on this machine, and build the kernel that guests lack. Take the
        machine for points that need it to themselves."""
        asked = tuple(specs)
        unfit = self._unfit(asked)
        lacking = [name for name, error in unfit.items() if isinstance(error, NoKernelError)]
        if not lacking or self._build_kernel is None:
            return unfit
        try:
            self._build_kernel()
        except HostUnfitError as error:
            return {**unfit, **dict.fromkeys(lacking, error)}
        return self._unfit(asked)

    def _unfit(self, specs: Sequence[RunSpec]) -> dict[str, HostUnfitError]:
        unfit = unfit_here(self.engine, specs)
        for name in {spec.engine for spec in specs} - unfit.keys():
            alone = only(self.engine, {name})
            try:
                alone.take_machine()
            except BusyError as error:
                unfit[name] = error
        return unfit


def unfit_here(engine: Engine, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
    """Return the engines that cannot run these points here, each with the first reason. Raises UsageError."""
    unfit: dict[str, HostUnfitError] = {}
    for spec in specs:
        try:
            engine.check(spec)
        except HostUnfitError as error:
            unfit.setdefault(spec.engine, error)
    return unfit


def known_rate(
    topology: TopologySpec, engines: Collection[str], highest_mbps: float = math.inf
) -> RateChoice:
    """Return the rate that this machine carries where these engines share a rate, as far as it is known.

    Needs no root and starts nothing. `highest_mbps` is the upper limit of the search.
    """
    if VIRTUAL_TIME.issuperset(engines):
        how = GUEST if LINUX in engines else SIMULATED
        return RateChoice(virtual_mbps(engines), how)
    if not real_time(engines):
        return RateChoice(UNMEASURED_MBPS, UNMEASURED)
    from engines.emulation import calibrate  # noqa: PLC0415

    cached = calibrate.cached(topology, highest_mbps)
    if cached is None:
        return RateChoice(None, TO_BE_MEASURED)
    return RateChoice(float(cached), MEASURED)
