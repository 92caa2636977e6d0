"""Coupled congestion control on the wire: what a flow takes of a bottleneck beside TCP, and where it sends
when one of two bottlenecks is worse.

Lanes are independent repetitions within one run, six and more, so one seed already has intervals. Theory is
about sources that always have something to send, so hosts have the reserve that keeps subflows from running
dry (model/tuning.py): what is compared is the congestion control, not the packet scheduler.
"""

from __future__ import annotations

from dataclasses import replace

from engines.registry import SIMULATOR
from experiments.coupled.statements import SHARE_LOSS, SHARE_QUEUE, SHIFT
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import Points, Topologies, Variant, points_on
from model.spec import RunSpec, TopologySpec
from model.tuning import RESERVE

ALGORITHMS = ("reno", "lia", "olia", "balia", "ewtcp")
APART_MS, BY_CHANCE_PKTS = 1000.0, 5
"""Simulated hosts have no jitter: lanes that start in one instant stay alike, and at a drop-tail queue that a
sender meets at its link's own rate, whoever is first takes every place that falls free (Floyd and Jacobson,
1992). So their flows start apart, and the last places of their queues are given by chance."""
PAIRS = 2
LANES = 6
WORSE, BETTER = 3, 1
"""Competitors at the two bottlenecks of coupled-shift."""


def dumbbells(_options: SweepOptions) -> list[TopologySpec]:
    """One network: the flow under test and one TCP, `LANES` times."""
    return [TopologySpec("dumbbell", {"n": PAIRS, "lanes": LANES})]


def bottlenecks(_options: SweepOptions) -> list[TopologySpec]:
    """One network: three TCPs at one bottleneck and one at the other, `LANES` times."""
    return [TopologySpec("two_bottlenecks", {"first": WORSE, "second": BETTER, "lanes": LANES})]


def _out_of_step(spec: RunSpec) -> RunSpec:
    if spec.engine != SIMULATOR:
        return spec
    stack = replace(spec.stack, start_spread_ms=spec.stack.start_spread_ms or APART_MS)
    link = replace(spec.link, random_pkts=spec.link.random_pkts or BY_CHANCE_PKTS)
    return replace(spec, link=link, stack=stack)


def by_algorithm(topologies: Topologies) -> Points:
    """A sweep over all algorithms, or over the one asked for."""

    def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
        variants = [Variant(cc=cc) for cc in options.ccs or ALGORITHMS]
        return [_out_of_step(spec) for spec in points_on(topologies, variants)(options, rate_of)]

    return points


ALONGSIDE = Defaults(ks=(), workloads=("against_tcp",), subflows=(2, 4, 8), traffic="native", sysctls=RESERVE)
LOSS = replace(
    ALONGSIDE, rate_mbps=60.0, queue_pkts=1000, delay_us=13_000, loss_pct=0.2, warmup_s=15.0, seconds=30.0
)
"""Random loss alone: a window of sqrt(1.5 / p) is 27 packets, in a round trip of 78 ms 4.3 Mb/s; 8 uncoupled
subflows and a TCP have 38 of the link's 60 Mb/s."""
QUEUE = replace(ALONGSIDE, rate_mbps=10.0, queue_pkts=50, delay_us=5_000, warmup_s=20.0, seconds=25.0)
"""A full queue alone: the two flows' windows are 75 packets together when it drops, and 8
coupled subflows settle in 11 s."""
PATHS = replace(
    ALONGSIDE, subflows=(2,), rate_mbps=10.0, queue_pkts=100, delay_us=5_000, warmup_s=30.0, seconds=40.0
)
"""Two bottlenecks, each filled by the TCPs on it."""

FAIRNESS = Experiment(
    name="coupled-fairness",
    title="What MPTCP takes of a bottleneck beside one TCP, by congestion control",
    folder="coupled-fairness",
    figures=(
        Figure(
            name="coupled-fairness-loss",
            title="Share of a link beside one TCP, under random loss",
            about=(
                "One MPTCP flow with 2, 4 and 8 subflows meets one plain TCP on a link that loses packets "
                "at random and never fills: each subflow sees the same loss, so the share is the "
                "algorithm's alone. Uncoupled subflows take a TCP's share each, coupled ones together."
            ),
            defaults=LOSS,
            topologies=dumbbells,
            points=by_algorithm(dumbbells),
            charts=("share",),
            published=SHARE_LOSS,
            sized=False,
        ),
        Figure(
            name="coupled-fairness-queue",
            title="Share of a link beside one TCP, at a drop-tail queue",
            about=(
                "The same where the two fill the link: losses come from its queue, in bursts, and not to "
                "everybody alike. Coupling holds here too, but what loss a flow sees now depends on how it "
                "sends."
            ),
            defaults=QUEUE,
            topologies=dumbbells,
            points=by_algorithm(dumbbells),
            charts=("share",),
            published=SHARE_QUEUE,
            sized=False,
        ),
    ),
)

SINGLE = tuple(Experiment(f.name, f.title, FAIRNESS.folder, (f,)) for f in FAIRNESS.figures)

SHIFTED = Experiment(
    name="coupled-shift",
    title="Whether traffic moves off the more congested of two bottlenecks, by congestion control",
    folder="coupled-shift",
    figures=(
        Figure(
            name="coupled-shift",
            title="Traffic on the more congested of two bottlenecks",
            about=(
                "An MPTCP flow has one subflow through each of two links; three TCPs share the first, one "
                "the second. Uncoupled subflows take what a TCP would on either link; coupled ones send "
                "less over the worse link the more they follow the better one."
            ),
            defaults=PATHS,
            topologies=bottlenecks,
            points=by_algorithm(bottlenecks),
            charts=("shift",),
            published=SHIFT,
            sized=False,
        ),
    ),
)
