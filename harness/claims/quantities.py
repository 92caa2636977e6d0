"""What published statements are about, as numbers read off stored points. Pure, but for reading samples.

A quantity is measured at each seed and then averaged over the seeds. Links and queues are those between
switches or from a switch to a host, one of each direction: a host's own queue is not the network's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np

from analysis.completion import completions
from analysis.shares import (
    SHARE_OF_BOTTLENECK,
    SHARE_ON_CONGESTED,
    bottleneck_shares_pct,
    congested_shares_pct,
)
from experiments.sigcomm11.ec2_statements import TURNS
from experiments.sigcomm11.hedera_quantities import SCHEDULING
from experiments.sigcomm11.robustness_quantities import ROBUSTNESS
from experiments.validation.quantities import LAWS
from harness.claims.measures import (
    OfPoint,
    Quantity,
    across,
    dip,
    each,
    each_lane,
    over_tcp,
    over_topology,
    ratio,
    slope,
    table,
)
from harness.results.across import alike
from harness.results.summary import Judged
from model.result import PortRow

BUSY_LINK_PCT = 50.0
UNUSED_LINK_PCT = 5.0
"""Below this a link carries no flow, at most ACKs: those of one full flow take about 2.4 % of a link."""
QUEUE_IN_USE_PKTS = 5.0
"""Mean length from which on a queue's variation says anything."""


def _goodput(of: str) -> OfPoint:
    return lambda p: getattr(p.goodput_pct, of) if p.goodput_pct else None


def _goodput_mbps(point: Judged) -> float | None:
    return point.goodput_mbps.mean if point.goodput_mbps else None


def _of_link_pct(point: Judged) -> float | None:
    """Mean goodput in % of the link rate: needs no reference, which a saturated machine may not have."""
    return 100 * point.goodput_mbps.mean / point.spec.link.rate_mbps if point.goodput_mbps else None


def _between_switches(point: Judged) -> list[PortRow]:
    return [port for port in point.point.ports if "host" not in port.layer.split("-")]


def _of_switches(point: Judged) -> list[PortRow]:
    return [port for port in point.point.ports if not port.layer.startswith("host-")]


def _share_of_links(counts: Callable[[PortRow], bool]) -> OfPoint:
    """% of the links between switches for which `counts` holds; None where there are none (a star)."""

    def of(point: Judged) -> float | None:
        links = _between_switches(point)
        return 100 * sum(map(counts, links)) / len(links) if links else None

    return of


def _used_pct(point: Judged) -> float | None:
    links = _between_switches(point)
    return statistics.fmean(port.utilisation_pct for port in links) if links else None


def _completion_ms(point: Judged) -> float | None:
    took = completions(point.point.flows).took_ms
    return statistics.fmean(took) if took else None


def _completion_variation_pct(point: Judged) -> float | None:
    took = completions(point.point.flows).took_ms
    return 100 * statistics.pstdev(took) / statistics.fmean(took) if took else None


def _worst_queue(point: Judged) -> float | None:
    return max((float(port.max_queue_pkts) for port in _of_switches(point)), default=None)


def _queued(point: Judged) -> tuple[np.ndarray, np.ndarray] | None:
    """Sampled instants in s, and packets at each instant in each switch queue (instants x queues)."""
    lengths, instants = table(point, "queues"), table(point, "queue_times")
    if lengths is None or instants is None or not len(instants):
        return None
    times = np.unique(instants["t_s"])
    ports = np.array([port.port for port in _of_switches(point)])
    queued = np.zeros((len(times), len(ports)))
    mine = np.isin(lengths["port"], ports)
    rows = np.searchsorted(times, lengths["t_s"][mine])
    queued[rows, np.searchsorted(ports, lengths["port"][mine])] = lengths["pkts"][mine]
    return times, queued


def _bottleneck_pkts(percent: float) -> OfPoint:
    """The length that the queue of the busiest switch port does not exceed this % of the time."""

    def of(point: Judged) -> float | None:
        sampled, ports = _queued(point), _of_switches(point)
        if sampled is None or not ports:
            return None
        busiest = max(range(len(ports)), key=lambda i: ports[i].tx_bytes)
        measured = sampled[1][sampled[0] >= 0]
        return float(np.percentile(measured[:, busiest], percent)) if len(measured) else None

    return of


def _buffer_pct(point: Judged) -> float | None:
    pkts = _bottleneck_pkts(99)(point)
    return None if pkts is None or not point.spec.link.queue_pkts else 100 * pkts / point.spec.link.queue_pkts


def _queue_growth(point: Judged) -> float | None:
    """Packets in all queues in the last quarter of the run over those in the second; the first fills them."""
    sampled = _queued(point)
    if sampled is None or len(sampled[0]) < 8:
        return None
    quarter = np.array_split(sampled[1].sum(axis=1), 4)
    return ratio(float(quarter[3].mean()), float(quarter[1].mean()))


def _queue_variation_pct(point: Judged) -> float | None:
    """Standard deviation over time in % of the mean: the median over the queues in use."""
    sampled = _queued(point)
    if sampled is None:
        return None
    means, deviations = sampled[1].mean(axis=0), sampled[1].std(axis=0)
    used = means >= QUEUE_IN_USE_PKTS
    return float(np.median(100 * deviations[used] / means[used])) if used.any() else None


