"""The published steps of load and scaling, as workloads."""

from __future__ import annotations

from dataclasses import dataclass

from workloads.sip import MATRIX

REGISTRATIONS = 100
REAL_SCALE = 50
"""Percent of the published rates that two cores carry with real hosts; service times grow by the inverse."""


@dataclass(frozen=True)
class Step:
    """One step: calls per second, and instances of both functions. `words` say why it is there."""

    calls: int
    pcscf: int
    scscf: int
    words: str

    def workload(self, scale: int = 100) -> str:
        """Return the workload as typed. SIPp starts calls at constant intervals, so scaled steps do, too."""
        instances = (("pcscf", self.pcscf), ("scscf", self.scscf))
        parts = [f"{name}={count}" for name, count in instances if count > 1]
        scaled = [f"scale={scale}", "arrivals=constant"] if scale != 100 else []
        return ":".join([MATRIX, str(self.calls), *parts, *scaled])


FIRST = Step(130, 1, 1, "the published first load")
MORE_S = Step(130, 1, 2, "after the S-CSCF was scaled")
SECOND = Step(180, 1, 2, "the published second load")
MORE_P = Step(180, 2, 2, "after the P-CSCF was scaled")
THIRD = Step(320, 2, 2, "the published third load")
NEXT = Step(360, 3, 2, "more load, after the P-CSCF was scaled again")
PUBLISHED_LOADS = (FIRST.calls, SECOND.calls, THIRD.calls)
"""Calls per second that the slides name."""
LADDER = (FIRST, MORE_S, SECOND, MORE_P, THIRD, NEXT)
