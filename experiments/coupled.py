"""coupled-fairness: an MPTCP flow's share of a bottleneck beside one TCP flow; coupled-shift: which of two
bottlenecks it sends through if one is more congested.

A run has six or more independent replicas, so that one seed is enough for an interval. Theory assumes sources
that always have data to send. So hosts get send buffers that keep all subflows busy (model/tuning.py): the
comparison is of congestion control, not of the packet scheduler.

The statements say what theory predicts. These numbers were not published: they are fixed points
(analysis/shares.py), and their source is `theory`.
"""

from __future__ import annotations

from dataclasses import replace

from analysis import quantities, shares
from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.metrics.measures import each_replica
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import points_on
from model.spec import RunSpec, Settings, TopologySpec
from model.transports import title
from model.tuning import RESERVE

SHARE_OF_BOTTLENECK = Metric(
    quantities.SHARE_OF_BOTTLENECK,
    over=each_replica(lambda p: shares.bottleneck_shares_pct(p.flows)),
    repeats="repetition",
)
SHARE_ON_CONGESTED = Metric(
    quantities.SHARE_ON_CONGESTED,
    over=each_replica(lambda p: shares.congested_shares_pct(p.ports)),
    repeats="repetition",
)


WISCHIK = (
    "Wischik, Raiciu, Greenhalgh and Handley, Design, implementation and evaluation of congestion control "
    "for multipath TCP, NSDI 2011, section 2"
)
RFC6356 = (
    "Raiciu, Handley and Wischik, Coupled Congestion Control for Multipath Transport Protocols, RFC 6356"
)
KHALILI = "Khalili, Gast, Popovic, Upadhyay and Le Boudec, MPTCP Is Not Pareto-Optimal, CoNEXT 2012"
PENG = "Peng, Walid, Hwang and Low, Multipath TCP: Analysis, Design, and Implementation, ToN 2016"
_SOURCES = {
    "reno": ("NSDI'11", WISCHIK),
    "ewtcp": ("NSDI'11", WISCHIK),
    "lia": ("RFC 6356", RFC6356),
    "olia": ("CoNEXT'12", KHALILI),
    "balia": ("ToN'16", PENG),
}
SUBFLOWS = (2, 4, 8)
ALONE = 4.0, "two standard errors of the mean over six replicas"
TOGETHER = 12.0, "two standard errors over six replicas, and fluctuating windows (benchmarks/window_model.py)"
DROPS = 12.0, "a full queue drops bursts of packets, unevenly among the flows"
PROBES = (
    8.0,
    "a subflow on the worse path keeps a packet or two in flight, drops come in bursts, and real receivers "
    "acknowledge it packet by packet (docs/experiments/coupled.md)",
)


def _fair(cc: str, subflows: int, where: str, tolerance: float, because: str) -> Published:
    share = f"{subflows} of {subflows + 1} shares" if cc == "reno" else "one TCP's share"
    return Published(
        SHARE_OF_BOTTLENECK, "dumbbell", 2, "against_tcp", subflows, Relation.ABOUT,
        round(100 * shares.bottleneck_share(cc, subflows), 1), Source.THEORY,
        f"{title(cc)}, {subflows} subflows, {where}: {share}", *_SOURCES[cc], tolerance, because,
        algorithm=cc,
    )  # fmt: skip


def _shift(cc: str) -> Published:
    return Published(
        SHARE_ON_CONGESTED, "two_bottlenecks", 3, "against_tcp", 2, Relation.ABOUT,
        round(100 * shares.congested_share(cc, 3, 1), 1), Source.THEORY,
        f"{title(cc)}: share of traffic on the worse path", *_SOURCES[cc], *PROBES, algorithm=cc,
    )  # fmt: skip


SHARE_LOSS = tuple(
    _fair(cc, n, "random loss", *(ALONE if cc == "reno" else TOGETHER)) for cc in _SOURCES for n in SUBFLOWS
)
SHARE_QUEUE = tuple(_fair(cc, n, "full queue", *DROPS) for cc in _SOURCES for n in SUBFLOWS)
SHIFT = tuple(map(_shift, _SOURCES))


ALGORITHMS = ("reno", "lia", "olia", "balia", "ewtcp")
START_SPREAD_MS, RANDOM_DROP_PKTS = 1000.0, 5
"""Simulated hosts have no jitter. Replicas that start together would stay identical. At a drop-tail queue
whose input has the rate of its link, the flow whose packet comes first would get every free slot (Floyd and
Jacobson, 1992). So flows start at different times, and the last slots of queues use random drop."""
PAIRS = 2
REPLICAS = 6
WORSE, BETTER = 3, 1
"""Numbers of TCP flows at the two bottlenecks of coupled-shift."""


