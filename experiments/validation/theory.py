"""validation: simulated hosts, and real ones where possible, against arithmetic and theory
(docs/experiments/validation.md).

The statements say what arithmetic and theory predict. They are exact for simulated hosts, and hold within the
limits of a machine's clock and kernel for real ones.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import statistics
from collections.abc import Callable, Sequence

from analysis import laws, quantities
from analysis.plausibility import unaccounted, undelivered_bytes
from analysis.quantities import Quantity
from engines.registry import SIMULATOR
from experiments.coupled import FAIRNESS
from fabric.plan import FRAME_BITS
from harness.experiment import Experiment, Figure, RateOf
from harness.metrics.measures import Measure, each_replica, together
from harness.metrics.metrics import Metric
from harness.metrics.published import ABOUT, AT_LEAST, Published, Relation, Source
from harness.options.options import ENGINE, SweepOptions
from harness.plan.sweeps import points_on
from harness.results.point_results import PointResult
from model.spec import RunSpec, SamplingSpec, Settings, StackSpec, TopologySpec

PING_BYTES = 98
ROUNDING = 1e-3
"""Part of a packet: samples are rounded to nanoseconds."""


def _any_rate(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, rate_mbps=1.0))


def _any_loss(spec: RunSpec) -> RunSpec:
    return dataclasses.replace(spec, link=dataclasses.replace(spec.link, loss=0.0))


def _shortfall_bytes(points: Sequence[PointResult]) -> float | None:
    """Return the bytes of its link's capacity that a single flow left unused, at the worst rate."""
    missed = [
        laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds) - flow.bytes_received
        for p in points
        for flow in p.flows
    ]
    return max(missed, key=abs, default=None)


def _fill_pct(points: Sequence[PointResult]) -> float | None:
    """Return the smallest share of its link's capacity, in %, that a flow used."""
    shares = [
        100 * flow.bytes_received / laws.fill_bytes(p.spec.link.rate_mbps, p.spec.seconds)
        for p in points
        for flow in p.flows
    ]
    return min(shares, default=None)


def _rounds(
    points: Sequence[PointResult], within: Callable[[float], bool]
) -> list[tuple[float, float, float]]:
    """Return the share lost, the packets per round trip, and the round trip in ms of each flow of points
    whose loss is `within`."""
    shares = [(laws.lost_share(p.ports), p) for p in points]
    return [
        (loss, pkts, flow.srtt_ms_mean)
        for loss, p in shares
        if loss > 0 and within(p.spec.link.loss)
        for flow in p.flows
        if (pkts := laws.pkts_per_round(flow)) > 0
    ]


def _rare(loss: float) -> bool:
    return loss <= laws.TIMEOUTS_FROM


def _mathis_slope(points: Sequence[PointResult]) -> float | None:
    found = _rounds(points, _rare)
    if len({loss for loss, _, _ in found}) < 3:
        return None
    logs = [(math.log(loss), math.log(pkts)) for loss, pkts, _ in found]
    return statistics.linear_regression(*zip(*logs, strict=True)).slope


def _mathis_constant(points: Sequence[PointResult]) -> float | None:
    found = [pkts * math.sqrt(loss) for loss, pkts, _ in _rounds(points, _rare)]
    return statistics.fmean(found) if found else None


def _over_padhye(points: Sequence[PointResult]) -> float | None:
    """Return packets per round trip over those of Padhye's model, at loss rates where timeouts matter."""
    found = _rounds(points, lambda loss: not _rare(loss))
    ratios = [pkts / laws.padhye_pkts(loss, laws.MIN_RTO_MS / rtt_ms) for loss, pkts, rtt_ms in found]
    return statistics.fmean(ratios) if ratios else None


def each_sawtooth(value_of: Callable[[laws.Sawtooth], float]) -> Measure:
    """Return a measure: `value_of` each sawtooth of the first flow's window."""

    def values(point: PointResult) -> list[float]:
        sockets = point.read_table("sockets")
        return [] if sockets is None else [value_of(saw) for saw in laws.sawteeth(sockets)]

    return each_replica(values)


def waits(point: PointResult) -> laws.Waits | None:
    """Return the pings with the queue length that each found; None where either was not sampled."""
    tables = [point.read_table(name) for name in ("pings", "queues", "queue_times")]
    pings, queues, times = tables
    if pings is None or queues is None or times is None:
        return None
    return laws.waits(pings, queues, times, laws.way_out(point.ports))


