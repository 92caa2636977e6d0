"""FakeEngine: a deterministic engine without root, hosts or time, for tests of everything above engines.

To import it registers it as `fake`.

Its numbers are invented to resemble the published curve; they are not evidence. Equal specs give equal
results.
"""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common.errors import RunError, UsageError
from engines import registry
from engines.engine import Observer
from model import transports
from model.congestion import BASELINE, COUPLED_DEFAULT, in_force
from model.flows import drawn_flows
from model.reasons import OTHER, Reason
from model.result import NO_VALUE, SAMPLE_COLUMNS, FlowRow, PortRow, RunResult, Status, Table
from model.spec import RunSpec, sub_seed
from topos import Topology
from workloads.flow import Flow

When = Callable[[RunSpec], bool]
MAX_K = 32
MAX_SAMPLES = 20
UNBOUNDED_PKTS = 450
"""Length of the longest invented queue if queues are unbounded."""
HEADERS = 0.935
"""Payload of a TCP flow on an idle link, as a share of the link rate."""


def never(_spec: RunSpec) -> bool:
    """Select no point."""
    return False


def mean_share(subflows: int) -> float:
    """Return mean goodput as a share of the baseline: 0.5 for TCP, rising towards 0.91 with subflows, as in
    htsim with routed ACKs (docs/experiments/validation.md)."""
    return 0.91 - 0.41 * math.exp(-(subflows - 1) / 2.6)


GENTLE = {"lia": 0.5, "olia": 0.45, "balia": 0.55, "ewtcp": 0.7}
"""Retransmitted segments of coupled algorithms as a share of uncoupled ones; the order is arbitrary."""


def paths_used(spec: RunSpec) -> int:
    """Return how many paths a flow uses: its subflows, or many with per-packet routing."""
    return 12 if spec.routing == transports.SCATTER else spec.transport.subflows


