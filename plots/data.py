"""What charts know of results: one `PointSummary` a point, grouped into one `Panel` a chart.

A panel holds the points that differ in subflows and seed alone. A seed whose point is suspect is kept apart
from the good ones, so that no chart can average it in by accident.
"""

from __future__ import annotations

import dataclasses
import hashlib
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from fabric.plan import FRAME_BITS
from model.noise import QUIET
from model.result import FlowRow, PortRow, Status, Table
from model.spec import ELASTIC, NoiseSpec, SchedulerSpec
from model.transports import algorithm
from topos import size_words

NOBODY = SchedulerSpec()
REFERENCE = "reference"
"""The workload that measures what 100 % means; it is no point of a chart."""

Made = TypeVar("Made")
MIN_SEEDS_FOR_INTERVAL = 6
MOST_STEM = 160
"""Characters of a chart's file name without its ending; file systems take 255 bytes."""
_LAYERS = ("host", "edge", "agg", "core")


def _no_table(_name: str) -> Table | None:
    return None


@dataclass(frozen=True)
class PointSummary:
    """One finished point: the fields of summary.csv a chart needs, and every flow's goodput.

    `goodput_pct_mean` and `flows_pct` are percentages of the reference, None and () where there is no
    number. `rate_choice` says how the rate was chosen, `kernel` what ran, `variant` whatever else
    tells this point's setting from others (free text, shown as it is), `common` as much of it as algorithms
    compared have in common: all but routing, what counts as reordering there, and when
    subflows join. `untuned` is the same but for how the end hosts are tuned, which
    `tuning` names; `across` the same in every engine.
    """

    engine: str
    dataplane: str
    topology: str
    k: int
    hosts: int
    workload: str
    subflows: int
    cc: str
    rate_mbps: float
    queue_pkts: int
    seconds: float
    seed: int
    status: Status
    reasons: tuple[str, ...] = ()
    goodput_pct_mean: float | None = None
    reference_mbps: float | None = None
    flows_pct: tuple[float, ...] = ()
    rate_choice: str = ""
    kernel: str = ""
    variant: str = ""
    routing: str = "hashed"
    common: str = ""
    tuning: str = ""
    joins: str = ""
    """When further subflows join, as `model.tuning.joins`."""
    untuned: str = ""
    across: str = ""
    flows: tuple[FlowRow, ...] = ()
    ports: tuple[PortRow, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)
    ecn_pkts: int = 0
    without_loss: str = ""
    """As `variant`, of the same without random loss: points of many loss rates have it in common."""
    scheduler: SchedulerSpec = NOBODY
    unscheduled: str = ""
    """As `variant`, of the same without a scheduler."""
    matrix: str = ""
    """Its traffic matrix with parameters, as on command lines."""
    matrix_words: str = ""
    """The same for readers."""
    under_any_matrix: str = ""
    """As `variant`, of the same under any traffic matrix."""
    shape: tuple[tuple[str, int], ...] = ()
    """What sets its topology apart from the usual one of that kind and size, as `topos.shape`."""
    noise: NoiseSpec = QUIET
    clock: str = ELASTIC
    quiet: str = ""
    """As `variant`, of the same without stalls made on purpose."""
    late_share: float = 0.0
    """Of a path's delay, how late its stalls make packets, as `analysis.noise_effects.delay_share`."""
    late_queue_share: float = 0.0
    """The same of a full queue's time alone, as `analysis.noise_effects.queue_share`."""
    outage_s: tuple[float, float] | None = None
    """When links fail and are back, in s from the opening of the window, as `model.link_events.outage`."""
    read_table: Callable[[str], Table | None] = field(default=_no_table, compare=False)
    """The point's sample table of this name (model/result.py says which there are); None where it was
    not sampled or cannot be read. Read anew at every call: a sweep's samples do not fit into memory."""

    @property
    def algorithm(self) -> str:
        """Its name in model/transports.py."""
        return algorithm(self.cc, self.subflows, self.routing)

    @property
    def setting(self) -> Setting:
        return Setting(*(getattr(self, part.name) for part in dataclasses.fields(Setting)))


