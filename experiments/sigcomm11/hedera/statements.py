"""What SIGCOMM 2011 says about a central scheduler, as recalled: signs, and which values are close.

docs/published.md lists the statements.
"""

from __future__ import annotations

from experiments.sigcomm11.hedera.metrics import OVER_FIRST_FIT
from experiments.sigcomm11.statements import SIGCOMM11
from harness.metrics.published import SIGN, Published, Relation, Source

COME_AND_GO = "permuted_loop:uniform-1000000-20000000"
NEAR = (0.1, "recalled without digits: within a tenth counts as near")


def _mptcp(interval_ms: float, relation: Relation, words: str, within: tuple[float, str]) -> Published:
    """MPTCP with 8 subflows over first fit at an interval, on 128 hosts. The flow sizes are our choice."""
    return Published(
        OVER_FIRST_FIT[interval_ms], "fat_tree", 8, COME_AND_GO, 8, relation, 1, Source.RECALLED, words,
        "SIGCOMM'11", SIGCOMM11, *within,
    )  # fmt: skip


HEDERA = (
    _mptcp(0, Relation.ABOUT, "an ideal scheduler is near MPTCP", NEAR),
    _mptcp(10, Relation.ABOUT, "a scheduler that runs every 10 ms is near MPTCP", NEAR),
    _mptcp(500, Relation.ABOVE, "a scheduler that runs every 500 ms is below MPTCP", SIGN),
    _mptcp(1000, Relation.ABOVE, "a scheduler that runs every second is below MPTCP", SIGN),
)
