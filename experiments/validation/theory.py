"""validation: simulated hosts, and real ones where possible, against arithmetic and theory
(docs/experiments/validation.md)."""

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
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import Variant, points_on
from model.spec import RunSpec, SamplingSpec, StackSpec, TopologySpec

NAME = "validation"
RATES_MBPS = (1.0, 10.0, 100.0, 1000.0)
REAL_MBPS = 100.0
"""Default maximum link rate for a flow between real hosts."""
LOSSES_PCT = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
REPLICAS = 8
_SHARES = FAIRNESS.figures[0]
_ALONE = Defaults(
    ks=(), workloads=("against_tcp",), subflows=(1,), ccs=("reno",), traffic="native", engines=(SIMULATOR,),
    always_whole=True,
)  # fmt: skip
EXACT_CLOCKS = {"link.clock_ppm": 0.0}
PROMPT = Variant(simulated=StackSpec(processing_frames=0.0))
"""What arithmetic to the byte assumes of clocks and of simulated hosts."""
FILLED = dataclasses.replace(
    _ALONE,
    pins=EXACT_CLOCKS,
    rate_mbps=max(RATES_MBPS),
    delay_us=100.0,
    warmup_s=1.0,
    seconds=4 * FRAME_BITS / 1e4,
)
"""The window lasts a whole number of packets at every rate: 400 at 1 Mb/s."""
SAWTOOTH = dataclasses.replace(
    _ALONE,
    pins=EXACT_CLOCKS,
    rate_mbps=SAW_MBPS,
    queue_pkts=SAW_PKTS,
    delay_us=SAW_PKTS * FRAME_BITS / SAW_MBPS / 6,
    warmup_s=20.0,
    seconds=60.0,
    sampling=SamplingSpec(queues_ms=20, sockets_ms=20, pings_ms=20),
)
"""The queue holds one bandwidth-delay product; a round trip is six link delays."""
LOSING = dataclasses.replace(
    _ALONE,
    rate_mbps=60.0,
    queue_pkts=1000,
    delay_us=13_000.0,
    loss_pct=max(LOSSES_PCT),
    warmup_s=30.0,
    seconds=120.0,
)
"""The lowest loss rate gives a window of 122 packets, 19 Mb/s at a round trip of 78 ms: queues stay empty."""
FLOODED = Defaults(
    ks=(4,), workloads=(FLOOD,), subflows=(FLOOD_SUBFLOWS,), traffic="native", engines=(SIMULATOR,),
    rate_mbps=20.0, queue_pkts=20, delay_us=100.0, loss_pct=0.5, warmup_s=0.0, seconds=30.0,
    always_whole=True,
)  # fmt: skip


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


def at_every_rate(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return points at all of RATES_MBPS, or at the rate of --rate."""
    asked = rate_of(pair(options)[0])
    rates = RATES_MBPS if asked == FILLED.rate_mbps else (asked,)
    return [
        spec
        for rate in rates
        for spec in points_on(pair, (PROMPT,))(options, functools.partial(_fixed, rate))
        if spec.engine == SIMULATOR or rates == (asked,) or rate <= REAL_MBPS
    ]


def at_every_loss(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return points with all of LOSSES_PCT, or with the loss of --loss."""
    pinned, loss = LOSING.pinned["link.loss"], options.base.link.loss
    losses = [pct / 100 for pct in LOSSES_PCT] if loss == pinned else [loss]
    each = (options.with_values({"link.loss": one}) for one in losses)
    return [spec for chosen in each for spec in points_on(pairs)(chosen, rate_of)]


def _fixed(rate_mbps: float, _network: TopologySpec) -> float:
    return rate_mbps


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
        points=at_every_rate,
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
        points=at_every_loss,
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
        defaults=dataclasses.replace(_SHARES.defaults, engines=(SIMULATOR,), always_whole=True),
    ),
)

EXPERIMENT = Experiment(
    name=NAME, title="The simulator compared with arithmetic and theory", folder=NAME, figures=FIGURES
)
SINGLE = tuple(Experiment(f.name, f.title, NAME, (f,)) for f in FIGURES)