@dataclass(frozen=True, order=True)
class Setting:
    """What all points of a panel have in common."""

    topology: str
    k: int
    workload: str
    engine: str
    dataplane: str
    cc: str
    rate_mbps: float
    queue_pkts: int
    ecn_pkts: int
    seconds: float
    variant: str
    shape: tuple[tuple[str, int], ...] = ()

    @property
    def network(self) -> tuple[str, tuple[tuple[str, int], ...]]:
        """What it shares with networks of other sizes."""
        return self.topology, self.shape


@dataclass(frozen=True)
class Level:
    """A published number to draw beside ours: `quantity` at `subflows` is `relation` (`<`, `about`, `>=`)
    `value`; `k` is the paper's.

    Quantities are `mean` and `min` of goodput, in % of optimal, and `links_busy_pct` and `links_unused_pct`,
    in % of the links between switches; those of `analysis.shares` are of points of congestion control `cc`
    alone."""

    topology: str
    workload: str
    quantity: str
    subflows: int
    relation: str
    value: float
    k: int
    paper: str
    source: str
    algorithm: str = ""
    """The one it is about alone."""
    shape: tuple[tuple[str, int], ...] = ()

    def is_on(self, setting: Setting) -> bool:
        """Whether it is about networks and traffic of this kind, whatever their size."""
        return (self.topology, self.shape) == setting.network and self.workload == setting.workload

    @property
    def bound(self) -> str:
        """`< 50 %`."""
        relation = {">=": "\N{GREATER-THAN OR EQUAL TO}"}.get(self.relation, self.relation)
        return f"{relation} {self.value:g} %"

    def cited(self, k: int) -> str:
        """`SIGCOMM'11`, and the paper's size where ours is another: `SIGCOMM'11 (k=8)`."""
        return self.paper if k == self.k else f"{self.paper} (k={self.k})"


@dataclass(frozen=True)
class Cell:
    """The points of one subflow count, one a seed, by what may be done with them.

    `ok` and `suspect` have a number; `lost` (failed, or without a reference) have none.
    """

    ok: tuple[PointSummary, ...]
    suspect: tuple[PointSummary, ...]
    lost: tuple[PointSummary, ...]

    @classmethod
    def of(cls, points: Iterable[PointSummary]) -> Cell:
        here = sorted(points, key=lambda p: p.seed)
        usable = [p for p in here if p.status is not Status.FAILED and p.goodput_pct_mean is not None]
        return cls(
            ok=tuple(p for p in usable if p.status is Status.OK),
            suspect=tuple(p for p in usable if p.status is Status.SUSPECT),
            lost=tuple(p for p in here if p not in usable),
        )

    @property
    def means_pct(self) -> list[float]:
        """Mean goodput of each good seed, in %."""
        return [p.goodput_pct_mean for p in self.ok if p.goodput_pct_mean is not None]

    @property
    def mean_pct(self) -> float | None:
        """Mean over the good seeds, in %; None without any."""
        return statistics.fmean(self.means_pct) if self.ok else None

    @property
    def gap(self) -> str:
        """Why there is nothing to draw: `missing`, `failed`, `no reference`; empty if there is something."""
        if self.ok or self.suspect:
            return ""
        if not self.lost:
            return "missing"
        return "failed" if any(p.status is Status.FAILED for p in self.lost) else "no reference"


@dataclass(frozen=True)
class Picked(Generic[Made]):
    """What a chart shows, one item a transport, by ascending subflow counts; why it has nothing of others
    (`gaps`), and of which it has, but no room (`left_out`)."""

    items: tuple[Made, ...]
    gaps: Mapping[int, str]
    left_out: tuple[int, ...]


