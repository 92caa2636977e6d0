"""Sample tables (model/result.py) from the readings of a run. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from engines.emulation.measure.path_pings import PingReadings
from engines.emulation.measure.readings import Readings
from engines.emulation.measure.socket_table import SubflowReadings
from model.result import Table

PART_ROWS = 1 << 17
STANDSTILL_S = 0.001
"""Intervals in which the data plane's clock advanced less give no goodput."""
CPU_PARTS = ("busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct")


def sample_parts(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> Iterator[tuple[str, Table]]:
    """Yield names and rows of all tables; t_s counts from the start of the window.

    Large tables come in parts of about PART_ROWS rows. `rates_bps` holds the rate of each port.
    """
    yield "goodput", _goodput(readings)
    yield "cpu", _cpu(readings)
    yield "links", _links(readings, rates_bps)
    if all(len(sample.drops) for sample in readings.samples):
        yield "ports", _ports(readings)
    if readings.queues is not None:
        yield from _queues(readings, *readings.queues)
    if readings.sockets:
        step = max(1, PART_ROWS // max(1, len(readings.sockets[-1])))
        for begin in range(0, len(readings.sockets), step):
            yield "sockets", _sockets(readings.sockets[begin : begin + step], readings.zero_s)
    if readings.pings is not None:
        yield "pings", _pings(readings.pings, readings.zero_s)


def utilisation_pct(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return the use of every port in every interval (intervals x ports), in percent of its rate."""
    times = np.array([sample.read_s for sample in readings.samples])
    sent = np.array([sample.tx_bytes for sample in readings.samples]).astype(np.int64)
    bits, room = np.diff(sent, axis=0) * 8.0, np.diff(times, axis=0) * rates_bps
    share: npt.NDArray[np.float64] = np.divide(bits, room, out=np.zeros_like(bits), where=room > 0)
    return 100 * share


def _goodput(readings: Readings) -> Table:
    rows: list[tuple[float, int, float]] = []
    for before, after in zip(readings.samples, readings.samples[1:], strict=False):
        seconds, t_s = after.seconds_since(before), round(after.t_s - readings.zero_s, 3)
        if seconds < STANDSTILL_S:
            continue
        for flow, (start, end) in enumerate(zip(before.received, after.received, strict=True)):
            if start is not None and end is not None:
                rows.append((t_s, flow, round((end - start) * 8 / seconds / 1e6, 5)))
    return Table.from_rows(("t_s", "flow", "mbps"), rows)


def _cpu(readings: Readings) -> Table:
    rows = []
    for sample in readings.samples:
        parts = (getattr(sample.cpu.machine, part) for part in CPU_PARTS)
        rows.append((round(sample.t_s - readings.zero_s, 3), *(round(part, 2) for part in parts)))
    return Table.from_rows(("t_s", *CPU_PARTS), rows)


def _links(readings: Readings, rates_bps: npt.NDArray[np.int64]) -> Table:
    used = utilisation_pct(readings, rates_bps)
    t_s = np.array([round(sample.t_s - readings.zero_s, 3) for sample in readings.samples[1:]])
    interval, port = np.nonzero(used)
    return Table({"t_s": t_s[interval], "port": port, "utilisation_pct": np.round(used[interval, port], 2)})


def _ports(readings: Readings) -> Table:
    drops = np.diff(np.array([sample.drops for sample in readings.samples]).astype(np.int64), axis=0)
    queued = np.array([sample.queued_pkts for sample in readings.samples[1:]]).astype(np.int64)
    t_s = np.array([round(sample.t_s - readings.zero_s, 3) for sample in readings.samples[1:]])
    interval, port = np.nonzero((drops != 0) | (queued != 0))
    return Table(
        {
            "t_s": t_s[interval],
            "port": port,
            "queued_pkts": queued[interval, port],
            "drops": drops[interval, port],
        }
    )


def _queues(
    readings: Readings, times: npt.NDArray[np.float64], lengths: npt.NDArray[np.uint32]
) -> Iterator[tuple[str, Table]]:
    """Yield queue lengths, with times converted from the data plane's clock to the machine's."""
    now_s = np.array([sample.now_s for sample in readings.samples])
    machine_s = np.array([sample.t_s for sample in readings.samples])
    ahead_s = np.interp(times, now_s, machine_s - now_s)
    t_s = np.round(times + ahead_s - readings.zero_s, 4)
    step = max(1, PART_ROWS // max(1, lengths.shape[1]))
    for begin in range(0, max(1, len(t_s)), step):
        some = lengths[begin : begin + step]
        when, port = np.nonzero(some)
        yield (
            "queues",
            Table({"t_s": t_s[begin + when], "port": port, "pkts": some[when, port].astype(np.int64)}),
        )
    yield "queue_times", Table({"t_s": t_s})


def _sockets(looks: Sequence[SubflowReadings], zero_s: float) -> Table:
    t_s = [np.full(len(look), round(look.t_s - zero_s, 3)) for look in looks]

    def column(name: str) -> npt.NDArray[np.int64]:
        return np.concatenate([getattr(look, name) for look in looks]).astype(np.int64)

    return Table(
        {
            "t_s": np.concatenate(t_s),
            "flow": column("flow"),
            "subflow": column("subflow"),
            "cwnd_pkts": column("cwnd_pkts"),
            "srtt_ms": np.round(column("srtt_us") / 1000, 3),
            "rttvar_ms": np.round(column("rttvar_us") / 1000, 3),
            "retransmits": column("retransmits"),
            "bytes_acked": column("bytes_acked"),
            "unacked_pkts": column("unacked_pkts"),
            "notsent_bytes": column("notsent_bytes"),
            "busy_ms": np.round(column("busy_us") / 1000, 3),
            "rwnd_limited_ms": np.round(column("rwnd_limited_us") / 1000, 3),
        }
    )


def _pings(pings: PingReadings, zero_s: float) -> Table:
    return Table(
        {
            "t_s": np.round(pings.sent_s - zero_s, 3),
            "flow": pings.flow,
            "subflow": pings.subflow,
            "rtt_ms": np.round(pings.rtt_ms, 3),
            "out_ms": np.round(pings.out_ms, 3),
        }
    )
