"""Outages of the controller, or of some of the monitors."""

from __future__ import annotations

import random

from controllers.responsive.settings import Settings

NS_PER_S = 1_000_000_000


class Outage:
    """One interval in which either the controller is down, or each monitor is down with probability
    `down_monitors`. Times are in ns."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.from_ns = ns(settings.down_at_s)
        self.until_ns = self.from_ns + ns(settings.down_for_s)
        self._share = settings.down_monitors
        self._seed = seed
        self._hit: dict[str, bool] = {}

    @property
    def of_monitors(self) -> bool:
        return self._share > 0

    def hits(self, src: str) -> bool:
        """Return whether the monitor of the sender `src` is one of those that go down."""
        if src not in self._hit:
            self._hit[src] = random.Random(f"{self._seed} {src}").random() < self._share
        return self._hit[src]

    def now(self, now_ns: int) -> bool:
        return self.from_ns <= now_ns < self.until_ns

    def controller_is_up(self, now_ns: int) -> bool:
        return self.of_monitors or not self.now(now_ns)

    def monitor_is_up(self, src: str, now_ns: int) -> bool:
        return not (self.of_monitors and self.now(now_ns) and self.hits(src))


def ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)
