"""Published numbers as data: value, where it stands, how sure we are of it.

`text` stands in the paper, post or slides in words or digits; `figure` was digitised from a vector
figure; `recalled` is from the printed paper, digits not re-checked. Reference simulations are no
published numbers and have no place here. Source: targets/README.md of the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SIGCOMM11 = "Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP, SIGCOMM 2011"
CS244 = "Wilson, O'Connor, CS244 2013: Mininet reproduction of MPTCP in a FatTree"


class Source(StrEnum):
    TEXT = "text"
    FIGURE = "figure"
    RECALLED = "recalled"


class Relation(StrEnum):
    """How the published value bounds ours."""

    BELOW = "<"
    ABOUT = "about"
    AT_LEAST = ">="


@dataclass(frozen=True)
class Published:
    """One published number: `quantity` of `workload` at `subflows` (None: any) is `relation` `value`.

    `quantity` is a column of summary.csv, in its unit; `k` None holds for any size.
    """

    quantity: str
    workload: str
    subflows: int | None
    relation: Relation
    value: float
    source: Source
    citation: str
    words: str
    k: int | None = None

    def text(self) -> str:
        """For a table cell: `< 50 (text)`."""
        return f"{self.relation} {self.value:g} ({self.source})"


ONE_TO_ONE = (
    Published(
        "goodput_pct_mean", "one_to_one", 1, Relation.BELOW, 50, Source.TEXT, SIGCOMM11,
        "mean goodput of TCP with ECMP is below 50 % of optimal", k=8,
    ),
    Published(
        "goodput_pct_mean", "one_to_one", 8, Relation.ABOUT, 95, Source.TEXT, SIGCOMM11,
        'mean goodput of MPTCP with 8 subflows levels off about 95 %; "approaches 100 %"', k=8,
    ),
    Published(
        "goodput_pct_min", "one_to_one", 8, Relation.AT_LEAST, 70, Source.TEXT, SIGCOMM11,
        "with 8 subflows all flows reach at least 70 %", k=8,
    ),
    Published(
        "goodput_pct_median", "one_to_one", 8, Relation.AT_LEAST, 90, Source.TEXT, SIGCOMM11,
        "with 8 subflows more than half of the flows reach at least 90 %", k=8,
    ),
    Published(
        "goodput_pct_min", "one_to_one", 1, Relation.ABOUT, 10, Source.TEXT, SIGCOMM11,
        "with TCP some flows get about 10 %, very few near 100 %", k=8,
    ),
    Published(
        "goodput_pct_mean", "one_to_several", 1, Relation.ABOUT, 19, Source.TEXT, CS244,
        "one_to_several at k=4: the optimum is 25 % a flow, TCP about 19 %; 6 subflows moderately better", k=4,
    ),
)  # fmt: skip


def find(
    known: tuple[Published, ...], quantity: str, workload: str, subflows: int, k: int
) -> Published | None:
    """The number published for this point: of its own k, else of any k (the reader is shown which)."""
    rows = [
        p
        for p in known
        if (p.quantity, p.workload) == (quantity, workload) and p.subflows in {None, subflows}
    ]
    return next((p for p in rows if p.k == k), rows[0] if rows else None)