def _wait_pkts(point: PointResult) -> float | None:
    found = waits(point)
    return None if found is None else found.line[0] / laws.packet_ms(point.spec.link.rate_mbps)


def _empty_way_ms(point: PointResult) -> float | None:
    found = waits(point)
    return None if found is None else found.line[1]


def _waits_exact_pct(point: PointResult) -> float | None:
    """Return the share of pings that waited for the packets ahead, and at least for those still queued."""
    found = waits(point)
    if found is None:
        return None
    packet_ms, empty_ms = laws.packet_ms(point.spec.link.rate_mbps), empty_way_ms(point.spec)
    behind = (found.out_ms - empty_ms) / packet_ms
    least, most = found.queued - found.under_way - ROUNDING, found.queued + ROUNDING
    exact = (behind > least) & (behind < most)
    return 100 * float(exact.mean())


def empty_way_ms(spec: RunSpec) -> float:
    """Return the one-way delay of a ping through an empty dumbbell, in ms: three links, the outer ones
    `access` times as fast."""
    sent_ms = PING_BYTES * 8 / spec.link.rate_mbps / 1000
    return 3 * spec.link.delay_us / 1000 + sent_ms * (1 + 2 / spec.topology.number("access", 1))


SHORTFALL_BYTES = Metric(
    Quantity("shortfall_bytes", "bytes", "the bytes of its link's capacity that a flow does not use"),
    over=together(_shortfall_bytes), setting=_any_rate,
)  # fmt: skip
FILL_PCT = Metric(
    Quantity("fill_pct", "% of the payload that fits", "the goodput of a single flow"),
    over=together(_fill_pct), setting=_any_rate,
)  # fmt: skip
WINDOW_TOP_PKTS = Metric(
    quantities.WINDOW_TOP_PKTS, over=each_sawtooth(lambda saw: saw.top_pkts), repeats="cycle",
)  # fmt: skip
SAWTOOTH_ROUNDS = Metric(
    Quantity("saw_rounds", "round trips", "how long a window grows"),
    over=each_sawtooth(lambda saw: saw.rounds), repeats="cycle",
)  # fmt: skip
SAWTOOTH_MEAN_PCT = Metric(
    Quantity("saw_mean_pct", "% of its top", "the mean window over round trips"),
    over=each_sawtooth(lambda saw: saw.mean_pct), repeats="cycle",
)  # fmt: skip
MATHIS_SLOPE = Metric(
    Quantity("mathis_slope", "", "the slope of goodput against the loss rate, on log axes"),
    over=together(_mathis_slope), setting=_any_loss,
)  # fmt: skip
MATHIS_CONSTANT = Metric(
    Quantity("mathis_constant", "", "packets per round trip times sqrt(p)"),
    over=together(_mathis_constant), setting=_any_loss,
)  # fmt: skip
OVER_PADHYE = Metric(
    Quantity("over_padhye", "x the model", "the goodput where timeouts matter"),
    over=together(_over_padhye), setting=_any_loss,
)  # fmt: skip
WAIT_PKTS = Metric(
    Quantity("wait_pkts", "packet times", "how long a ping waits for each queued packet"), _wait_pkts
)
EMPTY_WAY_MS = Metric(quantities.EMPTY_WAY_MS, _empty_way_ms)
WAITS_EXACT_PCT = Metric(
    Quantity("waits_exact_pct", "% of pings", "pings that wait exactly for what is queued"), _waits_exact_pct
)
UNACCOUNTED_PKTS = Metric(
    Quantity("unaccounted_pkts", "packets", "packets that appear or vanish"),
    lambda p: float(unaccounted(p.ports)),
)  # fmt: skip
UNDELIVERED_BYTES = Metric(
    Quantity("undelivered_bytes", "bytes", "bytes sent and not received"),
    lambda p: float(undelivered_bytes(p.flows)),
)  # fmt: skip


