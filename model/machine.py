"""What a machine carries, in packet-hops per second, and what its noise does to a number. Pure.

Load: a flow sends full frames at `share` of the rate that its host's links leave it. Hosts return `acks`
packets for every data packet, and each packet crosses `hops` ports. `share` and `acks` were measured with
real kernels at k=8 (docs/fidelity.md). With 8 subflows the model predicts 0.47 M packet-hops/s at k=8 and
5 Mb/s, where 0.50 M were measured. At k=4 and 50 Mb/s it predicts 0.59 M, where 0.46 M were measured. This
accuracy suffices to decide whether a point fits. Per-packet scattering counts as 8 subflows: it fills links
as well, and data out of order is acknowledged at once (RFC 5681, section 3.2).

Lateness is relative to the time that a full queue takes to drain (`queue_delay_us`), because that queue
keeps the bottleneck's link busy while nothing arrives. A pause of the fabric's clock is relative to the
window, because real hosts' timers keep running. Each limit is the largest amount at which the metric stayed
within its tolerance (analysis/noise_effects.py) in every setting of the experiments in docs/fidelity.md.

Noise of an idle machine is how late it wakes a thread that waits only for the clock. One with real-time
priority is late only if nothing else could run on the CPU either: the hypervisor had taken the CPU away, or
the kernel was in an interrupt handler.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import topos
from controllers.routing import per_packet
from fabric.plan import FRAME_BITS
from model.noise import queue_us
from model.reasons import COMPLETION, GOODPUT, JAIN, METRICS, RTT, SLOWEST
from model.spec import LinkSpec, RunSpec, TopologySpec, TransportSpec, sub_seed
from topos import Topology
from workloads import matrices
from workloads.flow import Flow, Traffic

GOODPUT_SHARES = (0.45, 0.62, 0.71, 0.76, 0.78, 0.79, 0.80, 0.80)
"""Share of a host's link that one flow per host uses, by subflows from 1; more than 8 gain nothing."""
ALONE = 0.96
ACKS_TCP, ACKS_MPTCP = 0.54, 0.97
"""Packets returned for each data packet."""
FIT_PCT, FULL_PCT = 70.0, 95.0
"""Limits on how busy a machine may be. At 70 % work waits for a CPU 2.3 times as long as it runs
(load / (1 - load), M/M/1), and 3.5 times as long if noise takes a tenth of the CPU time. At 85 % these
would be 6 and 17 times. Above the second limit all deliveries are late."""
MIN_RATE_MBPS = 2.0
"""On slower links between real hosts bursts and queues dominate: at 1 Mb/s the 64 kB that MPTCP gives to a
subflow at once take half a second, and a queue of 100 packets takes 1.2 s."""
ESTIMATED_HOPS_PER_CPU, ESTIMATED_MAX_HOPS = 300_000.0, 1_000_000.0
"""Estimates at 70 % busy, used without measurements: 2 cores of a cloud VM. One thread carries all packets,
so more than four CPUs help little."""
_SAMPLED_FLOWS, _SAMPLED_LINKS = (24, 256), 200_000
"""Minimum and maximum number of flows whose paths are computed; and total number of links visited."""
_MAX_FLOWS_BUILT = 400_000
_ANY_SEED = 1
"""One draw stands for all seeds: their loads are nearly the same, and this is an estimate."""
UNBOUNDED_PKTS = 100
"""Length assumed for an unbounded queue under load."""
DRIFT_POINTS = 4.0
"""The window's mean lies between the means of its halves. If these differ by twice the tolerance, the mean
may be off by the whole tolerance."""
FLOOR_US = 250.0
"""Noise below this is negligible: a packet takes 121 us at 100 Mb/s, the highest rate of calibration."""
FLOOR_STEAL_PCT = 2.0
"""One second of two CPUs has 200 ticks, so this limit is 4 ticks."""
FACTOR = 2.0
"""Two records differ if their noise differs by this factor."""
LONG_US = 1000.0
_NUMBERS = ("seconds", "late_p50_us", "late_p99_us", "longest_us", "steal_pct")


@dataclass(frozen=True)
class PointLoad:
    """Load of a point: hosts, flows, mean number of ports per packet, packets per second."""

    hosts: int
    flows: int
    hops: float
    packets_per_s: float

    @property
    def hops_per_s(self) -> float:
        return self.packets_per_s * self.hops


