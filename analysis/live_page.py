"""What a live page shows of a point: its network as a drawing in layers, and its state step by step. Pure.

A small network is drawn whole: hosts below, then edge, aggregation and core switches. A larger one is drawn
by pod: its hosts, its edge switches and its aggregation switches are one spot each, and all cables between
two spots are one line. A pod is what stays connected without the core switches.

Every line has two halves, one for each direction: half 2i transmits from the lower end of line i, half 2i+1
from the upper end. In a whole drawing half p is therefore port p (model/network_plan.py).

A step is one interval that ended at its time: what every line carries, and what flows and subflows do. Steps
of a running point come from two instants each, those of a stored point from its sample tables; `encode` makes
both the same JSON. Numbers are the upper 16 bits of a float of 32 bits (three digits), in base64; not a
number means that nothing is known.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from model.result import Instant, Table
from topos.topology import Layer, Topology, pods_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NOTHING = float("nan")
MAX_DROPS = 2**31 - 1
MAX_NODES = 260
"""A FatTree with k=8 has 208, one with k=10 has 375."""
MAX_PODS = 64
ROW_HOSTS = 64
"""Hosts side by side; more are staggered over several rows."""
MAX_ROWS = 4
ROW_HEIGHT = 0.05
POD_GAP = 0.25
"""Space beside a pod, as a share of its width."""


_NAMES = {
    Layer.HOST: "hosts",
    Layer.EDGE: "edge switches",
    Layer.AGG: "aggregation switches",
    Layer.CORE: "core switches",
}


@dataclass(frozen=True)
class Spot:
    """A node, or several, at `x` and `y` from 0 to 1, from the left and from the top."""

    name: str
    layer: Layer
    x: float
    y: float
    nodes: int = 1


@dataclass(frozen=True)
class Pod:
    """A pod's name and its extent from left to right."""

    name: str
    left: float
    right: float


@dataclass(frozen=True, eq=False)
class Drawing:
    """Spots, lines between them (indices of spots, the lower one first), and pods.

    `spot_of` holds the spot of each node of the topology, `half_of` the half of a line of each port. `whole`
    says that every node has a spot of its own.
    """

    spots: tuple[Spot, ...]
    lines: tuple[tuple[int, int], ...]
    pods: tuple[Pod, ...]
    spot_of: tuple[int, ...]
    half_of: Ints
    whole: bool

    @property
    def halves(self) -> int:
        return 2 * len(self.lines)


def draw(topology: Topology, max_nodes: int = MAX_NODES) -> Drawing:
    """Return the drawing of a network: whole with up to `max_nodes` nodes, else by pod."""
    pods = pods_of(topology, {Layer.CORE})
    return _whole(topology, pods) if len(topology.nodes) <= max_nodes else _by_pod(topology, pods)


