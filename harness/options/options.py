"""Options of a sweep: one look-up in layers. Pure.

Each layer is a mapping of values by path (`Settings`): what the user gave, over what the figure pins, over
the profile, over the default of the field. A path is that of a field of the spec, `link.queue_pkts` or
`stack.min_rto_ms`, or the name of an option that is no field: `k`, `seeds`, `profile`, `qmon`.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from common.errors import UsageError
from common.text import did_you_mean
from engines.emulation.dataplanes.dataplane import OVS
from engines.registry import LINUX, LINUX_HOSTS, SIMULATED_HOSTS, VIRTUAL_TIME
from harness.options.fields import (
    BY_NAME,
    BY_PATH,
    OPTIONS,
    SPEC_FIELDS,
    STACK_FIELDS,
    USUAL_TRAFFIC,
    Hosts,
    SpecField,
)
from harness.options.parsers import BOTH, BY_MACHINE, ENGINE, MAX_K, named_workloads, sweep_workloads
from harness.options.profiles import DEFAULT, PROFILES, Profile
from harness.options.rates import AUTO, AutoRate, virtual_mbps
from model.congestion import COUPLED_DEFAULT
from model.spec import (
    ELASTIC,
    QDISC,
    USUAL,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    SchedulerSpec,
    Settings,
    TopologySpec,
    WorkloadSpec,
)
from topos import from_file
from topos.from_file import KIND as FILE
from workloads import trace

__all__ = [
    "BOTH",
    "ENGINE",
    "MAX_K",
    "QUEUE_SAMPLE_MS",
    "SIMULATED_TRAFFIC",
    "UNSCHEDULED",
    "USUAL_TRAFFIC",
    "Defaults",
    "SweepOptions",
    "by_path",
    "check_openflow",
    "resolve",
    "retries_of",
    "sweep_workloads",
    "sweeps_of",
]  # fmt: skip

QUEUE_SAMPLE_MS = 100
SOCKET_SAMPLE_MS = 1000
PING_MS = 1000
PINNED_PART = 2.5
"""In a brief profile in virtual time, a duration that a figure pins is at most this multiple of the profile's
own. A figure pins longer durations than others if its data needs longer to settle."""
SIMULATED_TRAFFIC = "iperf3"
"""The value in specs of simulated hosts, which generate their own traffic."""
NO_SAMPLING = SamplingSpec()
UNSCHEDULED = SchedulerSpec()
_STACK = "stack."
_PATHS = {**{option.name: option.path or option.name for option in OPTIONS}, "qmon": "qmon"}
"""The path of each option by its name, in the order of `--help`."""
_NAMES = {path: name for name, path in _PATHS.items()}
_USUAL = {option.name: option.default for option in OPTIONS} | {"qmon": False}
SETTABLE = (
    *BY_PATH,
    *(option.path for option in OPTIONS if option.listed and option.path not in BY_PATH),
    *(f"{_STACK}{name}" for name in STACK_FIELDS),
)
"""The fields of the spec that an option sets, by path."""
_SWEPT = frozenset(SETTABLE) - {option.path for option in OPTIONS if option.multiple}
"""Paths at which a tuple is several values, of which each point has one."""
PINNED_BY_NAME = {"rate_mbps": "link.rate_mbps", "seconds": "seconds", "warmup_s": "warmup_s"}
"""Fields of `Defaults` that pin a field of the spec, with its path."""
_SYSCTLS = "transport.sysctls"
_OPENFLOW = ("openflow.controller", "openflow.mode", "openflow.datapath")


def by_path(values: Mapping[str, Any]) -> Settings:
    """Return parsed values of options, by name, as the settings that the user gave, by path.

    What has its usual value is no setting. Fields of the stack have paths of their own. A tuple is several
    values, except of an option that is given several times: the sweep is the product of such axes.
    """
    given = {
        path: values[name]
        for name, path in _PATHS.items()
        if values.get(name) is not None and values[name] != _USUAL[name]
    }
    return _flat(given)


def _flat(settings: Settings) -> dict[str, Any]:
    """Return the settings with a path for each field of the stack, after the other paths."""
    stack = settings.get("stack") or {}
    rest = {path: value for path, value in settings.items() if path != "stack"}
    return {**rest, **{f"{_STACK}{name}": value for name, value in stack.items()}}


def option_name(path: str) -> str:
    """Return the name of the option that sets what is at `path`."""
    return "stack" if path.startswith(_STACK) else _NAMES[path]


def without(given: Settings, hosts: Hosts) -> Settings:
    """Return what the user gave without the options that apply to these hosts only."""
    away = {option.name for option in SPEC_FIELDS if option.hosts is hosts}
    return {path: value for path, value in given.items() if option_name(path) not in away}


def several(given: Settings) -> dict[str, tuple[Any, ...]]:
    """Return the axes of what the user gave: the paths with several values."""
    return {path: value for path, value in given.items() if path in _SWEPT and isinstance(value, tuple)}


def check_axis(what: str, values: object) -> None:
    """Raise UsageError that begins with `what` for what is no list of values."""
    if isinstance(values, str) or not isinstance(values, Sequence) or not values:
        raise UsageError(f"{what}: give a list of its values, e.g. (20, 50), not {values!r}")


def field_meant(path: str, known: Sequence[str]) -> str:
    """Return `did you mean link.queue_pkts?`, with all known fields instead if none is close."""
    option = BY_NAME[path].path if path in BY_NAME else ""
    same = [each for each in known if each == option or each.rpartition(".")[2] == path]
    if same:
        return f"did you mean {' or '.join(same)}?"
    return did_you_mean(path, known, "?") or f"fields are: {', '.join(known)}"


@dataclass(frozen=True)
class Defaults:
    """What a figure runs if no option says otherwise.

    The profile has priority over `ks` and `subflows`, which determine how long a run takes. Everything else
    is part of what the figure shows, and has priority over the profile; None and what is absent are not
    pinned. `pins` and `axes` have fields of the spec by path, `link.queue_pkts` or `stack.min_rto_ms`: one
    value each, or several, which every point is run with. With several `engines`, every point runs in each.
    `sampling` is added to what is always sampled. Raises UsageError for a path that no option sets.
    """

    ks: tuple[int, ...]
    workloads: tuple[str, ...]
    subflows: tuple[int, ...]
    auto: AutoRate = AUTO
    rate_mbps: float | None = None
    ccs: tuple[str, ...] = ()
    seconds: float | None = None
    warmup_s: float | None = None
    seeds: int | None = None
    engines: tuple[str, ...] = (ENGINE,)
    pins: Settings = field(default_factory=dict)
    axes: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    sampling: SamplingSpec = NO_SAMPLING
    whole_s: float | None = None
    """Seconds in the profile `paper`, if longer than `seconds`."""
    brief_s: float | None = None
    """Seconds in a brief profile, if what the figure shows takes as long on links of any rate."""
    brief_seeds: int | None = None
    """Seeds in a brief profile, if fewer than `seeds`."""
    always_whole: bool = False
    """Whether a brief profile changes nothing in virtual time, because the figure takes seconds and shows
    nothing in a shorter window."""

    def __post_init__(self) -> None:
        by_name = {name: path for name, path in PINNED_BY_NAME.items() if path in self.pins}
        for name, path in by_name.items():
            if getattr(self, name) is not None:
                raise UsageError(f"{path}: it is pinned twice, in pins and as {name}")
            object.__setattr__(self, name, self.pins[path])
        pins = {path: value for path, value in _flat(self.pins).items() if path not in by_name.values()}
        object.__setattr__(self, "pins", pins)
        for path in (*pins, *self.axes):
            if path not in SETTABLE:
                raise UsageError(f"{path}: no option sets such a field; {field_meant(path, SETTABLE)}")
        for path, values in self.axes.items():
            check_axis(f"axis {path}", values)

    @property
    def layer(self) -> Settings:
        """All that it pins, by path."""
        by_name = {path: getattr(self, name) for name, path in PINNED_BY_NAME.items()}
        return {path: value for path, value in {**self.pins, **by_name}.items() if value is not None}

    def but(self, *, pins: Settings | None = None, **changes: Any) -> Defaults:
        """Return the defaults with these `pins` beside their own, and with `changes` of other fields."""
        return dataclasses.replace(self, **changes, pins={**self.pins, **(pins or {})})

    def emulated(self, **changes: Any) -> Defaults:
        """Return the defaults for real hosts, in real time.

        The rate is what this machine carries, the stacks are the kernel's, and the profile determines the
        duration, unless `changes` (as of `but`) say otherwise.
        """
        real: dict[str, Any] = {"rate_mbps": None, "seconds": None, "warmup_s": None, "engines": (ENGINE,)}
        kernels = {path: value for path, value in self.pins.items() if not path.startswith(_STACK)}
        return dataclasses.replace(self, pins=kernels).but(**{**real, **changes})


def overriding(given: Settings, defaults: Defaults) -> Settings:
    """Return what the user gave all points instead of what the figure pins or what is usual.

    Rates and durations are no settings of a figure, and names of points have the axes.
    """
    own, axes = defaults.layer, several(given)
    paths = [path for path in given if (path in BY_PATH or path.startswith(_STACK)) and path not in axes]
    usual = {path: BY_PATH[path].usual for path in paths if path in BY_PATH}
    return {
        path: given[path]
        for path in paths
        if given[path] != own.get(path, usual.get(path) or operator.attrgetter(path)(USUAL))
    }


@dataclass(frozen=True)
class SweepOptions:
    """The options from which a figure makes its points.

    `base` has the fields that all points share; its engine, topology, workload, link rate, congestion
    control, subflows and seed are not used. `ccs` is empty if neither the user nor the figure chose any;
    MPTCP then runs `coupled_cc`. `rate_mbps` is None for `auto`. If `brief`, networks that no k chooses are
    small too.
    """

    ks: tuple[int, ...]
    workloads: tuple[WorkloadSpec, ...]
    subflows: tuple[int, ...]
    ccs: tuple[str, ...]
    coupled_cc: str
    engines: tuple[str, ...]
    rate_mbps: float | None
    seeds: tuple[int, ...]
    base: RunSpec
    auto: AutoRate = AUTO
    brief: bool = False
    topologies: tuple[TopologySpec, ...] = ()
    """Networks that replace FatTrees."""
    growing: frozenset[str] = frozenset()
    """The durations that become longer on links that need it, by path: those that no option chose, nor, in
    real time, the figure. Those of points with `events`, too, if it is among them."""
    highest_mbps: float = math.inf
    """The highest rate that `auto` tries."""
    chosen: Settings = field(default_factory=dict)
    """The fields of the spec that the user or the figure chose, usual values too."""

    def on(self, engine: str) -> RunSpec:
        """Return the fields that all points of this engine have in common."""
        foreign = Hosts.REAL if engine in SIMULATED_HOSTS else Hosts.SIMULATED
        usual = {f.path: f.default_value for f in SPEC_FIELDS if f.engines_own and f.hosts is foreign}
        return dataclasses.replace(self.base.changed(usual), engine=engine)


Value = TypeVar("Value")


def resolve(given: Settings, defaults: Defaults, coupled_cc: str = COUPLED_DEFAULT) -> SweepOptions:
    """Return the options of a sweep. What the user gave has priority over what the figure pins, then the
    profile, then the figure's defaults. `given` has one value at each path that can be an axis.

    `coupled_cc` is what MPTCP runs on this machine unless an option names another. Raises UsageError.
    """
    engines = given.get("engine") or defaults.engines
    virtual_time = VIRTUAL_TIME.issuperset(engines)
    profile = PROFILES[given.get("profile", DEFAULT)]
    if profile.brief and virtual_time and defaults.always_whole:
        profile = PROFILES[DEFAULT]
    _check_hosts(given, defaults, engines)
    rate_mbps = _rate_mbps(given, defaults, profile, virtual_time)
    pinned_seeds = (profile.brief and defaults.brief_seeds) or defaults.seeds
    seeds = _first(profile.seeds, given.get("seeds"), pinned_seeds)
    first_seed = given.get("seed", 1)
    chosen = {path: value for path, value in {**defaults.layer, **given}.items() if path in SETTABLE}
    if _SYSCTLS in given:
        chosen[_SYSCTLS] = {**defaults.pins.get(_SYSCTLS, {}), **given[_SYSCTLS]}
    return SweepOptions(
        ks=given.get("k") or profile.ks or defaults.ks,
        workloads=given.get("workload") or named_workloads("--workload", defaults.workloads),
        subflows=given.get("transport.subflows") or profile.subflows or defaults.subflows,
        ccs=given.get("transport.cc") or defaults.ccs,
        coupled_cc=coupled_cc,
        engines=engines,
        rate_mbps=rate_mbps,
        seeds=tuple(range(first_seed, first_seed + seeds)),
        base=_base(given, chosen, defaults, profile, rate_mbps, engines),
        auto=defaults.auto,
        brief=profile.brief,
        topologies=given.get("topology", ()),
        growing=_growing(given, defaults, profile, engines),
        highest_mbps=profile.highest_mbps,
        chosen=chosen,
    )


def sweeps_of(given: Settings, defaults: Defaults, coupled_cc: str = COUPLED_DEFAULT) -> list[SweepOptions]:
    """Return the options of a sweep for each combination of the values of its axes, those of the last one
    first: the axes of the figure to which the user gave no value, then the user's. Raises UsageError."""
    of_stack = any(path.startswith(_STACK) for path in given)
    taken = {*given, *(["stack"] if of_stack else [])}
    axes = {path: values for path, values in defaults.axes.items() if path not in taken} | several(given)
    return [
        resolve({**given, **_flat(dict(zip(axes, values, strict=True)))}, defaults, coupled_cc)
        for values in itertools.product(*axes.values())
    ]


