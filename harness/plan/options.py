"""Options of a sweep: text as typed, checked once, turned into one immutable value. Pure."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.errors import UsageError
from controllers.routing import POLICIES
from engines.emulation.dataplanes.registry import DATAPLANES, FABRIC, OVS
from engines.registry import ENGINES, SIMULATOR, VIRTUAL_TIME
from fabric._core import disciplines
from harness.execute.attempts import Retries
from harness.plan.baseline import MATRIX
from harness.plan.profiles import DEFAULT, PROFILES, Profile
from harness.plan.rate import AUTO, SIMULATED_MBPS, Auto
from harness.plan.stack_options import check_engine_options, parse_stack
from harness.plan.windows import AS_CHOSEN, Window
from model.congestion import CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.noise import QUIET, parse_stalls
from model.openflow import check_openflow
from model.schedulers import parse_scheduler
from model.spec import (
    CLOCKS,
    ELASTIC,
    FIFO,
    HOST_QUEUES,
    MAX_SUBFLOWS,
    PORT,
    QDISC,
    LinkEvent,
    NoiseSpec,
    OpenFlowSpec,
    SamplingSpec,
    SchedulerSpec,
    StackSpec,
    WorkloadSpec,
)
from workloads import matrices

ENGINE = "mininet"
BOTH = "both"
TRAFFIC = ("iperf3", "native")
USUAL_TRAFFIC = "native"
"""Of real hosts: one process that sends and reads for all takes less CPU time than two for each flow."""
SIMULATED_TRAFFIC = "iperf3"
"""What specs in virtual time say, where hosts make their own."""
QUEUE_PKTS = 100
QUEUE_SAMPLE_MS = 100
SOCKET_SAMPLE_MS = 1000
PING_MS = 1000
BY_MACHINE = "auto"
_SYSCTL = re.compile(r"net(\.[a-z0-9_]+)+")
NO_SAMPLING = SamplingSpec()
USUAL_STACK = StackSpec()
USUAL_OPENFLOW = OpenFlowSpec()
UNSCHEDULED = SchedulerSpec()
MAX_SEEDS = 1000
MAX_K = 48
"""27 648 hosts: planning still takes a moment only; topologies themselves go further."""
LEAST_RATE_MBPS, MOST_RATE_MBPS = 0.01, 400_000.0
MOST_QUEUE_PKTS = 1_000_000
LEAST_QUEUE_BYTES, MOST_QUEUE_BYTES = 1514, 1 << 40
MOST_DELAY_US = 10_000_000.0
MOST_LOSS_PCT = 50.0
MOST_WRITE_BYTES = 1 << 20
"""What iperf3 takes."""


def sweep_workloads() -> tuple[str, ...]:
    """Traffic matrices a sweep can ask for; the reference runs by itself."""
    return tuple(name for name in matrices.MATRICES if name != MATRIX)


@dataclass(frozen=True)
class Given:
    """Options as typed; None where the profile or the experiment decides."""

    k: str | None = None
    workload: str | None = None
    subflows: str | None = None
    cc: str | None = None
    engine: str | None = None
    dataplane: str = FABRIC
    controller: str | None = None
    mode: str | None = None
    datapath: str | None = None
    traffic: str | None = None
    routing: str | None = None
    rate: str | None = None
    queue: int | None = None
    delay: float | None = None
    loss: float | None = None
    ecn: int | None = None
    queue_bytes: int | None = None
    random_drop: int | None = None
    discipline: str | None = None
    host_queue: str | None = None
    event: tuple[str, ...] = ()
    scheduler: str | None = None
    stalls: str | None = None
    clock: str | None = None
    sysctl: tuple[str, ...] = ()
    write: int | None = None
    stack: tuple[str, ...] = ()
    seconds: float | None = None
    warmup: float | None = None
    seed: int = 1
    seeds: int | None = None
    profile: str = DEFAULT
    qmon: bool = False


@dataclass(frozen=True)
class Defaults:
    """What a figure runs when no option says otherwise.

    The profile goes before `ks` and `subflows`, which are a matter of time; what follows `auto` is
    pinned, part of what the figure shows, and goes before the profile. None: nothing pinned. With several
    `engines` every point is run in each.
    `sampling` comes on top of what is sampled always.
    """

    ks: tuple[int, ...]
    workloads: tuple[str, ...]
    subflows: tuple[int, ...]
    auto: Auto = AUTO
    rate_mbps: float | None = None
    queue_pkts: int | None = None
    delay_us: float | None = None
    loss_pct: float | None = None
    ecn_pkts: int | None = None
    discipline: str | None = None
    cc: str | None = None
    routing: str | None = None
    traffic: str | None = None
    seconds: float | None = None
    warmup_s: float | None = None
    seeds: int | None = None
    engines: tuple[str, ...] = (ENGINE,)
    sysctls: Mapping[str, str] = field(default_factory=dict)
    stack: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    """Fields of a StackSpec: a figure that pins any is the simulator's."""
    sampling: SamplingSpec = NO_SAMPLING
    whole_s: float | None = None
    """Seconds in the profile `paper`, where that is to be longer than `seconds`."""

    def emulated(self, **changes: Any) -> Defaults:
        """The same between real hosts, in real time: at the rate this machine carries, with stacks of their
        own, for as long as the profile says, unless `changes`, fields of this, say otherwise."""
        real: dict[str, Any] = {"rate_mbps": None, "stack": {}, "seconds": None, "warmup_s": None}
        return dataclasses.replace(self, **{**real, "engines": (ENGINE,), **changes})