@dataclass
class FakeEngine:
    """The Engine protocol without a network. The arguments select points that fail or are suspect.

    `sleep_s` is the real duration of a run in seconds; `overhead` is the time it claims beyond traffic;
    `each_mb` is the memory it claims per point.
    """

    name: str = "fake"
    fail: When = never
    suspect: When = never
    interrupt: When = never
    sleep_s: float = 0.0
    parallel: int = 1
    overhead: float = 1.0
    each_mb: float = 0.0

    def check(self, spec: RunSpec) -> None:
        """Build what the spec names. Raises UsageError for unknown names and for topologies that are too
        large."""
        if spec.topology.k > MAX_K:
            raise UsageError(
                f"the fake engine supports k up to {MAX_K}, not {spec.topology.k}: choose a smaller --k"
            )
        drawn_flows(spec, spec.network())

    def memory_mb(self, spec: RunSpec) -> float:
        del spec
        return self.each_mb

    def cpus(self, spec: RunSpec) -> int:
        del spec
        return 1

    def take_machine(self) -> None:
        """Do nothing: there is nothing to take."""

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default: the engine invents results for every congestion control."""
        return COUPLED_DEFAULT, ""

    def expected_s(self, spec: RunSpec) -> float:
        """Return the time of traffic plus `overhead`."""
        return spec.warmup_s + spec.seconds + self.overhead

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """Return an invented result after `sleep_s`. Raises RunError if `fail` selects the point,
        KeyboardInterrupt if `interrupt` does."""
        topology = spec.network()
        pairs = drawn_flows(spec, topology)
        (raw / "fake.txt").write_text(f"{spec.canonical()}\n")
        for phase, seconds in (("warm-up", spec.warmup_s), ("measure", spec.seconds)):
            observer.phase(phase, seconds)
            time.sleep(self.sleep_s / 2)
        if self.interrupt(spec):
            raise KeyboardInterrupt
        if self.fail(spec):
            raise RunError("running the fake engine: this point is set to fail; change `fail`")
        goodputs = _goodputs(spec, pairs)
        rows = tuple(_flow_row(spec, topology, n, pair, goodputs[n]) for n, pair in enumerate(pairs))
        ports = _ports(spec, topology, sum(goodputs) / len(topology.hosts))
        suspect = self.suspect(spec)
        return RunResult(
            Status.SUSPECT if suspect else Status.OK,
            (Reason(OTHER, "this point is set to be suspect"),) if suspect else (),
            rows,
            ports,
            _samples(spec, random.Random(sub_seed(spec.seed, "fake samples")), rows, ports),
            _metrics(spec, rows, ports),
            {"engine": "fake", "note": "made up, no evidence of anything"},
        )


def _goodputs(spec: RunSpec, pairs: Sequence[Flow]) -> list[float]:
    """Return each flow's Mb/s: around `mean_share` of the link, shared among a host's flows.

    The spread decreases with the number of subflows.
    """
    count = len(pairs)
    link_mbps = HEADERS * spec.link.rate_mbps
    if spec.workload.matrix == "reference":
        return [link_mbps] * count
    link_mbps /= max(1, *Counter(pair.src for pair in pairs).values())
    paths = paths_used(spec)
    rng = random.Random(sub_seed(spec.seed, "fake goodput"))
    deviation = 0.24 / paths**0.7
    below = 0.02 * (1 - GENTLE.get(spec.transport.cc, 1.0)) * (spec.transport.subflows > 1)
    shares = (rng.gauss(mean_share(paths) - below, deviation) for _ in range(count))
    return [link_mbps * min(1.0, max(0.03, share)) for share in shares]


def _flow_row(spec: RunSpec, topology: Topology, number: int, pair: Flow, goodput_mbps: float) -> FlowRow:
    src_ip, dst_ip = (topology.nics_of(topology.index(name))[0].ip for name in (pair.src, pair.dst))
    subflows = 1 if pair.plain else spec.transport.subflows
    paths = 1 if pair.plain else paths_used(spec)
    cc = BASELINE if pair.plain else in_force(spec.transport.cc, subflows)
    return FlowRow(
        flow=number,
        src=pair.src,
        dst=pair.dst,
        src_ip=src_ip,
        dst_ip=dst_ip,
        sport=40000 + number % 20000,
        dport=5001,
        transport="tcp" if subflows == 1 else "mptcp",
        subflows_asked=subflows,
        subflows_joined=subflows,
        cc=cc,
        goodput_mbps=goodput_mbps,
        bytes_received=round(goodput_mbps * 1e6 / 8 * spec.seconds),
        retransmits=round(spec.seconds * paths * 0.6 * GENTLE.get(cc, 1.0)),
        up_s=0.01 * subflows,
        **_rtts(spec),
    )


def _rtts(spec: RunSpec) -> dict[str, Any]:
    sampled = spec.sampling
    rtts: dict[str, Any] = {}
    if sampled.sockets_ms:
        rtts |= {"srtt_ms_mean": 90.0, "srtt_ms_std": 30.0}
    if sampled.pings_ms:
        rtts |= {"ping_ms_mean": 80.0, "ping_ms_std": 45.0, "pings_sent": 100, "pings_lost": 2}
    return rtts


def _ports(spec: RunSpec, topology: Topology, goodput_mbps: float) -> tuple[PortRow, ...]:
    """Return both directions of every link, loaded like the mean flow."""
    share = min(1.0, goodput_mbps / (HEADERS * spec.link.rate_mbps))
    sent = round(share * spec.link.rate_mbps * 1e6 / 8 * spec.seconds)
    rng = random.Random(sub_seed(spec.seed, f"fake ports {spec.transport.subflows}"))
    rows: list[PortRow] = []
    most_pkts = spec.link.queue_pkts or UNBOUNDED_PKTS
    for link in topology.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            node, peer = topology.nodes[here], topology.nodes[there]
            layer = f"{node.layer.name.lower()}-{peer.layer.name.lower()}"
            tx_bytes = round(sent * rng.uniform(0.3, 1.0))
            busy = 100 * tx_bytes * 8 / (link.speed * spec.link.rate_mbps * 1e6 * spec.seconds)
            rows.append(
                PortRow(
                    len(rows), node.name, peer.name, layer, tx_bytes // 1500, tx_bytes,
                    rng.randrange(40), rng.randrange(1, most_pkts + 1), busy, busy,
                    0 if "host" in layer else round(tx_bytes // 1500 * spec.link.loss),
                    tx_bytes // 15000 if spec.link.ecn_pkts else 0,
                )
            )  # fmt: skip
    return tuple(rows)


def _samples(
    spec: RunSpec, rng: random.Random, flows: Sequence[FlowRow], ports: Sequence[PortRow]
) -> dict[str, Table]:
    """Return at most one sample per second, negative t_s in the warm-up; other tables at their intervals.

    Long points have MAX_SAMPLES over their time: their tables would take most of the time of an engine that
    only invents them.
    """
    first, end = -math.floor(spec.warmup_s), math.ceil(spec.seconds)
    step = max(1, math.ceil((end - first) / MAX_SAMPLES))
    seconds = [float(t) for t in range(first, end, step)]
    busy = _busy_pct(spec)
    cpu = [(t, busy, busy * 0.4, busy * 0.3, busy * 0.3, 0.0) for t in seconds]
    goodput = [(t, flow.flow, flow.goodput_mbps) for t in seconds for flow in flows]
    links = [(t, port.port, port.utilisation_pct) for t in seconds for port in ports if port.utilisation_pct]
    dropped = [(seconds[-1], port.port, 0, port.drops) for port in ports if port.drops]
    samples = {
        "goodput": Table.from_rows(("t_s", "flow", "mbps"), goodput),
        "cpu": Table.from_rows(
            ("t_s", "busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct"), cpu
        ),
        "links": Table.from_rows(("t_s", "port", "utilisation_pct"), links),
        "ports": Table.from_rows(SAMPLE_COLUMNS["ports"], dropped),
    }
    if spec.sampling.queues_ms:
        times = _times(spec, spec.sampling.queues_ms)
        draw = rng.random
        queues = [(t, port.port, 1 + int(port.max_queue_pkts * draw())) for t in times for port in ports]
        samples["queues"] = Table.from_rows(("t_s", "port", "pkts"), queues)
        samples["queue_times"] = Table.from_rows(("t_s",), [(t,) for t in times])
    subflows = [(flow.flow, n) for flow in flows for n in range(flow.subflows_asked)]
    if spec.sampling.sockets_ms:
        rows = [
            (t, *which, *_socket(rng.random, t))
            for t in _times(spec, spec.sampling.sockets_ms)
            for which in subflows
        ]
        samples["sockets"] = Table.from_rows(SAMPLE_COLUMNS["sockets"], rows)
    if spec.sampling.pings_ms:
        times = _times(spec, spec.sampling.pings_ms)
        pings = [(t, *which, *_ping(rng.random)) for t in times for which in subflows]
        samples["pings"] = Table.from_rows(("t_s", "flow", "subflow", "rtt_ms", "out_ms"), pings)
    return samples


def _socket(draw: Callable[[], float], t_s: float) -> tuple[float, ...]:
    """Return a subflow that was busy for four fifths of its time. `draw` returns a number in [0, 1)."""
    cwnd_pkts = 2 + int(58 * draw())
    unacked_pkts = int((cwnd_pkts + 1) * draw())
    notsent_bytes = 1448 * int(40 * draw()) if unacked_pkts == cwnd_pkts else 0
    window = (cwnd_pkts, 5 + 195 * draw(), 1 + 39 * draw(), int(t_s), int(t_s * 1e4))
    return *window, unacked_pkts, notsent_bytes, 800 * t_s, 0.0


def _ping(draw: Callable[[], float]) -> tuple[float, float]:
    if draw() < 0.02:
        return NO_VALUE, NO_VALUE
    rtt_ms = 1 + 249 * draw()
    return rtt_ms, rtt_ms * (0.2 + 0.6 * draw())


def _times(spec: RunSpec, interval_ms: int) -> list[float]:
    step_s = interval_ms / 1000
    return [round(n * step_s, 6) for n in range(math.ceil(spec.seconds / step_s))]


def _busy_pct(spec: RunSpec) -> float:
    return min(95.0, 20.0 + 3.0 * spec.transport.subflows)


def _metrics(spec: RunSpec, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> dict[str, float]:
    return {
        "cpu_busy_pct": _busy_pct(spec),
        "cpu_busy_max_pct": _busy_pct(spec) + 5,
        "late_p99_us": 60.0 + 10.0 * spec.transport.subflows,
        "drops": float(sum(port.drops for port in ports)),
        "retransmits": float(sum(flow.retransmits for flow in flows)),
        "astray": 0.0,
        "setup_s": 0.0,
        "startup_s": max(flow.up_s for flow in flows),
        "subflow_idle_pct": 20.0 if spec.transport.subflows > 1 else 0.0,
        "teardown_s": 0.0,
    }


registry.ENGINES["fake"] = FakeEngine
registry.ABOUT["fake"] = "invented numbers, for tests"
