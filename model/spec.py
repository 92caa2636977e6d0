"""RunSpec: everything that decides the outcome of one point, and nothing else.

A RunSpec is immutable, survives a JSON round trip, and has a stable content hash, so that a
result can be found again and never be mixed with another. Units stand in the names: Mb/s,
microseconds, packets, seconds. One root `seed`; every random decision derives its own
generator from it by name (`sub_seed`).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from common.errors import UsageError

MAX_SUBFLOWS = 32
SCHEMA = 4
FIFO = "fifo"
NO_SCHEDULER = "none"
PORT, QDISC = "port", "qdisc"
HOST_QUEUES = (PORT, QDISC)
"""A port of the fabric, which takes what the host hands it and drops what it has no room for; a queue
discipline of the host's kernel, which its TCP feels (engines/emulation/hosts/host_queues.py)."""
NOWHERE, OF_FABRIC, OF_HOSTS, OF_ALL = "", "fabric", "hosts", "all"
STALLED = (NOWHERE, OF_FABRIC, OF_HOSTS, OF_ALL)
ELASTIC, STRICT = "elastic", "strict"
CLOCKS = (ELASTIC, STRICT)
"""The fabric's time stands still while the machine does, or it is real time whatever the machine does."""
_SIZES = ("n", "k", "first", "da", "leaves")
_LATER = {"later": True}
"""Metadata of fields that came after the first results: at their defaults they are no part of the hash."""


@dataclass(frozen=True)
class TopologySpec:
    """A topology's registry name and its integer parameters, e.g. `fat_tree`, `{"k": 8}`."""

    kind: str = "fat_tree"
    params: Mapping[str, int] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """The FatTree arity, the star's host count, a bottleneck's pairs: the size of the summary."""
        return next((self.params[name] for name in _SIZES if name in self.params), 0)


@dataclass(frozen=True)
class LinkSpec:
    """Every link of the network: rate, one-way propagation delay, queue capacity in each direction.

    `queue_pkts` counts the packet in transmission too (as a NIC ring and htsim do), 0 is unbounded;
    `queue_bytes`, when not 0, limits by bytes instead. `nic_queue_pkts` is the capacity of the
    hosts' own transmit queue, which is a port of the fabric. A frame that enters a link between switches
    is lost at random with probability `loss`. A port marks an ECN-capable packet that finds `ecn_pkts` or
    more packets queued (RFC 3168), 0 is never. The last `random_pkts` places of a switch's queue are given by
    chance, so that flows in step do not lose in step (Floyd and Jacobson, 1992). `discipline` says which
    packet a switch's port sends next, by a name of fabric/core/disciplines/registry.hpp; hosts' are FIFOs.
    `host_queue` is what a real host's own queue is, by a name of HOST_QUEUES.
    """

    rate_mbps: float
    delay_us: float = 0.0
    queue_pkts: int = 100
    queue_bytes: int = 0
    nic_queue_pkts: int = 100
    loss: float = 0.0
    ecn_pkts: int = 0
    random_pkts: int = 0
    discipline: str = FIFO
    host_queue: str = PORT

    def __post_init__(self) -> None:
        _as_floats(self)


@dataclass(frozen=True)
class TransportSpec:
    """End hosts' transport. `subflows == 1` is plain TCP; 2..32 is MPTCP.

    `cc` is a name of model/congestion.py; plain TCP runs reno where that is a coupled one. `sysctls`
    (name with dots -> value) are written in every host's namespace, after what the run itself needs.
    Senders write `write_bytes` at a time; 0 is the traffic driver's own choice. MPTCP's further subflows join
    when the first has been up for `join_after_ms` or has had `join_after_bytes` acknowledged, whichever comes
    first; 0 says nothing about it, and where both are 0 they join at once.
    """

    subflows: int = 1
    cc: str = "reno"
    sysctls: Mapping[str, str] = field(default_factory=dict)
    write_bytes: int = 0
    join_after_ms: float = field(default=0.0, metadata=_LATER)
    join_after_bytes: int = field(default=0, metadata=_LATER)

    def __post_init__(self) -> None:
        _as_floats(self)

    @property
    def name(self) -> str:
        return "tcp" if self.subflows == 1 else "mptcp"

    @property
    def joins_late(self) -> bool:
        """Whether MPTCP starts as one subflow, and may end so."""
        return self.subflows > 1 and bool(self.join_after_ms or self.join_after_bytes)


@dataclass(frozen=True)
class LinkEvent:
    """At `t_s` from the start of traffic the link between the nodes called `a` and `b`, both directions, goes
    to `share` of its rate: 0 is a cut, 1 as before."""

    t_s: float
    a: str
    b: str
    share: float = 0.0

    def __post_init__(self) -> None:
        _as_floats(self)