@dataclass(frozen=True)
class SweepOptions:
    """Checked options. Rates in Mb/s (None: what `auto` says), queue and ECN threshold in packets (0:
    unbounded, never), the queue in bytes where that is not 0, how many places of it are given by chance,
    delay in microseconds a link, loss in percent of a switch's link, writes in bytes (0: the driver's
    choice). `ccs` is empty where neither the user nor the figure chose any; MPTCP then runs `coupled_cc`.
    Where `brief`, networks that no k chooses are to be small ones too."""

    ks: tuple[int, ...]
    workloads: tuple[WorkloadSpec, ...]
    subflows: tuple[int, ...]
    ccs: tuple[str, ...]
    coupled_cc: str
    engines: tuple[str, ...]
    dataplane: str
    traffic: str
    routing: str
    rate_mbps: float | None
    queue_pkts: int
    delay_us: float
    loss_pct: float
    ecn_pkts: int
    queue_bytes: int
    random_pkts: int
    discipline: str
    host_queue: str
    events: tuple[LinkEvent, ...]
    sysctls: Mapping[str, str]
    write_bytes: int
    seconds: float
    warmup_s: float
    seeds: tuple[int, ...]
    sampling: SamplingSpec
    stack: StackSpec = USUAL_STACK
    openflow: OpenFlowSpec = USUAL_OPENFLOW
    scheduler: SchedulerSpec = UNSCHEDULED
    noise: NoiseSpec = QUIET
    clock: str = ELASTIC
    auto: Auto = AUTO
    brief: bool = False
    window: Window = AS_CHOSEN
    """Which of `warmup_s` and `seconds` are longer where links need it."""
    highest_mbps: float = math.inf
    """The highest rate that `auto` tries."""