@dataclass(frozen=True)
class Utilisation:
    """One measurement: the load in packet-hops per second, and how busy the CPUs were."""

    hops_per_s: float
    busy_pct: float


@dataclass(frozen=True)
class Capacity:
    """Capacity of this machine: all measurements on it, and its CPUs, for an estimate without any."""

    measured: tuple[Utilisation, ...]
    cpus: int

    @property
    def estimated(self) -> bool:
        return not self.measured

    @property
    def known(self) -> tuple[Utilisation, ...]:
        """Return measurements by increasing load, or one estimate if there are none."""
        most = min(ESTIMATED_MAX_HOPS, ESTIMATED_HOPS_PER_CPU * self.cpus)
        return tuple(sorted(self.measured, key=lambda m: m.hops_per_s)) or (Utilisation(most, FIT_PCT),)

    @property
    def hops_per_s(self) -> float:
        """Return the load at which `busy_pct` first reaches 70 %."""
        before = Utilisation(0.0, 0.0)
        for after in self.known:
            if after.busy_pct > FIT_PCT:
                part = (FIT_PCT - before.busy_pct) / (after.busy_pct - before.busy_pct)
                return before.hops_per_s + part * (after.hops_per_s - before.hops_per_s)
            before = after
        return before.hops_per_s * FIT_PCT / before.busy_pct

    def nearest(self, hops_per_s: float) -> Utilisation:
        """Return the smallest measurement at this load or above, else the largest measurement."""
        return next((m for m in self.known if m.hops_per_s >= hops_per_s), self.known[-1])

    def busy_pct(self, hops_per_s: float) -> float:
        """Return how busy this load would keep the machine; above 100 means overload.

        The value is interpolated between measurements, and proportional to the load beyond the largest.
        """
        before = Utilisation(0.0, 0.0)
        for after in self.known:
            if hops_per_s <= after.hops_per_s:
                return _between(before, after, hops_per_s)
            before = after
        return before.busy_pct * hops_per_s / before.hops_per_s


def _between(before: Utilisation, after: Utilisation, hops_per_s: float) -> float:
    span = after.hops_per_s - before.hops_per_s
    part = (hops_per_s - before.hops_per_s) / span if span else 1.0
    return before.busy_pct + part * (after.busy_pct - before.busy_pct)


def demand(spec: RunSpec) -> PointLoad:
    """Return the load of `spec`. Raises UsageError for an unknown topology or workload."""
    workload = spec.workload
    hosts, flows, links_filled, hops = _crowd(
        spec.topology.kind,
        tuple(sorted(spec.topology.params.items())),
        workload.matrix,
        tuple(sorted(workload.params.items())),
        Traffic(spec.warmup_s + spec.seconds, spec.link.rate_mbps)
        if matrices.is_generated(workload.matrix)
        else None,
    )
    scattered = per_packet(spec.routing)
    subflows = len(GOODPUT_SHARES) if scattered else spec.transport.subflows
    share = ALONE if flows == 1 else _share(subflows, flows / hosts)
    acks = ACKS_TCP if subflows == 1 else ACKS_MPTCP
    data_per_s = links_filled * share * spec.link.rate_mbps * 1e6 / FRAME_BITS
    return PointLoad(hosts, flows, hops, data_per_s * (1 + acks))


def rate_carried(capacity: Capacity, topology: TopologySpec) -> float:
    """Return the link rate in Mb/s at which one_to_one with 8 subflows keeps the machine 70 % busy."""
    unit = RunSpec(LinkSpec(1.0), topology, TransportSpec(len(GOODPUT_SHARES)))
    return capacity.hops_per_s / demand(unit).hops_per_s


def rounded_down(rate_mbps: float) -> float:
    """Round a rate down to one significant digit, or to two if its first digit is 1."""
    digits = 10.0 ** math.floor(math.log10(rate_mbps))
    step = digits / 10 if rate_mbps / digits < 2 else digits
    return math.floor(rate_mbps / step + 1e-6) * step


def _share(subflows: int, flows_a_host: float) -> float:
    """Return the share of a host's link that its flows use; flows fill each other's gaps."""
    alone = GOODPUT_SHARES[min(subflows, len(GOODPUT_SHARES)) - 1]
    return 1 - (1 - alone) / math.sqrt(max(1.0, flows_a_host))