@dataclass(frozen=True)
class StackSpec:
    """The stacks of simulated hosts; an emulation's are what its kernel makes them.

    Bytes on the wire are payload and `header_bytes`, an acknowledgement is `ack_bytes`; windows and buffers
    are in full segments, `ssthresh`, `send_buffer`, `receive_buffer` (both of a connection) and
    `subflow_buffer` (what the scheduler `burst` binds to one at most) 0 for none. `acks` is `routed` (packets
    that take a path) or `at_once` (no path, no time). MPTCP's options take `mptcp_bytes` of a segment's
    payload and add `mptcp_ack_bytes` to an acknowledgement; with `ack_gaps` data beyond a gap of
    the connection's is acknowledged without delay. Senders wait for room in their host's queue
    (`nic_waits`), or it drops. `dup_threshold` duplicates mean a loss, however packets overtake each other;
    0: three to begin with, and more where they do. `replacement` is whether a connection's subflows may be
    given the same path. `recovery` is `rfc` (RFC 6675, or 6582 without SACK; 6298) or `linux` (with
    proportional rate reduction, early retransmit, timeouts taken back, and Linux's least timeout);
    `handshake` sends a SYN before data.
    Flows start within `start_spread_ms` of each other, at random.
    The defaults are Linux's, on Ethernet.
    """

    payload_bytes: int = 1448
    header_bytes: int = 66
    ack_bytes: int = 66
    mptcp_bytes: int = 0
    mptcp_ack_bytes: int = 0
    ack_gaps: bool = False
    nic_waits: bool = True
    initial_window: int = 10
    ssthresh: int = 0
    min_rto_ms: float = 200.0
    delayed_ack_ms: float = 40.0
    sack: bool = True
    dup_threshold: int = field(default=0, metadata=_LATER)
    acks: str = "routed"
    scheduler: str = "min_rtt"
    reinject: bool = True
    replacement: bool = True
    send_buffer: int = 0
    receive_buffer: int = 0
    subflow_buffer: int = 0
    recovery: str = "rfc"
    handshake: bool = False
    start_spread_ms: float = 0.0

    def __post_init__(self) -> None:
        _as_floats(self)


def stack_words(stack: StackSpec) -> str:
    """What of it is not as usual, as one types it: `acks=at_once min_rto_ms=10`; empty where all is."""
    usual = StackSpec()
    told = ((f.name, getattr(stack, f.name)) for f in dataclasses.fields(StackSpec))
    return " ".join(f"{name}={typed(value)}" for name, value in told if value != getattr(usual, name))


