"""Sample tables (model/result.py) from the readings of a simulation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from engines.core_setup.stack import PS_PER_MS, PS_PER_S
from engines.simulation.readings import Recording
from model.flows import PlannedFlow
from model.responsive import opens_subflows
from model.result import SAMPLE_COLUMNS, Table
from model.spec import RunSpec

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def sample_tables(
    spec: RunSpec, flows: Sequence[PlannedFlow], rates_bps: Ints, recording: Recording
) -> dict[str, Table]:
    """Return the requested tables; t_s counts from the start of the window.

    The table `cpu` is empty, because the CPU does not influence a simulation.
    """
    sampling = spec.sampling
    of_subflows = owners(flows)
    tables = {
        "goodput": _goodput(flows, recording),
        "cpu": Table.from_rows(SAMPLE_COLUMNS["cpu"], ()),
        "links": _links(rates_bps, recording),
        "ports": _ports(recording),
    }
    if sampling.queues_ms:
        tables |= _queues(recording)
    if sampling.sockets_ms:
        tables["sockets"] = _sockets(spec, recording, *of_subflows)
    if recording.pings:
        tables["pings"] = _pings(recording, *of_subflows)
    return tables


def utilisation_pct(rates_bps: Ints, recording: Recording) -> Floats:
    """Return the use of every port in every interval (intervals x ports), in percent of its rate."""
    sent = _steps(np.array(recording.links))
    share: Floats = sent * 8 / (_seconds(recording)[:, None] * rates_bps)
    return 100 * share


def owners(flows: Sequence[PlannedFlow]) -> tuple[Ints, Ints]:
    """Return for every subflow its flow and its number in that flow."""
    counts = [flow.subflows for flow in flows]
    number = [np.arange(count, dtype=np.int64) for count in counts]
    return np.repeat(np.arange(len(flows), dtype=np.int64), counts), np.concatenate(number)


def _seconds(recording: Recording) -> Floats:
    seconds: Floats = _steps(np.array(recording.times)) / PS_PER_S
    return seconds


def _steps(counted: npt.NDArray[Any]) -> Ints:
    """Return the increments from each time (row) to the next."""
    whole = counted.astype(np.int64)
    steps: Ints = whole[1:] - whole[:-1]
    return steps


def _t_s(recording: Recording, times: Sequence[int]) -> Floats:
    since_ps = np.array(times, np.int64) - recording.opened.t_ps
    rounded: Floats = np.round(since_ps / PS_PER_S, 9)
    return rounded


def _goodput(flows: Sequence[PlannedFlow], recording: Recording) -> Table:
    """Return the goodput of every flow; zeros of sized flows are omitted."""
    mbps = np.round(_steps(np.array(recording.goodput)) * 8 / _seconds(recording)[:, None] / 1e6, 5)
    endless = np.array([flow.size_bytes == 0 for flow in flows], bool)
    interval, flow = np.nonzero((mbps != 0) | endless)
    t_s = _t_s(recording, recording.times[1:])
    return Table({"t_s": t_s[interval], "flow": flow, "mbps": mbps[interval, flow]})


def _links(rates_bps: Ints, recording: Recording) -> Table:
    used = utilisation_pct(rates_bps, recording)
    interval, port = np.nonzero(used)
    t_s = _t_s(recording, recording.times[1:])
    return Table({"t_s": t_s[interval], "port": port, "utilisation_pct": np.round(used[interval, port], 2)})


def _ports(recording: Recording) -> Table:
    drops, queued = _steps(np.array(recording.drops)), np.array(recording.queued[1:]).astype(np.int64)
    interval, port = np.nonzero((drops != 0) | (queued != 0))
    return Table(
        {
            "t_s": _t_s(recording, recording.times[1:])[interval],
            "port": port,
            "queued_pkts": queued[interval, port],
            "drops": drops[interval, port],
        }
    )


def _queues(recording: Recording) -> dict[str, Table]:
    t_s = _t_s(recording, [t_ps for t_ps, _, _ in recording.queues])
    counts = [len(ports) for _, ports, _ in recording.queues]
    none = np.zeros(0, np.uint32)
    ports = np.concatenate([none, *(ports for _, ports, _ in recording.queues)])
    pkts = np.concatenate([none, *(pkts for _, _, pkts in recording.queues)])
    return {
        "queues": Table(
            {"t_s": np.repeat(t_s, counts), "port": ports.astype(np.int64), "pkts": pkts.astype(np.int64)}
        ),
        "queue_times": Table({"t_s": t_s}),
    }


def _sockets(spec: RunSpec, recording: Recording, flow: Ints, subflow: Ints) -> Table:
    looks = recording.sockets

    def column(name: str) -> npt.NDArray[np.generic]:
        return np.concatenate([look[name] for _, look in looks])  # type: ignore[literal-required]

    acked = column("acked_pkts").astype(np.int64)
    payload = payload_bytes(spec, flow)
    table = Table(
        {
            "t_s": np.repeat(_t_s(recording, [t_ps for t_ps, _ in looks]), len(flow)),
            "flow": np.tile(flow, len(looks)),
            "subflow": np.tile(subflow, len(looks)),
            "cwnd_pkts": np.round(column("window_pkts").astype(np.float64), 3),
            "srtt_ms": np.round(column("srtt_ps").astype(np.int64) / PS_PER_MS, 6),
            "rttvar_ms": np.round(column("rttvar_ps").astype(np.int64) / PS_PER_MS, 6),
            "retransmits": column("retransmits").astype(np.int64),
            "bytes_acked": acked * np.tile(payload, len(looks)),
            "unacked_pkts": column("unacked_pkts").astype(np.int64),
            "notsent_bytes": column("notsent_bytes").astype(np.int64),
            "busy_ms": np.round(column("busy_ps").astype(np.int64) / PS_PER_MS, 6),
            "rwnd_limited_ms": np.round(column("rwnd_limited_ps").astype(np.int64) / PS_PER_MS, 6),
        }
    )
    if not opens_subflows(spec):
        return table
    is_open = column("established") == 1  # as the kernel lists a host's sockets
    return Table({name: table[name][is_open] for name in SAMPLE_COLUMNS["sockets"]})


def payload_bytes(spec: RunSpec, flow: Ints) -> Ints:
    """Return the payload of a full segment of each subflow."""
    stack = spec.stack
    mptcp = np.bincount(flow)[flow] > 1
    payload: Ints = stack.payload_bytes - stack.mptcp_bytes * mptcp.astype(np.int64)
    return payload


def _pings(recording: Recording, flow: Ints, subflow: Ints) -> Table:
    looks = recording.pings
    return Table(
        {
            "t_s": np.repeat(_t_s(recording, [t_ps for t_ps, _, _ in looks]), len(flow)),
            "flow": np.tile(flow, len(looks)),
            "subflow": np.tile(subflow, len(looks)),
            "rtt_ms": np.round(np.concatenate([back for _, _, back in looks]) / PS_PER_MS, 6),
            "out_ms": np.round(np.concatenate([out for _, out, _ in looks]) / PS_PER_MS, 6),
        }
    )