ARITHMETIC = "bytes, packets and seconds by hand (docs/experiments/validation.md)"
MATHIS97 = (
    "Mathis, Semke, Mahdavi and Ott, The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, "
    "CCR 27(3), 1997"
)
PADHYE98 = (
    "Padhye, Firoiu, Towsley and Kurose, Modeling TCP Throughput: A Simple Model and its Empirical "
    "Validation, SIGCOMM 1998"
)
_PAPERS = {ARITHMETIC: "arithmetic", MATHIS97: "CCR'97", PADHYE98: "SIGCOMM'98"}
Tolerance = tuple[float, str]
EXACT = 0.0, "equality of integers"
SAW_PKTS, SAW_ACCESS, SAW_MBPS = 50, 10, 10.0
SAW_TOP = 2 * SAW_PKTS + 2
"""The packets on the path and in the queue, one that is dropped, and one sent before the loss is known."""
FLOOD, FLOOD_SUBFLOWS = "transfers:2000", 4


def _alone(
    metric: Metric, relation: Relation, value: float, words: str, citation: str = ARITHMETIC, access: int = 1
) -> Published:
    """About a single TCP flow on a dumbbell."""
    row = Published(
        metric, "dumbbell", 1, "against_tcp", 1, relation, value, Source.THEORY, words, _PAPERS[citation],
        citation,
    )  # fmt: skip
    return row.on(access=access)


def _of(row: Published, simulated: Tolerance, real: Tolerance | None) -> tuple[Published, ...]:
    """`row` for simulated hosts, and for real ones if they can be measured."""
    rows = [dataclasses.replace(row.within(*simulated), engine=SIMULATOR)]
    if real is not None:
        rows.append(dataclasses.replace(row.within(*real), engine=ENGINE, words=f"{row.words} (real hosts)"))
    return tuple(rows)


FILL = (
    *_of(
        _alone(SHORTFALL_BYTES, ABOUT, 0, "one flow alone uses every byte of its link, at every rate"),
        EXACT,
        None,
    ),
    *_of(
        _alone(FILL_PCT, ABOUT, 100, "one flow alone gets all that headers leave, 1448 of 1514 bytes"),
        EXACT,
        (0.5, "two clocks delimit the measured window, and connections start late in it"),
    ),
)


def _saw(
    metric: Metric, value: float, words: str, simulated: Tolerance, real: Tolerance
) -> tuple[Published, ...]:
    return _of(_alone(metric, ABOUT, value, words, access=SAW_ACCESS), simulated, real)


SAW = (
    *_saw(
        WINDOW_TOP_PKTS, SAW_TOP,
        f"the window is halved when it fills path and queue, {SAW_TOP} packets",
        (2.0, "packets in flight are whole packets"), (6.0, "bursts of a busy kernel fill the queue early"),
    ),
    *_saw(
        SAWTOOTH_ROUNDS, SAW_TOP / 2,
        "the window grows by one packet per round trip: W / 2 round trips up to W",
        (3.0, "a round trip until the loss is known, one for its repair"), (5.0, "the same, sampled"),
    ),
    *_saw(
        SAWTOOTH_MEAN_PCT, 75, "the mean window over round trips is 3/4 of its top",
        (2.0, "a round trip at full height before the repair, one at half"), (4.0, "the same, sampled"),
    ),
)  # fmt: skip

LOSS = (
    *_of(
        _alone(
            MATHIS_SLOPE, ABOUT, -0.5, "p up to 1 %: goodput is proportional to 1 / sqrt(p)", MATHIS97
        ),
        (0.03, "a few hundred losses per rate"),
        (0.05, "fewer losses, in less time"),
    ),
    *_of(
        _alone(
            MATHIS_CONSTANT, ABOUT, round(laws.MATHIS, 3),
            "p up to 1 %: packets per round trip are sqrt(3/2) / sqrt(p)", MATHIS97,
        ),
        (0.12, "10 %: derived for even spacing; random losses give up to 1.31 (the paper, table 1)"),
        (0.25, "20 %: and windows of real hosts are sampled in less time"),
    ),
    *_of(
        _alone(
            OVER_PADHYE, ABOUT, 1, "p of 3 and 10 %: goodput as the model with timeouts predicts", PADHYE98
        ),
        (0.35, "the model describes Reno without SACK, which has more timeouts"),
        (0.5, "the same, and Linux begins its timeouts later"),
    ),
)  # fmt: skip

