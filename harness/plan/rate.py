"""The link rate that this machine carries for a topology: known from before, or measured now."""

from __future__ import annotations

import math
from collections.abc import Collection

from engines.engine import Engine, Observer
from engines.registry import LINUX, MADE_UP, VIRTUAL_TIME
from harness.options.rates import RateChoice, virtual_mbps
from harness.points.labels import named
from model.spec import TopologySpec

FAKE_MBPS = 10.0
FAKE = "auto, fake"
UNMEASURED_MBPS = 10.0
UNMEASURED = "auto, not measured: nothing here runs in real time"
SIMULATED = "auto, the paper's: any will do in virtual time"
GUEST = "auto: guests run at any rate, and at this one in about real time"
MEASURED = "auto, measured on this machine"
TO_BE_MEASURED = "auto: will be measured first"
BEGUN = "auto, as at the points that are finished"
NOT_CARRIED = "auto, this machine carries none now"


def begun(rate_mbps: float) -> RateChoice:
    """Return the rate of a sweep's finished points."""
    return RateChoice(rate_mbps, BEGUN, begun=True)


def unmeasured() -> RateChoice:
    """Return a rate for runs that do not depend on what the machine carries."""
    return RateChoice(UNMEASURED_MBPS, UNMEASURED)


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
    from engines.emulation import calibrate  # noqa: PLC0415

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
    from engines.emulation import calibrate  # noqa: PLC0415

    why = calibrate.outdated(topology, highest_mbps)
    if choice.rate_mbps is not None and not why:
        return choice
    again = f" again: {why}" if why else ""
    observer.note(f"measuring which link rate this machine carries at {named(topology)}{again}")
    return RateChoice(float(calibrate.calibrate(topology, observer, engine, highest_mbps)), MEASURED)
