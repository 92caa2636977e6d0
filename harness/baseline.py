"""The baseline of a point: the goodput that one uncongested TCP flow reaches on the same links.

Goodput in percent is relative to the baseline (the definition of the CS244 posts), so headers and the losses
of the stack cancel. A baseline is a separate point, found by its spec alone.
"""

from __future__ import annotations

import dataclasses
import math

from engines.registry import LINUX_HOSTS, SIMULATED_HOSTS, VIRTUAL_TIME
from fabric.plan import FRAME_BITS, PAYLOAD_SHARE
from model import tuning
from model.congestion import BASELINE, in_force
from model.flows import drawn_flows
from model.spec import (
    ELASTIC,
    FIFO,
    TCP,
    NoiseSpec,
    RunSpec,
    SamplingSpec,
    SchedulerSpec,
    StackSpec,
    WorkloadSpec,
)
from model.transports import USUAL_ROUTING
from topos import LANES, from_file

MATRIX = "reference"
TOLERANCE = 0.005
"""A baseline is right if it is within half a percent of its computed value."""
ROUND_TRIPS_OF_WARMUP = 20
"""With fewer, slow start may not have filled the path."""
MAX_WARMUP_S = 10.0
MAX_SECONDS = 20.0


def is_baseline(spec: RunSpec) -> bool:
    """Return whether this point is a baseline."""
    return spec.workload.matrix == MATRIX


def baseline_of(spec: RunSpec) -> RunSpec:
    """Return the baseline of `spec`: same links, stack and data plane, one TCP flow.

    One flow on an idle network settles at once and depends neither on a permutation nor on the choice of a
    path. So seed and routing are fixed, long sweeps share a baseline of at most 20 s, and one of several
    replicas is enough. Its packets are neither lost at random nor marked (they would be marked in the queue
    of its own host, where nothing competes): 100 % is what the links could carry. It has no priorities, link
    events, injected stalls or scheduler, and its network is undivided. Idempotent.
    """
    params = {name: 1 if name == LANES else size for name, size in spec.topology.params.items()}
    if spec.topology.kind == from_file.KIND:
        params["network"] = from_file.without_loss(str(params["network"]))
    return dataclasses.replace(
        spec,
        link=dataclasses.replace(spec.link, loss=0.0, random_pkts=0, ecn_pkts=0, discipline=FIFO),
        topology=dataclasses.replace(spec.topology, params=params),
        workload=WorkloadSpec(MATRIX),
        routing=USUAL_ROUTING,
        transport=dataclasses.replace(
            spec.transport,
            subflows=1,
            cc=in_force(spec.transport.cc, 1) if spec.transport.protocol == TCP else BASELINE,
            protocol=TCP,
        ),
        warmup_s=min(spec.warmup_s, MAX_WARMUP_S),
        seconds=min(spec.seconds, MAX_SECONDS),
        seed=1,
        sampling=SamplingSpec(),
        events=(),
        reroute_ms=0.0,
        scheduler=SchedulerSpec(),
        noise=NoiseSpec(),
        clock=ELASTIC,
        parts=1,
    )


def expected_mbps(spec: RunSpec) -> float | None:
    """Return the payload goodput in Mb/s of the baseline of `spec`, by arithmetic.

    One uncongested TCP flow fills its path, so its goodput is the rate of the slowest link times the share of
    payload in a full frame. None where that does not follow: a window or a queue smaller than what the path
    holds, a warm-up of few round trips, writes smaller than a segment, an engine without hosts.
    """
    spec = baseline_of(spec)
    if spec.engine not in {*LINUX_HOSTS, *SIMULATED_HOSTS} or spec.transport.write_bytes:
        return None
    path = _path(spec)
    if path is None:
        return None
    hops, speed, own_us = path
    rate_mbps = speed * spec.link.rate_mbps
    round_trip_us = hops * (2 * spec.link.delay_us + FRAME_BITS / rate_mbps) + 2 * own_us
    held_pkts = round_trip_us * rate_mbps / FRAME_BITS
    settled = spec.warmup_s * 1e6 >= ROUND_TRIPS_OF_WARMUP * round_trip_us
    if held_pkts > _room_pkts(spec) or not settled:
        return None
    return rate_mbps * _payload_share(spec)