def resolve(given: Given, defaults: Defaults, coupled_cc: str = COUPLED_DEFAULT) -> SweepOptions:
    """Explicit options over what the figure pins over the profile's over the figure's defaults.

    `coupled_cc` is what MPTCP runs on this machine unless told otherwise. Raises UsageError, one line.
    """
    profile = PROFILES[one_of("--profile", given.profile, PROFILES)]
    chosen = parse_engines(given.engine) or defaults.engines
    virtual_time = VIRTUAL_TIME.issuperset(chosen)
    real = {"--sysctl": given.sysctl, "--write": given.write, "--traffic": given.traffic}
    real |= {"--dataplane": given.dataplane if given.dataplane != FABRIC else None}
    real |= {"--host-queue": given.host_queue}
    check_engine_options(chosen, real, given.stack or tuple(f"{k}={v}" for k, v in defaults.stack.items()))
    pinned_mbps = _first(defaults.rate_mbps, profile.rate_mbps(virtual_time))
    rate_mbps = parse_rate(given.rate) if given.rate else pinned_mbps
    if given.dataplane == OVS and rate_mbps is None:
        raise UsageError(
            f"--dataplane {OVS}: --rate auto is what the fabric carries here, and {OVS} carries far less: "
            "give --rate MBPS, e.g. --rate 1"
        )
    usual_warmup_s, usual_seconds = profile.durations_s(rate_mbps or SIMULATED_MBPS, virtual_time)
    figures_own_s = defaults.whole_s if profile.whole and defaults.whole_s else defaults.seconds
    pinned_s = _pinned_s(figures_own_s, usual_seconds, profile.brief)
    pinned_warmup_s = _pinned_s(defaults.warmup_s, usual_warmup_s, profile.brief)
    queue_pkts = _first(given.queue, defaults.queue_pkts, QUEUE_PKTS)
    seconds = _first(given.seconds, pinned_s, usual_seconds)
    warmup_s = _first(given.warmup, pinned_warmup_s, usual_warmup_s)
    sampling = SamplingSpec(QUEUE_SAMPLE_MS if given.qmon else 0, SOCKET_SAMPLE_MS, PING_MS)
    return SweepOptions(
        ks=parse_ks(given.k) if given.k else profile.ks or defaults.ks,
        workloads=parse_workloads(given.workload or ",".join(defaults.workloads)),
        subflows=parse_subflows(given.subflows) if given.subflows else profile.subflows or defaults.subflows,
        ccs=parse_ccs(_first(given.cc, defaults.cc)),
        coupled_cc=coupled_cc,
        engines=chosen,
        dataplane=one_of("--dataplane", given.dataplane, DATAPLANES),
        traffic=SIMULATED_TRAFFIC if virtual_time else _traffic(given, defaults),
        routing=one_of("--routing", given.routing or defaults.routing or "hashed", POLICIES),
        rate_mbps=rate_mbps,
        queue_pkts=int(at_least("--queue", queue_pkts or 0, 0, "packets (0: unbounded)", MOST_QUEUE_PKTS)),
        delay_us=at_least("--delay", _first(given.delay, defaults.delay_us) or 0.0, 0, "us", MOST_DELAY_US),
        loss_pct=at_least("--loss", _first(given.loss, defaults.loss_pct) or 0.0, 0, "%", MOST_LOSS_PCT),
        ecn_pkts=_threshold(_first(given.ecn, defaults.ecn_pkts) or 0, queue_pkts or 0),
        queue_bytes=_queue_bytes(given),
        random_pkts=_random_places(given, queue_pkts or 0),
        discipline=one_of("--discipline", given.discipline or defaults.discipline or FIFO, disciplines()),
        host_queue=_host_queue(given),
        events=tuple(parse_event(text) for text in given.event),
        sysctls={} if virtual_time else {**defaults.sysctls, **parse_sysctls(given.sysctl)},
        write_bytes=int(at_least("--write", given.write or 0, 0, "bytes", MOST_WRITE_BYTES)),
        seconds=above_zero("--seconds", seconds or 0.0, "s"),
        warmup_s=at_least("--warmup", warmup_s or 0.0, 0, "s"),
        seeds=_seeds(given.seed, _first(given.seeds, defaults.seeds, profile.seeds) or 0),
        sampling=sampling.joined(defaults.sampling),
        stack=parse_stack(given.stack, defaults.stack),
        openflow=openflow_of(given),
        scheduler=parse_scheduler(given.scheduler) if given.scheduler else UNSCHEDULED,
        noise=parse_stalls(given.stalls) if given.stalls else QUIET,
        clock=_clock(given),
        auto=defaults.auto,
        brief=profile.brief,
        window=AS_CHOSEN if virtual_time else _window(given, defaults, profile),
        highest_mbps=profile.highest_mbps,
    )


