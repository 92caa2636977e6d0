"""RunSpec: everything that determines the result of one point, and nothing else.

A RunSpec is immutable, survives a JSON round trip, and has a stable content hash, so that a stored result can
be found by its spec. Names contain units: Mb/s, microseconds, packets, seconds. There is one root `seed`;
every random decision derives its own generator from it by name (`sub_seed`).

A spec that exists is valid, wherever it comes from: a field states its range (`within`) or its known names
(`among`), and rules between fields are in `__post_init__` of the class. A field also states its words in
labels (`called`; model/words.py).
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec

import topos
from ccp.names import SUFFIX, OwnAlgorithm
from common.errors import UsageError
from common.text import did_you_mean
from controllers import schedulers
from controllers.routing import POLICIES, canonical
from fabric._core import QueueSetting, TransportOptions, check_queue, queue_kinds, transport_kinds
from fabric._core import schedulers as subflow_schedulers
from model.congestion import BASELINE, CONGESTION_CONTROLS, in_force, is_known
from workloads import matrices

if TYPE_CHECKING:
    from fabric._core import QueueKind, TransportKind

MAX_SUBFLOWS = 32
MAX_PARTS = 64
SCHEMA = 6
"""Part of every hash. It goes up when the meaning of a spec changes."""
FIFO = "fifo"
NO_SCHEDULER = "none"
PORT, QDISC = "port", "qdisc"
HOST_QUEUES = (PORT, QDISC)
"""A port of the fabric, which drops what it has no room for; or a queue discipline of the host's kernel, by
which its TCP is limited (engines/emulation/hosts/hosts.py)."""
NOWHERE, OF_FABRIC, OF_HOSTS, OF_ALL = "", "fabric", "hosts", "all"
STALLED = (NOWHERE, OF_FABRIC, OF_HOSTS, OF_ALL)
NEW, PERSISTENT = "new", "persistent"
REMAINING, SENT = "remaining", "sent"
ELASTIC, STRICT = "elastic", "strict"
CLOCKS = (ELASTIC, STRICT)
"""The elastic clock pauses while the machine stalls; the strict clock is real time."""
VIRTUAL = "virtual"
"""Clock of a guest of the engine `linux`, which sets it itself: work takes no time, so nothing is ever
late. No option selects it."""
_SIZES = ("n", "k", "first", "da", "leaves", "switches")
TRAFFIC = ("iperf3", "native")
"""Programs that generate the traffic of real hosts."""
RESPONSIVE = "responsive"
SCHEDULERS = (NO_SCHEDULER, *schedulers.SCHEDULERS, RESPONSIVE)
CONTROLLERS: Mapping[str, str] = {
    "osken": "OpenFlow 1.3 with os-ken's encoder, in a process of the run",
    "pox": "the same logic as a component of POX, OpenFlow 1.0",
}
REMOTE, COMMAND = "remote:", "cmd:"
OWN = f"{REMOTE}PORT (your controller on this machine) or {COMMAND}'PROGRAM ...' (run inside, at port 6653)"
"""The user's own controllers, which make all decisions."""
MAX_PORT = 65535
MODES: Mapping[str, str] = {
    "reactive": "the controller installs a flow's rules when its first packet arrives",
    "proactive": "the controller installs tables and groups before any flow",
    "hybrid": "tables towards hosts in advance, rules of each flow towards the core",
}
DATAPATHS: Mapping[str, str] = {
    "auto": "the kernel's datapath if there is one, else user space",
    "kernel": "the kernel module openvswitch",
    "user": "Open vSwitch's datapath in user space",
}
Settings = Mapping[str, Any]
"""Values of fields of a RunSpec, by path: `{"routing": "ecmp", "link.queue_pkts": 20}`."""
RANGE, NAMES, CANONICAL, WORDS = "range", "names", "canonical", "words"
"""The keys of a field's range, its known names, its canonical form and its words in its metadata."""
IN_ORDER = "in-order"
"""The FIFO of a traced link, whose departures are not known on arrival. No option selects it."""
QUEUES = {kind.name: kind for kind in queue_kinds() if kind.name != IN_ORDER}
"""The core's queues (fabric/core/disciplines/registry.cpp): their settings, and what hosts need for them."""
TCP = "tcp"
TRANSPORTS = {kind.name: kind for kind in transport_kinds()}
"""The core's transports (fabric/simulation/transport.hpp) and their settings. Real hosts have TCP alone."""
MAX_TIME_S = 1e6
"""11 days; the core counts picoseconds in 64 bits, which last nine times as long."""
MAX_SEGMENTS = 10**9
"""Largest window, buffer and threshold: the core counts them in 32 bits."""
MAX_QUEUE_PKTS = 1_000_000
MIN_QUEUE_BYTES, MAX_QUEUE_BYTES = 1514, 1 << 40
MAX_FRAME_BYTES = 9000
MAX_BITS = 1000
"""Whole numbers of more bits are no floats."""
MAX_RTO_MS = 120_000.0
"""The longest timeout (Linux: include/net/tcp.h, TCP_RTO_MAX)."""
MAX_STALL_MS = 500.0
MAX_STALLED = 0.5
"""Largest share of time in stalls; above it they approach the kernel's limit on real-time threads."""
MIN_SHARE = 1e-4
"""Smallest share of its rate that a link may keep unless it is cut: packets take 10,000 times as long."""
_SYSCTL = re.compile(r"net(\.[a-z0-9_]+)+")


