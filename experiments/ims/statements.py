"""What the slides say on each step of the ladder, in both engines. docs/published.md lists it."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from experiments.ims.ladder import (
    FIRST,
    LADDER,
    MORE_P,
    MORE_S,
    NEXT,
    REAL_SCALE,
    SECOND,
    THIRD,
    Step,
)
from experiments.ims.metrics import EARLY_PCT, FAILED_PCT, P_FIRST, S_BUSY_PCT, S_FIRST, over
from harness.metrics.metric import Metric
from harness.metrics.published import Published, Relation, Source

CITATION = (
    "Duan, Responsive Multipath TCP in SDN-based Datacenters, slides, University of Hong Kong, 2015, on "
    "scaling network functions"
)
TOPOLOGY, HOSTS = "star", 14
OURS = (
    "The slides state no service times. Ours put the published loads between the computed knees, so which "
    "function overloads follows from them; how it looks does not."
)
QUOTES = {
    FIRST: "S-CSCF: blocking look-ups of user data in the database; fails to serve some calls",
    SECOND: "P-CSCF: non-blocking proxy; the latency of requests rises drastically",
    THIRD: "P-CSCF again",
    NEXT: "S-CSCF is next if the load goes on rising",
}
"""The slides' words on a step as our notes have them."""
SIGN = 0.0, "the order alone is judged"
SOME = 1.0, "more than one call in a hundred"
STEP_BEFORE = {
    step.workload(scale): before.workload(scale)
    for scale in (100, REAL_SCALE)
    for before, step in pairwise(LADDER)
}
SETUP_OVER = Metric(
    Quantity("setup_over_before", "x the step before", "the median setup time of a call"),
    over=over("setup_ms_p50", "setup_ms_p50", STEP_BEFORE.__getitem__),
)
EARLY_OVER = Metric(
    Quantity(
        "early_setup_over_before", "x the step before", "the median setup time of calls of the first 3 s"
    ),
    over=over("early_setup_ms_p50", "setup_ms_p50", STEP_BEFORE.__getitem__),
)


def _row(
    step: Step, metric: Metric, relation: Relation, value: float, words: str, because: str
) -> tuple[Published, ...]:
    """Return the statement about the simulator at the published rates, and about either engine at the scale
    of real hosts."""
    simulated = Published(
        metric, TOPOLOGY, HOSTS, step.workload(), 1, relation, value, Source.TEXT, words,
        "HKU 2015", CITATION, 0.0, because, engine=SIMULATOR, caveat=OURS,
        section="Overload and scaling", quote=QUOTES.get(step, ""),
    )  # fmt: skip
    scaled = replace(simulated, workload=step.workload(REAL_SCALE))
    return (simulated, replace(scaled, engine=""))


def _expected(rows: tuple[Published, ...]) -> tuple[Published, ...]:
    """Return the rows with source EXPECTED: the mechanism implies them, the slides do not state them."""
    return tuple(replace(row, source=Source.EXPECTED, section="", quote="") for row in rows)


PUBLISHED = (
    *_row(FIRST, S_FIRST, Relation.ABOVE, 0, "at 130 calls per second the S-CSCF overloads first", SIGN[1]),
    *_row(FIRST, FAILED_PCT, Relation.ABOVE, 1, "the overloaded S-CSCF fails to serve some calls", SOME[1]),
    *_expected(
        _row(MORE_S, FAILED_PCT, Relation.BELOW, 1, "with two S-CSCFs 130 calls/s are served", SOME[1])
    ),
    *_row(SECOND, P_FIRST, Relation.ABOVE, 0, "at 180 calls per second the P-CSCF overloads first", SIGN[1]),
    *_row(
        SECOND, SETUP_OVER, Relation.ABOVE, 3, "the latency of requests rises drastically",
        "three times the step before counts as drastic",
    ),
    *_expected(
        _row(
            SECOND, EARLY_OVER, Relation.ABOVE, 3, "the latency rises in the first 3 s of the overload",
            "three times the step before",
        )
    ),
    *_expected(
        _row(
            SECOND, EARLY_PCT, Relation.ABOVE, 95, "calls of these 3 s are still set up",
            "no more than one in twenty fails",
        )
    ),
    *_expected(
        _row(MORE_P, FAILED_PCT, Relation.BELOW, 1, "with two P-CSCFs 180 calls/s are served", SOME[1])
    ),
    *_row(THIRD, P_FIRST, Relation.ABOVE, 0, "at 320 calls per second the P-CSCF overloads again", SIGN[1]),
    *_expected(
        _row(
            THIRD, S_BUSY_PCT, Relation.ABOVE, 90, "the S-CSCFs are then near their knee",
            "a tenth of their time is left at most",
        )
    ),
    *_row(
        NEXT, S_FIRST, Relation.ABOVE, 0, "the S-CSCF is next if the load goes on rising", SIGN[1]
    ),
)  # fmt: skip