def retries_of(given: Given, typed: int | None = None) -> Retries:
    """How often suspect points are tried again: as typed, else as its profile says. Raises UsageError for an
    unknown profile."""
    usual = PROFILES[one_of("--profile", given.profile, PROFILES)].retries
    return Retries.of_profile(usual) if typed is None else Retries.typed(typed)


def _window(given: Given, defaults: Defaults, profile: Profile) -> Window:
    """Seconds that a figure pins are part of what it shows; the briefest profile has no time."""
    pinned_s = any(seconds is not None for seconds in (defaults.seconds, defaults.warmup_s, defaults.whole_s))
    if profile.brief or pinned_s:
        return AS_CHOSEN
    return Window(warmup=given.warmup is None, seconds=given.seconds is None)


def _pinned_s(pinned_s: float | None, usual_s: float, brief: bool) -> float | None:
    """What a figure pins, if that is not too long for a profile that only wants everything to work."""
    return min(pinned_s, usual_s) if brief and pinned_s is not None else pinned_s


def openflow_of(given: Given) -> OpenFlowSpec:
    """How switches are programmed. Raises UsageError for an unknown word, and for any where none speaks
    OpenFlow."""
    told = {"controller": given.controller, "mode": given.mode, "datapath": given.datapath}
    asked = {name: word for name, word in told.items() if word is not None}
    for name, word in asked.items() if given.dataplane != OVS else ():
        raise UsageError(f"--{name} {word}: only Open vSwitch has one: add --dataplane {OVS} or leave it out")
    chosen = OpenFlowSpec(**asked)
    check_openflow(chosen)
    return chosen


def _traffic(given: Given, defaults: Defaults) -> str:
    """What makes it between real hosts; simulated ones make their own, and their specs all say the same."""
    return one_of("--traffic", given.traffic or defaults.traffic or USUAL_TRAFFIC, TRAFFIC)


Value = TypeVar("Value")


def _first(*values: Value | None) -> Value | None:
    """The first that says anything; 0 does."""
    return next((value for value in values if value is not None), None)


def parse_ints(option: str, text: str) -> tuple[int, ...]:
    """`1,2,8` and `1-8` and mixtures, in order, once each. Raises UsageError."""
    values: list[int] = []
    for part in text.split(","):
        low, dash, high = part.strip().partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()) or len(low + high) > 8:
            raise UsageError(
                f"{option} {text}: {part.strip()!r} is not a number or a range; write e.g. 1,2,8 or 1-8"
            )
        first, last = int(low), int(high or low)
        if last < first or last - first > 1000:
            raise UsageError(
                f"{option} {text}: the range {part.strip()} is empty or too long; write e.g. 1-8"
            )
        values.extend(range(first, last + 1))
    return tuple(dict.fromkeys(values))


def parse_ks(text: str) -> tuple[int, ...]:
    """FatTree arities: even, from 4 to MAX_K. Raises UsageError."""
    if any(part.count("-") for part in text.split(",")):
        raise UsageError(f"--k {text}: list the sizes, e.g. --k 4,6,8")
    ks = parse_ints("--k", text)
    for k in ks:
        if not 4 <= k <= MAX_K or k % 2:
            raise UsageError(
                f"--k {text}: a FatTree needs an even k from 4 to {MAX_K}, not {k}; e.g. --k 4,8"
            )
    return ks