@dataclass(frozen=True)
class Limits:
    """The smallest and the largest value of a field, both allowed, in `unit`.

    `whole` fields are integers. With `zero`, 0 is allowed too, below `least`.
    """

    least: float
    most: float
    unit: str = ""
    whole: bool = False
    zero: bool = False

    def problem(self, value: object) -> str:
        """Return what is wrong with the value, `must be at most 9000 bytes`; empty if it is valid."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return "must be a number"
        if self.whole and not isinstance(value, int):
            return "must be a whole number"
        if self.zero and value == 0:
            return ""
        if (isinstance(value, float) and not math.isfinite(value)) or value < self.least:
            least = f"{'0 or ' if self.zero else ''}at least {exact_digits(self.least)}"
            return f"must be {least} {self.unit}".rstrip()
        if value > self.most:
            return f"must be at most {exact_digits(self.most)} {self.unit}".rstrip()
        return ""


def within(least: float, most: float, unit: str = "", *, zero: bool = False) -> dict[str, Limits]:
    """Return the metadata of a field with this range. Its type determines whether numbers are whole."""
    return {RANGE: Limits(least, most, unit, zero=zero)}


def called(words: Callable[[Any], str]) -> dict[str, Callable[[Any], str]]:
    """Return the metadata of a field whose unusual values have these words (model/words.py)."""
    return {WORDS: words}


def among(known: Collection[str], before: str) -> dict[str, tuple[Collection[str], str]]:
    """Return the metadata of a field with these known names. `before` is what a user types before the name:
    `--clock `, `--stack acks=`."""
    return {NAMES: (known, before)}


def written(canonical: Callable[[str], str]) -> dict[str, Callable[[str], str]]:
    """Return the metadata of a text of which `canonical` returns the only form, or raises UsageError."""
    return {CANONICAL: canonical}


def _in_core(name: str) -> dict[str, tuple[Collection[str], str]]:
    """Return the metadata of a field of the stack that has the names of the core's enumeration."""
    return among(tuple(type(getattr(TransportOptions(), name)).__members__), f"--stack {name}=")


def exact_digits(value: float) -> str:
    """Return the number as a user types it: whole numbers in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:g}"


def check_name(before: str, value: object, known: Collection[str]) -> None:
    """Raise UsageError that lists the known names if `value` is none of them."""
    if value not in known:
        meant = did_you_mean(str(value), known)
        raise UsageError(f"{before}{value}: unknown; {meant}choose from: {', '.join(filter(None, known))}")


def value_words(value: Any) -> str:
    """Return a field's value for a message; numbers of more than 15 digits are shortened."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number:
        return repr(value)
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"about 2^{value.bit_length()}"
    return exact_digits(value) if abs(value) < 1e15 else f"{value:g}"


def queue_text(given_text: str) -> str:
    """Return the text of a queue and its unusual settings, in the order of their declaration:
    `codel:target_us=1000,ecn=1`. Raises UsageError, which lists the known names."""
    name, given, text = _read_settings("--discipline ", given_text, QUEUES)
    try:
        check_queue(name, given)
    except ValueError as error:
        raise UsageError(f"--discipline {given_text}: {error}") from None
    return text


def transport_text(given_text: str) -> str:
    """Return the text of a transport and its unusual settings: `ndp:window_pkts=23`. Raises UsageError."""
    return _read_settings("--transport ", given_text, TRANSPORTS)[2]


def _read_settings(
    before: str, given_text: str, kinds: Mapping[str, QueueKind | TransportKind]
) -> tuple[str, dict[str, float], str]:
    """Return the name, the given settings, and the name with those that are unusual."""
    what = f"{before}{given_text}"
    name, colon, rest = given_text.partition(":")
    check_name(before, name, kinds)
    known, given = {each.name: each for each in kinds[name].settings}, dict[str, float]()
    for text in rest.split(",") if colon else ():
        setting, _, number = (part.strip() for part in text.partition("="))
        if setting not in known or setting in given:
            which = "is given twice" if setting in given else "is no setting"
            has = usual_settings(kinds[name]) or "none"
            raise UsageError(f"{what}: {setting!r} {which}; {name} has {has}")
        given[setting] = _setting(f"{what}: {text.strip()}", known[setting], number)
    unusual = {each: given[each] for each in known if given.get(each, known[each].usual) != known[each].usual}
    settings = ",".join(f"{each}={value!r}" for each, value in unusual.items())
    return name, given, f"{name}:{settings}" if settings else name


def given_settings(text: str) -> dict[str, float]:
    """Return the settings in the canonical text of a queue or a transport."""
    texts = filter(None, text.partition(":")[2].split(","))
    return {name: float(number) for name, _, number in (each.partition("=") for each in texts)}


def usual_settings(kind: QueueKind | TransportKind) -> str:
    """Return the settings of a queue or a transport with their usual values: `target_us=5000 (acceptable time
    in ...)`."""
    words = [f"{each.name}={exact_digits(each.usual)} ({each.words})" for each in kind.settings]
    return ", ".join(words)


def _setting(what: str, of: QueueSetting, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"{what}: give a number{f' of {of.unit}' if of.unit else ''}") from None
    value = int(value) if value.is_integer() else value
    if wrong := Limits(of.least, of.most, of.unit, whole=of.whole).problem(value):
        raise UsageError(f"{what}: {wrong}")
    return value


def _check_fields(part: Any, at: str = "") -> None:
    """Raise UsageError, in one line, for a number outside the range of its field, and for an unknown name.

    Whole numbers in fields of type float become floats, and texts get their canonical form: 5 and 5.0 are one
    rate and must have one hash.
    """
    kind: Any = type(part)
    for name, type_, limits, names, form in _rules(kind):
        value = getattr(part, name)
        if limits is not None:
            if wrong := limits.problem(value):
                raise UsageError(f"{at}{name} of {value_words(value)}: {wrong}")
            if type(value) is not type_:
                object.__setattr__(part, name, type_(value))
        elif type_ is bool and not isinstance(value, bool):
            raise UsageError(f"{at}{name} of {value!r}: must be on or off")
        elif form is not None:
            object.__setattr__(part, name, form(str(value)))
        elif names is not None:
            check_name(names[1], value, names[0])


_Names = tuple[Collection[str], str]
_Form = Callable[[str], str]


@functools.cache
def _rules(kind: Any) -> tuple[tuple[str, type, Limits | None, _Names | None, _Form | None], ...]:
    """Return name, type, range, known names and canonical form of the fields of a class that have rules."""
    types = {"int": int, "float": float, "bool": bool}
    found = []
    for each in dataclasses.fields(kind):
        type_, limits, names = types.get(str(each.type), str), _metadata(each, RANGE), _metadata(each, NAMES)
        if limits is not None or names is not None or type_ is bool:
            found.append((each.name, type_, limits, names, _metadata(each, CANONICAL)))
    return tuple(found)


