"""validation: simulated hosts, and real ones as far as they can be asked, against arithmetic and theory
(docs/validation.md)."""

from __future__ import annotations

import dataclasses
import functools

from engines.registry import SIMULATOR
from experiments.coupled.wire import FAIRNESS
from experiments.validation.statements import (
    CONSERVED,
    FILL,
    FLOOD,
    FLOOD_SUBFLOWS,
    LOSS,
    SAW,
    SAW_ACCESS,
    SAW_MBPS,
    SAW_PKTS,
    WAITS,
)
from fabric.plan import FRAME_BITS
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import points_on
from model.spec import RunSpec, SamplingSpec, TopologySpec

NAME = "validation"
RATES_MBPS = (1.0, 10.0, 100.0, 1000.0)
REAL_MBPS = 100.0
"""The most that a flow between real hosts is asked for where nobody names a rate."""
LOSSES_PCT = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
LANES = 8
_SHARES = FAIRNESS.figures[0]
_ALONE = Defaults(
    ks=(), workloads=("against_tcp",), subflows=(1,), cc="reno", traffic="native", engines=(SIMULATOR,)
)
FILLED = dataclasses.replace(
    _ALONE, rate_mbps=max(RATES_MBPS), delay_us=100.0, warmup_s=1.0, seconds=4 * FRAME_BITS / 1e4
)
"""A window of whole packets at every rate: 400 at 1 Mb/s."""
SAWING = dataclasses.replace(
    _ALONE,
    rate_mbps=SAW_MBPS,
    queue_pkts=SAW_PKTS,
    delay_us=SAW_PKTS * FRAME_BITS / SAW_MBPS / 6,
    warmup_s=20.0,
    seconds=60.0,
    sampling=SamplingSpec(queues_ms=20, sockets_ms=20, pings_ms=20),
)
"""The queue holds what the path does; six delays make a round trip."""
LOSING = dataclasses.replace(
    _ALONE,
    rate_mbps=60.0,
    queue_pkts=1000,
    delay_us=13_000.0,
    loss_pct=max(LOSSES_PCT),
    warmup_s=30.0,
    seconds=120.0,
)
"""The rarest losses give a window of 122 packets, 19 Mb/s in a round trip of 78 ms: no queue ever builds."""
FLOODED = Defaults(
    ks=(4,), workloads=(FLOOD,), subflows=(FLOOD_SUBFLOWS,), traffic="native", engines=(SIMULATOR,),
    rate_mbps=20.0, queue_pkts=20, delay_us=100.0, loss_pct=0.5, warmup_s=0.0, seconds=30.0,
)  # fmt: skip


def pair(_options: SweepOptions) -> list[TopologySpec]:
    """One pair of hosts, and all links alike."""
    return [TopologySpec("dumbbell", {"n": 1})]


def fast_hosts(_options: SweepOptions) -> list[TopologySpec]:
    """One pair of hosts whose own links are no bottleneck."""
    return [TopologySpec("dumbbell", {"n": 1, "access": SAW_ACCESS})]


def pairs(_options: SweepOptions) -> list[TopologySpec]:
    """As many pairs that share nothing: repetitions."""
    return [TopologySpec("dumbbell", {"n": 1, "lanes": LANES})]


def one_tree(_options: SweepOptions) -> list[TopologySpec]:
    """A FatTree of 16 hosts."""
    return [TopologySpec("fat_tree", {"k": 4})]


def at_every_rate(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """At all of RATES_MBPS, or the one asked for."""
    asked = rate_of(pair(options)[0])
    rates = RATES_MBPS if asked == FILLED.rate_mbps else (asked,)
    return [
        spec
        for rate in rates
        for spec in points_on(pair)(options, functools.partial(_fixed, rate))
        if spec.engine == SIMULATOR or rates == (asked,) or rate <= REAL_MBPS
    ]


def at_every_loss(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """With all of LOSSES_PCT, or the one asked for."""
    losses = LOSSES_PCT if options.loss_pct == LOSING.loss_pct else (options.loss_pct,)
    each = (dataclasses.replace(options, loss_pct=pct) for pct in losses)
    return [spec for chosen in each for spec in points_on(pairs)(chosen, rate_of)]


def _fixed(rate_mbps: float, _network: TopologySpec) -> float:
    return rate_mbps


_figure = functools.partial(Figure, sized=False, relative=False)


FIGURES = (
    _figure(
        f"{NAME}-fill",
        "A flow alone fills its link to the byte",
        "One TCP flow has a link to itself, at rates from 1 Mb/s to 1 Gb/s. What its receiver gets in a "
        "given time can be told beforehand: one frame of 1514 bytes leaves after the other, each with 1448 "
        "bytes of payload. A byte too many in a packet, or a link that rests, would show here.",
        defaults=FILLED,
        topologies=pair,
        points=at_every_rate,
        charts=("fill",),
        published=FILL,
    ),
    _figure(
        f"{NAME}-saw",
        "Reno's saw: a packet more each round trip, half of it at a loss",
        "One flow meets a queue that holds as much as its path does. Its window grows until the queue is "
        "full, is halved by the one packet that is lost, and grows again; height, length and mean of the "
        "teeth are known in advance.",
        defaults=SAWING,
        topologies=fast_hosts,
        points=points_on(fast_hosts),
        charts=("saw",),
        published=SAW,
    ),
    _figure(
        f"{NAME}-wait",
        "What a packet waits is what stands before it",
        "Pings travel beside the flow of the saw, whose queue is another length at every moment. What each "
        "finds queued tells to the packet how long its way takes: a transmission time for each of them, and "
        "the empty path.",
        defaults=SAWING,
        topologies=fast_hosts,
        points=points_on(fast_hosts),
        charts=("wait",),
        published=WAITS,
    ),
    _figure(
        f"{NAME}-loss",
        "Goodput by the square root of the loss rate",
        "Flows on links that never fill lose packets at random, from 1 in 10 000 to 1 in 10. As long as "
        "losses are rare, halving and growing balance at a window of sqrt(3/2) / sqrt(p); where windows are "
        "a few packets, timeouts take over and goodput falls below that line.",
        defaults=LOSING,
        topologies=pairs,
        points=at_every_loss,
        charts=("loss_law",),
        published=LOSS,
    ),
    _figure(
        f"{NAME}-conserved",
        "No packet appears, none vanishes",
        "Sixteen hosts of a FatTree send each other 2 MB over 4 subflows, through queues of 20 packets and "
        "links that lose one packet in 200. When all is quiet again every packet must be accounted for: at "
        "each switch what came was sent on or dropped, and every byte arrived once.",
        defaults=FLOODED,
        topologies=one_tree,
        points=points_on(one_tree),
        charts=("conserved",),
        published=CONSERVED,
    ),
    dataclasses.replace(
        _SHARES,
        name=f"{NAME}-shares",
        title="Share of a link beside one TCP, under random loss",
        defaults=dataclasses.replace(_SHARES.defaults, engines=(SIMULATOR,)),
    ),
)

EXPERIMENT = Experiment(
    name=NAME, title="The simulator against arithmetic and theory", folder=NAME, figures=FIGURES
)
SINGLE = tuple(Experiment(f.name, f.title, NAME, (f,)) for f in FIGURES)