def parse_subflows(text: str) -> tuple[int, ...]:
    """Subflow counts, 1 being plain TCP. Raises UsageError outside 1..32."""
    counts = parse_ints("--subflows", text)
    for count in counts:
        if not 1 <= count <= MAX_SUBFLOWS:
            raise UsageError(f"--subflows {text}: {count} is outside 1..{MAX_SUBFLOWS} (1 is plain TCP)")
    return counts


def parse_ccs(text: str | None) -> tuple[str, ...]:
    """Congestion controls, in order, once each; none for None. Raises UsageError."""
    if text is None:
        return ()
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise UsageError(f"--cc {text}: a name is missing; write e.g. --cc reno,lia")
    return tuple(dict.fromkeys(one_of("--cc", name, CONGESTION_CONTROLS) for name in names))


def parse_engines(text: str | None) -> tuple[str, ...]:
    """Engines, in order, once each; none for None. `both` are simulated and real hosts. Raises UsageError."""
    if text is None:
        return ()
    known = (*ENGINES, BOTH)
    names = (one_of("--engine", part.strip(), known) for part in text.split(","))
    each = (name for part in names for name in ((SIMULATOR, ENGINE) if part == BOTH else (part,)))
    return tuple(dict.fromkeys(each))


def parse_workloads(text: str) -> tuple[WorkloadSpec, ...]:
    """Traffic matrices as `name`, `name:value` or `name:parameter=value:...`, or `all`. Raises UsageError."""
    known = sweep_workloads()
    chosen: dict[str, WorkloadSpec] = {}
    everywhere = [name for name in known if matrices.MATRICES[name].in_all]
    for part in everywhere if text == "all" else text.split(","):
        one_of("--workload", part.partition(":")[0].strip(), known)
        try:
            name, params = matrices.parse(part)
        except UsageError as error:
            raise UsageError(f"--workload {text}: {error}") from None
        chosen.setdefault(matrices.label(name, params), WorkloadSpec(name, params))
    return tuple(chosen.values())


def parse_rate(text: str) -> float | None:
    """Link rate in Mb/s; None for `auto`. Raises UsageError."""
    if text == BY_MACHINE:
        return None
    try:
        rate = float(text)
    except ValueError:
        rate = math.nan
    if not (math.isfinite(rate) and rate > 0):
        raise UsageError(f"--rate {text}: give Mb/s above 0, e.g. --rate 5, or --rate auto")
    return at_least("--rate", rate, LEAST_RATE_MBPS, "Mb/s", MOST_RATE_MBPS)


def parse_sysctls(given: tuple[str, ...]) -> dict[str, str]:
    """Each `name=value`, name with dots, of the network: the hosts' namespaces have those of their own.

    Raises UsageError.
    """
    sysctls: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not _SYSCTL.fullmatch(name.strip()) or not equals or not value.strip():
            raise UsageError(
                f"--sysctl {text}: write NAME=VALUE with a name of net.*, e.g. --sysctl net.ipv4.tcp_sack=0"
            )
        key, wanted = name.strip(), " ".join(value.split())
        if sysctls.setdefault(key, wanted) != wanted:
            raise UsageError(f"--sysctl {text}: {key} is {sysctls[key]} already; give it once")
    return sysctls


def one_of(option: str, value: str, known: Collection[str]) -> str:
    """`value` when known. Raises UsageError listing what is known."""
    if value not in known:
        raise UsageError(f"{option} {value}: unknown; choose from: {', '.join(known)}")
    return value


def at_least(option: str, value: float, minimum: float, unit: str, most: float = math.inf) -> float:
    """`value` when finite, not below `minimum` and not above `most`. Raises UsageError."""
    if not math.isfinite(value) or value < minimum:
        raise UsageError(f"{option} {_digits(value)}: must be at least {_digits(minimum)} {unit}")
    if value > most:
        raise UsageError(f"{option} {_digits(value)}: must be at most {_digits(most)} {unit}")
    return value