def _metadata(of: dataclasses.Field[Any], key: str) -> Any:
    """Return what a field states under `key`, a range with whether its numbers are whole; None if nothing."""
    found = of.metadata.get(key)
    return dataclasses.replace(found, whole=of.type == "int") if key == RANGE and found else found


_TIME_MS = within(0, 1000 * MAX_TIME_S, "ms")
_STALL_MS = within(0, MAX_STALL_MS, "ms")
_RTO_MS = within(0, MAX_RTO_MS, "ms")
_SEGMENTS = within(0, MAX_SEGMENTS, "segments")
_DELAY_US = within(0, 10_000_000.0, "us")
_PACKETS = within(0, MAX_QUEUE_PKTS, "packets")
_QUEUE_BYTES = within(MIN_QUEUE_BYTES, MAX_QUEUE_BYTES, "bytes", zero=True)
_FRAME = within(1, MAX_FRAME_BYTES, "bytes")
_SAMPLE_MS = within(0, 10**9, "ms")


@dataclass(frozen=True)
class TopologySpec:
    """A topology's registry name and its parameters, e.g. `fat_tree`, `{"k": 8}`; only `file` has texts.

    It may name a network that is too large to be built, as published ones are: options, `RunSpec.from_json`
    and `topos.build` check it.
    """

    kind: str = "fat_tree"
    params: Mapping[str, int | str] = field(default_factory=dict)

    @property
    def k(self) -> int:
        """The main size for the summary: the FatTree's k, the star's hosts, a bottleneck's pairs."""
        sizes = (self.params[name] for name in _SIZES if name in self.params)
        return next((size for size in sizes if isinstance(size, int)), 0)

    def number(self, name: str, default: int = 0) -> int:
        """Return the parameter `name` if it is a number, else `default`."""
        value = self.params.get(name, default)
        return value if isinstance(value, int) else default


@dataclass(frozen=True)
class LinkSpec:
    """All links of the network: rate, one-way propagation delay, queue capacity in each direction.

    `queue_pkts` includes the packet in transmission (as in a NIC ring and in htsim); 0 means unbounded.
    `queue_bytes`, if not 0, limits by bytes instead. `nic_queue_pkts` is the capacity of the hosts' own
    transmit queue, which is a port of the fabric. A frame on a link between switches is lost at random with
    probability `loss`. A port marks an ECN-capable packet that finds `ecn_pkts` or more packets queued (RFC
    3168); 0 means never. Packets are dropped at random in the last `random_pkts` slots of a switch's queue,
    so that synchronised flows do not lose packets in the same order each time (Floyd and Jacobson, 1992).
    `discipline` is the queue of a switch's port and its unusual settings (`queue_text`): what it drops and
    marks, and which packet is sent next; hosts' queues are FIFOs, except where it sorts by rank or is
    lossless.
    `host_queue` is the kind of a real host's own queue, by a name of HOST_QUEUES. `host_delay_us` is added to
    the delay of hosts' links, in each direction: the time that hosts themselves take. With a `trace`
    (model/links.py) links between switches carry packets at its delivery opportunities instead of at
    their rate. The transmit clock of each node is off by a random share of up to `clock_ppm` millionths; IEEE
    802.3 allows 100. So two nodes that send all the time do not keep their phase.
    """

    rate_mbps: float = field(metadata=within(0.01, 400_000.0, "Mb/s"))
    delay_us: float = field(default=0.0, metadata=_DELAY_US | called("{:g} us per link".format))
    queue_pkts: int = field(default=100, metadata=within(0, MAX_QUEUE_PKTS, "packets (0: unbounded)"))
    queue_bytes: int = field(default=0, metadata=_QUEUE_BYTES | called("queues of {} bytes".format))
    nic_queue_pkts: int = field(default=100, metadata=_PACKETS)
    loss: float = field(
        default=0.0, metadata=within(0, 0.5) | called(lambda share: f"{100 * share:g} % random loss")
    )
    ecn_pkts: int = field(default=0, metadata=_PACKETS | called("ECN from {} packets".format))
    random_pkts: int = field(default=0, metadata=_PACKETS | called("random drop in the last {} slots".format))
    discipline: str = field(
        default=FIFO,
        metadata=among(QUEUES, "--discipline ") | written(queue_text) | called("{} queues".format),
    )
    host_queue: str = field(
        default=PORT,
        metadata=among(HOST_QUEUES, "--host-queue ") | called(lambda _: "host queues in the kernel"),
    )
    host_delay_us: float = field(default=0.0, metadata=_DELAY_US | called("{:g} us more in hosts".format))
    trace: str = ""
    clock_ppm: float = field(
        default=100.0, metadata=within(0, 10_000.0, "ppm") | called("clocks within {:g} ppm".format)
    )

    def __post_init__(self) -> None:
        _check_fields(self, "link.")
        if 0 < self.queue_pkts <= self.ecn_pkts:
            raise UsageError(
                f"--ecn {self.ecn_pkts}: a queue of {self.queue_pkts} packets drops before it marks any; "
                "choose a threshold below --queue"
            )
        held = self.queue_limit_pkts
        if self.random_pkts > held:
            has = f"holds {held} packets" if held else "has no limit"
            raise UsageError(
                f"--random-drop {self.random_pkts}: the queue {has}; choose no more slots than it has"
            )

    @property
    def queue(self) -> str:
        """The name of the queue, without its settings."""
        return self.discipline.partition(":")[0]

    @property
    def queue_settings(self) -> dict[str, float]:
        """The unusual settings of the queue."""
        return given_settings(self.discipline)

    @property
    def marks(self) -> bool:
        """Whether queues mark packets, so that hosts negotiate ECN."""
        return self.ecn_pkts > 0 or QUEUES[self.queue].marks or self.queue_settings.get("ecn", 0) != 0

    @property
    def lossless(self) -> bool:
        """Whether switches stop senders by pause frames before they have no room."""
        return QUEUES[self.queue].lossless

    @property
    def queue_limit_pkts(self) -> int:
        """The limit of a switch's queue in full packets; 0 if it is unbounded."""
        return self.queue_bytes // MIN_QUEUE_BYTES if self.queue_bytes else self.queue_pkts