def _longest_way_s(point: Judged) -> float | None:
    pings = table(point, "pings")
    if pings is None or not len(pings) or np.isnan(pings["out_ms"]).all():
        return None
    return float(np.nanmax(pings["out_ms"])) / 1000


def _rtt_variation_pct(point: Judged) -> float | None:
    """Standard deviation of all flows' pings in % of their mean: what differs in time and between paths."""
    flows = [flow for flow in point.point.flows if flow.ping_ms_mean > 0]
    if not flows:
        return None
    means, deviations = [f.ping_ms_mean for f in flows], [f.ping_ms_std for f in flows]
    variance = statistics.fmean(d**2 for d in deviations) + statistics.pvariance(means)
    return 100 * math.sqrt(variance) / statistics.fmean(means)


QUANTITIES: dict[str, Quantity] = {
    "goodput_pct_mean": Quantity("% of optimal", "the mean goodput of the flows", each(_goodput("mean"))),
    "goodput_pct_min": Quantity("% of optimal", "the slowest flow's goodput", each(_goodput("minimum"))),
    "goodput_pct_median": Quantity("% of optimal", "the median flow's goodput", each(_goodput("median"))),
    "link_pct_mean": Quantity("% of the link rate", "the mean goodput of the flows", each(_of_link_pct)),
    "jain": Quantity("", "Jain's index of the flows' goodputs", each(lambda p: p.jain)),
    "jain_over_tcp": Quantity(
        "x TCP", "Jain's index over TCP's", over_tcp(lambda p: p.jain), on_any_size=True
    ),
    "goodput_over_tcp": Quantity(
        "x TCP", "mean goodput over TCP's", over_tcp(_goodput_mbps), on_any_size=True
    ),
    "goodput_slope": Quantity(
        "% of a link a subflow", "how goodput grows with subflows", slope(_of_link_pct), on_any_size=True
    ),
    "goodput_dip": Quantity("% of a link", "goodput less that of its neighbours", dip(_of_link_pct)),
    "goodput_over_single_homed": Quantity(
        "x FatTree",
        "mean goodput over the FatTree's",
        over_topology("fat_tree", _goodput_mbps),
        on_any_size=True,
    ),
    SHARE_OF_BOTTLENECK: Quantity(
        "% of the link",
        "what the flow under test gets beside TCP",
        each_lane(lambda p: bottleneck_shares_pct(p.point.flows)),
        "repetition",
    ),
    SHARE_ON_CONGESTED: Quantity(
        "% of its traffic",
        "what a flow sends over the worse path",
        each_lane(lambda p: congested_shares_pct(p.point.ports)),
        "repetition",
    ),
    "fct_ms_mean": Quantity("ms", "how long sized flows take on average", each(_completion_ms)),
    "fct_variation_pct": Quantity(
        "% of mean", "the deviation of sized flows' completion times", each(_completion_variation_pct)
    ),
    "links_used_pct": Quantity("% of capacity", "how much links between switches carry", each(_used_pct)),
    "links_busy_pct": Quantity(
        "% of links",
        f"links between switches more than {BUSY_LINK_PCT:g} % used",
        each(_share_of_links(lambda port: port.utilisation_pct > BUSY_LINK_PCT)),
    ),
    "links_unused_pct": Quantity(
        "% of links",
        f"links between switches less than {UNUSED_LINK_PCT:g} % used",
        each(_share_of_links(lambda port: port.utilisation_pct < UNUSED_LINK_PCT)),
    ),
    "across_mean": Quantity(
        "points of optimal",
        "the simulated mean less the emulated one",
        across(lambda pair: pair.mean_difference),
        setting=alike,
    ),
    "across_spearman": Quantity(
        "", "how alike flows rank", across(lambda pair: pair.rank_correlation), setting=alike
    ),
    "cpu_busy_pct": Quantity("% of CPU", "busy CPU time", each(lambda p: p.metric("cpu_busy_pct"))),
    "cpu_slope": Quantity(
        "% of CPU a subflow", "how CPU grows with subflows", slope(lambda p: p.metric("cpu_busy_pct"))
    ),
    "queue_pkts_max": Quantity("packets", "the longest queue of a switch", each(_worst_queue)),
    "bottleneck_pkts": Quantity(
        "packets", "the median queue of the busiest port", each(_bottleneck_pkts(50))
    ),
    "buffer_pct": Quantity(
        "% of the buffer", "what the busiest port's queue needs 99 % of the time", each(_buffer_pct)
    ),
    "queue_growth": Quantity("x", "packets queued late in the run over early", each(_queue_growth)),
    "queue_variation_pct": Quantity("% of mean", "deviation of queue lengths", each(_queue_variation_pct)),
    **LAWS,
    **SCHEDULING,
    **ROBUSTNESS,
    **TURNS,
    "one_way_s_max": Quantity("s", "the longest way out of a ping", each(_longest_way_s)),
    "rtt_variation_pct": Quantity("% of mean", "deviation of round-trip times", each(_rtt_variation_pct)),
}
