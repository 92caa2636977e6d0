"""One row per flow from the readings of a run. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from analysis.stats import Floats, spread_by_flow
from common.errors import RunError
from engines.emulation.measure.readings import Readings
from engines.emulation.measure.socket_table import SubflowReadings
from model.congestion import kernel_name, name_of
from model.flows import PlannedFlow
from model.result import FlowRow


def flow_rows(
    flows: Sequence[PlannedFlow], readings: Readings, warmup_s: float, alone_s: Sequence[float]
) -> list[FlowRow]:
    """Return goodput in the window at the receiver, retransmits at the sender, and RTTs of each flow.

    `alone_s` is what each flow would take alone on its path.

    Raises RunError that names a flow that lost its connection.
    """
    seconds = readings.window[-1].seconds_since(readings.window[0])
    count, totals = len(flows), readings.totals
    joined = _joined(readings, ~np.isnan(np.array(readings.completed_s, float)))
    received = [_received(flow, i, joined, readings) for i, flow in enumerate(flows)]
    ended_s = [start + took for start, took in zip(readings.started_s, readings.completed_s, strict=True)]
    within = [None if math.isnan(end) else end > warmup_s for end in ended_s]
    retransmitted = retransmits(totals.before, totals.after, readings.retransmitted, within)
    cc = _congestion_controls(totals.after, flows)
    srtt_mean, srtt_std = spread_by_flow(*_srtts(readings), count)
    ping_mean, ping_std, sent, lost = _pings(readings, count)
    return [
        FlowRow(
            **flow.columns(),
            subflows_joined=int(joined[i]),
            cc=cc[i],
            goodput_mbps=received[i] * 8 / seconds / 1e6,
            bytes_received=received[i],
            retransmits=retransmitted[i],
            up_s=readings.up_s[i],
            srtt_ms_mean=float(srtt_mean[i]),
            srtt_ms_std=float(srtt_std[i]),
            ping_ms_mean=float(ping_mean[i]),
            ping_ms_std=float(ping_std[i]),
            pings_sent=int(sent[i]),
            pings_lost=int(lost[i]),
            completed_s=readings.completed_s[i],
            start_s=readings.started_s[i] - warmup_s,
            ideal_s=alone_s[i],
        )
        for i, flow in enumerate(flows)
    ]


def _received(flow: PlannedFlow, i: int, joined: npt.NDArray[np.int64], readings: Readings) -> int:
    """Return the bytes that the flow, number `i`, received in the window. Raises RunError if it lost its
    connection."""
    start, end = readings.window[0].received[i], readings.window[-1].received[i]
    finished = not math.isnan(readings.completed_s[i])
    if start is None or end is None or (not joined[i] and not finished):
        raise RunError(
            f"measuring flow {flow.flow} ({flow.src} to {flow.dst}): it lost its connection; "
            "run the point again"
        )
    return end - start


def retransmits(
    before: SubflowReadings,
    after: SubflowReadings,
    in_all: Sequence[int | None],
    ended_within: Sequence[bool | None],
) -> list[int]:
    """Return the segments that each flow retransmitted between two readings of the senders' sockets.

    The sockets of a completed flow are gone. Then its sender's count at its last byte, `in_all`, is used.
    `ended_within` says whether a flow ended after the first reading; None if it has not ended.
    """
    count = len(in_all)
    earlier: list[int] = before.retransmitted(count).tolist()
    counted: list[int] = after.retransmits_since(before, count).tolist()
    for i, (known, within) in enumerate(zip(in_all, ended_within, strict=True)):
        if known is not None and within is not None:
            counted[i] = max(0, known - earlier[i]) if within else 0
    return counted


def _joined(readings: Readings, finished: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """Return the number of subflows that each flow had at both ends of the window, or at its end where a
    controller opens them.

    The subflows of a completed flow are gone. It had as many as were seen at any time, and at least one.
    """
    count, before, after = len(finished), readings.totals.before, readings.totals.after
    within = after.counts(count)
    if readings.granted is None:
        within = np.minimum(before.counts(count), within)
    looks = [look.counts(count) for look in (*readings.sockets, before, after)]
    ever = np.max([np.array(readings.opened_subflows), finished, *looks], axis=0)
    return np.where(finished, ever, within)


def _congestion_controls(sockets: SubflowReadings, flows: Sequence[PlannedFlow]) -> list[str]:
    """Return the congestion controls of each flow's sockets; under an agent, the datapath's name."""
    count = len(flows)
    found: list[set[str]] = [set() for _ in range(count)]
    for flow, cc in zip(sockets.flow.tolist(), sockets.cc.tolist(), strict=True):
        kernel = sockets.cc_names[cc]
        asked = flows[flow].cc
        found[flow].add(asked if kernel_name(asked) == kernel else name_of(kernel))
    return ["/".join(sorted(names)) for names in found]


def _srtts(readings: Readings) -> tuple[npt.NDArray[np.int64], Floats]:
    """Return flow and srtt in ms of every subflow sample in the window."""
    looks = [look for look in readings.sockets if look.t_s >= readings.zero_s]
    if not looks:
        return np.empty(0, np.int64), np.empty(0)
    flow = np.concatenate([look.flow for look in looks])
    return flow, np.concatenate([look.srtt_us for look in looks]) / 1000


def _pings(readings: Readings, count: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Return mean and deviation in ms, pings sent and lost, for each flow's pings sent in the window."""
    pings = readings.pings
    if pings is None:
        none = np.full(count, np.nan)
        return none, none, np.zeros(count), np.zeros(count)
    inside = (pings.sent_s >= readings.zero_s) & (pings.sent_s <= readings.window[-1].t_s)
    flow, rtt = pings.flow[inside].astype(np.int64), pings.rtt_ms[inside]
    back = ~np.isnan(rtt)
    mean, deviation = spread_by_flow(flow[back], rtt[back], count)
    sent = np.bincount(flow, minlength=count).astype(float)
    return mean, deviation, sent, np.bincount(flow[~back], minlength=count).astype(float)
