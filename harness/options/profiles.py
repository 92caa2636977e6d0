"""Profiles: named layers of settings for short or long runs, under what the user gave and the figure pins."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from model.spec import Settings


@dataclass(frozen=True)
class Profile:
    """What `--profile NAME` chooses: settings by path, and how far a run goes."""

    name: str
    about: str
    settings: Settings
    virtual: Settings = field(default_factory=dict)
    """Settings over these in virtual time, with the durations up to SETTLED_MBPS."""
    brief: bool = False
    """Whether sizes and seconds that figures pin are reduced, because the run only tests that everything
    works."""
    retries: int = 0
    """How often a point that only the machine makes suspect is run again."""
    highest_mbps: float = math.inf
    """The highest link rate that is tried in real time."""

    def layer(self, virtual_time: bool) -> dict[str, Any]:
        """Return the settings by path."""
        return {**self.settings, **(self.virtual if virtual_time else {})}

    def durations_s(self, rate_mbps: float, virtual_time: bool) -> Mapping[str, float]:
        """Return warm-up and measured seconds, by path.

        In virtual time flows start together and wait only for the network. A tenth of the time is enough at
        100 Mb/s and more. At 10 Mb/s and less, where a full queue lasts as long as timers, durations are
        those of real time. In real time slow links get longer durations (`rates.long_enough`).
        """
        layer = self.layer(virtual_time)
        part = min(1.0, max(0.1, SETTLED_MBPS / rate_mbps)) if virtual_time else 1.0
        return {path: round(part * layer[path], 3) for path in ("warmup_s", "seconds")}


SETTLED_MBPS = 10.0

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        Profile(
            "smoke",
            "k=4, TCP and 2, 8 subflows, 25 s each after 20 s of warm-up, at 10 Mb/s, or less if this "
            "machine carries less (simulated: 8 s after 3 s, at most 20 after 7.5): 3.5 minutes, does "
            "everything work?",
            {"k": (4,), "transport.subflows": (1, 2, 8), "warmup_s": 20.0, "seconds": 25.0, "seeds": 1},
            virtual={"link.rate_mbps": SETTLED_MBPS, "warmup_s": 3.0, "seconds": 8.0},
            brief=True,
            retries=1,
            highest_mbps=SETTLED_MBPS,
        ),
        Profile(
            "quick",
            "TCP and 2..8 subflows, 40 s each after 20 s of warm-up, longer below 10 Mb/s (simulated at 100: "
            "4 after 2), one permutation",
            {"warmup_s": 20.0, "seconds": 40.0, "seeds": 1},
            retries=1,
        ),
        Profile(
            "paper",
            "as quick, over 6 permutations, so that charts may draw intervals",
            {"warmup_s": 20.0, "seconds": 40.0, "seeds": 6},
        ),
    )
}

DEFAULT = "quick"
