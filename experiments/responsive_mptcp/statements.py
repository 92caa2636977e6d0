"""Table I of the slides as statements: order and ratios first, then levels.

Tolerances were set before any run. docs/published.md lists the statements.
"""

from __future__ import annotations

from collections.abc import Mapping

from experiments.responsive_mptcp.metrics import (
    job_at,
    job_over,
    subflows_at,
    throughput_at,
    throughput_over,
)
from experiments.responsive_mptcp.schemes import ECMP2, ECMP4, R2, R4, R8, WITH_HEDERA, Scheme
from harness.metrics.metric import Metric
from harness.metrics.published import Bound, Published, Relation, Source

CITATION = "Duan, Responsive Multipath TCP in SDN-based Datacenters, slides, University of Hong Kong, 2015"
RANDOM, PERMUTATION, SHUFFLE = "connections_per_host:1", "one_to_one", "map_reduce:0"
SIGN = 0.0, "the order alone is judged"
RATIO = 0.03, "the three settings of the slides differ by as much"
TIMES = 0.05, "the ratios of the slides' three settings span 4 %"
LEVEL_MBPS = 80.0, "stack, queues and delays are ours: a tenth of a link is the limit here"
LEVEL_MS = 160.0, "sizes are ours, so that Hedera's takes 1.6 s: a tenth of that is the limit here"
COUNT = 0.4, "a tenth of four subflows"


Row = tuple[float, float]
"""Subflows per flow and throughput in Mb/s; in the shuffle the completion time of a job, in ms."""
TABLE_I: Mapping[str, Mapping[Scheme, Row]] = {
    RANDOM: {
        R2: (3.72, 521), R4: (3.40, 513), R8: (2.47, 506), ECMP4: (4, 530), ECMP2: (2, 493),
        WITH_HEDERA: (1, 438),
    },
    PERMUTATION: {
        R2: (3.88, 766), R4: (3.82, 767), R8: (3.75, 760), ECMP4: (4, 734), ECMP2: (2, 643),
        WITH_HEDERA: (1, 747),
    },
    SHUFFLE: {
        R2: (1.92, 1402), R4: (1.28, 1441), R8: (1.03, 1454), ECMP4: (4, 1332), ECMP2: (2, 1394),
        WITH_HEDERA: (1, 1652),
    },
}  # fmt: skip
RESPONSIVE = (R2, R4, R8)


def _row(
    metric: Metric, workload: str, bound: Bound, words: str, within: tuple[float, str], quote: str
) -> Published:
    return Published(
        metric, "fat_tree", 8, workload, 4, *bound, Source.TEXT, words, "HKU 2015", CITATION, *within,
        section="Table I", quote=quote,
    )  # fmt: skip


def _cells(workload: str, *schemes: Scheme) -> str:
    """Return the throughputs or completion times of schemes, as the table has them."""
    values = " and ".join(f"{TABLE_I[workload][each][1]:g}" for each in schemes)
    return f"{values} {'ms' if workload == SHUFFLE else 'Mb/s'}"


def _ratio(one: Scheme, other: Scheme, workload: str) -> float:
    return TABLE_I[workload][one][1] / TABLE_I[workload][other][1]


def _above(one: Scheme, other: Scheme, relation: Relation = Relation.ABOVE) -> Published:
    """Return the statement on the order of two schemes under the permutation."""
    words = f"{one.label} carries {'at least as much as' if relation is Relation.AT_LEAST else 'more than'}"
    return _row(
        throughput_over(one, other), PERMUTATION, (relation, 1), f"{words} {other.label}", SIGN,
        _cells(PERMUTATION, one, other),
    )  # fmt: skip


def _subflows(workload: str) -> tuple[Published, ...]:
    """Return the mean subflows of each responsive scheme."""
    counts = {scheme: TABLE_I[workload][scheme][0] for scheme in RESPONSIVE}
    return tuple(
        _row(
            subflows_at(s), workload, (Relation.ABOUT, n), f"{s.label} has {n:g} subflows per flow", COUNT,
            f"{n:.2f} subflows",
        )
        for s, n in counts.items()
    )  # fmt: skip


def _levels(workload: str) -> tuple[Published, ...]:
    """Return mean subflows and throughput of each scheme; subflows of responsive ones only."""
    rates = (
        _row(
            throughput_at(s), workload, (Relation.ABOUT, mbps), f"{s.label} carries {mbps:g} Mb/s",
            LEVEL_MBPS, _cells(workload, s),
        )
        for s, (_, mbps) in TABLE_I[workload].items()
    )  # fmt: skip
    return (*_subflows(workload), *rates)


def _of_four_subflows(scheme: Scheme) -> Published:
    value = _ratio(scheme, ECMP4, RANDOM)
    return _row(
        throughput_over(scheme, ECMP4), RANDOM, (Relation.ABOUT, value),
        f"{scheme.label} carries {100 * value:.0f} % of 4 subflows", RATIO, _cells(RANDOM, scheme, ECMP4),
    )  # fmt: skip


def _longer(scheme: Scheme, name: str) -> Published:
    value = _ratio(scheme, ECMP4, SHUFFLE)
    return _row(
        job_over(scheme, ECMP4), SHUFFLE, (Relation.ABOUT, value),
        f"jobs take {100 * (value - 1):.0f} % longer with {name} than with 4 subflows", TIMES,
        _cells(SHUFFLE, scheme, ECMP4),
    )  # fmt: skip


def _took(scheme: Scheme, ms: float) -> Published:
    return _row(
        job_at(scheme), SHUFFLE, (Relation.ABOUT, ms), f"a job takes {ms:g} ms with {scheme.label}", LEVEL_MS,
        _cells(SHUFFLE, scheme),
    )  # fmt: skip


THROUGHPUT = (
    *(_above(scheme, WITH_HEDERA, Relation.AT_LEAST) for scheme in RESPONSIVE),
    _above(WITH_HEDERA, ECMP4),
    _above(ECMP4, ECMP2),
    *map(_of_four_subflows, RESPONSIVE),
    *_levels(RANDOM),
    *_levels(PERMUTATION),
)
JOBS = (
    *(_longer(scheme, scheme.label) for scheme in RESPONSIVE),
    _longer(WITH_HEDERA, "Hedera"),
    *_subflows(SHUFFLE),
    *(_took(scheme, ms) for scheme, (_, ms) in TABLE_I[SHUFFLE].items()),
)