@dataclass(frozen=True)
class Panel:
    """All points of one setting; `subflows` are the counts on its axis, drawn or not."""

    setting: Setting
    subflows: tuple[int, ...]
    points: tuple[PointSummary, ...]

    @property
    def hosts(self) -> int:
        return max(point.hosts for point in self.points)

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(sorted({point.seed for point in self.points}))

    @property
    def optimum_pct(self) -> float:
        """The most a mean flow can reach, in % of one flow alone: 100, or what it is left where flows share
        their hosts' links."""
        return max((_optimum_pct(point) for point in self.points if point.flows), default=100.0)

    @property
    def full_queue_ms(self) -> float:
        """How long the last packet of a full queue waits and is sent, in ms; 0 where queues have no limit."""
        return self.delay_ms(self.setting.queue_pkts)

    def delay_ms(self, pkts: float) -> float:
        """How long `pkts` full packets take to leave a port, in ms."""
        return pkts * FRAME_BITS / self.setting.rate_mbps / 1000

    def best(self, subflows: int) -> list[PointSummary]:
        """The good points of one subflow count, one a seed; the suspect ones where none is good."""
        ran = self._ran(subflows)
        return [point for point in ran if point.status is ran[0].status]

    def dubious(self, subflows: int) -> bool:
        """Whether `best` has nothing better than suspect points."""
        return any(point.status is Status.SUSPECT for point in self.best(subflows))

    def absence(self, subflows: int) -> str:
        """Why `best` is empty: `failed` or `missing`; empty if it is not."""
        if self.best(subflows):
            return ""
        return "failed" if any(point.subflows == subflows for point in self.points) else "missing"

    def first_of_each(self, most: int, made: Callable[[PointSummary], Made | None]) -> Picked[Made]:
        """What `made` makes of one point a transport, for at most `most` transports: of the first point,
        good ones before suspect ones, of which it makes anything. It is called no more often than that.
        """
        ran = {n: points for n in self.subflows if (points := self._ran(n))}
        gaps = {n: self.absence(n) for n in self.subflows if n not in ran}
        preferred = chosen(list(ran), most)
        items: dict[int, Made] = {}
        for n in [*preferred, *(n for n in ran if n not in preferred)]:
            if len(items) == most:
                break
            one = next((one for point in ran[n] if (one := made(point)) is not None), None)
            if one is None:
                gaps[n] = "not sampled"
            else:
                items[n] = one
        left_out = tuple(n for n in ran if n not in items and n not in gaps)
        return Picked(tuple(items[n] for n in sorted(items)), gaps, left_out)

    def _ran(self, subflows: int) -> list[PointSummary]:
        here = [p for p in self.points if p.subflows == subflows and p.status is not Status.FAILED]
        return sorted(here, key=lambda p: (p.status is not Status.OK, p.seed))

    def cell(self, subflows: int) -> Cell:
        return Cell.of(p for p in self.points if p.subflows == subflows)

    def distinct(self, what: Callable[[PointSummary], str]) -> str:
        """The different non-empty texts `what` finds at the points, joined: for the caption."""
        return " / ".join(sorted({what(point) for point in self.points} - {""}))


def chosen(counts: Sequence[int], most: int) -> list[int]:
    """At most `most` (two and more) of the ascending counts: the first, the last, and evenly between."""
    if len(counts) <= most:
        return list(counts)
    return [counts[round(i * (len(counts) - 1) / (most - 1))] for i in range(most)]


def mean_ranks(samples: Iterable[Iterable[float]]) -> list[float]:
    """The i-th smallest value, averaged over those samples that have any; [] when none has.

    Samples of unequal size are cut to the smallest, which a finished sweep never needs.
    """
    ranked = [ordered for ordered in map(sorted, samples) if ordered]
    return [statistics.fmean(at_rank) for at_rank in zip(*ranked, strict=False)]


def between_switches(port: PortRow) -> bool:
    """Whether routing has a say in how much the port carries: a host's own link has no alternative."""
    return "host" not in port.layer.split("-")


def of_switch(port: PortRow) -> bool:
    """Whether the port's queue is the network's; a host's own is not."""
    return not port.layer.startswith("host-")