def _digits(value: float) -> str:
    """As one would type it: whole numbers in full."""
    return str(int(value)) if math.isfinite(value) and value == int(value) else f"{value:g}"


def above_zero(option: str, value: float, unit: str) -> float:
    """`value` when finite and above 0. Raises UsageError."""
    if not math.isfinite(value) or value <= 0:
        raise UsageError(f"{option} {value:g}: must be above 0 {unit}")
    return value


def _threshold(ecn_pkts: int, queue_pkts: int) -> int:
    """A full queue drops before it marks. Raises UsageError where that would be always."""
    at_least("--ecn", ecn_pkts, 0, "packets", MOST_QUEUE_PKTS)
    if 0 < queue_pkts <= ecn_pkts:
        raise UsageError(
            f"--ecn {ecn_pkts}: a queue of {queue_pkts} packets drops before it marks any; choose a "
            "threshold below --queue"
        )
    return ecn_pkts


def _queue_bytes(given: Given) -> int:
    """0 where packets count. Raises UsageError for one that a full frame does not fit into."""
    if not given.queue_bytes:
        return 0
    if given.queue is not None:
        raise UsageError("--queue and --queue-bytes: a queue is counted in packets or in bytes; choose one")
    limit = at_least(
        "--queue-bytes", given.queue_bytes, LEAST_QUEUE_BYTES, "(a full frame)", MOST_QUEUE_BYTES
    )
    return int(limit)


def _host_queue(given: Given) -> str:
    """Open vSwitch leaves hosts' queues to their kernels, and nothing else can be had there."""
    usual = QDISC if given.dataplane == OVS else PORT
    chosen = one_of("--host-queue", given.host_queue or usual, HOST_QUEUES)
    if given.dataplane == OVS and chosen != QDISC:
        raise UsageError(f"--host-queue {chosen} is the fabric's: leave it out with --dataplane {OVS}")
    return chosen


def _clock(given: Given) -> str:
    """Open vSwitch has none of its own."""
    if given.clock is not None and given.dataplane == OVS:
        raise UsageError(f"--clock {given.clock} is the fabric's: leave it out with --dataplane {OVS}")
    return one_of("--clock", given.clock or ELASTIC, CLOCKS)


def _random_places(given: Given, queue_pkts: int) -> int:
    """Raises UsageError for more places than the queue has."""
    places = int(at_least("--random-drop", given.random_drop or 0, 0, "packets", MOST_QUEUE_PKTS))
    held = given.queue_bytes // LEAST_QUEUE_BYTES if given.queue_bytes else queue_pkts
    if places > held:
        has = f"holds {held} packets" if held else "has no limit"
        raise UsageError(f"--random-drop {places}: the queue {has}; give chance no more places than it has")
    return places


def parse_event(text: str) -> LinkEvent:
    """`10:p0a0-c0:0.5`: 10 s after the start of traffic the link between these two nodes goes to half its
    rate; without a share it is cut. Raises UsageError; which nodes there are the engines check."""
    time_s, _, rest = text.partition(":")
    nodes, _, share = rest.partition(":")
    a, dash, b = (part.strip() for part in nodes.partition("-"))
    try:
        event = LinkEvent(float(time_s), a, b, float(share or 0))
    except ValueError:
        event = None
    if event is None or not (a and dash and b) or "-" in b:
        raise UsageError(
            f"--event {text}: write SECONDS:NODE-NODE[:SHARE], e.g. --event 10:p0a0-c0 for a cut after 10 s, "
            "or :0.5 at its end for half the rate"
        )
    return event


def _seeds(first: int, count: int) -> tuple[int, ...]:
    at_least("--seed", first, 0, "")
    if not 1 <= count <= MAX_SEEDS:
        raise UsageError(f"--seeds {count}: must be in 1..{MAX_SEEDS}")
    return tuple(range(first, first + count))