@dataclass(frozen=True)
class TransportSpec:
    """Transport of the end hosts. `protocol` is a name of TRANSPORTS and its unusual settings
    (`transport_text`). Under TCP, `subflows == 1` is plain TCP; 2 to 32 is MPTCP. Another transport has no
    subflows, and its own congestion control: `cc` is its name.

    `cc` is a name of model/congestion.py; plain TCP runs reno if that is a coupled algorithm. `sysctls` (name
    with dots -> value) are written in every host's namespace, after those that the run itself needs. Senders
    write `write_bytes` at a time; 0 leaves it to the traffic program. MPTCP's further subflows join when the
    first has been established for `join_after_ms`, or when `join_after_bytes` of it were acknowledged,
    whichever comes first. 0 disables a condition; if both are 0, they join at once. `algorithm` is the text
    of the user's file that `cc` names, as JSON, so that a change of the file is another point.
    """

    subflows: int = field(default=1, metadata=within(1, MAX_SUBFLOWS))
    cc: str = "reno"
    sysctls: Mapping[str, str] = field(default_factory=dict)
    write_bytes: int = field(
        default=0, metadata=within(0, 1 << 20, "bytes") | called("writes of {} bytes".format)
    )
    join_after_ms: float = field(default=0.0, metadata=_TIME_MS)
    join_after_bytes: int = field(default=0, metadata=within(0, 1 << 50, "bytes"))
    algorithm: str = ""
    protocol: str = field(
        default=TCP,
        metadata=among(TRANSPORTS, "--transport ")
        | written(transport_text)
        | called(lambda text: text.partition(":")[2]),
    )

    def __post_init__(self) -> None:
        _check_fields(self, "transport.")
        self._check_protocol()
        if self.protocol == TCP and not is_known(self.cc):
            check_name("--cc ", self.cc, CONGESTION_CONTROLS)
        for name, value in self.sysctls.items():
            if not _SYSCTL.fullmatch(name) or not value.strip():
                raise UsageError(
                    f"--sysctl {name}={value}: write NAME=VALUE with a name of net.*, e.g. "
                    "--sysctl net.ipv4.tcp_sack=0"
                )
        if isinstance(self.cc, OwnAlgorithm):
            object.__setattr__(self, "algorithm", json.dumps(self.cc.text))
            object.__setattr__(self, "cc", str(self.cc))
        elif not self.cc.endswith(SUFFIX):
            object.__setattr__(self, "algorithm", "")

    def _check_protocol(self) -> None:
        name = self.protocol.partition(":")[0]
        if name == TCP:
            return
        if self.subflows > 1:
            raise UsageError(f"--transport {name}: its flows have no subflows: choose --subflows 1")
        if self.cc != name and in_force(self.cc, 1) != BASELINE:
            raise UsageError(
                f"--transport {name}: it has its own congestion control, so --cc {self.cc} has no effect: "
                "leave it out"
            )
        object.__setattr__(self, "cc", name)

    @property
    def algorithm_text(self) -> str:
        """The user's file; empty without one. Raises UsageError if the spec does not hold it."""
        if not self.cc.endswith(SUFFIX):
            return ""
        try:
            return str(json.loads(self.algorithm))
        except ValueError:
            raise UsageError(f"--cc {self.cc}: the spec does not have its text") from None

    @property
    def name(self) -> str:
        name = self.protocol.partition(":")[0]
        return "mptcp" if name == TCP and self.subflows > 1 else name

    @property
    def joins_late(self) -> bool:
        """Whether MPTCP starts with one subflow; a short flow may end before the others join."""
        return self.subflows > 1 and bool(self.join_after_ms or self.join_after_bytes)


@dataclass(frozen=True)
class AgentSpec:
    """The agent of a congestion control plane (docs/ccp.md).

    Simulated datapaths get the answer to a report after `delay_us` and a random time of up to `jitter_us`;
    real ones when it comes. Programs that report once per round trip report every `report_us` instead, if
    that is not 0.
    """

    delay_us: float = field(default=280.0, metadata=_DELAY_US | called("agent {:g} us away".format))
    jitter_us: float = field(default=0.0, metadata=_DELAY_US | called("agent jitter {:g} us".format))
    report_us: int = field(default=0, metadata=_DELAY_US | called("reports every {} us".format))

    def __post_init__(self) -> None:
        _check_fields(self, "agent.")


@dataclass(frozen=True)
class LinkEvent:
    """A change of the link between nodes `a` and `b`, in both directions, `t_s` after the start of traffic.

    The link gets `share` of its rate: 0 cuts it, 1 restores it.
    """

    t_s: float = field(metadata=within(0, MAX_TIME_S, "s"))
    a: str
    b: str
    share: float = field(default=0.0, metadata=within(MIN_SHARE, 1, "(full rate)", zero=True))

    def __post_init__(self) -> None:
        _check_fields(self, "event.")
        if not (self.a and self.b) or any(mark in self.a + self.b for mark in "-:"):
            raise UsageError(
                f"--event {self.t_s:g}:{self.a}-{self.b}:{self.share:g}: write "
                "SECONDS:NODE-NODE[:SHARE], e.g. --event 10:p0a0-c0 for a cut after 10 s, or :0.5 at its "
                "end for half the rate"
            )