WAITS = (
    *_saw(
        WAIT_PKTS, 1, "a ping waits a packet time for each packet it finds queued",
        (0.01, "the packet in transmission is half sent on average"),
        (0.05, "queues are sampled at other instants than pings are sent"),
    ),
    *_saw(
        EMPTY_WAY_MS, 30.37, "without a queue a ping takes three transmissions and three delays, 30.37 ms",
        (0.3, "a quarter of a packet time: the packet in transmission"),
        (1.5, "and the schedulers of two hosts"),
    ),
    *_of(
        _alone(
            WAITS_EXACT_PCT, AT_LEAST, 100,
            "each ping waits for the packets queued before it, to within one packet",
            access=SAW_ACCESS,
        ),
        EXACT,
        None,
    ),
)  # fmt: skip


def _flood(metric: Metric, words: str) -> Published:
    return Published(
        metric, "fat_tree", 4, FLOOD, FLOOD_SUBFLOWS, ABOUT, 0, Source.THEORY, words, _PAPERS[ARITHMETIC],
        ARITHMETIC, *EXACT,
    )  # fmt: skip


UNDER_WAY = 10.0 * 16 * FLOOD_SUBFLOWS
"""Packets of all subflows' first windows: real flows begin shortly before the measured window."""
CONSERVED = (
    *_of(
        _flood(UNACCOUNTED_PKTS, "every switch forwarded or dropped exactly the packets that arrived"),
        EXACT,
        (UNDER_WAY, "first windows may be in flight when counting begins"),
    ),
    *_of(
        _flood(UNDELIVERED_BYTES, "every byte sent was received once, although packets were dropped"),
        EXACT,
        None,
    ),
)


NAME = "validation"
RATES_MBPS = (1.0, 10.0, 100.0, 1000.0)
REAL_MBPS = 100.0
"""The highest of these rates that a flow between real hosts is tried at."""
LOSSES_PCT = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
REPLICAS = 8
_SHARES = FAIRNESS.figures[0]
_ALONE: Settings = {
    "workload": ("against_tcp",), "transport.subflows": (1,), "transport.cc": ("reno",),
    "engine": (SIMULATOR,),
    "always_whole": True,
    "traffic": "native",
}  # fmt: skip
EXACT_CLOCKS = {"link.clock_ppm": 0.0}
PROMPT = {"stack": StackSpec(processing_frames=0.0)}
"""What arithmetic to the byte assumes of clocks and of simulated hosts."""
FILLED: Settings = {
    **_ALONE,
    "link.rate_mbps": RATES_MBPS, "warmup_s": 1.0, "seconds": 4 * FRAME_BITS / 1e4,
    **EXACT_CLOCKS, "link.delay_us": 100.0,
}  # fmt: skip
"""The window lasts a whole number of packets at every rate: 400 at 1 Mb/s."""
SAWTOOTH: Settings = {
    **_ALONE,
    "link.rate_mbps": SAW_MBPS, "warmup_s": 20.0, "seconds": 60.0,
    **EXACT_CLOCKS, "link.queue_pkts": SAW_PKTS, "link.delay_us": SAW_PKTS * FRAME_BITS / SAW_MBPS / 6,
    "sampling": SamplingSpec(queues_ms=20, sockets_ms=20, pings_ms=20),
}  # fmt: skip
"""The queue holds one bandwidth-delay product; a round trip is six link delays."""
LOSING: Settings = {
    **_ALONE,
    "link.rate_mbps": 60.0, "warmup_s": 30.0, "seconds": 120.0,
    "link.queue_pkts": 1000, "link.delay_us": 13_000.0,
    "link.loss": tuple(percent / 100 for percent in LOSSES_PCT),
}  # fmt: skip
"""The lowest loss rate gives a window of 122 packets, 19 Mb/s at a round trip of 78 ms: queues stay empty."""
FLOODED: Settings = {
    "k": (4,), "workload": (FLOOD,), "transport.subflows": (FLOOD_SUBFLOWS,), "engine": (SIMULATOR,),
    "link.rate_mbps": 20.0, "warmup_s": 0.0, "seconds": 30.0, "always_whole": True,
    "traffic": "native", "link.queue_pkts": 20, "link.delay_us": 100.0, "link.loss": 0.005,
}  # fmt: skip


