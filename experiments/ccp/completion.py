"""ccp-completion: completion times of an Internet link's flows from fifty servers, with and without an agent.

Simulated, on the network of the paper's text: 100 ms, 192 Mb/s, CAIDA's flow sizes at half load. The authors'
script has another network (50 ms, 96 Mb/s, 72 Mb/s of load, 800 packets), which does not match the text.
"""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from analysis.completion import completions, percentile
from analysis.quantities import Quantity
from ccp.names import PREFIX
from engines.registry import SIMULATOR
from experiments.ccp.statements import CITATION, paired
from harness.experiment import Figure
from harness.metrics.measures import Estimate, Subject, kept, measured_over, points_about, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import points_on
from harness.results.point_results import PointResult
from model.congestion import BASELINE
from model.result import under_test
from model.spec import RunSpec, Settings, TopologySpec

SERVERS = 50
RATE_MBPS, DELAY_US = 192.0, 25_000.0
"""The one-way delay is that of each of the two links. The round trip of 100 ms crosses four links."""
QUEUE_PKTS = 1600
"""An assumption: the script's 800 packets at 96 Mb/s, scaled to this rate. One bandwidth-delay product."""
WORKLOAD = "to_one:50:sizes=caida"
SEEDS = 6
DEFAULTS: Settings = {
    "workload": (WORKLOAD,), "transport.subflows": (1,), "transport.cc": (BASELINE, f"{PREFIX}{BASELINE}"),
    "engine": (SIMULATOR,),
    "link.rate_mbps": RATE_MBPS, "warmup_s": 5.0, "seconds": 60.0, "seeds": SEEDS, "paper.seconds": 175.0,
    "smoke.seconds": 10.0,
    "link.queue_pkts": QUEUE_PKTS, "link.delay_us": DELAY_US,
}  # fmt: skip
MIN_FLOWS = 20
"""Minimum number of completed flows of a class for a percentile."""


@dataclass(frozen=True)
class Class:
    """Flows by size in bytes: more than `above`, up to `upto`."""

    name: str
    above: int = 0
    upto: int = 10**15


ALL, MIDDLE, LARGE = (
    Class("all flows"),
    Class("flows of 10 kB to 1 MB", 10_000, 10**6),
    Class("larger flows", 10**6),
)


def servers(options: SweepOptions) -> list[TopologySpec]:
    """Return fifty servers and a receiver on one switch, so that the receiver's link is the bottleneck."""
    del options
    return [TopologySpec("star", {"n": SERVERS + 1})]


def setting(spec: RunSpec) -> RunSpec:
    return spec.neutral("transport.cc")


def took_ms(point: PointResult, of: Class, percent: float) -> float | None:
    """Return a percentile of the completion times of a class; None for too few flows."""

    def read(point: PointResult) -> float | None:
        done = completions(under_test(point.flows)).completed
        chosen = [1000 * flow.completed_s for flow in done if of.above < flow.size_bytes <= of.upto]
        if len(chosen) < MIN_FLOWS:
            return None
        return statistics.median(chosen) if percent == 50 else percentile(chosen, percent)

    return kept(f"fct_ms_p{percent:g} of {of.name}", read)(point)


@functools.cache
def over_kernel(of: Class, percent: float, apart: bool = False) -> Metric:
    """Return a metric: a percentile of the completion times with an agent over that without one, per seed.
    With `apart`, the metric is the difference of the two, in either direction."""

    def read(one: PointResult, other: PointResult) -> float | None:
        value = ratio(took_ms(one, of, percent), took_ms(other, of, percent))
        return value if value is None or not apart else abs(value - 1)

    name = f"fct_{of.name.replace(' ', '_')}_p{percent:g}" + ("_apart" if apart else "")
    what = f"{'difference of the ' if apart else ''}{_word(percent)} of the completion times of {of.name}"
    unit = "x Reno's"
    return Metric(
        Quantity(name, unit, f"{what}, in an agent beside Reno"),
        over=_beside(read),
        setting=setting,
        of_completed=False,
    )


def _word(percent: float) -> str:
    return "median" if percent == 50 else f"{percent:g}th percentile"


def _beside(
    read: Callable[[PointResult, PointResult], float | None],
) -> Callable[[Sequence[PointResult], Subject], Estimate | None]:
    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        chosen = points_about(points, subject)
        return measured_over((read(*pair), pair) for pair in paired(chosen, BASELINE))

    return measure


_OF_ALL = "all sizes: CCP -0.02 % in the median, +3 % at p75, +30 % at p95"
_OF_MIDDLE, _OF_LARGE = "10 kB to 1 MB: -7 % in the median", "large: 22 % apart in the median"
"""The paper's words as our notes have them."""


def _row(
    metric: Metric, value: float, words: str, within: float, because: str, quote: str = _OF_ALL
) -> Published:
    row = Published(
        metric, "star", SERVERS + 1, WORKLOAD, 1, Relation.ABOUT, value, Source.TEXT, words, "SIGCOMM'18",
        CITATION, within, because, section="Completion times", quote=quote,
    )  # fmt: skip
    return row.with_caveat(
        "The text and the authors' script describe different networks; this is the text's."
    )


STATEMENTS = (
    _row(over_kernel(ALL, 50), 0.9998, "all flows: CCP 0.02 % faster in the median", 0.02,
         "flows of one window: no control acts on them"),
    _row(over_kernel(ALL, 75), 1.03, "all flows: CCP 3 % slower at the 75th percentile", 0.05,
         "a few percent: the paper's own seeds are not known"),
    _row(over_kernel(ALL, 95), 1.30, "all flows: CCP 30 % slower at the 95th percentile", 0.15,
         "half of the difference, so that no difference does not agree"),
    _row(over_kernel(MIDDLE, 50), 0.93, "10 kB to 1 MB: CCP 7 % faster in the median", 0.1,
         "a tenth: few of these flows", _OF_MIDDLE),
    _row(over_kernel(LARGE, 50, apart=True), 0.22, "large flows: 22 % apart in the median", 0.2,
         "the text does not say in which direction; they are few", _OF_LARGE),
)  # fmt: skip
FIGURE = Figure(
    name="ccp-completion",
    title="Completion times of an Internet link's flows",
    about=(
        "Flows with the sizes of an Internet backbone come from fifty servers and fill half of a link of 192 "
        "Mb/s; the round trip is 100 ms. Reno runs in an agent and, for the same flows, without one."
    ),
    defaults=DEFAULTS,
    topologies=servers,
    points=points_on(servers),
    charts=("fct",),
    published=STATEMENTS,
    sized=False,
    relative=False,
)
