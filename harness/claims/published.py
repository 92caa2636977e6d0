"""Published numbers as data: value, where it stands, how sure we are of it, and what counts as agreeing.

The numbers themselves stand in statements.py.

`text` stands in the paper, post or slides in words or digits; `figure` was digitised from a vector
figure; `recalled` is from the printed paper, digits not re-checked; `theory` is what a formula gives for the
very network (theory.py), `expected` what must follow from how a comparison is made: both are shown as such
and never as published, and neither is `reference`, another simulator's.
docs/published.md lists them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

import topos
from model.spec import TopologySpec
from model.transports import SCATTER


class Source(StrEnum):
    TEXT = "text"
    FIGURE = "figure"
    RECALLED = "recalled"
    THEORY = "theory"
    EXPECTED = "expected"
    REFERENCE = "reference"


UNPUBLISHED = frozenset({Source.THEORY, Source.EXPECTED, Source.REFERENCE})


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
    """One published number: `quantity` at `subflows` is `relation` `value`, on the paper's own `k`; other
    parameters of the topology are the usual ones, or those in `shape`.

    `workload` is written as on the command line, e.g. `one_to_several:4`; `quantity` is a name of
    `quantities.QUANTITIES`, in its unit; `paper` the short name, `citation` the long one. `tolerance`, in the
    same unit, is what still counts as agreeing, and `because` says why. `on_cpu_bound`: a claim about a
    saturated machine, so it is judged on points that are suspect for that. `algorithm` is one of
    model/transports.py where the statement is about that alone; empty: whatever MPTCP ran.
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
    algorithm: str = ""
    shape: tuple[tuple[str, int], ...] = ()
    engine: str = ""
    """The one whose points it is about alone; empty: any."""
    differs: str = ""
    """Why ours differs, for when it does: said beside such a verdict only."""
    emulated_differs: str = ""
    """The same of real hosts, where their reason is another."""

    @property
    def network(self) -> TopologySpec:
        """What it is about."""
        size = topos.TOPOLOGIES[self.topology].size.name
        return TopologySpec(self.topology, {size: self.k, **dict(self.shape)})

    def is_on(self, network: TopologySpec) -> bool:
        """Whether `network` is the one it is about; lanes are repetitions."""
        ours = self.network
        return topos.identity(network.kind, network.params) == topos.identity(ours.kind, ours.params)

    def on(self, **shape: int) -> Published:
        """The same about a network with these parameters."""
        return dataclasses.replace(self, shape=tuple(sorted(shape.items())))

    def within(self, tolerance: float, because: str) -> Published:
        """The same with a tolerance."""
        return dataclasses.replace(self, tolerance=tolerance, because=because)

    def explained(self, simulated: str = "", emulated: str = "") -> Published:
        """The same with why ours differs, should it: simulated, and between real hosts if that is another
        reason."""
        return dataclasses.replace(self, differs=simulated, emulated_differs=emulated)

    def of_saturated(self) -> Published:
        """The same as a claim about a saturated machine."""
        return dataclasses.replace(self, on_cpu_bound=True)

    def under(self, algorithm: str) -> Published:
        """The same about one algorithm alone."""
        return dataclasses.replace(self, algorithm=algorithm)

    def is_of(self, algorithm: str) -> bool:
        """Whether it is about points of this algorithm; about PacketScatter only where it says so."""
        return algorithm == self.algorithm if self.algorithm else algorithm != SCATTER

    def short(self) -> str:
        """For a table cell: `< 50`."""
        return f"{self.relation} {self.value:g}"

    def cited(self) -> str:
        """For the line below the table: `< 50 (text, k=8)`."""
        return f"{self.short()} ({self.source}, k={self.k})"


def known_as(rows: Iterable[Published]) -> str:
    """What to call the values beside ours: `published`, or `theory`, `expected`, `reference` where all
    of them are."""
    sources = {row.source for row in rows}
    return str(*sources) if len(sources) == 1 and sources <= UNPUBLISHED else "published"


def find(
    known: tuple[Published, ...],
    quantity: str,
    network: TopologySpec,
    workload: str,
    subflows: int,
    algorithm: str,
) -> Published | None:
    """The number published for this transport on such a network, whatever its size: the reader is shown the
    paper's k."""
    key = (quantity, network.kind, topos.shape(network.kind, network.params), workload, subflows)
    alike = (p for p in known if p.is_of(algorithm))
    return next((p for p in alike if (p.quantity, p.topology, p.shape, p.workload, p.subflows) == key), None)