@dataclass(frozen=True)
class StackSpec:
    """The stacks of simulated hosts. Real hosts use those of their kernel.

    A packet has its payload and `header_bytes` on the wire, an acknowledgement `ack_bytes`. Windows and
    buffers are in full segments. For `ssthresh`, `send_buffer` and `receive_buffer` (of a connection), and
    `subflow_buffer` (the most that the scheduler `burst` assigns to one subflow), 0 means no limit.

    Acknowledgements (`acks`) are `routed` (packets that take a path) or `at_once` (no path, no time). MPTCP's
    options take `mptcp_bytes` of a segment's payload and add `mptcp_ack_bytes` to an acknowledgement. With
    `ack_gaps`, data beyond a gap of the connection is acknowledged without delay. With `nic_waits` senders
    wait for room in their host's queue; without it the queue drops.

    `dup_threshold` duplicate ACKs signal a loss; 0 starts with three and adapts to reordering. With
    `replacement` subflows of a connection may share a path. `recovery` is `rfc` (RFC 6675, or RFC 6582
    without SACK; RFC 6298) or `linux` (with proportional rate reduction, early retransmit, undone timeouts,
    and Linux's minimum RTO). Until a round trip was measured, the RTO is `first_rto_ms`; 0 is one second
    with `handshake`, which sends a SYN before data, and otherwise three idle round trips (RFC 6298, 2.2).
    Retransmission timers expire at multiples of `timer_scan_ms`, 0 at any time. Flows start at random times
    within `start_spread_ms`.

    A host sends each packet after a random processing time of up to `processing_frames` transmissions of a
    full frame on its link, in order; one that waited for the host's queue was processed meanwhile. Without
    it senders keep the phase in which a full queue has a free place, and others starve (Floyd and Jacobson,
    On traffic phase effects in packet-switched gateways, 1992). Frames of real hosts on this project's
    fabric are late by 0.1 (median) to 0.7 frames (99th percentile) at 10 to 50 Mb/s.

    With `fixed_rto` every timeout lasts `min_rto_ms`. After `probe_after` timeouts in a row a sender sends
    only probes of one byte until an acknowledgement comes; 0 means never. Windows grow to `max_window` at
    most; 0 means no limit. `connections` are `new` ones, or `persistent`: a flow takes over an idle
    connection between its hosts, if there is one, with its window and its estimates. `rank` is what queues
    sort by: the bytes that are `remaining` of a flow, or those that it has `sent`.

    The defaults are Linux's on Ethernet.
    """

    payload_bytes: int = field(default=1448, metadata=_FRAME)
    header_bytes: int = field(default=66, metadata=within(0, MAX_FRAME_BYTES, "bytes"))
    ack_bytes: int = field(default=66, metadata=_FRAME)
    mptcp_bytes: int = field(default=0, metadata=within(0, MAX_FRAME_BYTES, "bytes"))
    mptcp_ack_bytes: int = field(default=0, metadata=within(0, MAX_FRAME_BYTES, "bytes"))
    ack_gaps: bool = False
    nic_waits: bool = True
    initial_window: int = field(default=10, metadata=within(1, MAX_SEGMENTS, "segments"))
    ssthresh: int = field(default=0, metadata=_SEGMENTS)
    min_rto_ms: float = field(default=200.0, metadata=_RTO_MS)
    first_rto_ms: float = field(default=0.0, metadata=_RTO_MS)
    timer_scan_ms: float = field(default=0.0, metadata=within(0, 1000.0, "ms"))
    delayed_ack_ms: float = field(default=40.0, metadata=within(0, MAX_RTO_MS, "ms"))
    sack: bool = True
    dup_threshold: int = field(default=0, metadata=_SEGMENTS)
    acks: str = field(default="routed", metadata=_in_core("acks"))
    scheduler: str = field(default="min_rtt", metadata=among(subflow_schedulers(), "--stack scheduler="))
    reinject: bool = True
    replacement: bool = True
    send_buffer: int = field(default=0, metadata=_SEGMENTS)
    receive_buffer: int = field(default=0, metadata=_SEGMENTS)
    subflow_buffer: int = field(default=0, metadata=_SEGMENTS)
    recovery: str = field(default="rfc", metadata=_in_core("recovery"))
    handshake: bool = False
    start_spread_ms: float = field(default=0.0, metadata=_TIME_MS)
    processing_frames: float = field(default=1.0, metadata=within(0, 100.0, "frames"))
    fixed_rto: bool = False
    probe_after: int = field(default=0, metadata=within(0, 1000, "timeouts"))
    max_window: int = field(default=0, metadata=_SEGMENTS)
    connections: str = field(default=NEW, metadata=_in_core("connections"))
    rank: str = field(default=REMAINING, metadata=_in_core("rank"))

    def __post_init__(self) -> None:
        _check_fields(self, "stack.")
        if self.mptcp_bytes >= self.payload_bytes:
            raise UsageError(
                f"--stack mptcp_bytes={self.mptcp_bytes}: leaves no payload of {self.payload_bytes} bytes; "
                "choose fewer"
            )


LINUX = StackSpec(
    mptcp_bytes=24,
    mptcp_ack_bytes=12,
    ack_gaps=True,
    nic_waits=False,
    recovery="linux",
    scheduler="burst",
    send_buffer=2945,
    subflow_buffer=198,
)
"""Linux's stack in the simulator, for comparisons with real hosts.

Measured on Linux 6.18 by capturing one connection of each kind: a full TCP segment has 1448 bytes in a frame
of 1514, an acknowledgement 66 bytes. With MPTCP's DSS option (RFC 8684, section 3.3; 64-bit data sequence
number and acknowledgement) these are 1424 and 78. Frames leave an emulated host's kernel at once, because a
veth has no queue and does not make senders wait. The host's queue, a port of the fabric, therefore drops
packets when it is full. Real receivers acknowledge nearly every packet of MPTCP (0.97 per packet with 8
subflows), and every second packet of TCP.

The buffers are those of `model/tuning.py` in full segments. They are a reserve of 4 MB and, per subflow,
256 kB, with about 300 bytes of overhead per segment, plus the burst of 64 kB that may exceed it. A real
subflow was measured to hold 197 segments."""


