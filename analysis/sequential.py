"""Sequential transfers: pairs of hosts that use several transports one after the other
(workloads/turns.py), read from a point's rows. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from model.result import FlowRow
from topos.cloud import is_ours, paths_between
from workloads.turns import TRANSPORTS

LEAST_TURNS = 6
"""Minimum number of turns: other flows start and end between the transfers of a turn, so the mean of fewer
depends on chance."""


@dataclass(frozen=True)
class Turn:
    """One pair's transfers: throughput in Mb/s (size over completion time) by subflows (1: TCP).

    `paths` is the number of paths between the hosts.
    """

    src: str
    dst: str
    paths: int
    mbps: Mapping[int, float]


def turns(flows: Sequence[FlowRow]) -> list[Turn]:
    """Return the turns that began in the window and were completed; [] for another workload."""
    ours = [flow for flow in flows if is_ours(flow.src) and flow.size_bytes]
    each = len(TRANSPORTS)
    groups = (ours[first : first + each] for first in range(0, len(ours) - each + 1, each))
    return [turn for group in groups if (turn := _turn(group)) is not None]


def _turn(group: Sequence[FlowRow]) -> Turn | None:
    paths = paths_between(group[0].src, group[0].dst)
    done = all(flow.start_s >= 0 and math.isfinite(flow.completed_s) for flow in group)
    if paths is None or not done or tuple(flow.subflows_asked for flow in group) != TRANSPORTS:
        return None
    mbps = {flow.subflows_asked: flow.size_bytes * 8e-6 / flow.completed_s for flow in group}
    return Turn(group[0].src, group[0].dst, paths, mbps)


def between_racks(of: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in of if turn.paths > 1]


def in_one_rack(of: Iterable[Turn]) -> list[Turn]:
    return [turn for turn in of if turn.paths == 1]


def gain(of: Sequence[Turn], subflows: int) -> float | None:
    """Return mean throughput with `subflows` over TCP's; None for fewer than LEAST_TURNS turns."""
    if len(of) < LEAST_TURNS:
        return None
    mptcp, tcp = (statistics.fmean(turn.mbps[n] for turn in of) for n in (subflows, 1))
    return mptcp / tcp
