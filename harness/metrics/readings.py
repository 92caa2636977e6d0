"""Numbers read off one stored point, as metrics use them. Pure, apart from reading sample tables.

Links and queues are those between switches or from a switch to a host, one per direction: a host's own
queue does not belong to the network. Every function returns None where the point has no such number.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import numpy as np

from harness.metrics.measures import OfPoint, ratio, table
from harness.results.cache import Distribution
from harness.results.point_results import Judged
from model.result import PortRow

QUEUE_IN_USE_PKTS = 5.0
"""The variation of a queue with a smaller mean length says nothing."""


def goodput_pct(statistic: str) -> OfPoint:
    """A statistic of the flows' goodputs (`mean`, `minimum`, `median`, `maximum`), in % of the baseline's."""
    return lambda point: getattr(point.goodput_pct, statistic) if point.goodput_pct else None


def goodput_mbps(point: Judged) -> float | None:
    """The mean goodput of the flows, in Mb/s."""
    return point.goodput_mbps.mean if point.goodput_mbps else None


def goodput_of_link_pct(point: Judged) -> float | None:
    """The mean goodput in % of the link rate. It needs no baseline, which a saturated machine may lack."""
    return 100 * point.goodput_mbps.mean / point.spec.link.rate_mbps if point.goodput_mbps else None


def recorded(name: str) -> OfPoint:
    """A number that the engine recorded in run.json."""
    return lambda point: point.metric(name)


def flows_started(point: Judged) -> int | None:
    """Return the number of sized flows that started in the measured window."""
    return point.point.numbers.started or None


def flows_completed(point: Judged) -> int | None:
    """Return how many of the flows that started in the measured window completed."""
    numbers = point.point.numbers
    return numbers.completed if numbers.started else None


def completion_ms(statistic: str) -> OfPoint:
    """A statistic of the completion times of sized flows, in ms: `mean`, `median`, `p99`, `deviation_pct`."""
    return lambda point: _statistic(point.point.numbers.took_ms, statistic)


def slowdown(statistic: str) -> OfPoint:
    """The same statistic of the sized flows' completion times over those on an idle path."""
    return lambda point: _statistic(point.point.numbers.slowdown, statistic)


def _statistic(of: Distribution | None, name: str) -> float | None:
    return None if of is None else getattr(of, name)


def _links_between_switches(point: Judged) -> list[PortRow]:
    return [port for port in point.point.ports if "host" not in port.layer.split("-")]


def _ports_of_switches(point: Judged) -> list[PortRow]:
    return [port for port in point.point.ports if not port.layer.startswith("host-")]


def share_of_links_pct(counts: Callable[[PortRow], bool]) -> OfPoint:
    """The links between switches for which `counts` holds, in %; None where there are none (a star)."""

    def of(point: Judged) -> float | None:
        links = _links_between_switches(point)
        return 100 * sum(map(counts, links)) / len(links) if links else None

    return of


def links_used_pct(point: Judged) -> float | None:
    """The mean utilisation of the links between switches, in %."""
    links = _links_between_switches(point)
    return statistics.fmean(port.utilisation_pct for port in links) if links else None


def longest_queue_pkts(point: Judged) -> float | None:
    """The longest queue of any switch during the run, in packets."""
    return max((float(port.max_queue_pkts) for port in _ports_of_switches(point)), default=None)


def _sampled_queues(point: Judged) -> tuple[np.ndarray, np.ndarray] | None:
    """Sample times in s, and the packets in each switch queue at these times (times x queues)."""
    lengths, instants = table(point, "queues"), table(point, "queue_times")
    if lengths is None or instants is None or not len(instants):
        return None
    times = np.unique(instants["t_s"])
    ports = np.array([port.port for port in _ports_of_switches(point)])
    queued = np.zeros((len(times), len(ports)))
    mine = np.isin(lengths["port"], ports)
    rows = np.searchsorted(times, lengths["t_s"][mine])
    queued[rows, np.searchsorted(ports, lengths["port"][mine])] = lengths["pkts"][mine]
    return times, queued


def bottleneck_queue_pkts(percent: float) -> OfPoint:
    """The length that the queue of the busiest switch port does not exceed in `percent` % of the time."""

    def of(point: Judged) -> float | None:
        sampled, ports = _sampled_queues(point), _ports_of_switches(point)
        if sampled is None or not ports:
            return None
        busiest = max(range(len(ports)), key=lambda i: ports[i].tx_bytes)
        measured = sampled[1][sampled[0] >= 0]
        return float(np.percentile(measured[:, busiest], percent)) if len(measured) else None

    return of


def buffer_needed_pct(point: Judged) -> float | None:
    """The length that the busiest queue does not exceed in 99 % of the time, in % of the queue's limit."""
    pkts = bottleneck_queue_pkts(99)(point)
    limit = point.spec.link.queue_pkts
    return None if pkts is None or not limit else 100 * pkts / limit


def queue_growth(point: Judged) -> float | None:
    """The packets in all queues in the last quarter of the run over those in the second quarter. The first
    quarter fills the queues."""
    sampled = _sampled_queues(point)
    if sampled is None or len(sampled[0]) < 8:
        return None
    quarters = np.array_split(sampled[1].sum(axis=1), 4)
    return ratio(float(quarters[3].mean()), float(quarters[1].mean()))


def queue_variation_pct(point: Judged) -> float | None:
    """The standard deviation of a queue's length over time, in % of its mean: the median of the queues in
    use."""
    sampled = _sampled_queues(point)
    if sampled is None:
        return None
    means, deviations = sampled[1].mean(axis=0), sampled[1].std(axis=0)
    used = means >= QUEUE_IN_USE_PKTS
    return float(np.median(100 * deviations[used] / means[used])) if used.any() else None


def longest_one_way_s(point: Judged) -> float | None:
    """The longest one-way delay of a ping towards the receiver, in s."""
    pings = table(point, "pings")
    if pings is None or not len(pings) or np.isnan(pings["out_ms"]).all():
        return None
    return float(np.nanmax(pings["out_ms"])) / 1000


def rtt_variation_pct(point: Judged) -> float | None:
    """The standard deviation of all flows' ping times in % of their mean: it covers time and paths."""
    flows = [flow for flow in point.point.flows if flow.ping_ms_mean > 0]
    if not flows:
        return None
    means, deviations = [f.ping_ms_mean for f in flows], [f.ping_ms_std for f in flows]
    variance = statistics.fmean(d**2 for d in deviations) + statistics.pvariance(means)
    return 100 * math.sqrt(variance) / statistics.fmean(means)