def retries_of(given: Settings, typed: int | None = None) -> int | None:
    """Return how often suspect points are run again, by the option, else by the profile; None: not even
    baselines are, as with 0 of the option."""
    return PROFILES[given.get("profile", DEFAULT)].retries if typed is None else typed or None


def check_openflow(given: Settings) -> None:
    """Raise UsageError for an option of OpenFlow switches without any."""
    for path in _OPENFLOW if given.get("dataplane") != OVS else ():
        if path in given:
            raise UsageError(
                f"{BY_PATH[path].flag} {given[path]}: only Open vSwitch has one: add --dataplane {OVS} or "
                "leave it out"
            )


def _base(
    given: Settings,
    chosen: Settings,
    defaults: Defaults,
    profile: Profile,
    rate_mbps: float | None,
    engines: tuple[str, ...],
) -> RunSpec:
    """Return the fields that all points share. Raises UsageError for values that contradict each other."""
    check_openflow(given)
    simulated = SIMULATED_HOSTS.issuperset(engines)
    values = {f.path: _value(f, chosen, simulated) for f in SPEC_FIELDS if f.path != "stack"}
    values |= {path: value for path, value in chosen.items() if path.startswith(_STACK)}
    if given.get("dataplane") == OVS:
        # It uses the hosts' kernels and has no clock of its own.
        for path, wrong in (
            ("link.host_queue", given.get("link.host_queue", QDISC) != QDISC),
            ("clock", "clock" in given),
        ):
            if wrong:
                option = f"{BY_PATH[path].flag} {given[path]}"
                raise UsageError(f"{option} is the fabric's: leave it out with --dataplane {OVS}")
        values |= {"link.host_queue": QDISC, "clock": ELASTIC}
    warmup_s, seconds = _durations_s(given, defaults, profile, rate_mbps, engines)
    sampling = SamplingSpec(QUEUE_SAMPLE_MS if given.get("qmon") else 0, SOCKET_SAMPLE_MS, PING_MS)
    common = {"warmup_s": warmup_s, "seconds": seconds, "sampling": sampling.joined(defaults.sampling)}
    base = RunSpec(LinkSpec(rate_mbps or 1.0)).changed({**values, **common})
    if base.link.queue_bytes and "link.queue_pkts" in given:
        raise UsageError("--queue and --queue-bytes: a queue is counted in packets or in bytes; choose one")
    return base