@functools.lru_cache(maxsize=512)
def _crowd(
    kind: str,
    params: tuple[tuple[str, int], ...],
    matrix: str,
    arguments: tuple[tuple[str, int | str], ...],
    traffic: Traffic | None,
) -> tuple[int, int, float, float]:
    """Return the hosts, the flows, their traffic in units of one host's link if the network had no other
    limits, and their mean number of ports."""
    topology = topos.build(kind, dict(params))
    hosts = len(topology.hosts)
    if matrix == "all_to_all" and hosts * hosts > _MAX_FLOWS_BUILT:
        names = topology.host_names
        some = [Flow(names[0], names[n * (hosts - 1) // 24]) for n in range(1, 25)]
        return (hosts, hosts * (hosts - 1), float(hosts), _mean_hops(topology, some))
    flows = matrices.build(matrix, topology, dict(arguments), sub_seed(_ANY_SEED, "workload"), traffic)
    if traffic:
        return (hosts, len(flows), _offered(flows, traffic, hosts), _mean_hops(topology, flows))
    sent, received = (Counter(getattr(flow, end) for flow in flows) for end in ("src", "dst"))
    filled = sum(1 / max(sent[flow.src], received[flow.dst]) for flow in flows)
    return (hosts, len(flows), filled, _mean_hops(topology, flows))


def _offered(flows: Sequence[Flow], traffic: Traffic, hosts: int) -> float:
    """Return the offered load in units of one host's link, at most one per host.

    A flow without a size fills one link; other flows add their sizes or rates.
    """
    sized = sum(flow.size_bytes for flow in flows) * 8e-6 / (traffic.seconds * traffic.host_mbps)
    constant = sum(flow.rate_mbps for flow in flows) / traffic.host_mbps
    endless = sum(not flow.size_bytes and not flow.rate_mbps for flow in flows)
    return min(float(hosts), endless + sized + constant)


def _mean_hops(topology: Topology, flows: Sequence[Flow]) -> float:
    """Return the mean number of ports on the flows' shortest paths, over a sample; 0 without flows."""
    if not flows:
        return 0.0
    least, most = _SAMPLED_FLOWS
    count = min(most, max(least, _SAMPLED_LINKS // len(topology.links)))
    sampled = flows[:: max(1, len(flows) // count)]
    ends = ((topology.index(flow.src), topology.index(flow.dst)) for flow in sampled)
    return sum(topology.distances.between(*each) for each in ends) / len(sampled)


LATE_SHARES: Mapping[str, float] = {GOODPUT: 0.2, SLOWEST: 0.2, JAIN: 0.5, RTT: 0.2, COMPLETION: 0.2}
"""The lateness that each metric tolerates: its 99th percentile as a share of a full queue's drain time."""
STRETCH_PCT = 7.0
"""The pauses of the clock that every metric tolerates, in percent of the window."""


def queue_delay_us(link: LinkSpec) -> float:
    """Return the time that a full queue of the link takes to drain, in microseconds."""
    return queue_us(link) or UNBOUNDED_PKTS * FRAME_BITS / link.rate_mbps


def doubted_by_lateness(share: float) -> tuple[str, ...]:
    """Return the metrics that this lateness may move by more than their tolerance."""
    return tuple(metric for metric in METRICS if share > LATE_SHARES[metric])


def doubted_by_stretch(pct: float) -> tuple[str, ...]:
    """Return the metrics that this pause of the clock may move by more than their tolerance."""
    return tuple(METRICS) if pct > STRETCH_PCT else ()


def frame_us(metrics: Mapping[str, float], cpus: int, idle_pct: float, ports: float) -> float:
    """Return CPU microseconds per frame that crosses `ports` ports, from a short run on a machine that is
    `idle_pct` busy when idle. They include both hosts' kernels, the traffic programs and the fabric's core.

    Raises ValueError for a run that carried nothing.
    """
    frames_per_s = metrics["packet_hops_per_s"] / ports
    if frames_per_s <= 0:
        raise ValueError("measuring the cost of a frame: the run carried no frames")
    busy_us_per_s = max(0.0, metrics["cpu_busy_pct"] - idle_pct) / 100 * cpus * 1e6
    return busy_us_per_s / frames_per_s


def rate_by_noise(noise: MachineNoise) -> float:
    """Return the highest link rate (Mb/s) at which all goodput metrics tolerate the machine's noise."""
    at_1_mbps_us = LATE_SHARES[SLOWEST] * queue_us(LinkSpec(1.0))
    return at_1_mbps_us / max(noise.late_p99_us, FLOOR_US)


@dataclass(frozen=True)
class MachineNoise:
    """Lateness of wake-ups during `seconds` over all CPUs, and the share of CPU time the hypervisor took.

    `by_cpu` has (CPU, 99th percentile, longest) of each CPU in microseconds. `realtime` is False if the
    kernel refused real-time priority; other processes then count as noise.
    """

    seconds: float
    late_p50_us: float
    late_p99_us: float
    longest_us: float
    steal_pct: float
    by_cpu: tuple[tuple[int, float, float], ...] = ()
    realtime: bool = True

    def __str__(self) -> str:
        """Return one line: which CPUs were late, by how much, and the cause."""
        who = f"CPU {_listed([cpu for cpu, _, _ in self.by_cpu])}" if self.by_cpu else "CPUs"
        steal = f", {self.steal_pct:.1f} % of CPU time stolen" if self.steal_pct >= FLOOR_STEAL_PCT else ""
        late = f"{who} woke up {_ms(self.late_p99_us)} ms late at the 99th percentile"
        return f"{late}, {_ms(self.longest_us)} ms at most{steal}: {self._meaning()}"

    def _meaning(self) -> str:
        if self.quiet:
            return "quiet"
        by = "the hypervisor takes" if self.realtime else "other processes or the hypervisor take"
        return f"{by} CPU time away{' for milliseconds' if self.late_p99_us >= LONG_US else ''}"

    @property
    def quiet(self) -> bool:
        """Whether the noise is below both floors."""
        return self.late_p99_us < FLOOR_US and self.steal_pct < FLOOR_STEAL_PCT

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "seconds": self.seconds,
            "late_p50_us": self.late_p50_us,
            "late_p99_us": self.late_p99_us,
            "longest_us": self.longest_us,
            "steal_pct": self.steal_pct,
            "by_cpu": [list(one) for one in self.by_cpu],
            "realtime": self.realtime,
        }

    @classmethod
    def from_json(cls, data: object) -> MachineNoise:
        """Read a stored record. Raises ValueError for anything else."""
        if not isinstance(data, Mapping):
            raise ValueError("reading machine noise: the stored value is not a record")
        try:
            by_cpu = tuple((int(cpu), float(p99), float(most)) for cpu, p99, most in data["by_cpu"])
            numbers = {name: float(data[name]) for name in _NUMBERS}
        except (KeyError, TypeError) as error:
            raise ValueError(f"reading machine noise: the record lacks {error}") from error
        if not all(math.isfinite(number) and number >= 0 for number in numbers.values()):
            raise ValueError("reading machine noise: a number is negative or not finite")
        return cls(
            seconds=numbers["seconds"],
            late_p50_us=numbers["late_p50_us"],
            late_p99_us=numbers["late_p99_us"],
            longest_us=numbers["longest_us"],
            steal_pct=numbers["steal_pct"],
            by_cpu=by_cpu,
            realtime=bool(data.get("realtime", True)),
        )


def differs(one: MachineNoise, other: MachineNoise) -> bool:
    """Return whether noise above the floors changed by FACTOR; records of unequal priority always differ."""
    if one.realtime != other.realtime:
        return True
    late = _changed(one.late_p99_us, other.late_p99_us, FLOOR_US)
    return late or _changed(one.steal_pct, other.steal_pct, FLOOR_STEAL_PCT)


def _changed(one: float, other: float, floor: float) -> bool:
    low, high = sorted((max(one, floor), max(other, floor)))
    return high >= FACTOR * low


def _listed(numbers: Sequence[int]) -> str:
    """Return `0 and 1` or `0 to 7`."""
    if len(numbers) > 2:
        return f"{numbers[0]} to {numbers[-1]}"
    return " and ".join(map(str, numbers))


def _ms(value_us: float) -> str:
    return f"{value_us / 1000:.2f}" if value_us < LONG_US else f"{value_us / 1000:.1f}"