def typed(value: object) -> str:
    """A field's value as one types it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class OpenFlowSpec:
    """Of the data plane `ovs`: by which controller it is programmed and when, and which of Open vSwitch's
    datapaths carries packets: names of model/openflow.py."""

    controller: str = "osken"
    mode: str = "reactive"
    datapath: str = "auto"


@dataclass(frozen=True)
class SchedulerSpec:
    """A central scheduler of flows, by its name in controllers/schedulers.py or NO_SCHEDULER, and how often
    it looks at the network; 0 is an ideal one, which looks whenever a flow has begun or ended, and takes all
    flows for large (engines/simulation/scheduled.py)."""

    name: str = NO_SCHEDULER
    interval_ms: float = 0.0

    def __post_init__(self) -> None:
        _as_floats(self)

    @property
    def ideal(self) -> bool:
        return self.interval_ms == 0


@dataclass(frozen=True)
class NoiseSpec:
    """Stalls of CPUs, made on purpose (model/noise.py).

    `where` is a name of STALLED: nowhere, the CPU of the fabric's core, the hosts' CPUs, or all CPUs at once.
    Stalls begin every `every_ms` on average, after an exponential time without one, and last from `least_ms`
    to `most_ms`, uniformly.
    """

    where: str = NOWHERE
    every_ms: float = 0.0
    least_ms: float = 0.0
    most_ms: float = 0.0

    def __post_init__(self) -> None:
        _as_floats(self)


@dataclass(frozen=True)
class WorkloadSpec:
    """A traffic matrix by registry name, and its parameters, integers or texts. `reference` is one
    uncongested flow across the network."""

    matrix: str = "one_to_one"
    params: Mapping[str, int | str] = field(default_factory=dict)


@dataclass(frozen=True)
class SamplingSpec:
    """What is looked at beside goodput, link and CPU use, which are seen once a second always.

    Intervals in ms, 0 for never: every port's queue; cwnd, srtt and retransmits of every subflow at its
    sender; pings along the paths of every subflow. Not part of a spec's identity: looking must
    not change what is seen (benchmarks/sampling.py).
    """

    queues_ms: int = 0
    sockets_ms: int = 0
    pings_ms: int = 0

    def covers(self, asked: SamplingSpec) -> bool:
        """Whether everything `asked` for is seen here at least as often."""
        return self.joined(asked) == self

    def joined(self, other: SamplingSpec) -> SamplingSpec:
        """What both ask for, each at the shorter interval."""
        ours, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return SamplingSpec(*(min(a, b) or max(a, b) for a, b in zip(ours, theirs, strict=True)))


@dataclass(frozen=True)
class RunSpec:
    """One point of an experiment."""

    link: LinkSpec
    topology: TopologySpec = field(default_factory=TopologySpec)
    transport: TransportSpec = field(default_factory=TransportSpec)
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    engine: str = "mininet"
    dataplane: str = "fabric"
    routing: str = "hashed"
    traffic: str = "iperf3"
    warmup_s: float = 10.0
    seconds: float = 40.0
    seed: int = 1
    sampling: SamplingSpec = field(default_factory=SamplingSpec)
    stack: StackSpec = field(default_factory=StackSpec)
    events: tuple[LinkEvent, ...] = ()
    openflow: OpenFlowSpec = field(default_factory=OpenFlowSpec, metadata=_LATER)
    scheduler: SchedulerSpec = field(default_factory=SchedulerSpec, metadata=_LATER)
    noise: NoiseSpec = field(default_factory=NoiseSpec, metadata=_LATER)
    clock: str = field(default=ELASTIC, metadata=_LATER)

    def __post_init__(self) -> None:
        _as_floats(self)
        given = (e if isinstance(e, LinkEvent) else LinkEvent(**e) for e in self.events)
        object.__setattr__(self, "events", tuple(given))

    def as_tcp(self) -> RunSpec:
        """The same with one subflow: points that differ in subflows alone have this in common."""
        return dataclasses.replace(self, transport=dataclasses.replace(self.transport, subflows=1))

    def neutral(self, *paths: str) -> RunSpec:
        """Return a copy in which the fields at `paths` have their default values, 0 where they have none.

        A path is a field (`seed`, `topology`) or a field of a part (`transport.subflows`). Raises ValueError
        for a path that leads to no field."""
        return functools.reduce(_neutral, paths, self)

    def key(self, *, ignoring: Iterable[str] = ()) -> str:
        """Return a text that is equal for specs that differ at most in sampling and the fields `ignoring`,
        given as paths as in `neutral`."""
        return self.neutral(*ignoring).canonical()

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types, keys sorted by `canonical`."""
        return dataclasses.asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Inverse of `to_json`. Raises UsageError on a field this version does not know."""
        nested = {
            "link": LinkSpec,
            "topology": TopologySpec,
            "transport": TransportSpec,
            "workload": WorkloadSpec,
            "sampling": SamplingSpec,
            "stack": StackSpec,
            "openflow": OpenFlowSpec,
            "scheduler": SchedulerSpec,
            "noise": NoiseSpec,
        }
        try:
            return cls(**{k: nested[k](**v) if k in nested else v for k, v in data.items()})
        except TypeError as error:
            raise UsageError(f"this is not a RunSpec of this version of refabric: {error}") from error

    def canonical(self) -> str:
        """Return the JSON text of what decides the outcome: equal for specs that differ in sampling alone.

        Later fields are left out where they have their defaults, so that older points are found again.
        """
        decisive = {name: value for name, value in self.to_json().items() if name != "sampling"}
        for name in _unused(self):
            del decisive[name]
        for name, part in decisive.items():
            for unused in _unused(getattr(self, name)):
                del part[unused]
        return json.dumps(
            {"schema": SCHEMA, **decisive}, sort_keys=True, separators=(",", ":"), default=float
        )

    def content_hash(self) -> str:
        """12 hex digits of SHA-256 over `canonical()`."""
        return self._hash

    @functools.cached_property
    def _hash(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:12]


def _unused(part: Any) -> list[str]:
    """Return the later fields of a part of a spec that have their defaults."""
    kind: Any = type(part)
    return [name for name, default in _later(kind).items() if getattr(part, name) == default]


@functools.cache
def _later(kind: Any) -> dict[str, Any]:
    """Return the defaults of the later fields of a class; none of what is no part of a spec."""
    fields = dataclasses.fields(kind) if dataclasses.is_dataclass(kind) else ()
    return {
        f.name: f.default if f.default_factory is dataclasses.MISSING else f.default_factory()
        for f in fields
        if f.metadata.get("later")
    }


@functools.cache
def _float_fields(kind: Any) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(kind) if f.type in ("float", float))


def _neutral(spec: RunSpec, path: str) -> RunSpec:
    name, _, inner = path.partition(".")
    changed: dict[str, Any] = {name: _default(spec, name)}
    if inner:
        part = getattr(spec, name)
        changed = {name: dataclasses.replace(part, **{inner: _default(part, inner)})}
    return dataclasses.replace(spec, **changed)


def _default(of: Any, name: str) -> Any:
    known = {one.name: one for one in dataclasses.fields(of)} if dataclasses.is_dataclass(of) else {}
    if name not in known:
        raise ValueError(f"{type(of).__name__} has no field {name}")
    found = known[name]
    if found.default_factory is not dataclasses.MISSING:
        return found.default_factory()
    return 0 if found.default is dataclasses.MISSING else found.default


def _as_floats(spec: object) -> None:
    """5 and 5.0 are one rate, and must have one hash."""
    kind: Any = type(spec)
    for name in _float_fields(kind):
        object.__setattr__(spec, name, float(getattr(spec, name)))


def sub_seed(seed: int, name: str) -> int:
    """A 32-bit seed for the decision called `name`, independent of every other name's."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4], "big")
