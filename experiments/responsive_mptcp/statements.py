"""Table I of the slides as statements: order and ratios first, then levels. Tolerances were set before any
run."""

from __future__ import annotations

from experiments.responsive_mptcp.metrics import (
    job_at,
    job_over,
    subflows_at,
    throughput_at,
    throughput_over,
)
from experiments.responsive_mptcp.schemes import ECMP2, ECMP4, R2, R4, R8, WITH_HEDERA, Scheme
from harness.claims.metric import Metric
from harness.claims.published import Published, Relation, Source

CITATION = "Duan, Responsive Multipath TCP in SDN-based Datacenters, slides, University of Hong Kong, 2015"
RANDOM, PERMUTATION, SHUFFLE = "connections_per_host:1", "one_to_one", "map_reduce:0"
SIGN = 0.0, "the order alone is judged"
RATIO = 0.03, "the three settings of the slides differ by as much"
TIMES = 0.05, "the ratios of the slides' three settings span 4 %"
LEVEL_MBPS = 80.0, "stack, queues and delays are ours: a tenth of a link is the limit here"
LEVEL_MS = 160.0, "sizes are ours, so that Hedera's takes 1.6 s: a tenth of that is the limit here"
COUNT = 0.4, "a tenth of four subflows"


def _row(
    metric: Metric, workload: str, relation: Relation, value: float, words: str, within: tuple[float, str]
) -> Published:
    return Published(
        metric, "fat_tree", 8, workload, 4, relation, value, Source.TEXT, words, "HKU 2015", CITATION, *within
    )


def _above(one: Scheme, other: Scheme, workload: str, relation: Relation = Relation.ABOVE) -> Published:
    words = f"{one.label} carries {'at least as much as' if relation is Relation.AT_LEAST else 'more than'}"
    return _row(throughput_over(one, other), workload, relation, 1, f"{words} {other.label}", SIGN)


def _levels(workload: str, rows: tuple[tuple[Scheme, float, float], ...]) -> tuple[Published, ...]:
    """Return mean subflows and throughput of each scheme; subflows of responsive ones only."""
    counts = (
        _row(subflows_at(s), workload, Relation.ABOUT, n, f"{s.label} has {n:g} subflows per flow", COUNT)
        for s, n, _ in rows
        if s in (R2, R4, R8)
    )
    rates = (
        _row(throughput_at(s), workload, Relation.ABOUT, mbps, f"{s.label} carries {mbps:g} Mb/s", LEVEL_MBPS)
        for s, _, mbps in rows
    )
    return (*counts, *rates)


THROUGHPUT = (
    *(_above(scheme, WITH_HEDERA, PERMUTATION, Relation.AT_LEAST) for scheme in (R2, R4, R8)),
    _above(WITH_HEDERA, ECMP4, PERMUTATION),
    _above(ECMP4, ECMP2, PERMUTATION),
    *(
        _row(
            throughput_over(scheme, ECMP4), RANDOM, Relation.ABOUT, value,
            f"{scheme.label} carries {100 * value:.0f} % of 4 subflows", RATIO,
        )
        for scheme, value in ((R2, 521 / 530), (R4, 513 / 530), (R8, 506 / 530))
    ),
    *_levels(
        RANDOM,
        (
            (R2, 3.72, 521), (R4, 3.40, 513), (R8, 2.47, 506), (ECMP4, 4, 530), (ECMP2, 2, 493),
            (WITH_HEDERA, 1, 438),
        ),
    ),
    *_levels(
        PERMUTATION,
        (
            (R2, 3.88, 766), (R4, 3.82, 767), (R8, 3.75, 760), (ECMP4, 4, 734), (ECMP2, 2, 643),
            (WITH_HEDERA, 1, 747),
        ),
    ),
)  # fmt: skip
JOBS = (
    *(
        _row(
            job_over(scheme, ECMP4), SHUFFLE, Relation.ABOUT, value,
            f"jobs take {100 * (value - 1):.0f} % longer with {scheme.label} than with 4 subflows", TIMES,
        )
        for scheme, value in ((R2, 1402 / 1332), (R4, 1441 / 1332), (R8, 1454 / 1332))
    ),
    _row(
        job_over(WITH_HEDERA, ECMP4), SHUFFLE, Relation.ABOUT, 1652 / 1332,
        "jobs take 24 % longer with Hedera than with 4 subflows", TIMES,
    ),
    *(
        _row(subflows_at(s), SHUFFLE, Relation.ABOUT, n, f"{s.label} has {n:g} subflows per flow", COUNT)
        for s, n in ((R2, 1.92), (R4, 1.28), (R8, 1.03))
    ),
    *(
        _row(job_at(s), SHUFFLE, Relation.ABOUT, ms, f"a job takes {ms:g} ms with {s.label}", LEVEL_MS)
        for s, ms in ((R2, 1402), (R4, 1441), (R8, 1454), (ECMP4, 1332), (ECMP2, 1394), (WITH_HEDERA, 1652))
    ),
)  # fmt: skip
