"""Profiles: named sets of defaults for short or long runs. Explicit options override them."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """A set of defaults; None keeps the experiment's own default."""

    name: str
    about: str
    ks: tuple[int, ...] | None
    subflows: tuple[int, ...] | None
    seconds: float
    warmup_s: float
    seeds: int
    whole: bool = False
    """Whether figures that have a longer version run that one (`Defaults.whole_s`)."""
    brief: bool = False
    """Whether sizes and seconds that figures pin are reduced, because the run only tests that everything
    works."""
    retries: int = 0
    """How often a point that only the machine makes suspect is run again."""
    highest_mbps: float = math.inf
    """The highest link rate that is tried in real time."""
    virtual_mbps: float | None = None
    """Link rate in virtual time; None is `auto`, as in real time."""
    virtual_s: tuple[float, float] | None = None
    """Warm-up and window in virtual time up to SETTLED_MBPS; None: as in real time."""

    def rate_mbps(self, virtual_time: bool) -> float | None:
        """Return the link rate in Mb/s; None is `auto`."""
        return self.virtual_mbps if virtual_time else None

    def durations_s(self, rate_mbps: float, virtual_time: bool) -> tuple[float, float]:
        """Return warm-up and measured seconds.

        In virtual time flows start together and wait only for the network. A tenth of the time is enough at
        100 Mb/s and more. At 10 Mb/s and less, where a full queue lasts as long as timers, durations are
        those of real time. In real time slow links get longer durations (rates.py, `Window`).
        """
        if not virtual_time:
            return self.warmup_s, self.seconds
        warmup_s, seconds = self.virtual_s or (self.warmup_s, self.seconds)
        part = min(1.0, max(0.1, SETTLED_MBPS / rate_mbps))
        return round(part * warmup_s, 3), round(part * seconds, 3)


SETTLED_MBPS = 10.0

PROFILES: dict[str, Profile] = {
    "smoke": Profile(
        "smoke",
        "k=4, TCP and 2, 8 subflows, 25 s each after 20 s of warm-up, at 10 Mb/s, or less if this machine "
        "carries less (simulated: 8 s after 3 s, at most 20 after 7.5): 3.5 minutes, does everything work?",
        ks=(4,),
        subflows=(1, 2, 8),
        seconds=25.0,
        warmup_s=20.0,
        seeds=1,
        brief=True,
        retries=1,
        highest_mbps=SETTLED_MBPS,
        virtual_mbps=SETTLED_MBPS,
        virtual_s=(3.0, 8.0),
    ),
    "quick": Profile(
        "quick",
        "TCP and 2..8 subflows, 40 s each after 20 s of warm-up, longer below 10 Mb/s (simulated at 100: "
        "4 after 2), one permutation",
        ks=None,
        subflows=None,
        seconds=40.0,
        warmup_s=20.0,
        seeds=1,
        retries=1,
    ),
    "paper": Profile(
        "paper",
        "as quick, over 6 permutations, so that charts may draw intervals",
        ks=None,
        subflows=None,
        seconds=40.0,
        warmup_s=20.0,
        seeds=6,
        whole=True,
    ),
}

DEFAULT = "quick"