def _value(option: SpecField, chosen: Settings, simulated: bool) -> Any:
    """Return the value of one field: the one that was chosen, else the usual one."""
    if simulated and option.hosts is Hosts.REAL:
        return option.default_value
    return chosen.get(option.path, option.default_value if option.usual is None else option.usual)


def _first(usual: Value, *values: Value | None) -> Value:
    """Return the first value that is not None, else the usual one; 0 is a value."""
    return next((value for value in values if value is not None), usual)


def _rate_mbps(given: Settings, defaults: Defaults, profile: Profile, virtual_time: bool) -> float | None:
    """Return the link rate; None for `auto`. Raises UsageError if `auto` is not possible."""
    pinned = defaults.rate_mbps if defaults.rate_mbps is not None else profile.rate_mbps(virtual_time)
    pinned = _rate_of_file(given) or pinned
    asked = given.get("link.rate_mbps")
    rate_mbps = pinned if asked is None else None if asked == BY_MACHINE else float(asked)
    if given.get("dataplane") == OVS and rate_mbps is None:
        raise UsageError(
            f"--dataplane {OVS}: --rate auto is what the fabric carries here, and {OVS} carries far less: "
            "give --rate MBPS, e.g. --rate 1"
        )
    return rate_mbps


def _rate_of_file(given: Settings) -> float | None:
    """Return the lowest rate that the user's network names, if any. Raises UsageError if several differ."""
    named = [
        from_file.rate_mbps(str(t.params["network"])) for t in given.get("topology", ()) if t.kind == FILE
    ]
    rates = sorted({rate for rate in named if rate})
    if len(rates) > 1 and "link.rate_mbps" not in given:
        raise UsageError(
            f"--topology: the lowest rates of the files differ ({rates[0]:g} and {rates[-1]:g} Mb/s): give "
            "--rate for the slowest links of all, or run one network at a time"
        )
    return rates[0] if rates else None


