"""The schemes of the slides' Table I, and others that the slides leave out."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.options.options import UNSCHEDULED
from harness.plan.sweeps import Variant
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.schedulers import RESPONSIVE
from model.spec import RunSpec, SchedulerSpec, StackSpec

MAX_SUBFLOWS = 4
STACK = StackSpec(min_rto_ms=10.0, delayed_ack_ms=1.0)
"""The slides do not say how their hosts were set; ns-3's own minimum RTO is 1 s, longer than our windows."""
HEDERA = SchedulerSpec("annealing", 10.0)
"""Hedera's better algorithm (NSDI 2010), at an interval that is short against our windows."""


@dataclass(frozen=True)
class Scheme:
    """One row of the table: its name there, and the settings of its points."""

    label: str
    subflows: int
    scheduler: SchedulerSpec = UNSCHEDULED
    cc: str = COUPLED_DEFAULT
    colour: str = "#777777"
    marker: str = "o"

    @property
    def variant(self) -> Variant:
        return Variant(cc=self.cc, subflows=(self.subflows,), scheduler=self.scheduler, simulated=STACK)

    def has(self, spec: RunSpec) -> bool:
        transport = spec.transport
        return (transport.subflows, transport.cc, spec.scheduler, spec.routing) == (
            self.subflows,
            self.cc,
            self.scheduler,
            "hashed",
        )


def responsive(monitor_ms: float, demand_gap: float, **others: float | bool) -> SchedulerSpec:
    return SchedulerSpec(RESPONSIVE, monitor_ms, demand_gap, **others)  # type: ignore[arg-type]


FAST, MEDIUM, SLOW = responsive(2.0, 0.15), responsive(4.0, 0.25), responsive(8.0, 0.35)
R2 = Scheme("responsive, 2 ms, .15", MAX_SUBFLOWS, FAST, colour="#D55E00", marker="o")
R4 = Scheme("responsive, 4 ms, .25", MAX_SUBFLOWS, MEDIUM, colour="#E69F00", marker="s")
R8 = Scheme("responsive, 8 ms, .35", MAX_SUBFLOWS, SLOW, colour="#F0E442", marker="D")
ECMP4 = Scheme("4 subflows, ECMP", 4, colour="#0072B2", marker="^")
ECMP2 = Scheme("2 subflows, ECMP", 2, colour="#56B4E9", marker="v")
ECMP8 = Scheme("8 subflows, ECMP", 8, colour="#332288", marker="P")
WITH_HEDERA = Scheme("1 subflow, Hedera", 1, HEDERA, BASELINE, "#009E73", "*")
FIRST_FIT = replace(
    WITH_HEDERA, label="1 subflow, first fit", scheduler=SchedulerSpec("first_fit", 10.0), marker="X"
)
TABLE = (R2, R4, R8, ECMP4, ECMP2, WITH_HEDERA)
SCHEMES = (*TABLE, ECMP8, FIRST_FIT)


def scheme_of(spec: RunSpec) -> Scheme | None:
    """Return the scheme of a point; None for others, such as those of a curve."""
    return next((scheme for scheme in SCHEMES if scheme.has(spec)), None)
