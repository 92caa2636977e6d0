"""The link rate of a sweep: what was asked for, or what this machine carries for this topology."""

from __future__ import annotations

from dataclasses import dataclass

from engines.engine import Engine, Observer
from engines.spec import TopologySpec

FAKE_MBPS = 10.0
MEASURED = "auto, measured on this machine"
TO_BE_MEASURED = "auto: will be measured first"


@dataclass(frozen=True)
class RateChoice:
    """A link rate in Mb/s and how it was come by; `rate_mbps` None: not known before it is measured."""

    rate_mbps: float | None
    how: str


def known_rate(topology: TopologySpec, engine_name: str, asked_mbps: float | None) -> RateChoice:
    """The rate as far as it is known without root and without starting anything."""
    if asked_mbps is not None:
        return RateChoice(asked_mbps, "fixed")
    if engine_name == "fake":
        return RateChoice(FAKE_MBPS, "fake")
    from engines.emulation import calibrate  # noqa: PLC0415

    cached = calibrate.cached(topology)
    if cached is None:
        return RateChoice(None, TO_BE_MEASURED)
    return RateChoice(float(cached), MEASURED)


def choose_rate(topology: TopologySpec, engine: Engine, observer: Observer) -> RateChoice:
    """The rate this machine carries for `topology`, measured now unless it was before.

    Raises HostUnfitError where calibration needs what this machine or user lacks.
    """
    choice = known_rate(topology, engine.name, None)
    if choice.rate_mbps is not None:
        return choice
    from engines.emulation import calibrate  # noqa: PLC0415

    observer.note(f"measuring which link rate this machine carries at k={topology.k}")
    return RateChoice(float(calibrate.calibrate(topology, observer, engine)), MEASURED)