def _whole(topology: Topology, pods: Sequence[int]) -> Drawing:
    extents = _extents(topology, pods)
    x = _positions(topology, pods, extents)
    hosts = {host: i for i, host in enumerate(_hosts_in_order(topology, pods))}
    rows = min(MAX_ROWS, -(-len(hosts) // ROW_HOSTS))
    height = _heights(topology)
    spots = tuple(
        Spot(
            node.name,
            node.layer,
            x[i],
            height[node.layer] - (ROW_HEIGHT * (rows - 1 - hosts[i] % rows) if i in hosts else 0.0),
        )
        for i, node in enumerate(topology.nodes)
    )
    named = [Pod(f"pod {n}", *extent) for n, extent in enumerate(extents) if _is_shown(topology, pods)]
    lines = tuple(link.ends for link in topology.links)
    ports = np.arange(2 * len(lines), dtype=np.int64)
    return Drawing(spots, lines, tuple(named), tuple(range(len(spots))), ports, True)


def _is_shown(topology: Topology, pods: Sequence[int]) -> bool:
    """Whether pods are worth a name: there are several, with aggregation switches."""
    return max(pods) > 0 and any(node.layer is Layer.AGG for node in topology.nodes)


def _heights(topology: Topology) -> Mapping[Layer, float]:
    """Return the height of each layer that the network has; hosts are at the bottom."""
    layers = sorted({node.layer for node in topology.nodes}, reverse=True)
    return {layer: i / max(1, len(layers) - 1) for i, layer in enumerate(layers)}


def _extents(topology: Topology, pods: Sequence[int]) -> list[tuple[float, float]]:
    """Return where each pod begins and ends; its width goes with its largest layer."""
    sizes: dict[tuple[int, Layer], int] = {}
    for node, pod in zip(topology.nodes, pods, strict=True):
        sizes[pod, node.layer] = sizes.get((pod, node.layer), 0) + 1
    widths = [max(n for (of, _), n in sizes.items() if of == pod) for pod in range(max(pods) + 1)]
    total = sum(widths) + POD_GAP * (len(widths) - 1) * min(widths)
    found, left = [], 0.0
    for width in widths:
        found.append((left / total, (left + width) / total))
        left += width + POD_GAP * min(widths)
    return found


def _hosts_in_order(topology: Topology, pods: Sequence[int]) -> list[int]:
    """Return the hosts by pod and by the switch of their first NIC."""
    return sorted(topology.hosts, key=lambda host: (pods[host], topology.nics_of(host)[0].switch, host))


def _positions(
    topology: Topology, pods: Sequence[int], extents: Sequence[tuple[float, float]]
) -> list[float]:
    """Return the x of each node: nodes of a layer of a pod are spread evenly, core switches over all."""
    rows: dict[tuple[int, Layer], list[int]] = {}
    for host in _hosts_in_order(topology, pods):
        rows.setdefault((pods[host], Layer.HOST), []).append(host)
    for switch in topology.switches:
        rows.setdefault((pods[switch], topology.nodes[switch].layer), []).append(switch)
    x = [0.0] * len(topology.nodes)
    for (pod, _), nodes in rows.items():
        left, right = extents[pod] if pod >= 0 else (0.0, 1.0)
        for i, node in enumerate(nodes):
            x[node] = left + (right - left) * (i + 0.5) / len(nodes)
    return x


def _by_pod(topology: Topology, pods: Sequence[int]) -> Drawing:
    """Draw one spot per layer of a pod; more than MAX_PODS pods share spots with their neighbours."""
    count = max(pods) + 1
    per = -(-count // MAX_PODS)
    bins = -(-count // per)
    members: dict[tuple[int, Layer], list[int]] = {}
    for i, node in enumerate(topology.nodes):
        members.setdefault((pods[i] // per if pods[i] >= 0 else -1, node.layer), []).append(i)
    height = _heights(topology)
    names = [_pod_name(first, min(first + per, count) - 1) for first in range(0, count, per)]
    spots: list[Spot] = []
    spot_of = [0] * len(topology.nodes)
    for (pod, layer), nodes in members.items():
        for at in nodes:
            spot_of[at] = len(spots)
        name = f"{len(nodes)} {_NAMES[layer]}" + (f" of {names[pod]}" if pod >= 0 else "")
        x = (pod + 0.5) / bins if pod >= 0 else 0.5
        spots.append(Spot(name, layer, x, height[layer], len(nodes)))
    lines: dict[tuple[int, int], int] = {}
    half_of = []
    for link in topology.links:
        a, b = spot_of[link.a], spot_of[link.b]
        flipped = (b, a) in lines
        line = lines[b, a] if flipped else lines.setdefault((a, b), len(lines))
        half_of += [2 * line + flipped, 2 * line + (not flipped)]
    extents = [Pod(name, i / bins, (i + 1) / bins) for i, name in enumerate(names)] if bins > 1 else []
    return Drawing(
        tuple(spots), tuple(lines), tuple(extents), tuple(spot_of), np.array(half_of, np.int64), False
    )


def _pod_name(first: int, last: int) -> str:
    return f"pod {first}" if first == last else f"pods {first} to {last}"


@dataclass(frozen=True, eq=False)
class View:
    """What is shown of a network: the half of a line of each port and its rate, and which flows.

    Flows 0 to `flows` - 1 are shown. `first` holds the position of the first subflow of each of them, and of
    one more: the number of subflows.
    """

    half_of: Ints
    halves: int
    rates_bps: Ints
    flows: int
    first: Ints

    @property
    def subflows(self) -> int:
        return int(self.first[-1])

    @property
    def step_bytes(self) -> int:
        """The maximum size of the JSON of a step in bytes, without the drops, which are few."""
        numbers = 2 * self.halves + self.flows + 3 * self.subflows
        return 200 + numbers * 2 * 4 // 3

    def positions(self, flow: npt.NDArray[Any], subflow: npt.NDArray[Any]) -> tuple[Ints, npt.NDArray[Any]]:
        """Return the positions of these subflows, and which of them are shown at all."""
        shown = (flow >= 0) & (flow < self.flows) & (subflow >= 0)
        at = self.first[np.where(shown, flow, 0)] + subflow
        shown &= at < self.first[np.where(shown, flow, 0) + 1]
        return at[shown], shown


@dataclass(frozen=True, eq=False)
class NetworkStep:
    """Of each half: use in percent, packets queued, packets dropped. Of each flow: goodput in Mb/s. Of each
    subflow: window in packets, smoothed RTT in ms, rate of acknowledged payload in Mb/s."""

    t_s: float
    used_pct: Floats
    queued_pkts: Floats
    drops: Ints
    goodput_mbps: Floats
    cwnd_pkts: Floats
    srtt_ms: Floats
    rate_mbps: Floats


def encode(step: NetworkStep) -> dict[str, Any]:
    """Return a step as JSON; only halves that dropped are listed, as [half, packets]."""
    dropped = np.flatnonzero(step.drops)
    return {
        "t": round(step.t_s, 6),
        "u": short_floats(step.used_pct),
        "q": short_floats(step.queued_pkts),
        "d": [[int(half), int(min(step.drops[half], MAX_DROPS))] for half in dropped],
        "f": short_floats(step.goodput_mbps),
        "w": short_floats(step.cwnd_pkts),
        "s": short_floats(step.srtt_ms),
        "r": short_floats(step.rate_mbps),
    }


def short_floats(values: Floats) -> str:
    """Return numbers as base64 of the upper halves of 32-bit floats, rounded."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    finite = np.isfinite(values)
    upper = np.where(finite, (bits + np.uint32(0x8000)) >> np.uint32(16), 0x7FC0).astype("<u2")
    return base64.b64encode(upper.tobytes()).decode()


def between(before: Instant, after: Instant, shown: View) -> NetworkStep:
    """Return the step from one instant of a running point to a later one."""
    seconds = after.t_s - before.t_s
    bps = ((after.sent_bytes - before.sent_bytes) * 8.0 / seconds).astype(np.float64)
    flows = slice(0, shown.flows)
    known = (before.delivered_bytes[flows] >= 0) & (after.delivered_bytes[flows] >= 0)
    mbps = (after.delivered_bytes[flows] - before.delivered_bytes[flows]) * 8e-6 / seconds
    dropped, queued = after.drops, after.queued_pkts.astype(np.float64)
    none = np.zeros(len(shown.half_of), np.int64)
    return NetworkStep(
        after.t_s,
        used(shown, bps),
        longest(shown, queued) if len(queued) else np.full(shown.halves, NOTHING),
        added(shown, dropped - before.drops if len(dropped) else none),
        np.where(known, mbps, NOTHING),
        *_windows(before, after, shown, seconds),
    )


def used(shown: View, bps: Floats) -> Floats:
    """Return the use of each half in percent of the rates of its ports."""
    carried = np.bincount(shown.half_of, weights=bps, minlength=shown.halves)
    room = np.bincount(shown.half_of, weights=shown.rates_bps, minlength=shown.halves)
    share: Floats = 100 * carried / np.maximum(room, 1)
    return share


def longest(shown: View, values: Floats) -> Floats:
    """Return the largest value among the ports of each half."""
    found = np.zeros(shown.halves)
    np.maximum.at(found, shown.half_of, values)
    return found


def added(shown: View, values: Ints) -> Ints:
    """Return the sum over the ports of each half."""
    return np.bincount(shown.half_of, weights=values, minlength=shown.halves).astype(np.int64)


def _windows(before: Instant, after: Instant, shown: View, seconds: float) -> tuple[Floats, Floats, Floats]:
    cwnd, srtt, rate = (np.full(shown.subflows, NOTHING) for _ in range(3))
    if after.windows is None:
        return cwnd, srtt, rate
    now = after.windows
    at, seen = shown.positions(now.flow, now.subflow)
    cwnd[at], srtt[at] = now.cwnd_pkts[seen], now.srtt_ms[seen]
    acked = np.zeros(shown.subflows)
    if before.windows is not None:
        then, there = shown.positions(before.windows.flow, before.windows.subflow)
        acked[then] = before.windows.acked_bytes[there]
    rate[at] = np.maximum(0, now.acked_bytes[seen] - acked[at]) * 8e-6 / seconds
    return cwnd, srtt, rate


def stored(samples: Mapping[str, Table], shown: View, most: int) -> list[NetworkStep]:
    """Return the steps of a stored point from its sample tables, at most `most`.

    There is a step for each time of `links` and `goodput`; if these are too many, neighbours share one: means
    of use and goodput, the longest queues, the sum of drops, the last windows.
    """
    times = np.unique(np.concatenate([samples[name]["t_s"] for name in ("links", "goodput")]))
    if not len(times):
        return []
    per = -(-len(times) // most)
    ends = times[np.minimum(np.arange(per - 1, len(times) + per - 1, per), len(times) - 1)]
    sizes = np.diff(np.searchsorted(times, ends, side="right"), prepend=0)
    table = _Sums(ends, shown)
    used_pct = table.of_ports(samples["links"], "utilisation_pct", sizes)
    queued, drops = table.queues(samples)
    goodput = table.goodput(samples["goodput"], sizes)
    cwnd, srtt, rate = table.windows(samples.get("sockets"))
    return [
        NetworkStep(float(t_s), used_pct[i], queued[i], drops[i], goodput[i], cwnd[i], srtt[i], rate[i])
        for i, t_s in enumerate(ends)
    ]


@dataclass(frozen=True, eq=False)
class _Sums:
    """Tables whose rows belong to steps: a row belongs to the first step that ends at its time or later."""

    ends: Floats
    shown: View

    def _step(self, table: Table) -> tuple[Ints, npt.NDArray[np.bool_]]:
        """Return the step of each row, and which rows belong to any."""
        step = np.searchsorted(self.ends, table["t_s"] - 1e-9)
        return step, step < len(self.ends)

    def _ports(self, table: Table) -> tuple[Ints, Ints, npt.NDArray[np.bool_]]:
        step, seen = self._step(table)
        port = table["port"].astype(np.int64)
        seen &= (port >= 0) & (port < len(self.shown.half_of))
        return step[seen], port[seen], seen

    def of_ports(self, table: Table, name: str, sizes: Ints) -> Floats:
        """Return the mean use of each half in each step; ports without a row were idle."""
        step, port, seen = self._ports(table)
        rates = self.shown.rates_bps.astype(np.float64)
        carried = np.zeros((len(self.ends), self.shown.halves))
        np.add.at(carried, (step, self.shown.half_of[port]), table[name][seen] * rates[port])
        room = np.bincount(self.shown.half_of, weights=rates, minlength=self.shown.halves)
        share: Floats = carried / np.maximum(room, 1) / np.maximum(sizes, 1)[:, None]
        return share

    def queues(self, samples: Mapping[str, Table]) -> tuple[Floats, Ints]:
        """Return the longest queue of each half and its drops. `queues` has more samples than `ports`."""
        queued = np.full((len(self.ends), self.shown.halves), NOTHING)
        drops = np.zeros((len(self.ends), self.shown.halves), np.int64)
        for name, column in (("ports", "queued_pkts"), ("queues", "pkts")):
            if name not in samples:
                continue
            step, port, seen = self._ports(samples[name])
            queued[np.isnan(queued)] = 0
            np.maximum.at(queued, (step, self.shown.half_of[port]), samples[name][column][seen])
            if name == "ports":
                np.add.at(drops, (step, self.shown.half_of[port]), samples[name]["drops"][seen].astype(int))
        return queued, drops

    def goodput(self, table: Table, sizes: Ints) -> Floats:
        """Return the mean goodput of each flow; a sized flow without a row delivered nothing."""
        step, seen = self._step(table)
        flow = table["flow"].astype(np.int64)
        seen &= (flow >= 0) & (flow < self.shown.flows)
        found = np.zeros((len(self.ends), self.shown.flows))
        np.add.at(found, (step[seen], flow[seen]), table["mbps"][seen])
        mean: Floats = found / np.maximum(sizes, 1)[:, None]
        return mean

    def windows(self, table: Table | None) -> Sequence[Floats]:
        """Return windows, RTTs and rates of subflows: each step shows the last sample in it."""
        cwnd, srtt, rate = (np.full((len(self.ends), self.shown.subflows), NOTHING) for _ in range(3))
        if table is None:
            return cwnd, srtt, rate
        step, seen = self._step(table)
        at, inside = self.shown.positions(table["flow"][seen].astype(int), table["subflow"][seen].astype(int))
        rows = np.flatnonzero(seen)[inside]
        step = step[rows]
        acked, when = (np.full(cwnd.shape, NOTHING) for _ in range(2))
        for name, into in (("cwnd_pkts", cwnd), ("srtt_ms", srtt), ("bytes_acked", acked), ("t_s", when)):
            into[step, at] = table[name][rows]  # rows are in order of time: the last one stays
        with np.errstate(invalid="ignore", divide="ignore"):
            mbps = np.diff(acked, axis=0) * 8e-6 / np.diff(when, axis=0)
        rate[1:] = np.where(np.isfinite(mbps), np.maximum(mbps, 0), NOTHING)
        return cwnd, srtt, rate
