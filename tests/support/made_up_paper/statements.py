"""What the made-up paper published."""

from __future__ import annotations

from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from tests.support.made_up_paper.metrics import NFCT_LARGE, NFCT_SMALL

LOAD = "poisson:40"


def _row(metric: Metric, relation: Relation, value: float, words: str) -> Published:
    return Published(
        metric, "fat_tree", 4, LOAD, 1, relation, value, Source.TEXT, words, "Made up'26",
        "A. Nobody, Nothing, 2026", because="a bound",
    )  # fmt: skip


NORMALISED = (
    _row(NFCT_SMALL, Relation.AT_LEAST, 1, "no small flow is faster than on an idle path"),
    _row(NFCT_LARGE, Relation.BELOW, 1, "large flows are faster than on an idle path"),
)
