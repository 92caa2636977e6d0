"""What theory predicts for the coupled experiments, as statements. These numbers were not published: they are
fixed points (analysis/shares.py), and their source is `theory`. docs/published.md lists them."""

from __future__ import annotations

from analysis import shares
from experiments.coupled.metrics import SHARE_OF_BOTTLENECK, SHARE_ON_CONGESTED
from harness.metrics.published import Published, Relation, Source
from model.transports import title

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