def pair(_options: SweepOptions) -> list[TopologySpec]:
    """Return one pair of hosts; all links have the same rate."""
    return [TopologySpec("dumbbell", {"n": 1})]


def fast_hosts(_options: SweepOptions) -> list[TopologySpec]:
    """Return one pair of hosts whose own links are not the bottleneck."""
    return [TopologySpec("dumbbell", {"n": 1, "access": SAW_ACCESS})]


def pairs(_options: SweepOptions) -> list[TopologySpec]:
    """Return REPLICAS pairs of hosts that share no link."""
    return [TopologySpec("dumbbell", {"n": 1, "lanes": REPLICAS})]


def one_tree(_options: SweepOptions) -> list[TopologySpec]:
    """Return a FatTree of 16 hosts."""
    return [TopologySpec("fat_tree", {"k": 4})]


def carried_by_real_hosts(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return a point per rate, between real hosts without the rates that no usual machine carries."""
    found = points_on(pair, (PROMPT,))(options, rate_of)
    fast = {rate for rate in RATES_MBPS if rate > REAL_MBPS}
    return [spec for spec in found if spec.engine == SIMULATOR or spec.link.rate_mbps not in fast]


_figure = functools.partial(Figure, sized=False, relative=False)


FIGURES = (
    _figure(
        f"{NAME}-fill",
        "A single flow fills its link to the byte",
        "One TCP flow has a link to itself, at rates from 1 Mb/s to 1 Gb/s. The data received in a given "
        "time is known in advance: frames of 1514 bytes leave back to back, each with 1448 bytes of "
        "payload. A byte too many per packet, or an idle link, would show here.",
        defaults=FILLED,
        topologies=pair,
        points=carried_by_real_hosts,
        charts=("fill",),
        published=FILL,
    ),
    _figure(
        f"{NAME}-saw",
        "Reno's sawtooth: one packet more per round trip, half the window after a loss",
        "One flow passes a queue that holds one bandwidth-delay product. Its window grows until the queue "
        "is full, is halved by the loss of one packet, and grows again. Height, length and mean of the "
        "sawtooth are known in advance.",
        defaults=SAWTOOTH,
        topologies=fast_hosts,
        points=points_on(fast_hosts, (PROMPT,)),
        charts=("sawtooth",),
        published=SAW,
    ),
    _figure(
        f"{NAME}-wait",
        "Queueing delay is the transmission time of the packets ahead",
        "Pings travel beside the flow of the sawtooth, whose queue changes its length all the time. The "
        "packets that a ping finds queued determine its round-trip time: the transmission time of each, "
        "and the delay of the empty path.",
        defaults=SAWTOOTH,
        topologies=fast_hosts,
        points=points_on(fast_hosts, (PROMPT,)),
        charts=("wait",),
        published=WAITS,
    ),
    _figure(
        f"{NAME}-loss",
        "Goodput by the square root of the loss rate",
        "Flows on links that are never full lose packets at random, from 1 in 10 000 to 1 in 10. As long as "
        "losses are rare, growth and halving balance at a window of sqrt(3/2) / sqrt(p). Where windows are "
        "a few packets, timeouts dominate and goodput falls below that line.",
        defaults=LOSING,
        topologies=pairs,
        points=points_on(pairs),
        charts=("loss_law",),
        published=LOSS,
    ),
    _figure(
        f"{NAME}-conserved",
        "Conservation of packets",
        "Sixteen hosts of a FatTree send 2 MB each over 4 subflows, through queues of 20 packets and links "
        "that lose one packet in 200. When all transfers have ended, every packet must be accounted for: "
        "each switch forwarded or dropped all that it received, and every byte arrived once.",
        defaults=FLOODED,
        topologies=one_tree,
        points=points_on(one_tree),
        charts=("conserved",),
        published=CONSERVED,
    ),
    dataclasses.replace(
        _SHARES,
        name=f"{NAME}-shares",
        title="Share of a link beside one TCP flow, under random loss",
        defaults={**_SHARES.defaults, "engine": (SIMULATOR,), "always_whole": True},
    ),
)

EXPERIMENT = Experiment(
    name=NAME, title="The simulator compared with arithmetic and theory", folder=NAME, figures=FIGURES
)
SINGLE = tuple(figure.alone(NAME) for figure in FIGURES)