def typed(value: object) -> str:
    """Return a field's value as the user types it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else str(value)


def is_own(controller: str) -> bool:
    """Return whether it is the user's own controller. Raises UsageError for an invalid one."""
    if controller.startswith(COMMAND):
        try:
            words = shlex.split(controller.removeprefix(COMMAND))
        except ValueError as error:
            raise UsageError(f"--controller {controller}: {error}") from error
        if not words:
            raise UsageError(
                f"--controller {controller}: name a program, e.g. {COMMAND}'PROGRAM --port 6653'"
            )
        return True
    return remote_port(controller) is not None


def remote_port(controller: str) -> int | None:
    """Return the port of `remote:PORT`; None for any other controller. Raises UsageError for a bad port."""
    if not controller.startswith(REMOTE):
        return None
    text = controller.removeprefix(REMOTE)
    if not (text.isascii() and text.isdigit() and 1 <= int(text) <= MAX_PORT):
        raise UsageError(f"--controller {controller}: give a port from 1 to {MAX_PORT}, e.g. {REMOTE}6633")
    return int(text)


@dataclass(frozen=True)
class OpenFlowSpec:
    """Options of the data plane `ovs`: the controller, when it installs rules, and the datapath.

    All are names of CONTROLLERS, MODES and DATAPATHS.
    """

    controller: str = field(
        default="osken", metadata=called(lambda name: f"--controller {shlex.quote(name)}")
    )
    mode: str = field(default="reactive", metadata=among(MODES, "--mode ") | called("--mode {}".format))
    datapath: str = field(
        default="auto", metadata=among(DATAPATHS, "--datapath ") | called("--datapath {}".format)
    )

    def __post_init__(self) -> None:
        _check_fields(self, "openflow.")
        if not is_own(self.controller):
            check_name("--controller ", self.controller, (*CONTROLLERS, "remote:PORT", "cmd:'PROGRAM ...'"))
        elif self.mode != type(self).mode:
            raise UsageError(
                f"--mode {self.mode}: --controller {self.controller} decides itself; leave --mode out"
            )


@dataclass(frozen=True)
class SchedulerSpec:
    """A central flow scheduler: its name in controllers/schedulers.py or NO_SCHEDULER, and its interval.

    The interval 0 stands for an ideal scheduler, which runs whenever a flow begins or ends and treats all
    flows as large (engines/simulation/scheduled.py).

    The other fields are those of responsive multipath TCP, whose interval is that of its monitors
    (controllers/responsive/controller.py); model/schedulers.py names them on the command line.
    """

    name: str = field(default=NO_SCHEDULER, metadata=among(SCHEDULERS, "--scheduler "))
    interval_ms: float = field(default=0.0, metadata=within(1, 60_000, "ms", zero=True))
    demand_gap: float = field(default=0.15, metadata=within(0, 1))
    rate_variation: float = field(default=0.05, metadata=within(0, 1))
    checks: int = field(default=3, metadata=within(1, 1000, "checks"))
    demand_change: float = field(default=0.1, metadata=within(0, 1))
    message_ms: float = field(default=0.1, metadata=within(0, 10_000, "ms"))
    message_loss: float = field(default=0.0, metadata=within(0, 0.9))
    one_per_tick: bool = False
    down_at_s: float = field(default=0.0, metadata=within(0, MAX_TIME_S, "s"))
    down_for_s: float = field(default=0.0, metadata=within(0, MAX_TIME_S, "s"))
    down_monitors: float = field(default=0.0, metadata=within(0, 1))
    closes: bool = False
    links_ms: float = field(default=0.0, metadata=within(0, 10_000, "ms"))

    def __post_init__(self) -> None:
        _check_fields(self, "scheduler.")
        if self.name == RESPONSIVE and self.ideal:
            raise UsageError(f"--scheduler {RESPONSIVE}: monitors need an interval, e.g. {RESPONSIVE}:2")
        if self.down_monitors and not self.down_for_s:
            raise UsageError(
                f"--scheduler {RESPONSIVE}: monitors={typed(self.down_monitors)} says which monitors go "
                "down; add down_for=S, the time for which they do"
            )

    @property
    def ideal(self) -> bool:
        return self.interval_ms == 0


@dataclass(frozen=True)
class NoiseSpec:
    """Injected stalls of CPUs (model/noise.py).

    `where` is a name of STALLED: nowhere, the CPU of the fabric's core, the hosts' CPUs, or all CPUs
    together. The time between stalls is exponentially distributed, and stalls begin every `every_ms` on
    average. Their length is uniform between `least_ms` and `most_ms`.
    """

    where: str = field(default=NOWHERE, metadata=among(STALLED, "--stalls "))
    every_ms: float = field(default=0.0, metadata=_TIME_MS)
    least_ms: float = field(default=0.0, metadata=_STALL_MS)
    most_ms: float = field(default=0.0, metadata=_STALL_MS)

    def __post_init__(self) -> None:
        _check_fields(self, "noise.")
        if not self.where:
            return
        words = f"--stalls {self.where}:{self.every_ms:g}:{self.least_ms:g}-{self.most_ms:g}"
        if not 0 < self.least_ms <= self.most_ms:
            raise UsageError(f"{words}: stalls must last more than 0 ms, and LEAST must not exceed MOST")
        if not self.share <= MAX_STALLED:
            raise UsageError(
                f"{words}: stalls would take {100 * self.share:.0f} % of the time; at most "
                f"{100 * MAX_STALLED:.0f} % is possible: make them shorter or rarer"
            )

    @property
    def share(self) -> float:
        """The share of time that lies in stalls."""
        if not self.where:
            return 0.0
        return (self.least_ms + self.most_ms) / 2 / self.every_ms if self.every_ms > 0 else math.inf


