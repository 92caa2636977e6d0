"""How much time to spend: named sets of defaults that explicit options override."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """`None` leaves the experiment's own default."""

    name: str
    about: str
    ks: tuple[int, ...] | None
    subflows: tuple[int, ...] | None
    seconds: float
    warmup_s: float
    rate_mbps: float | None
    """Link rate in Mb/s; None is `auto`."""
    seeds: int
    whole: bool = False
    """Whether figures that have a longer version of themselves run that (`Defaults.whole_s`)."""
    brief: bool = False
    """Whether no figure's own sizes and seconds hold: all that counts is that everything works."""

    def durations_s(self, rate_mbps: float, virtual_time: bool) -> tuple[float, float]:
        """Warm-up and measured seconds. In virtual time flows wait for nothing but the network, and start
        together: at 100 Mb/s and more a tenth is enough, at 10 Mb/s and less, where queues take as long as
        timers, it is as in real time."""
        part = min(1.0, max(0.1, SETTLED_MBPS / rate_mbps)) if virtual_time else 1.0
        return round(part * self.warmup_s, 3), round(part * self.seconds, 3)


SETTLED_MBPS = 10.0

PROFILES: dict[str, Profile] = {
    "smoke": Profile(
        "smoke",
        "k=4, TCP and 2, 8 subflows, 8 s each at 10 Mb/s: under 2 minutes, does everything work?",
        ks=(4,),
        subflows=(1, 2, 8),
        seconds=8.0,
        warmup_s=3.0,
        rate_mbps=10.0,
        seeds=1,
        brief=True,
    ),
    "quick": Profile(
        "quick",
        "TCP and 2..8 subflows, 40 s each after 20 s of warm-up (simulated at 100 Mb/s: 4 after 2), one "
        "permutation",
        ks=None,
        subflows=None,
        seconds=40.0,
        warmup_s=20.0,
        rate_mbps=None,
        seeds=1,
    ),
    "paper": Profile(
        "paper",
        "as quick, over 6 permutations, so that charts may draw intervals",
        ks=None,
        subflows=None,
        seconds=40.0,
        warmup_s=20.0,
        rate_mbps=None,
        seeds=6,
        whole=True,
    ),
}

DEFAULT = "quick"
