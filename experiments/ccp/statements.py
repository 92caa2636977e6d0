"""Statements of the paper's evaluation on links: CCP beside the kernel. Tolerances were set first."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Sequence

from analysis.quantities import Quantity
from ccp.names import PREFIX
from harness.metrics.measures import Estimate, Subject, measured_over, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import SweepOptions
from harness.plan.sweeps import Points, points_on
from harness.results.point_results import PointResult
from model.links import LINK_KINDS, link_kind
from model.result import under_test
from model.spec import RunSpec, SamplingSpec, Settings, TopologySpec

ACCESS = 4
"""Rate of the hosts' links as a multiple of the bottleneck's."""
CITATION = "Narayan et al., Restructuring Endpoint Congestion Control, SIGCOMM 2018"
WORKLOAD = "against_tcp"
CLOSE = 0.1, "the paper calls them nearly identical; its own medians differ by 5 to 35 %"
LEVEL_MBPS = 12.0, "a fifth: the level follows from the loss rate, and draws of losses differ"
_APART = ("transport.cc", "link.loss", "link.trace", "link.queue_pkts")


def setting(spec: RunSpec) -> RunSpec:
    return spec.neutral(*_APART)


def goodput_mbps(point: PointResult) -> float | None:
    flows = under_test(point.flows)
    return statistics.fmean(flow.goodput_mbps for flow in flows) if flows else None


def paired(points: Sequence[PointResult], cc: str) -> list[tuple[PointResult, PointResult]]:
    """Return the points of a congestion control in an agent, each with the kernel's point of that seed."""
    agents, kernels = _by_seed(points, f"{PREFIX}{cc}"), _by_seed(points, cc)
    return [(agents[seed], kernels[seed]) for seed in agents if seed in kernels]


def _by_seed(points: Sequence[PointResult], cc: str) -> dict[int, PointResult]:
    return {p.spec.seed: p for p in points if p.spec.transport.cc == cc}


def _on(points: Sequence[PointResult], link: str) -> list[PointResult]:
    return [p for p in points if link_kind(p.spec.link) == link]


@functools.cache
def over_kernel(link: str, cc: str) -> Metric:
    """Return a metric: the goodput with the agent over that with the kernel's own, per seed."""

    def measure(points: Sequence[PointResult], _subject: Subject) -> Estimate | None:
        pairs = paired(_on(points, link), cc)
        return measured_over((ratio(goodput_mbps(a), goodput_mbps(b)), (a, b)) for a, b in pairs)

    return Metric(
        Quantity(
            f"ccp_over_kernel_{link}_{cc}", "x the kernel's", f"goodput of {cc} in an agent, {link} link"
        ),
        over=measure,
        setting=setting,
    )


@functools.cache
def level(link: str, cc: str) -> Metric:
    """Return the goodput of a flow in Mb/s."""

    def measure(points: Sequence[PointResult], _subject: Subject) -> Estimate | None:
        return measured_over((goodput_mbps(p), [p]) for p in _by_seed(_on(points, link), cc).values())

    return Metric(
        Quantity(f"goodput_{link}_{cc.replace(':', '_')}", "Mb/s", f"goodput of {cc}, {link} link"),
        over=measure,
        setting=setting,
    )


def _row(metric: Metric, value: float, source: Source, words: str, within: tuple[float, str]) -> Published:
    row = Published(
        metric, "dumbbell", 1, WORKLOAD, 1, Relation.ABOUT, value, source, words, "SIGCOMM'18", CITATION,
        *within, section="Throughput and delay", quote='"nearly identical"' if source is Source.TEXT else "",
    )  # fmt: skip
    return row.on(access=ACCESS)


NEARLY = (
    *(
        _row(
            over_kernel(link, cc), 1.0, Source.TEXT,
            f"on the {link} link {cc} in CCP and in the kernel carry nearly the same", CLOSE,
        )
        for link in LINK_KINDS
        for cc in ("reno", "cubic")
    ),
    *(
        _row(level("drop", cc), mbps, Source.FIGURE, f"{cc} carries {mbps:g} Mb/s on the drop link",
            LEVEL_MBPS,)
        for cc, mbps in (
            ("reno", 59.4), ("cubic", 59.2), (f"{PREFIX}reno", 56.6), (f"{PREFIX}cubic", 56.3),
        )
    ),
)  # fmt: skip


DELAY_US = 20_000 / 6
"""Delay of each of the three links, one way."""
LINK: Settings = {
    "workload": ("against_tcp",), "transport.subflows": (1,),
    "link.rate_mbps": 96.0, "warmup_s": 10.0, "seconds": 30.0,
    "link.queue_pkts": 160, "link.delay_us": DELAY_US, "sampling": SamplingSpec(sockets_ms=100),
}  # fmt: skip


def bottleneck(_options: SweepOptions) -> list[TopologySpec]:
    """Return one network: one sender and one receiver, with a slower link between them."""
    return [TopologySpec("dumbbell", {"n": 1, "access": ACCESS})]


def compared(*usual: str) -> Points:
    """Return a function that makes one point per congestion control of --cc, or of the usual ones."""

    return points_on(bottleneck, lambda options: [{"transport.cc": cc} for cc in options.ccs or usual])
