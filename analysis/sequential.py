"""Sequential transfers: pairs of hosts that use several transports one after the other
(workloads/sequential.py), read from a point's rows. Pure.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from model.result import FlowRow
from topos.cloud import is_ours, paths_between
from workloads.sequential import TRANSPORTS

MIN_PAIRS = 6
"""Minimum number of pairs for a mean: other flows start and end between the transfers of a pair."""


@dataclass(frozen=True)
class PairTransfers:
    """One pair's transfers: throughput in Mb/s (size over completion time) by subflows (1: TCP).

    `paths` is the number of paths between the hosts.
    """

    src: str
    dst: str
    paths: int
    mbps: Mapping[int, float]


def pair_transfers(flows: Sequence[FlowRow]) -> list[PairTransfers]:
    """Return the pairs whose transfers began in the window and completed; [] for other workloads."""
    ours = [flow for flow in flows if is_ours(flow.src) and flow.size_bytes]
    each = len(TRANSPORTS)
    groups = (ours[first : first + each] for first in range(0, len(ours) - each + 1, each))
    return [pair for group in groups if (pair := _of_pair(group)) is not None]


def _of_pair(group: Sequence[FlowRow]) -> PairTransfers | None:
    paths = paths_between(group[0].src, group[0].dst)
    done = all(flow.start_s >= 0 and math.isfinite(flow.completed_s) for flow in group)
    if paths is None or not done or tuple(flow.subflows_asked for flow in group) != TRANSPORTS:
        return None
    mbps = {flow.subflows_asked: flow.size_bytes * 8e-6 / flow.completed_s for flow in group}
    return PairTransfers(group[0].src, group[0].dst, paths, mbps)


def between_racks(of: Iterable[PairTransfers]) -> list[PairTransfers]:
    return [pair for pair in of if pair.paths > 1]


def in_one_rack(of: Iterable[PairTransfers]) -> list[PairTransfers]:
    return [pair for pair in of if pair.paths == 1]


def gain(of: Sequence[PairTransfers], subflows: int) -> float | None:
    """Return mean throughput with `subflows` over TCP's; None for fewer than MIN_PAIRS pairs."""
    if len(of) < MIN_PAIRS:
        return None
    mptcp, tcp = (statistics.fmean(pair.mbps[n] for pair in of) for n in (subflows, 1))
    return mptcp / tcp
