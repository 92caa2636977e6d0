"""Published numbers as data: a metric, its value, the source, and what counts as agreement.

The numbers themselves are in the packages of the papers (experiments/*/statements.py).

Kinds of sources: `text` is in the paper, post or slides, in words or digits. `figure` was digitised from a
vector figure. `recalled` is from the printed paper; its digits were not checked again. `theory` is what a
formula gives for the network, `expected` what follows from the comparison itself, `reference` the result of
another simulator; these three are never shown as published.
`docs/published.md` lists them all.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import msgspec

import topos
from harness.metrics import where as settings
from harness.metrics.measures import Estimate
from harness.metrics.metrics import Metric
from model.spec import TopologySpec
from model.transports import SCATTER


class Source(StrEnum):
    TEXT = "text"
    FIGURE = "figure"
    RECALLED = "recalled"
    THEORY = "theory"
    EXPECTED = "expected"
    REFERENCE = "reference"


A_BOUND = (0.0, "a bound is a bound")
SIGN = (0.0, "only the sign is published")
"""Tolerances, with their reasons, of statements that give a bound or a sign."""
UNPUBLISHED = frozenset({Source.THEORY, Source.EXPECTED, Source.REFERENCE})


class Relation(StrEnum):
    """How the published value bounds the measured one."""

    BELOW = "<"
    ABOUT = "about"
    AT_LEAST = ">="
    ABOVE = ">"

    @property
    def words(self) -> str:
        """The relation in a sentence."""
        return {Relation.BELOW: "below", Relation.AT_LEAST: "at least", Relation.ABOVE: "above"}.get(
            self, "about"
        )

    def holds(self, measured: float, published: float, tolerance: float) -> bool:
        """Return whether `measured` agrees with `published` within `tolerance`."""
        if self is Relation.BELOW:
            return measured < published + tolerance
        if self is Relation.ABOUT:
            return abs(measured - published) <= tolerance
        if self is Relation.AT_LEAST:
            return measured >= published - tolerance
        return measured > published - tolerance

    def verdict(self, measured: Estimate, published: float, tolerance: float) -> bool | None:
        """Return whether a measurement agrees; None if its interval leaves it undecided.

        A bound or a sign agrees only if the 95 % interval excludes the bound, and differs only if all of the
        interval is beyond it. A level agrees if its mean is within the tolerance, and differs if the interval
        does not touch that band. Without an interval (few repetitions) the mean decides.
        """
        half = measured.half
        if half is None:
            return self.holds(measured.value, published, tolerance)
        low, high = (self.holds(measured.value + end, published, tolerance) for end in (-half, half))
        if self is not Relation.ABOUT:
            return low if low == high else None
        if self.holds(measured.value, published, tolerance):
            return True
        return False if abs(measured.value - published) > tolerance + half else None


BELOW, ABOUT, AT_LEAST, ABOVE = Relation.BELOW, Relation.ABOUT, Relation.AT_LEAST, Relation.ABOVE
Bound = tuple[Relation, float]
"""A relation, and the value on its right."""
BELOW_ONE: Bound = BELOW, 1.0
ABOUT_ONE: Bound = ABOUT, 1.0
ABOVE_ONE: Bound = ABOVE, 1.0
"""The bounds of a ratio that says which of two is smaller."""


@dataclass(frozen=True)
class Published:
    """One published number: `metric` at `subflows` is `relation` `value`, on the paper's own `k`.

    Other parameters of the topology are the usual ones, or those in `shape`. `workload` is written as on the
    command line, e.g. `one_to_several:4`. `value` and `tolerance` are in the metric's unit; `because` gives
    the reason for the tolerance. `paper` is the short name, `citation` the long one. `on_cpu_bound`: the
    statement is about a saturated machine, so it is judged on points that are suspect for that reason.
    `algorithm` is one of model/transports.py if the statement is about it alone; empty: that of its figure.

    It is about points with the settings of its figure: what the figure pins, and what it leaves at its
    default. `where` has the exceptions by the field's path in the spec: a value, several of which a point has
    one (`{"link.queue_pkts": [20, 100]}`), or ANY. Texts are as on the command line:
    `{"scheduler": "first_fit:10"}`. Raises UsageError for a field or a value that does not exist.
    """

    metric: Metric
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
    """The only engine whose points it is about; empty: any."""
    differs: str = ""
    """Why the measured value differs; shown only beside such a verdict."""
    emulated_differs: str = ""
    """The same for real hosts, if their reason is another one."""
    sentence: str = ""
    """The sentence of the paper that it is from, where several statements are; empty: `words`."""
    caveat: str = ""
    """What a reader must know whatever the verdict."""
    incomparable: str = ""
    """Why no agreement or difference can be concluded; empty if one can."""
    section: str = ""
    """Where the source says it: section, table or figure. Empty: the section of the figure that shows it."""
    quote: str = ""
    """The source's words as our notes have them, verbatim in quotation marks; empty if none are known."""
    where: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "where", settings.parse(self.where))

    @property
    def setting(self) -> str:
        """What it says about settings: `--scheduler first_fit:10, --queue 20 or 100`; empty if it has those
        of its figure."""
        return settings.words(self.where)

    @property
    def network(self) -> TopologySpec:
        """The network it is about."""
        size = topos.TOPOLOGIES[self.topology].size.name
        return TopologySpec(self.topology, {size: self.k, **dict(self.shape)})

    def is_on(self, network: TopologySpec) -> bool:
        """Return whether `network` is the one it is about; the number of replicas may differ."""
        ours = self.network
        return topos.identity(network.kind, network.params) == topos.identity(ours.kind, ours.params)

    def on(self, **shape: int) -> Published:
        """Return the same statement about a network with these parameters."""
        return dataclasses.replace(self, shape=tuple(sorted(shape.items())))

    def within(self, tolerance: float, because: str) -> Published:
        """Return the same statement with this tolerance."""
        return dataclasses.replace(self, tolerance=tolerance, because=because)

    def explained(self, simulated: str = "", emulated: str = "") -> Published:
        """Return the same statement with the reason why the measured value differs, if it does: in the
        simulator, and between real hosts if theirs is another one."""
        return dataclasses.replace(self, differs=simulated, emulated_differs=emulated)

    def of(self, sentence: str) -> Published:
        """Return the same statement as one of several that come from this sentence of the paper."""
        return dataclasses.replace(self, sentence=sentence)

    def with_caveat(self, caveat: str) -> Published:
        """Return the same statement with what a reader must know whatever the verdict."""
        return dataclasses.replace(self, caveat=caveat)

    def stated(self, quote: str, section: str = "") -> Published:
        """Return the same statement with the source's words, and where the source has them."""
        return dataclasses.replace(self, quote=quote, section=section or self.section)

    def of_saturated(self) -> Published:
        """Return the same as a statement about a saturated machine."""
        return dataclasses.replace(self, on_cpu_bound=True)

    def under(self, algorithm: str) -> Published:
        """Return the same statement about one algorithm only."""
        return dataclasses.replace(self, algorithm=algorithm)

    def is_of(self, algorithm: str) -> bool:
        """Return whether it is about points of this algorithm. Only statements that name PacketScatter are
        about it."""
        return algorithm == self.algorithm if self.algorithm else algorithm != SCATTER

    def short(self) -> str:
        """Return the bound for a table cell: `< 50`."""
        return f"{self.relation} {self.value:g}"

    def spoken(self) -> str:
        """Return the bound for a sentence: `below 50`."""
        return f"{self.relation.words} {self.value:g}"

    def cited(self) -> str:
        """Return the bound with its source, for the line below a table: `< 50 (text, k=8)`."""
        return f"{self.short()} ({self.source}, k={self.k})"

    def as_json(self) -> dict[str, Any]:
        """Return all fields for JSON, the metric by its name (as `quantity`)."""
        others = (of.name for of in dataclasses.fields(self) if of.name != "metric")
        return {
            "quantity": self.metric.name,
            **{name: msgspec.to_builtins(getattr(self, name)) for name in others},
        }


def known_as(rows: Iterable[Published]) -> str:
    """Return what to call the values beside the measured ones: `published`, or `theory`, `expected` or
    `reference` if all of them are that."""
    sources = {row.source for row in rows}
    return str(*sources) if len(sources) == 1 and sources <= UNPUBLISHED else "published"


def find(
    known: Iterable[Published],
    metric: Metric,
    network: TopologySpec,
    workload: str,
    subflows: int,
    algorithm: str,
) -> Published | None:
    """Return the number published for this transport on such a network of any size; None if there is none.

    Readers see the paper's k beside it.
    """
    key = (metric, network.kind, topos.shape(network.kind, network.params), workload, subflows)
    alike = (p for p in known if p.is_of(algorithm))
    return next((p for p in alike if (p.metric, p.topology, p.shape, p.workload, p.subflows) == key), None)
