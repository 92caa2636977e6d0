"""The lessons of the CS244 2013 post as advice on a plan, before it runs. Pure.

* scale: as many hosts and processes as the machine has memory for;
* rate: as many packet-hops per second as its CPUs carry (model/machine.py);
* queues: sized to rate and delay: a packet takes 12 ms at 1 Mb/s, so 100 of them take 1.2 s.

Only advice that matters for this plan is given, with numbers of this machine; one line if everything fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from fabric.plan import FRAME_BITS
from harness import labels
from harness.baseline import is_baseline
from harness.labels import named
from harness.options.rates import SETTLING_MBIT
from harness.plan.jobs import Job
from model.machine import (
    FIT_PCT,
    FULL_PCT,
    MIN_RATE_MBPS,
    Capacity,
    PointLoad,
    demand,
    rounded_down,
)
from model.spec import LinkSpec, RunSpec

MIN_RTO_MS = 200.0
"""Linux's TCP_RTO_MIN (include/net/tcp.h)."""
LONG_QUEUE_MS = 500.0
"""A full queue with this delay dominates the round-trip time of a whole path."""
BURST_KB = 64
"""The data that MPTCP's scheduler gives to one subflow at a time."""
BASE_MB, HOST_MB, IPERF_FLOW_MB, NATIVE_FLOW_MB = 60.0, 0.6, 1.5, 0.1
"""Memory: k=8 with 128 hosts and 256 iperf3 takes 320 MB (README)."""
SMALLEST_K = 4
VIRTUALLY = "--engine linux, the same in virtual time"


@dataclass(frozen=True)
class Advice:
    """One line of advice; a `warning` says what to change."""

    lesson: Literal["scale", "rate", "queues"]
    severity: Literal["fits", "note", "warning"]
    text: str
    urgent: bool = False
    """Whether a run prints it too: some of its points will be suspect or will fail."""

    def __str__(self) -> str:
        return f"{self.severity}: {self.text}"


def advise(jobs: Sequence[Job], capacity: Capacity, free_memory_mb: float) -> list[Advice]:
    """Return the advice on these jobs for this machine: one line if everything fits.

    It is about flows, of which workloads of other kinds have none.
    """
    asked = [job for job in jobs if not is_baseline(job.spec) and demand(job.spec).flows]
    if not asked:
        return []
    known = [job for job in asked if job.rate.rate_mbps is not None]
    plain = [job.spec for job in known if not job.cpu_bound]
    found = [
        *_memory([job.spec for job in asked], free_memory_mb),
        *_too_fast(plain, capacity),
        *_on_purpose([job for job in asked if job.cpu_bound], capacity),
        *_queues(plain),
        *_settling(plain),
    ]
    if any(advice.severity == "warning" for advice in found):
        return found
    return [*_fits(asked, plain, capacity), *found]


def _fits(asked: Sequence[Job], plain: Sequence[RunSpec], capacity: Capacity) -> Iterator[Advice]:
    if plain:
        worst, needs = _worst(plain)
        text = f"{_point(worst)} needs {_hops(needs)}, the most of all; {_carried(capacity, needs)}"
        yield Advice("rate", "fits", text)
    unknown = [job.spec.topology for job in asked if job.rate.rate_mbps is None and not job.cpu_bound]
    if unknown:
        names = ", ".join(dict.fromkeys(named(topology) for topology in unknown))
        idle = f"leaves this machine {100 - FIT_PCT:.0f} % idle"
        text = f"the link rate of {names} is measured first: the highest that {idle}"
        yield Advice("rate", "fits", text)


def _too_fast(plain: Sequence[RunSpec], capacity: Capacity) -> Iterator[Advice]:
    over = [spec for spec in plain if capacity.busy_pct(demand(spec).hops_per_s) > FIT_PCT]
    if not over:
        return
    worst, needs = _worst(over)
    surely = capacity.busy_pct(needs.hops_per_s) > FULL_PCT
    yield Advice(
        "rate",
        "warning",
        f"{_point(worst)} needs {_hops(needs)}; {_carried(capacity, needs)}: "
        f"{len(over)} of {len(plain)} points {'will' if surely else 'may'} be suspect; "
        f"{_remedy(worst, needs, capacity)}",
        urgent=True,
    )


def _on_purpose(bound: Sequence[Job], capacity: Capacity) -> Iterator[Advice]:
    if not bound:
        return
    known = [job.spec for job in bound if job.rate.rate_mbps is not None]
    text = f"CPU-bound on purpose: {len(bound)} points need more than this machine carries"
    if known:
        worst, needs = _worst(known)
        text += f", up to {_hops(needs)} ({_point(worst)}); {_carried(capacity, needs)}"
    yield Advice("rate", "note", f"{text}: they are meant to be suspect", urgent=True)


def _worst(specs: Sequence[RunSpec]) -> tuple[RunSpec, PointLoad]:
    asked = ((spec, demand(spec)) for spec in specs)
    return max(asked, key=lambda pair: (pair[1].hops_per_s, pair[0].transport.subflows))


def _carried(capacity: Capacity, needs: PointLoad) -> str:
    """Return this machine's capacity as text, to compare with a demand."""
    if capacity.estimated:
        return (
            f"this machine was never measured (sudo refabric calibrate); {_millions(capacity.hops_per_s)} "
            f"is an estimate from its {capacity.cpus} CPUs"
        )
    seen = capacity.nearest(needs.hops_per_s)
    return f"this machine carried {_millions(seen.hops_per_s)} at {seen.busy_pct:.0f} % busy"