def is_as_expected(spec: RunSpec, goodput_mbps: float | None) -> bool:
    """Return whether a baseline with this goodput is right, whatever the machine did meanwhile."""
    expected = expected_mbps(spec)
    if expected is None or goodput_mbps is None:
        return False
    return abs(goodput_mbps / expected - 1) <= TOLERANCE


def off_by_arithmetic(spec: RunSpec, goodput_mbps: float | None) -> str:
    """Return how a baseline between real hosts differs from its computed value.

    Empty if it does not differ, if nothing is expected, or in virtual time, where another run would give the
    same.
    """
    if not is_baseline(spec) or spec.engine in VIRTUAL_TIME or goodput_mbps is None:
        return ""
    expected = expected_mbps(spec)
    if expected is None or is_as_expected(spec, goodput_mbps):
        return ""
    return f"{goodput_mbps:.4g} Mb/s differs from the {expected:.4g} Mb/s that one uncongested flow must have"


def _path(spec: RunSpec) -> tuple[int, float, float] | None:
    """Return the number of links from sender to receiver, the speed of the slowest and the sum of the delays
    that they have of their own, in us; None if paths differ.

    Shortest paths are not listed: a network of a user may have exponentially many. The walk has, for each
    node at the same distance, the different speeds and delays of all ways to it.
    """
    topology = spec.network()
    (flow,) = drawn_flows(spec, topology)
    nics = topology.nic_pairs(topology.index(flow.src), topology.index(flow.dst))[0]
    src, dst = map(topology.attachment, nics)
    ends = [] if topology.hosts_forward else [topology.links[nic.link] for nic in nics]
    slowest = min((link.speed for link in ends), default=math.inf)
    distance = topology.distances_to(dst, src)
    ways: dict[int, set[tuple[float, float]]] = {src: {(slowest, sum(link.delay_us for link in ends))}}
    for left in reversed(range(distance.get(src, 0))):
        further: dict[int, set[tuple[float, float]]] = {}
        for here, found in ways.items():
            for there in topology.adjacency[here]:
                if distance.get(there) == left:
                    on = topology.links[topology.link_between(here, there)]
                    more = {(min(speed, on.speed), delay_us + on.delay_us) for speed, delay_us in found}
                    further.setdefault(there, set()).update(more)
        ways = further
        if any(len({delay_us for _, delay_us in found}) > 1 for found in ways.values()):
            return None  # they stay different on all further links
    (found,) = ways.values()
    return (distance[src] + len(ends), *found.pop()) if len(found) == 1 else None


def _room_pkts(spec: RunSpec) -> float:
    """Return what the smallest queue or window on the path holds, in full packets."""
    link, bits = spec.link, FRAME_BITS
    queue_pkts = link.queue_bytes * 8 / bits if link.queue_bytes else link.queue_pkts
    limits = [queue_pkts, link.nic_queue_pkts, *_windows_pkts(spec)]
    return min((limit for limit in limits if limit), default=math.inf)


def _windows_pkts(spec: RunSpec) -> list[float]:
    """Return how much the hosts' buffers allow in flight on a connection, in full packets; 0 for no limit."""
    if spec.engine in SIMULATED_HOSTS:
        return [spec.stack.send_buffer, spec.stack.receive_buffer]
    sysctls = {**tuning.KERNELS_OWN, **spec.transport.sysctls}
    buffers = [sysctls[name].split()[-1] for name in (tuning.WMEM, tuning.RMEM) if name in sysctls]
    return [int(size) / tuning.BUFFER_A_BYTE * 8 / FRAME_BITS for size in buffers if size.isdecimal()]


def _payload_share(spec: RunSpec) -> float:
    """Return the share of payload in a full frame of the hosts' stacks."""
    if spec.engine not in SIMULATED_HOSTS:
        return PAYLOAD_SHARE
    stack: StackSpec = spec.stack
    return stack.payload_bytes / (stack.payload_bytes + stack.header_bytes)
