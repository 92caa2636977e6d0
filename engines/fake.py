"""FakeEngine: a deterministic engine without root, hosts or time, for tests of everything above engines.

Its numbers are made up to look like the published curve; they are never evidence of anything. Equal
specs give equal results.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import topos
from engines.engine import Observer
from engines.result import FlowRow, PortRow, RunResult, Status, Table
from engines.spec import RunSpec, sub_seed
from fabric.errors import RunError, UsageError
from topos import Topology
from workloads import matrices

When = Callable[[RunSpec], bool]
MAX_K = 32
HEADERS = 0.935
"""Payload a TCP flow gets through an idle link, as a share of the link rate."""


def never(_spec: RunSpec) -> bool:
    """No point at all."""
    return False


def mean_share(subflows: int) -> float:
    """Mean goodput as a share of the reference: 0.5 for TCP, rising towards 0.91 as the reference
    simulator with routed ACKs does (targets/README.md)."""
    return 0.91 - 0.41 * math.exp(-(subflows - 1) / 2.6)


@dataclass
class FakeEngine:
    """The Engine protocol without a network. The arguments tell which points misbehave, and how.

    `sleep_s` is how long a run really takes, in seconds; `overhead` is what it claims beside traffic.
    """

    name: str = "fake"
    fail: When = never
    suspect: When = never
    interrupt: When = never
    sleep_s: float = 0.0
    overhead: float = 1.0

    def check(self, spec: RunSpec) -> None:
        """Build what the spec names. Raises UsageError for what does not exist or is too big to fake."""
        if spec.topology.k > MAX_K:
            raise UsageError(
                f"the fake engine goes up to k={MAX_K}, not {spec.topology.k}: choose a smaller --k"
            )
        _flows(spec, topos.build(spec.topology.kind, spec.topology.params))

    def overhead_s(self, spec: RunSpec) -> float:  # noqa: ARG002 - the protocol's
        """The constructor's word."""
        return self.overhead

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """A made-up result, after `sleep_s`. Raises RunError where `fail` says so, KeyboardInterrupt
        where `interrupt` does."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        pairs = _flows(spec, topology)
        (raw / "fake.txt").write_text(f"{spec.canonical()}\n")
        for phase, seconds in (("warm-up", spec.warmup_s), ("measure", spec.seconds)):
            observer.phase(phase, seconds)
            time.sleep(self.sleep_s / 2)
        if self.interrupt(spec):
            raise KeyboardInterrupt
        if self.fail(spec):
            raise RunError("running the fake engine: told to fail; tell it otherwise")
        goodputs = _goodputs(spec, len(pairs))
        rows = tuple(_flow_row(spec, topology, n, pair, goodputs[n]) for n, pair in enumerate(pairs))
        ports = _ports(spec, topology, sum(goodputs) / len(goodputs))
        suspect = self.suspect(spec)
        return RunResult(
            Status.SUSPECT if suspect else Status.OK,
            ("told to be suspect",) if suspect else (),
            rows,
            ports,
            _samples(spec, goodputs, ports),
            _metrics(spec, rows, ports),
            {"engine": "fake", "note": "made up, no evidence of anything"},
        )


def _flows(spec: RunSpec, topology: Topology) -> Sequence[matrices.Flow]:
    workload = spec.workload
    return matrices.build(workload.matrix, topology, workload.params, sub_seed(spec.seed, "workload"))


def _goodputs(spec: RunSpec, count: int) -> list[float]:
    """Mb/s of each flow: around `mean_share` of the link, spread less the more subflows there are."""
    link_mbps = HEADERS * spec.link.rate_mbps
    if spec.workload.matrix == "reference":
        return [link_mbps] * count
    subflows = spec.transport.subflows
    rng = random.Random(sub_seed(spec.seed, "fake goodput"))
    deviation = 0.24 / subflows**0.7
    shares = (rng.gauss(mean_share(subflows), deviation) for _ in range(count))
    return [link_mbps * min(1.0, max(0.03, share)) for share in shares]


def _flow_row(
    spec: RunSpec, topology: Topology, number: int, pair: matrices.Flow, goodput_mbps: float
) -> FlowRow:
    src_ip, dst_ip = (topology.nics_of(topology.index(name))[0].ip for name in (pair.src, pair.dst))
    transport = spec.transport
    return FlowRow(
        flow=number,
        src=pair.src,
        dst=pair.dst,
        src_ip=src_ip,
        dst_ip=dst_ip,
        sport=40000 + number % 20000,
        dport=5001,
        transport=transport.name,
        subflows_asked=transport.subflows,
        subflows_joined=transport.subflows,
        cc=transport.cc,
        goodput_mbps=goodput_mbps,
        bytes_received=round(goodput_mbps * 1e6 / 8 * spec.seconds),
        retransmits=round(spec.seconds * transport.subflows * 0.6),
        up_s=0.01 * transport.subflows,
    )


def _ports(spec: RunSpec, topology: Topology, goodput_mbps: float) -> tuple[PortRow, ...]:
    """Both directions of every link, all as busy as the mean flow keeps them."""
    share = min(1.0, goodput_mbps / (HEADERS * spec.link.rate_mbps))
    sent = round(share * spec.link.rate_mbps * 1e6 / 8 * spec.seconds)
    rng = random.Random(sub_seed(spec.seed, f"fake ports {spec.transport.subflows}"))
    rows: list[PortRow] = []
    for link in topology.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            node, peer = topology.nodes[here], topology.nodes[there]
            layer = f"{node.layer.name.lower()}-{peer.layer.name.lower()}"
            tx_bytes = round(sent * rng.uniform(0.3, 1.0))
            busy = 100 * tx_bytes * 8 / (spec.link.rate_mbps * 1e6 * spec.seconds)
            rows.append(
                PortRow(
                    len(rows), node.name, peer.name, layer, tx_bytes // 1500, tx_bytes,
                    rng.randrange(40), rng.randrange(1, spec.link.queue_pkts + 1), busy,
                )
            )  # fmt: skip
    return tuple(rows)


def _samples(spec: RunSpec, goodputs: Sequence[float], ports: Sequence[PortRow]) -> dict[str, Table]:
    """One sample a second, the warm-up's at negative t_s; queues as often as asked."""
    first, last = -math.floor(spec.warmup_s), math.ceil(spec.seconds)
    goodput = [(float(t), n, mbps) for t in range(first, last) for n, mbps in enumerate(goodputs)]
    busy = _busy_pct(spec)
    cpu = [(float(t), busy, busy * 0.4, busy * 0.3, busy * 0.3, 0.0) for t in range(first, last)]
    samples = {
        "goodput": Table(("t_s", "flow", "mbps"), goodput),
        "cpu": Table(("t_s", "busy_pct", "user_pct", "system_pct", "softirq_pct", "steal_pct"), cpu),
    }
    if spec.queue_sample_ms:
        step_s = spec.queue_sample_ms / 1000
        times = [round(n * step_s, 6) for n in range(math.ceil(spec.seconds / step_s))]
        rows = [(t, port.port, port.max_queue_pkts) for t in times for port in ports]
        samples["queues"] = Table(("t_s", "port", "pkts"), rows)
    return samples


def _busy_pct(spec: RunSpec) -> float:
    return min(95.0, 20.0 + 3.0 * spec.transport.subflows)


def _metrics(spec: RunSpec, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> dict[str, float]:
    return {
        "cpu_busy_pct": _busy_pct(spec),
        "cpu_busy_max_pct": _busy_pct(spec) + 5,
        "late_p99_us": 60.0 + 10.0 * spec.transport.subflows,
        "drops": float(sum(port.drops for port in ports)),
        "retransmits": float(sum(flow.retransmits for flow in flows)),
        "ring_drops": 0.0,
        "setup_s": 0.0,
        "startup_s": max(flow.up_s for flow in flows),
        "teardown_s": 0.0,
    }
