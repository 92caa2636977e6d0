"""What SIGCOMM 2011 says about robustness, as recalled: directions, judged by ratios, without digits.

docs/published.md lists the statements.
"""

from __future__ import annotations

from experiments.sigcomm11.robustness.metrics import (
    KEPT_OVER_TCP,
    RETRANSMITTED_OVER_UNCOUPLED,
    STALLED_OVER_TCP,
)
from experiments.sigcomm11.statements import SIGCOMM11
from harness.metrics.metric import Metric
from harness.metrics.metrics import JAIN_OVER_TCP
from harness.metrics.published import ABOVE, BELOW, SIGN, Published, Relation, Source


def _recalled(metric: Metric, subflows: int, relation: Relation, words: str) -> Published:
    """FatTree k=8, random permutation; MPTCP with the paper's own congestion control."""
    row = Published(
        metric, "fat_tree", 8, "one_to_one", subflows, relation, 1, Source.RECALLED, words, "SIGCOMM'11",
        SIGCOMM11, *SIGN,
    )  # fmt: skip
    return row.under("lia")


COST = (
    _recalled(JAIN_OVER_TCP, 8, ABOVE, "8 subflows share more evenly than TCP"),
    _recalled(RETRANSMITTED_OVER_UNCOUPLED, 8, BELOW, "coupled subflows retransmit less than uncoupled ones"),
)
FAILURES = (
    _recalled(KEPT_OVER_TCP, 8, ABOVE, "8 subflows keep more of their goodput than TCP"),
    _recalled(STALLED_OVER_TCP, 8, BELOW, "fewer of their flows stall than of TCP's"),
)
