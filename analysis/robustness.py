"""Packets lost and retransmitted, and the goodput that remains while links are down. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import numpy.typing as npt

from analysis.laws import SEGMENT_BYTES
from model.result import FlowRow, PortRow, Table

Series = npt.NDArray[np.float64]


def core_lost_pct(ports: Iterable[PortRow]) -> float | None:
    """Return the share of packets that full queues dropped on links between switches; None without any."""
    return _lost_pct(ports, lambda layer: "host" not in layer.split("-"))


def access_lost_pct(ports: Iterable[PortRow]) -> float | None:
    """Return the same share for the last links, from a switch to a host."""
    return _lost_pct(ports, lambda layer: layer.endswith("-host") and not layer.startswith("host-"))


def _lost_pct(ports: Iterable[PortRow], counts: Callable[[str], bool]) -> float | None:
    chosen = [port for port in ports if counts(port.layer)]
    came = sum(port.tx_packets + port.drops for port in chosen)
    return 100 * sum(port.drops for port in chosen) / came if came else None


def retransmitted_pct(flows: Sequence[FlowRow]) -> float | None:
    """Return retransmitted segments per 100 full segments delivered; None without flows or data."""
    segments = sum(flow.bytes_received for flow in flows) / SEGMENT_BYTES
    return 100 * sum(flow.retransmits for flow in flows) / segments if segments else None


def in_all(goodput: Table) -> tuple[Series, Series]:
    """Return instants in the window, and the total goodput of the interval that ended there, in Mb/s."""
    times, position = np.unique(goodput["t_s"].astype(np.float64), return_inverse=True)
    mbps = np.bincount(position.ravel(), weights=goodput["mbps"], minlength=len(times)).astype(np.float64)
    return times[times > 0], mbps[times > 0]


def of_before_pct(goodput: Table, outage_s: tuple[float, float]) -> tuple[Series, Series] | None:
    """Return the same in percent of the mean before links fail; None without goodput before."""
    times, mbps = in_all(goodput)
    before = mbps[_middles(times) < outage_s[0]]
    if not len(before) or not before.mean():
        return None
    return times, 100 * mbps / before.mean()


def kept_pct(goodput: Table, outage_s: tuple[float, float]) -> float | None:
    """Return the total goodput while links are down, in percent of that before."""
    series = of_before_pct(goodput, outage_s)
    if series is None:
        return None
    times, pct = series
    down = _within(times, outage_s)
    return float(pct[down].mean()) if down.any() else None


def while_down_mbps(goodput: Table, outage_s: tuple[float, float]) -> list[float]:
    """Return every flow's goodput while links are down, in the order of the flows; [] without samples."""
    down = _within(goodput["t_s"], outage_s)
    instants = len(np.unique(goodput["t_s"][down]))
    if not instants:
        return []
    flows = goodput["flow"].astype(np.int64)
    sums = np.bincount(flows[down], weights=goodput["mbps"][down], minlength=int(flows.max()) + 1)
    means: list[float] = (sums / instants).tolist()
    return means


def _within(times: Series, outage_s: tuple[float, float]) -> npt.NDArray[np.bool_]:
    """Return which intervals (by end time) were in the outage. Real clocks are late by milliseconds, so the
    middle of an interval decides."""
    middles = _middles(times)
    return (middles > outage_s[0]) & (middles < outage_s[1])


def _middles(times: Series) -> Series:
    steps = np.diff(np.unique(times))
    return times - (np.median(steps) / 2 if len(steps) else 0.0)


def stalled_pct(goodput: Table, outage_s: tuple[float, float], link_mbps: float) -> float | None:
    """Return the percentage of flows that get less than 1 % of a link while links are down."""
    mbps = while_down_mbps(goodput, outage_s)
    return 100 * sum(one < 0.01 * link_mbps for one in mbps) / len(mbps) if mbps else None