def _remedy(spec: RunSpec, needs: PointLoad, capacity: Capacity) -> str:
    """Return a smaller tree or a lower rate that would fit, or virtual time; simulated hosts if that rate
    would be too low."""
    part = capacity.hops_per_s / needs.hops_per_s
    rate_mbps = rounded_down(spec.link.rate_mbps * part)
    ways = [f"--rate {rate_mbps:g}" if rate_mbps >= MIN_RATE_MBPS else "--engine simulator"]
    k = spec.topology.number("k")
    fitting = [size for size in range(SMALLEST_K, k, 2) if (size / k) ** 3 <= part]  # hosts grow as k^3
    if fitting:
        ways.insert(0, f"--k {fitting[-1]}")
    return f"choose {' or '.join((*ways, VIRTUALLY))}"


def _memory(specs: Sequence[RunSpec], free_mb: float) -> Iterator[Advice]:
    """Compare the point that needs most memory with what is free."""
    weights: dict[float, RunSpec] = {}
    for spec in specs:
        needs = demand(spec)
        flow_mb = IPERF_FLOW_MB if spec.traffic == "iperf3" else NATIVE_FLOW_MB * spec.transport.subflows
        weights[BASE_MB + HOST_MB * needs.hosts + flow_mb * needs.flows] = spec
    most_mb = max(weights)
    if most_mb <= free_mb:
        return
    spec = weights[most_mb]
    needs = demand(spec)
    iperf3 = spec.traffic == "iperf3"
    by = f"{2 * needs.flows} iperf3 processes" if iperf3 else f"{needs.flows} flows"
    yield Advice(
        "scale",
        "warning",
        f"{_point(spec)}: {needs.hosts} hosts and {by} need about {_gb(most_mb)} of memory, "
        f"{_gb(free_mb)} are free; choose {'--traffic native or ' if iperf3 else ''}a smaller --k",
        urgent=True,
    )


def _queues(specs: Sequence[RunSpec]) -> Iterator[Advice]:
    """Yield a line for each kind of link whose queues do not suit its rate and delay."""
    tallest = {spec.link: max(demand(s).hops for s in specs if s.link == spec.link) for spec in specs}
    for link, hops in tallest.items():
        if link.queue_pkts == 0:
            yield Advice(
                "queues",
                "note",
                f"unbounded queues grow during the whole run: at {link.rate_mbps:g} Mb/s every "
                f"{1000 / _packet_ms(link):.0f} packets in a queue add a second of delay, and without losses "
                "no sender slows down",
            )
            continue
        full_ms = link.queue_pkts * _packet_ms(link)
        # The packets in flight on an idle path and back: per hop one packet time and two delays.
        round_trip_ms = hops * (_packet_ms(link) + 2 * link.delay_us / 1000)
        held = math.ceil(round_trip_ms / _packet_ms(link))
        if link.queue_pkts < held:
            yield Advice(
                "queues",
                "warning",
                f"a path of {link.rate_mbps:g} Mb/s links with {link.delay_us:g} us each holds {held} "
                f"packets (bandwidth x delay), a queue only {link.queue_pkts}: a window halved by a "
                f"loss leaves the link idle; choose --queue {held} or more",
            )
        elif full_ms > LONG_QUEUE_MS:
            fits = max(held, math.floor(LONG_QUEUE_MS / _packet_ms(link)))
            yield Advice(
                "queues",
                "note",
                f"a full queue of {link.queue_pkts} packets takes {full_ms / 1000:.1f} s at "
                f"{link.rate_mbps:g} Mb/s, {full_ms / MIN_RTO_MS:.0f} times the minimum RTO: round trips "
                f"take seconds and flows settle slowly; a higher --rate or --queue {fits} shortens it",
            )


def _packet_ms(link: LinkSpec) -> float:
    return FRAME_BITS / link.rate_mbps / 1000


def _settling(specs: Sequence[RunSpec]) -> Iterator[Advice]:
    """Yield advice on short warm-ups: MPTCP assigns data in bursts, and waits for the slowest subflow."""
    rates = {
        spec.link.rate_mbps: spec.warmup_s
        for spec in specs
        if spec.transport.subflows > 1 and spec.warmup_s < SETTLING_MBIT / spec.link.rate_mbps / 2
    }
    for rate_mbps, warmup_s in rates.items():
        burst_ms = BURST_KB * 8192 / rate_mbps / 1000
        yield Advice(
            "queues",
            "note",
            f"MPTCP sends bursts of up to {BURST_KB} kB per subflow, {burst_ms:.0f} ms at "
            f"{rate_mbps:g} Mb/s, "
            f"and waits for the slowest: after {warmup_s:g} s of warm-up its goodput is still too low; "
            f"--warmup {SETTLING_MBIT / rate_mbps:.0f} is long enough",
        )


def _point(spec: RunSpec) -> str:
    """Return `k=8 one_to_one with 8 subflows at 5 Mb/s`."""
    count = spec.transport.subflows
    how = labels.transport(spec) if count == 1 else f"{count} subflows"
    return f"{named(spec.topology)} {spec.workload.matrix} with {how} at {spec.link.rate_mbps:g} Mb/s"


def _hops(needs: PointLoad) -> str:
    return f"{_millions(needs.hops_per_s)} packet-hops/s"


def _millions(value: float) -> str:
    return f"{value / 1e6:.2g} M" if value < 1e7 else f"{value / 1e6:.0f} M"


def _gb(mb: float) -> str:
    return f"{mb / 1024:.1f} GB"