def dumbbells(_options: SweepOptions) -> list[TopologySpec]:
    """Return one network: the flow under test and one TCP flow, `REPLICAS` times."""
    return [TopologySpec("dumbbell", {"n": PAIRS, "lanes": REPLICAS})]


def bottlenecks(_options: SweepOptions) -> list[TopologySpec]:
    """Return one network: three TCP flows at one bottleneck and one at the other, `REPLICAS` times."""
    return [TopologySpec("two_bottlenecks", {"first": WORSE, "second": BETTER, "lanes": REPLICAS})]


def _desynchronised(spec: RunSpec) -> RunSpec:
    if spec.engine != SIMULATOR:
        return spec
    stack = replace(spec.stack, start_spread_ms=spec.stack.start_spread_ms or START_SPREAD_MS)
    link = replace(spec.link, random_pkts=spec.link.random_pkts or RANDOM_DROP_PKTS)
    return replace(spec, link=link, stack=stack)


ALONGSIDE: Settings = {
    "workload": ("against_tcp",), "transport.subflows": (2, 4, 8), "transport.cc": ALGORITHMS,
    "traffic": "native", "transport.sysctls": RESERVE,
}  # fmt: skip
LOSS: Settings = {
    **ALONGSIDE,
    "link.rate_mbps": 60.0, "warmup_s": 15.0, "seconds": 30.0,
    "link.queue_pkts": 1000, "link.delay_us": 13_000, "link.loss": 0.002,
}  # fmt: skip
"""Only random losses: a window of sqrt(1.5 / p) is 27 packets, which is 4.3 Mb/s at a round trip of 78 ms.
Eight uncoupled subflows and a TCP flow use 38 of the link's 60 Mb/s."""
QUEUE: Settings = {
    **ALONGSIDE,
    "link.rate_mbps": 10.0, "warmup_s": 20.0, "seconds": 25.0,
    "link.queue_pkts": 50, "link.delay_us": 5_000,
}  # fmt: skip
"""Only losses of a full queue: the two flows' windows together are 75 packets when it drops. Eight coupled
subflows converge in 11 s."""
PATHS: Settings = {
    **ALONGSIDE, "transport.subflows": (2,),
    "link.rate_mbps": 10.0, "warmup_s": 30.0, "seconds": 40.0,
    "link.queue_pkts": 100, "link.delay_us": 5_000,
}  # fmt: skip
"""Two bottlenecks, each filled by its TCP flows."""

FAIRNESS = Experiment(
    name="coupled-fairness",
    title="Share of a bottleneck that MPTCP takes beside one TCP flow, by congestion control",
    folder="coupled-fairness",
    figures=(
        Figure(
            name="coupled-fairness-loss",
            title="Share of a link beside one TCP flow, under random loss",
            about=(
                "One MPTCP flow with 2, 4 and 8 subflows shares a link with one plain TCP flow. The link "
                "drops packets at random and is never full. So each subflow sees the same loss rate, and "
                "the share depends on the algorithm alone: uncoupled subflows take one TCP's share each, "
                "coupled ones together."
            ),
            defaults=LOSS,
            topologies=dumbbells,
            points=points_on(dumbbells, adapt=_desynchronised),
            charts=("share",),
            published=SHARE_LOSS,
            sized=False,
        ),
        Figure(
            name="coupled-fairness-queue",
            title="Share of a link beside one TCP flow, at a drop-tail queue",
            about=(
                "The same with two flows that fill the link: its queue causes the losses, in bursts and at "
                "different rates for the two flows. Coupling is effective here too, but a flow's loss rate "
                "now depends on how it sends."
            ),
            defaults=QUEUE,
            topologies=dumbbells,
            points=points_on(dumbbells, adapt=_desynchronised),
            charts=("share",),
            published=SHARE_QUEUE,
            sized=False,
        ),
    ),
)

SINGLE = tuple(figure.alone(FAIRNESS.folder) for figure in FAIRNESS.figures)

SHIFTED = Experiment(
    name="coupled-shift",
    title="Traffic shift away from the more congested of two bottlenecks, by congestion control",
    folder="coupled-shift",
    figures=(
        Figure(
            name="coupled-shift",
            title="Traffic on the more congested of two bottlenecks",
            about=(
                "An MPTCP flow has one subflow through each of two links. Three TCP flows share the first "
                "link, one the second. An uncoupled subflow takes what a TCP flow would take on its link. "
                "Coupled ones send less over the more congested link, some algorithms more strongly than "
                "others."
            ),
            defaults=PATHS,
            topologies=bottlenecks,
            points=points_on(bottlenecks, adapt=_desynchronised),
            charts=("shift",),
            published=SHIFT,
            sized=False,
        ),
    ),
)