def _durations_s(
    given: Settings,
    defaults: Defaults,
    profile: Profile,
    rate_mbps: float | None,
    engines: tuple[str, ...],
) -> tuple[float, float]:
    """Return the seconds of warm-up and of measurement."""
    virtual_time = VIRTUAL_TIME.issuperset(engines)
    usual_mbps = virtual_mbps(engines)
    usual_warmup_s, usual_seconds = profile.durations_s(rate_mbps or usual_mbps, virtual_time)
    figures_own_s = defaults.whole_s if profile.whole and defaults.whole_s else defaults.seconds
    pinned_s, pinned_warmup_s = figures_own_s, defaults.warmup_s
    if _only_traces(given):
        pinned_warmup_s = 0.0
    if profile.brief:
        meant_mbps = defaults.rate_mbps or usual_mbps
        slower = max(1.0, meant_mbps / (rate_mbps or meant_mbps)) if virtual_time else 1.0
        most = PINNED_PART if virtual_time else 1.0
        pinned_s = defaults.brief_s or _brief_s(pinned_s, slower, most * usual_seconds)
        pinned_warmup_s = _brief_s(pinned_warmup_s, slower, most * usual_warmup_s)
    return (
        _first(usual_warmup_s, given.get("warmup_s"), pinned_warmup_s),
        _first(usual_seconds, given.get("seconds"), pinned_s),
    )


