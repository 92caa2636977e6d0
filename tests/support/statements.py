"""Statements for tests of metrics and verdicts."""

from __future__ import annotations

from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source


def row(metric: Metric, subflows: int, relation: Relation, value: float, tolerance: float = 0.0) -> Published:
    """Return a statement on one_to_one at k=4, like the points of `spec_of`."""
    return Published(
        metric, "fat_tree", 4, "one_to_one", subflows, relation, value, Source.TEXT, "words", "paper",
        "citation", tolerance, "because",
    )  # fmt: skip
