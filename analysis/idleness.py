"""Share of time in which the subflows of a connection had nothing to send. Pure.

*Idle* is exact: the kernel counts the time in which a socket has unsent or unacknowledged data (tcp_info's
tcpi_busy_time), and idle time is the rest. *Starved* is sampled: the subflow has nothing unsent and an open
congestion window, while another subflow of the same connection holds unsent data that this one could have
carried. A starved subflow becomes idle when its last packet is acknowledged, one round trip later.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from model.result import Table

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

COLUMNS = ("flow", "subflow", "seconds", "idle_pct", "starved_pct", "starved_max_s", "mbps", "idle_mbps")


def idleness(sockets: Table) -> Table:
    """Return one row per subflow with at least two samples in the measured window of `sockets`.

    Rows are ordered by (flow, subflow). `seconds` is the time between the first and the last sample;
    `idle_pct` and `starved_pct` are shares of it. `starved_max_s` is the longest time over which all samples
    found the subflow starved. `mbps` is the rate of acknowledged data. `idle_mbps` is what the subflow would
    have added in its idle time at the rate of its busy time.
    """
    order = np.lexsort((sockets["t_s"], sockets["subflow"], sockets["flow"]))
    rows = order[sockets["t_s"][order] >= 0]
    flow, subflow = sockets["flow"][rows], sockets["subflow"][rows]
    starts = np.flatnonzero((np.diff(flow) != 0) | (np.diff(subflow) != 0)) + 1
    starved = _starved(sockets)
    runs = [run for run in np.split(rows, starts) if len(run) >= 2]
    return Table.from_rows(COLUMNS, (_of_subflow(sockets, starved, run) for run in runs))


def _of_subflow(sockets: Table, starved: npt.NDArray[np.bool_], run: Ints) -> tuple[float | int, ...]:
    """Return a row of `idleness` from one subflow's samples in order of time."""
    first, last = run[0], run[-1]
    seconds = float(sockets["t_s"][last] - sockets["t_s"][first])
    busy = float(sockets["busy_ms"][last] - sockets["busy_ms"][first]) / 1000
    idle = max(0.0, seconds - busy)
    mbps = 8e-6 * float(sockets["bytes_acked"][last] - sockets["bytes_acked"][first]) / seconds
    share, longest = _spells(sockets["t_s"][run], starved[run])
    who = int(sockets["flow"][first]), int(sockets["subflow"][first])
    idle_mbps = mbps * idle / busy if busy > 0 else 0.0
    return *who, seconds, 100 * idle / seconds, 100 * share, longest, mbps, idle_mbps


def _starved(sockets: Table) -> npt.NDArray[np.bool_]:
    """Return for every sample whether its subflow could send but has nothing, while a sibling has data."""
    holds = sockets["notsent_bytes"] > 0
    _, look = np.unique(np.stack([sockets["t_s"], sockets["flow"]]), axis=1, return_inverse=True)
    holders = np.bincount(look.reshape(-1), weights=holds)
    open_window = sockets["unacked_pkts"] < sockets["cwnd_pkts"]
    starved: npt.NDArray[np.bool_] = ~holds & open_window & (holders[look.reshape(-1)] > 0)
    return starved


def _spells(t_s: Floats, starved: npt.NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of time starved (each sample counts until the next) and the longest spell in s."""
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