def _only_traces(given: Settings) -> bool:
    """Return whether all flows are the user's own. They start at their times, so there is no warm-up."""
    workloads = given.get("workload", ())
    return bool(workloads) and all(each.matrix == trace.NAME for each in workloads)


def _brief_s(pinned_s: float | None, slower: float, most_s: float) -> float | None:
    """Return the seconds that a figure pins, for links that are slower by the factor `slower`.

    They hold as many packet times, but are at most `most_s`.
    """
    return None if pinned_s is None else min(pinned_s * slower, most_s)


def _growing(
    given: Settings, defaults: Defaults, profile: Profile, engines: tuple[str, ...]
) -> frozenset[str]:
    """Return which durations may become longer: none in a brief profile or in virtual time, and not those
    that a figure pins. Guests are the exception: a figure without a rate pins durations that fit the rate
    of a machine, and guests run at a lower one. Its events have times that fit them."""
    pinned_s = any(seconds is not None for seconds in (defaults.seconds, defaults.warmup_s, defaults.whole_s))
    if set(engines) == {LINUX}:
        grow = defaults.rate_mbps is None
    else:
        grow = not pinned_s and not VIRTUAL_TIME.issuperset(engines)
    if profile.brief or not grow:
        return frozenset()
    chosen = {*given, *(["warmup_s"] if _only_traces(given) else [])}
    return frozenset({"warmup_s", "seconds"} - chosen) | frozenset([] if pinned_s else ["events"])


def _check_hosts(given: Settings, defaults: Defaults, engines: tuple[str, ...]) -> None:
    """Raise UsageError for an option that applies to the hosts of none of the `engines`."""
    simulated = [name in SIMULATED_HOSTS for name in engines]
    none_simulated = all(name in LINUX_HOSTS for name in engines)
    stack = {path: value for path, value in {**defaults.pins, **given}.items() if path.startswith(_STACK)}
    if stack and none_simulated:
        path = next((path for path in stack if path in given), next(iter(stack)))
        raise UsageError(
            f"--stack {path.removeprefix(_STACK)}={stack[path]}: the stacks of {engines[0]}'s hosts are "
            "their own; choose --engine simulator"
        )
    typed = [(BY_PATH[path], value) for path, value in given.items() if path in BY_PATH]
    for option, value in typed if none_simulated else ():
        if option.hosts is Hosts.SIMULATED and option.engines_own and value != option.default_value:
            raise UsageError(
                f"{option.flag} {option.text(value)}: the hosts of {engines[0]} are not simulated; "
                "leave it out, or choose --engine simulator"
            )
    for option, value in typed if all(simulated) else ():
        changes = value != option.default_value or option.usual is not None
        if option.hosts is Hosts.REAL and changes and option.path not in _OPENFLOW:
            text = option.text(value)
            raise UsageError(
                f"{option.flag} {text if isinstance(text, str) else text[0]}: simulated hosts have no kernel "
                "and run no programs; leave it out (--stack sets their parameters)"
            )