@dataclass(frozen=True)
class WorkloadSpec:
    """A traffic matrix by registry name, and its parameters, integers or texts.

    The matrix `reference` is one uncongested flow across the network.
    """

    matrix: str = "one_to_one"
    params: Mapping[str, int | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        matrices.check(self.matrix, self.params)


@dataclass(frozen=True)
class SamplingSpec:
    """What is sampled besides goodput, link and CPU use, which are always sampled once per second.

    Intervals in ms, 0 for never: the queue of every port; cwnd, srtt and retransmits of every subflow at its
    sender; pings along the paths of every subflow. Sampling is not part of a spec's identity, because it must
    not change the result (benchmarks/sampling.py).
    """

    queues_ms: int = field(default=0, metadata=_SAMPLE_MS)
    sockets_ms: int = field(default=0, metadata=_SAMPLE_MS)
    pings_ms: int = field(default=0, metadata=_SAMPLE_MS)

    def __post_init__(self) -> None:
        _check_fields(self, "sampling.")

    def covers(self, asked: SamplingSpec) -> bool:
        """Return whether everything `asked` for is sampled here at least as often."""
        return self.joined(asked) == self

    def joined(self, other: SamplingSpec) -> SamplingSpec:
        """Return the sampling of both, each at the shorter interval."""
        ours, theirs = dataclasses.astuple(self), dataclasses.astuple(other)
        return SamplingSpec(*(min(a, b) or max(a, b) for a, b in zip(ours, theirs, strict=True)))


@dataclass(frozen=True)
class RunSpec:
    """One point of an experiment.

    A simulation may divide its network into up to `parts` parts, which CPUs carry out side by side. What is
    due at the same instant may then happen in another order, so the result depends on the number of parts,
    but not on the number of CPUs.

    Routing leaves a cut link out, and uses one that is back, `reroute_ms` after the event; 0 means never.
    """

    link: LinkSpec
    topology: TopologySpec = field(default_factory=TopologySpec)
    transport: TransportSpec = field(default_factory=TransportSpec)
    workload: WorkloadSpec = field(default_factory=WorkloadSpec)
    engine: str = "mininet"
    dataplane: str = "fabric"
    routing: str = field(
        default="hashed",
        metadata=among(POLICIES, "--routing ") | written(canonical) | called("{} routing".format),
    )
    traffic: str = field(
        default="iperf3", metadata=among(TRAFFIC, "--traffic ") | called("{} traffic".format)
    )
    warmup_s: float = field(default=10.0, metadata=within(0, MAX_TIME_S, "s"))
    seconds: float = field(default=40.0, metadata=within(1e-6, MAX_TIME_S, "s"))
    seed: int = field(default=1, metadata=within(0, 10**15))
    sampling: SamplingSpec = field(default_factory=SamplingSpec)
    stack: StackSpec = field(default_factory=StackSpec)
    events: tuple[LinkEvent, ...] = ()
    reroute_ms: float = field(
        default=0.0, metadata=within(0.001, 1e6, "ms", zero=True) | called("rerouting after {:g} ms".format)
    )
    openflow: OpenFlowSpec = field(default_factory=OpenFlowSpec)
    scheduler: SchedulerSpec = field(default_factory=SchedulerSpec)
    noise: NoiseSpec = field(default_factory=NoiseSpec)
    clock: str = field(
        default=ELASTIC, metadata=among((*CLOCKS, VIRTUAL), "--clock ") | called("{} clock".format)
    )
    agent: AgentSpec = field(default_factory=AgentSpec)
    parts: int = field(default=1, metadata=within(1, MAX_PARTS) | called("in {} parts".format))

    def __post_init__(self) -> None:
        _check_fields(self)
        object.__setattr__(self, "events", tuple(self.events))

    def network(self) -> topos.Topology:
        """Return the topology; a random one is drawn from the run's seed, unless it has its own."""
        return topos.of_run(self.topology.kind, self.topology.params, self.seed)

    def changed(self, values: Settings) -> RunSpec:
        """Return the spec with other values of the fields at these paths, `{"link.queue_pkts": 20}`.

        Raises UsageError for a path that leads to no field, and for a value that the field does not take.
        """
        fields: dict[str, Any] = {}
        parts: dict[str, dict[str, Any]] = {}
        for path, value in values.items():
            name, dot, inner = path.partition(".")
            if not _is_path(name, inner):
                raise UsageError(f"{path}: a point has no such field (model/spec.py)")
            if dot:
                parts.setdefault(name, {})[inner] = value
            else:
                fields[name] = value
        for name, inside in parts.items():
            fields[name] = dataclasses.replace(fields.get(name, getattr(self, name)), **inside)
        return dataclasses.replace(self, **fields)

    def neutral(self, *paths: str) -> RunSpec:
        """Return a copy in which the fields at `paths` have their default values, 0 where they have none.

        A path is a field (`seed`, `topology`) or a field of a part (`transport.subflows`). The copy stands
        for a setting and is not run: rules between fields do not apply to it. Raises ValueError for a path
        that leads to no field."""
        copy = self
        for path in paths:
            name, _, inner = path.partition(".")
            if inner:
                part = getattr(copy, name)
                copy = _unchecked(copy, name, _unchecked(part, inner, default_of(part, inner)))
            else:
                copy = _unchecked(copy, name, default_of(copy, name))
        return copy

    def key(self, *, ignoring: Iterable[str] = ()) -> str:
        """Return a text that is equal for specs that differ at most in sampling and the fields `ignoring`,
        given as paths as in `neutral`."""
        return self.neutral(*ignoring).canonical()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        return fields

    @classmethod
    def from_json(cls, data: object) -> RunSpec:
        """Return the spec that `to_json` wrote. Raises UsageError, with the path of what is wrong, for a
        field that this version does not know and for a value of another type or out of range."""
        try:
            spec = msgspec.convert(data, cls)
            spec.content_hash()  # raises it for a text that UTF-8 cannot hold
            if spec.topology.params or spec.topology.kind not in topos.TOPOLOGIES:
                topos.check(spec.topology.kind, spec.topology.params)
        except ValueError as error:
            raise UsageError(f"this is not a RunSpec of this version of refabric: {error}") from error
        if unknown := next(_unknown(data, spec.to_json()), ""):
            raise UsageError(f"this is not a RunSpec of this version of refabric: it has no field {unknown}")
        return spec

    def canonical(self) -> str:
        """Return the JSON text, with sorted names, of SCHEMA and of all fields that determine the result.
        Specs that differ only in sampling have equal texts."""
        decisive = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        del decisive["sampling"]
        if not self.reroute_ms:  # points from before there was the field keep their names
            del decisive["reroute_ms"]
        return msgspec.json.encode({"schema": SCHEMA, **decisive}, order="sorted").decode()

    def content_hash(self) -> str:
        """Return 12 hex digits of SHA-256 over `canonical()`."""
        return self._hash

    @functools.cached_property
    def _hash(self) -> str:
        return hashlib.sha256(self.canonical().encode()).hexdigest()[:12]


@functools.cache
def _is_path(name: str, inner: str) -> bool:
    part = next((each for each in dataclasses.fields(RunSpec) if each.name == name), None)
    if part is None or not inner:
        return part is not None
    kind = globals().get(str(part.type))
    return dataclasses.is_dataclass(kind) and inner in {each.name for each in dataclasses.fields(kind)}


def default_of(part: Any, name: str) -> Any:
    """Return the default of a field of a part of a spec; 0 for a field without one.

    Raises ValueError for a field that it lacks.
    """
    fields = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
    found = next((each for each in fields if each.name == name), None)
    if found is None:
        raise ValueError(f"{type(part).__name__} has no field {name}")
    if found.default_factory is not dataclasses.MISSING:
        return found.default_factory()
    return 0 if found.default is dataclasses.MISSING else found.default


def _unchecked(part: Any, name: str, value: object) -> Any:
    """Return a copy of the part with another value of one field, without checks."""
    copy = object.__new__(type(part))
    for each in dataclasses.fields(part):
        object.__setattr__(copy, each.name, value if each.name == name else getattr(part, each.name))
    return copy


def _unknown(data: Any, known: Any, at: str = "") -> Iterator[str]:
    """Yield the path of each name of `data` that `known`, the same record as it was read, does not have."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name not in known:
                yield f"{at}{name}"
            elif isinstance(value, dict | list | tuple):
                yield from _unknown(value, known[name], f"{at}{name}.")
    elif isinstance(data, list | tuple):
        for value, of in zip(data, known, strict=True):
            yield from _unknown(value, of, at)


def check_marks(spec: RunSpec) -> None:
    """Raise UsageError for a congestion control that needs marks if no queue marks: it would run as Reno.

    Engines call it: the baseline's flow is alone, so no queue would mark its packets, and a setting without
    its threshold (`neutral`) is none to run.
    """
    cc = CONGESTION_CONTROLS.get(spec.transport.cc)
    if cc is None or not cc.ecn or spec.link.marks or spec.workload.matrix == "reference":
        return
    name = spec.link.queue
    by_queue = f"--discipline {name}:ecn=1 or " if any(s.name == "ecn" for s in QUEUES[name].settings) else ""
    raise UsageError(
        f"--cc {spec.transport.cc}: it reacts to marks, but no queue marks packets, so it would run as "
        f"{BASELINE}: add {by_queue}--ecn PKTS, e.g. --ecn 20"
    )


def check_lossless(spec: RunSpec) -> None:
    """Raise UsageError for a lossless network whose queues drop packets that they have no room for.

    Engines call it, for the reason that `check_marks` gives.
    """
    link = spec.link
    if link.lossless and (link.queue_bytes or link.queue_pkts):
        raise UsageError(
            f"--discipline {link.queue}: its limits are of what came over each link: add --queue 0"
        )


def check_trimming(spec: RunSpec) -> None:
    """Raise UsageError for queues that trim packets without a transport that can tell, and the reverse.

    Engines call it, for the reason that `check_marks` gives.
    """
    link, name = spec.link, spec.transport.name
    transport, queue = TRANSPORTS[name if name in TRANSPORTS else TCP], QUEUES[link.queue]
    by_transport = " or ".join(each for each, kind in TRANSPORTS.items() if kind.trims)
    by_queue = " or ".join(each for each, kind in QUEUES.items() if kind.trims)
    if transport.trims and not queue.trims:
        raise UsageError(
            f"--transport {name}: it needs switches that trim packets: add --discipline {by_queue} --queue 0"
        )
    if queue.trims and not transport.trims:
        raise UsageError(
            f"--discipline {link.queue}: hosts with {name} cannot tell a trimmed packet: add --transport "
            f"{by_transport}"
        )
    if not queue.trims:
        return
    if link.queue_bytes or link.queue_pkts:
        raise UsageError(
            f"--discipline {link.queue}: it has limits of its own, for packets and for headers: add --queue 0"
        )
    settings = {each.name: each.usual for each in queue.settings} | link.queue_settings
    if spec.stack.ack_bytes > settings["header_bytes"]:
        raise UsageError(
            f"--discipline {link.queue}: it would trim acknowledgements of {spec.stack.ack_bytes} bytes: "
            f"choose header_bytes={spec.stack.ack_bytes} or more"
        )


def check_tcp(spec: RunSpec) -> None:
    """Raise UsageError for a transport that only flows between simulated hosts have, and for its queues."""
    name = spec.transport.name
    if spec.transport.protocol != TCP:
        raise UsageError(f"--transport {name}: only simulated hosts have it: choose --engine simulator")
    check_trimming(spec)
    check_lossless(spec)


def sub_seed(seed: int, name: str) -> int:
    """Return a 32-bit seed for the decision called `name`, independent of the seeds of other names."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:4], "big")


USUAL = RunSpec(LinkSpec(1.0))
"""A spec whose other fields have their defaults."""


def _stated(part: Any, key: str, at: str = "") -> Iterator[tuple[str, Any]]:
    """Yield path and value of the metadata `key` of every field that has it."""
    for each in dataclasses.fields(part):
        value, path = getattr(part, each.name), f"{at}{each.name}"
        if dataclasses.is_dataclass(value):
            yield from _stated(value, key, f"{path}.")
        elif (found := _metadata(each, key)) is not None:
            yield path, found


def stated(key: str) -> dict[str, Any]:
    """Return the ranges, known names or words of all fields, by the field's path in the spec."""
    return dict(_stated(USUAL, key))


LIMITS: Mapping[str, Limits] = stated(RANGE)
"""Limits by the field's path in the spec."""