def link_layer(port: PortRow) -> str:
    """The layers a port's link joins, the lower one first whichever way the port sends: `edge-agg`."""
    ends = port.layer.split("-")
    return "-".join(sorted(ends, key=lambda end: _LAYERS.index(end) if end in _LAYERS else len(_LAYERS)))


def _optimum_pct(point: PointSummary) -> float:
    """Links of the sending or of the receiving hosts, whichever are fewer, over the flows they carry."""
    links = Counter(port.node for port in point.ports if port.layer.startswith("host-"))
    ends = ({flow.src for flow in point.flows}, {flow.dst for flow in point.flows})
    fewer = min(sum(links.get(host, 1) for host in hosts) for hosts in ends)
    return 100 * fewer / len(point.flows)


def panels(points: Iterable[PointSummary], expected: Sequence[int] = ()) -> list[Panel]:
    """Points by setting, in the settings' order; reference points are left out.

    A panel's axis has the counts `expected` and those any panel has, so that what is missing leaves a gap.
    """
    drawable = [point for point in points if point.workload != REFERENCE]
    counts = tuple(sorted({*expected, *(point.subflows for point in drawable)}))
    by_setting: dict[Setting, list[PointSummary]] = {}
    for point in drawable:
        by_setting.setdefault(point.setting, []).append(point)
    return [Panel(setting, counts, tuple(by_setting[setting])) for setting in sorted(by_setting)]


def file_stems(chart: str, of: Sequence[Panel]) -> list[str]:
    """A file name for each panel: `throughput-fat_tree-k8-one_to_one`, and whatever else sets it apart."""
    parts: tuple[Callable[[Setting], str], ...] = (
        lambda s: "-".join(f"{name}{value}" for name, value in s.shape),
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: s.cc,
        lambda s: f"{s.rate_mbps:g}mbps",
        lambda s: f"{s.queue_pkts}pkts",
        lambda s: f"ecn{s.ecn_pkts}" if s.ecn_pkts else "",
        lambda s: f"{s.seconds:g}s",
        lambda s: "".join(c if c.isalnum() else "_" for c in s.variant),
    )
    settings = [panel.setting for panel in of]
    stems = (f"{chart}-{s.topology}-k{s.k}-{s.workload}" for s in settings)
    return [
        _storable("-".join([stem, *apart]))
        for stem, apart in zip(stems, _apart(settings, parts), strict=True)
    ]


def _storable(stem: str) -> str:
    """Short enough for any file system, with an ending and what else is put before it, and no other's."""
    if len(stem) <= MOST_STEM:
        return stem
    return f"{stem[: MOST_STEM - 9]}-{hashlib.sha256(stem.encode()).hexdigest()[:8]}"


def setting_names(settings: Sequence[Setting]) -> list[str]:
    """What to call each setting beside the others: `k=8`, and as much else as sets it apart."""
    parts: tuple[Callable[[Setting], str], ...] = (
        lambda s: s.topology.replace("_", " "),
        lambda s: ", ".join(size_words(s.topology, dict(s.shape))),
        lambda s: s.workload.replace("_", " "),
        lambda s: f"{s.rate_mbps:g} Mb/s",
        lambda s: f"queue {s.queue_pkts}" if s.queue_pkts else "no queue limit",
        lambda s: f"ECN from {s.ecn_pkts}" if s.ecn_pkts else "no ECN",
        lambda s: s.cc,
        lambda s: s.engine,
        lambda s: s.dataplane,
        lambda s: f"{s.seconds:g} s",
        lambda s: s.variant,
    )
    names = [f"k={s.k}" for s in settings]
    for part in parts:
        longer = [f"{name}, {part(s)}" for name, s in zip(names, settings, strict=True)]
        names = longer if len(set(longer)) > len(set(names)) else names
    return names


def _apart(settings: Sequence[Setting], parts: Iterable[Callable[[Setting], str]]) -> list[list[str]]:
    """Those of each setting's parts in which the settings differ."""
    telling = [part for part in parts if len({part(setting) for setting in settings}) > 1]
    return [[told for part in telling if (told := part(setting))] for setting in settings]
