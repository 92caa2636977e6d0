"""How often a point that only the machine makes suspect is run again. Pure."""

from __future__ import annotations

from dataclasses import dataclass

BASELINE_RETRIES = 2
"""All percentages depend on the baseline, and it takes only seconds: at most three attempts."""


@dataclass(frozen=True)
class Retries:
    """How many times a suspect point, and a suspect baseline, may be run again."""

    points: int = 0
    baselines: int = 0

    @classmethod
    def of_profile(cls, points: int) -> Retries:
        """Return the retries of a profile; baselines have at least BASELINE_RETRIES."""
        return cls(points, max(points, BASELINE_RETRIES))

    @classmethod
    def typed(cls, points: int) -> Retries:
        """Return the retries given on the command line; 0 turns off those of baselines too."""
        return cls.of_profile(points) if points else NO_RETRIES


NO_RETRIES = Retries()
