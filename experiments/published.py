"""Published numbers as data: value, where it stands, how sure we are of it, and what counts as agreeing.

`text` stands in the paper, post or slides in words or digits; `figure` was digitised from a vector
figure; `recalled` is from the printed paper, digits not re-checked. Reference simulations are no
published numbers and have no place here. Source: targets/README.md of the project.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SIGCOMM11 = "Raiciu et al., Improving Datacenter Performance and Robustness with Multipath TCP, SIGCOMM 2011"
CS244 = "Wilson, O'Connor, MPTCP on Mininet, CS244 2013: reproducing network research"


class Source(StrEnum):
    TEXT = "text"
    FIGURE = "figure"
    RECALLED = "recalled"


class Relation(StrEnum):
    """How the published value bounds ours."""

    BELOW = "<"
    ABOUT = "about"
    AT_LEAST = ">="
    ABOVE = ">"

    def holds(self, measured: float, published: float, tolerance: float) -> bool:
        """Whether `measured` agrees with `published`, give or take `tolerance`."""
        if self is Relation.BELOW:
            return measured < published + tolerance
        if self is Relation.ABOUT:
            return abs(measured - published) <= tolerance
        if self is Relation.AT_LEAST:
            return measured >= published - tolerance
        return measured > published - tolerance


@dataclass(frozen=True)
class Published:
    """One published number: `quantity` at `subflows` is `relation` `value`, on the paper's own `k`.

    `quantity` is a name of `quantities.QUANTITIES`, in its unit; `paper` the short name, `citation` the long
    one. `tolerance`, in the same unit, is what still counts as agreeing, and `because` says why.
    `on_cpu_bound`: a claim about a saturated machine, so it is judged on points that are suspect for that.
    """

    quantity: str
    topology: str
    k: int
    workload: str
    subflows: int
    relation: Relation
    value: float
    source: Source
    words: str
    paper: str
    citation: str
    tolerance: float = 0.0
    because: str = ""
    on_cpu_bound: bool = False

    def short(self) -> str:
        """For a table cell: `< 50`."""
        return f"{self.relation} {self.value:g}"

    def cited(self) -> str:
        """For the line below the table: `< 50 (text, k=8)`."""
        return f"{self.short()} ({self.source}, k={self.k})"


A_BOUND = "a bound is a bound"
LEVEL_PTS, LEVEL = 5.0, "between permutations the mean moves up to 4 points (reference simulations)"
FLOW_PTS, FLOW = 10.0, "one flow of 128: it depends on the permutation"


def _sigcomm11(quantity: str, subflows: int, relation: Relation, value: float, words: str,
               tolerance: tuple[float, str] = (0.0, A_BOUND)) -> Published:  # fmt: skip
    return Published(
        quantity, "fat_tree", 8, "one_to_one", subflows, relation, value, Source.TEXT, words, "SIGCOMM'11",
        SIGCOMM11, *tolerance,
    )  # fmt: skip


ONE_TO_ONE = (
    _sigcomm11("goodput_pct_mean", 1, Relation.BELOW, 50, "mean goodput of TCP is below 50 % of optimal"),
    _sigcomm11("goodput_pct_mean", 8, Relation.ABOUT, 95, 'levels off about 95 %; "approaches 100 %"',
               (LEVEL_PTS, LEVEL)),
    _sigcomm11("goodput_pct_min", 8, Relation.AT_LEAST, 70, "all flows reach at least 70 %"),
    _sigcomm11("goodput_pct_median", 8, Relation.AT_LEAST, 90, "more than half of the flows reach 90 %"),
    _sigcomm11("goodput_pct_min", 1, Relation.ABOUT, 10, "some flows about 10 %, very few near 100 %",
               (FLOW_PTS, FLOW)),
)  # fmt: skip


def find(known: tuple[Published, ...], quantity: str, workload: str, subflows: int) -> Published | None:
    """The number published for this transport, whatever the size: the reader is shown the paper's k."""
    key = (quantity, workload, subflows)
    return next((p for p in known if (p.quantity, p.workload, p.subflows) == key), None)


FIGURES: dict[int, tuple[Published, ...]] = {number: () for number in range(2, 14)}
"""What the CS244 post says of each of its figures."""
