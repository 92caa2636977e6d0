"""How much of their time the subflows of a connection had nothing to send. Pure.

Two measures, because they bound the truth from both sides. *Idle* is exact: the kernel counts the time in which
a socket has anything unsent or unacknowledged (tcp_info's tcpi_busy_time), and idle is the rest. *Starved* is
sampled: nothing unsent and the congestion window open, while another subflow of the same connection
holds unsent data that this one could have carried. A starved subflow becomes idle when its last packet
is acknowledged, a round trip later.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from engines.result import Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COLUMNS = ("flow", "subflow", "seconds", "idle_pct", "starved_pct", "starved_max_s", "mbps", "idle_mbps")


def idleness(sockets: Table, from_s: float = 0.0) -> Table:
    """For every subflow seen at least twice in the samples `sockets` from `from_s` on, sorted by (flow, subflow):

    `seconds` between its first and last sample, `idle_pct` and `starved_pct` of them, `starved_max_s` the
    longest time between two samples and all those between them found it starved, `mbps` what it had
    acknowledged, `idle_mbps` what it would have had beyond that, had it gone on at the rate of its busy time.
    """
    order = np.lexsort((sockets["t_s"], sockets["subflow"], sockets["flow"]))
    rows = order[sockets["t_s"][order] >= from_s]
    flow, subflow, t_s = (sockets[name][rows] for name in ("flow", "subflow", "t_s"))
    starts = np.flatnonzero(np.r_[True, (np.diff(flow) != 0) | (np.diff(subflow) != 0)]) if len(rows) else []
    ends = np.r_[starts[1:], len(rows)].astype(int) if len(rows) else []
    starved = _starved(sockets)[rows]
    busy_s, acked = sockets["busy_ms"][rows] / 1000, sockets["bytes_acked"][rows]
    found = []
    for first, end in zip(starts, ends, strict=True):
        if end - first < 2:
            continue
        seconds = float(t_s[end - 1] - t_s[first])
        busy = float(busy_s[end - 1] - busy_s[first])
        idle = max(0.0, seconds - busy)
        mbps = 8e-6 * float(acked[end - 1] - acked[first]) / seconds
        share, longest = _spells(t_s[first:end], starved[first:end])
        found.append(
            (int(flow[first]), int(subflow[first]), seconds, 100 * idle / seconds, 100 * share, longest,
             mbps, mbps * idle / busy if busy > 0 else 0.0)
        )  # fmt: skip
    return Table.from_rows(COLUMNS, found)


def _starved(sockets: Table) -> npt.NDArray[np.bool_]:
    """Of every sample, whether its subflow could send and has nothing while a sibling holds unsent data."""
    holds = sockets["notsent_bytes"] > 0
    _, look = np.unique(np.stack([sockets["t_s"], sockets["flow"]]), axis=1, return_inverse=True)
    holders = np.bincount(look.reshape(-1), weights=holds)
    open_window = sockets["unacked_pkts"] < sockets["cwnd_pkts"]
    starved: npt.NDArray[np.bool_] = ~holds & open_window & (holders[look.reshape(-1)] > 0)
    return starved


def _spells(t_s: Floats, starved: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Share of the time starved, a sample counting until the next, and the longest spell in s."""
    gaps = np.diff(t_s)
    share = float(gaps[starved[:-1]].sum() / (t_s[-1] - t_s[0]))
    longest = began = 0.0
    inside = False
    for now, is_starved in zip(t_s.tolist(), starved.tolist(), strict=True):
        if is_starved and not inside:
            began = now
        if is_starved:
            longest = max(longest, now - began)
        inside = is_starved
    return share, longest
