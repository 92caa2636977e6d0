"""Options of a sweep: what the user gave, what a figure pins, and the values that follow from both. Pure."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

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
from harness.options.profiles import DEFAULT, PROFILES, Profile, Retries
from harness.options.rates import AS_CHOSEN, AUTO, AutoRate, Window, virtual_mbps
from model.congestion import COUPLED_DEFAULT
from model.spec import (
    ELASTIC,
    QDISC,
    LinkSpec,
    OpenFlowSpec,
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
    "UserOptions",
    "openflow_of",
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
_GRID_PATHS = {"link.rate_mbps": "rate", "seconds": "seconds", "warmup_s": "warmup"}
PINNED_BY_NAME = {"rate_mbps": "link.rate_mbps", "seconds": "seconds", "warmup_s": "warmup_s"}
"""Fields of `Defaults` that pin a field of the spec, with its path."""
SETTABLE = (*BY_PATH, *_GRID_PATHS, *(f"{_STACK}{name}" for name in STACK_FIELDS))
"""The fields of the spec that an option sets, by path."""
_OPENFLOW_OPTIONS = ("controller", "mode", "datapath")


def _option_of(path: str) -> str:
    """Return the name of the option that sets the field at `path`. Raises UsageError if none does."""
    if path in BY_PATH or path in _GRID_PATHS:
        return BY_PATH[path].name if path in BY_PATH else _GRID_PATHS[path]
    if path in SETTABLE:
        return "stack"
    raise UsageError(f"{path}: no option sets such a field; {field_meant(path, SETTABLE)}")


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
class UserOptions:
    """Options that the user gave, parsed; None leaves the choice to the profile or the figure.

    `settings` are the options that give all points one value of a field of the spec, by name (fields.py).
    """

    k: tuple[int, ...] | None = None
    topology: tuple[TopologySpec, ...] | None = None
    workload: tuple[WorkloadSpec, ...] | None = None
    subflows: tuple[int, ...] | None = None
    cc: tuple[str, ...] | None = None
    engine: tuple[str, ...] | None = None
    rate: float | Literal["auto"] | None = None
    seconds: float | None = None
    warmup: float | None = None
    seed: int = 1
    seeds: int | None = None
    profile: str = DEFAULT
    qmon: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)
    axes: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    """Options with several values: the sweep is the product of these axes. That of a field of the stack has
    the option `stack`, and values such as `{"min_rto_ms": 10.0}`."""

    @classmethod
    def parsed(cls, **values: Any) -> UserOptions:
        """Return the options with these parsed values; None means that the option was not given."""
        chosen = {name: value for name, value in values.items() if value is not None}
        several = [o.name for o in OPTIONS if o.listed and isinstance(chosen.get(o.name), tuple)]
        axes = [(name, chosen.pop(name)) for name in several]
        stack = chosen.pop("stack", {})
        axes += [("stack", tuple({n: one} for one in v)) for n, v in stack.items() if isinstance(v, tuple)]
        if fixed := {name: value for name, value in stack.items() if not isinstance(value, tuple)}:
            chosen["stack"] = fixed
        settings = {name: chosen.pop(name) for name in BY_NAME if name in chosen}
        return cls(**chosen, settings=settings, axes=tuple(axes))

    @classmethod
    def of(cls, **texts: Any) -> UserOptions:
        """Return the options with these texts, as on a command line. Raises UsageError."""
        known = {option.name: option for option in OPTIONS}
        values = {
            name: known[name].read(text) if name in known else text
            for name, text in texts.items()
            if text is not None
        }
        return cls.parsed(**values)

    def names(self) -> list[str]:
        """Return the names of the options that differ from their defaults."""
        grid = [f for f in dataclasses.fields(self) if f.name not in ("settings", "axes")]
        given = [f.name for f in grid if getattr(self, f.name) != f.default]
        return list(dict.fromkeys([*given, *self.settings, *(name for name, _ in self.axes)]))

    def each(self) -> list[UserOptions]:
        """Return the options with each combination of the values of its axes, those of the last one first."""
        found = []
        for values in itertools.product(*(values for _, values in self.axes)):
            settings, grid = dict(self.settings), dict[str, Any]()
            for (name, _), value in zip(self.axes, values, strict=True):
                if name not in BY_NAME:
                    grid[name] = value
                else:
                    merged = BY_NAME[name].merges
                    settings[name] = {**settings.get(name, {}), **value} if merged else value
            found.append(dataclasses.replace(self, settings=settings, axes=(), **grid))
        return found

    def across(self, axes: Mapping[str, Sequence[Any]]) -> UserOptions:
        """Return the options with these axes of a figure, except where the user gave values."""
        given = set(self.names())
        given |= {f"{_STACK}{name}" for name in self.settings.get("stack", ())}
        given |= {f"{_STACK}{name}" for option, each in self.axes if option == "stack" for name in each[0]}
        added = []
        for path, values in axes.items():
            option, name = _option_of(path), path.removeprefix(_STACK)
            if (path if option == "stack" else option) not in given:
                added.append(
                    (option, tuple({name: one} for one in values) if name != path else tuple(values))
                )
        return dataclasses.replace(self, axes=(*added, *self.axes))

    def without(self, hosts: Hosts) -> UserOptions:
        """Return the options without those that apply to these hosts only."""
        away = {name for name, option in BY_NAME.items() if option.hosts is hosts}
        kept = {name: value for name, value in self.settings.items() if name not in away}
        return dataclasses.replace(
            self, settings=kept, axes=tuple(axis for axis in self.axes if axis[0] not in away)
        )


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
        of_stack = {path.removeprefix(_STACK): path for path in self.pins if path.startswith(_STACK)}
        moved = {*by_name.values(), *of_stack.values()}
        pins = {path: value for path, value in self.pins.items() if path not in moved}
        if of_stack:
            fields = {name: self.pins[path] for name, path in of_stack.items()}
            pins["stack"] = {**pins.get("stack", {}), **fields}
        for name, path in by_name.items():
            if getattr(self, name) is not None:
                raise UsageError(f"{path}: it is pinned twice, in pins and as {name}")
            object.__setattr__(self, name, self.pins[path])
        object.__setattr__(self, "pins", pins)
        for path in (*self.pins, *self.axes):
            _option_of(path)
        for path, values in self.axes.items():
            check_axis(f"axis {path}", values)

    @property
    def stack(self) -> Mapping[str, Any]:
        """The fields of simulated hosts' stacks that it pins, by name."""
        return self.pins.get("stack") or {}

    def but(self, *, pins: Settings | None = None, **changes: Any) -> Defaults:
        """Return the defaults with these `pins` beside their own, and with `changes` of other fields."""
        return dataclasses.replace(self, **changes, pins={**self.pins, **(pins or {})})

    def emulated(self, **changes: Any) -> Defaults:
        """Return the defaults for real hosts, in real time.

        The rate is what this machine carries, the stacks are the kernel's, and the profile determines the
        duration, unless `changes` (as of `but`) say otherwise.
        """
        real: dict[str, Any] = {"rate_mbps": None, "seconds": None, "warmup_s": None, "engines": (ENGINE,)}
        kernels = {path: value for path, value in self.pins.items() if path != "stack"}
        return dataclasses.replace(self, pins=kernels).but(**{**real, **changes})


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
    window: Window = AS_CHOSEN
    """Whether warm-up or measured seconds become longer on links that need it."""
    highest_mbps: float = math.inf
    """The highest rate that `auto` tries."""
    stack: Mapping[str, int | float | bool | str] = field(default_factory=dict)
    """Fields of simulated hosts' stacks that the user or the figure chose, usual values too."""
    chosen_warmup: bool = False
    """Whether the user or the figure chose the warm-up."""

    def on(self, engine: str) -> RunSpec:
        """Return the fields that all points of this engine have in common."""
        foreign = Hosts.REAL if engine in SIMULATED_HOSTS else Hosts.SIMULATED
        usual = {f.path: f.default_value for f in SPEC_FIELDS if f.engines_own and f.hosts is foreign}
        return dataclasses.replace(self.base.changed(usual), engine=engine)


Value = TypeVar("Value")


def resolve(given: UserOptions, defaults: Defaults, coupled_cc: str = COUPLED_DEFAULT) -> SweepOptions:
    """Return the options of a sweep. The user has priority over what the figure pins, then the profile, then
    the figure's defaults.

    `coupled_cc` is what MPTCP runs on this machine unless an option names another. Raises UsageError.
    """
    engines = given.engine or defaults.engines
    virtual_time = VIRTUAL_TIME.issuperset(engines)
    profile = PROFILES[given.profile]
    if profile.brief and virtual_time and defaults.always_whole:
        profile = PROFILES[DEFAULT]
    _check_hosts(given, defaults, engines)
    rate_mbps = _rate_mbps(given, defaults, profile, virtual_time)
    pinned_seeds = (profile.brief and defaults.brief_seeds) or defaults.seeds
    seeds = _first(profile.seeds, given.seeds, pinned_seeds)
    return SweepOptions(
        ks=given.k or profile.ks or defaults.ks,
        workloads=given.workload or named_workloads("--workload", defaults.workloads),
        subflows=given.subflows or profile.subflows or defaults.subflows,
        ccs=given.cc or defaults.ccs,
        coupled_cc=coupled_cc,
        engines=engines,
        rate_mbps=rate_mbps,
        seeds=tuple(range(given.seed, given.seed + seeds)),
        base=_base(given, defaults, profile, rate_mbps, engines),
        auto=defaults.auto,
        brief=profile.brief,
        topologies=given.topology or (),
        window=_window(given, defaults, profile, engines),
        highest_mbps=profile.highest_mbps,
        stack={**defaults.stack, **(given.settings.get("stack") or {})},
        chosen_warmup=given.warmup is not None or defaults.warmup_s is not None,
    )


def sweeps_of(
    given: UserOptions, defaults: Defaults, coupled_cc: str = COUPLED_DEFAULT
) -> list[SweepOptions]:
    """Return the options of a sweep for each combination of the values of its axes, those of the user and
    those of the figure to which the user gave no value. Raises UsageError."""
    return [resolve(each, defaults, coupled_cc) for each in given.across(defaults.axes).each()]


def retries_of(given: UserOptions, typed: int | None = None) -> Retries:
    """Return how often suspect points are run again: by the option, else by the profile."""
    return Retries.of_profile(PROFILES[given.profile].retries) if typed is None else Retries.typed(typed)


def openflow_of(given: UserOptions) -> OpenFlowSpec:
    """Return how switches are programmed. Raises UsageError if there are no OpenFlow switches."""
    chosen = {name: given.settings[name] for name in _OPENFLOW_OPTIONS if name in given.settings}
    for name, word in chosen.items() if given.settings.get("dataplane") != OVS else ():
        raise UsageError(f"--{name} {word}: only Open vSwitch has one: add --dataplane {OVS} or leave it out")
    return OpenFlowSpec(**chosen)


def _base(
    given: UserOptions,
    defaults: Defaults,
    profile: Profile,
    rate_mbps: float | None,
    engines: tuple[str, ...],
) -> RunSpec:
    """Return the fields that all points share. Raises UsageError for values that contradict each other."""
    openflow_of(given)
    pinned = defaults.pins
    simulated = SIMULATED_HOSTS.issuperset(engines)
    values = {f.path: _value(f, given, pinned, simulated) for f in SPEC_FIELDS}
    if given.settings.get("dataplane") == OVS:
        # It uses the hosts' kernels and has no clock of its own.
        for name, wrong in (
            ("host_queue", given.settings.get("host_queue", QDISC) != QDISC),
            ("clock", "clock" in given.settings),
        ):
            if wrong:
                option = f"{BY_NAME[name].flag} {given.settings[name]}"
                raise UsageError(f"{option} is the fabric's: leave it out with --dataplane {OVS}")
        values |= {"link.host_queue": QDISC, "clock": ELASTIC}
    warmup_s, seconds = _durations_s(given, defaults, profile, rate_mbps, engines)
    sampling = SamplingSpec(QUEUE_SAMPLE_MS if given.qmon else 0, SOCKET_SAMPLE_MS, PING_MS)
    common = {"warmup_s": warmup_s, "seconds": seconds, "sampling": sampling.joined(defaults.sampling)}
    base = RunSpec(LinkSpec(rate_mbps or 1.0)).changed({**values, **common})
    if base.link.queue_bytes and "queue" in given.settings:
        raise UsageError("--queue and --queue-bytes: a queue is counted in packets or in bytes; choose one")
    return base


def _value(option: SpecField, given: UserOptions, pinned: Mapping[str, Any], simulated: bool) -> Any:
    """Return the value of one field: the user's, else the figure's, else the usual one."""
    fixed, default = pinned.get(option.path), option.default_value
    if simulated and option.hosts is Hosts.REAL:
        return default
    chosen = given.settings.get(option.name)
    if option.merges:
        fields = {**(fixed or {}), **(chosen or {})}
        return fields if isinstance(default, Mapping) else dataclasses.replace(default, **fields)
    usual = default if option.usual is None else option.usual
    return _first(usual, chosen, fixed)


def _first(usual: Value, *values: Value | None) -> Value:
    """Return the first value that is not None, else the usual one; 0 is a value."""
    return next((value for value in values if value is not None), usual)


def _rate_mbps(given: UserOptions, defaults: Defaults, profile: Profile, virtual_time: bool) -> float | None:
    """Return the link rate; None for `auto`. Raises UsageError if `auto` is not possible."""
    pinned = defaults.rate_mbps if defaults.rate_mbps is not None else profile.rate_mbps(virtual_time)
    pinned = _rate_of_file(given) or pinned
    rate_mbps = pinned if given.rate is None else None if given.rate == BY_MACHINE else given.rate
    if given.settings.get("dataplane") == OVS and rate_mbps is None:
        raise UsageError(
            f"--dataplane {OVS}: --rate auto is what the fabric carries here, and {OVS} carries far less: "
            "give --rate MBPS, e.g. --rate 1"
        )
    return rate_mbps


def _rate_of_file(given: UserOptions) -> float | None:
    """Return the lowest rate that the user's network names, if any. Raises UsageError if several differ."""
    named = [from_file.rate_mbps(str(t.params["network"])) for t in given.topology or () if t.kind == FILE]
    rates = sorted({rate for rate in named if rate})
    if len(rates) > 1 and given.rate is None:
        raise UsageError(
            f"--topology: the lowest rates of the files differ ({rates[0]:g} and {rates[-1]:g} Mb/s): give "
            "--rate for the slowest links of all, or run one network at a time"
        )
    return rates[0] if rates else None


def _durations_s(
    given: UserOptions,
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
        _first(usual_warmup_s, given.warmup, pinned_warmup_s),
        _first(usual_seconds, given.seconds, pinned_s),
    )


def _only_traces(given: UserOptions) -> bool:
    """Return whether all flows are the user's own. They start at their times, so there is no warm-up."""
    return bool(given.workload) and all(each.matrix == trace.NAME for each in given.workload or ())


def _brief_s(pinned_s: float | None, slower: float, most_s: float) -> float | None:
    """Return the seconds that a figure pins, for links that are slower by the factor `slower`.

    They hold as many packet times, but are at most `most_s`.
    """
    return None if pinned_s is None else min(pinned_s * slower, most_s)


def _window(given: UserOptions, defaults: Defaults, profile: Profile, engines: tuple[str, ...]) -> Window:
    """Return which durations may become longer: none in a brief profile or in virtual time, and not those
    that a figure pins. Guests are the exception: a figure without a rate pins durations that fit the rate
    of a machine, and guests run at a lower one."""
    pinned_s = any(seconds is not None for seconds in (defaults.seconds, defaults.warmup_s, defaults.whole_s))
    if set(engines) == {LINUX}:
        grow = defaults.rate_mbps is None
    else:
        grow = not pinned_s and not VIRTUAL_TIME.issuperset(engines)
    if profile.brief or not grow:
        return AS_CHOSEN
    return Window(
        warmup=given.warmup is None and not _only_traces(given),
        seconds=given.seconds is None,
        with_events=not pinned_s,
    )


def _check_hosts(given: UserOptions, defaults: Defaults, engines: tuple[str, ...]) -> None:
    """Raise UsageError for an option that applies to the hosts of none of the `engines`."""
    simulated = [name in SIMULATED_HOSTS for name in engines]
    none_simulated = all(name in LINUX_HOSTS for name in engines)
    stack = given.settings.get("stack") or defaults.stack
    if stack and none_simulated:
        name, value = next(iter(stack.items()))
        raise UsageError(
            f"--stack {name}={value}: the stacks of {engines[0]}'s hosts are their own; "
            "choose --engine simulator"
        )
    for name, value in given.settings.items() if none_simulated else ():
        option = BY_NAME[name]
        if option.hosts is Hosts.SIMULATED and option.engines_own and value != option.default_value:
            raise UsageError(
                f"{option.flag} {option.text(value)}: the hosts of {engines[0]} are not simulated; "
                "leave it out, or choose --engine simulator"
            )
    for name, value in given.settings.items() if all(simulated) else ():
        option = BY_NAME[name]
        changes = value != option.default_value or option.usual is not None
        if option.hosts is Hosts.REAL and changes and name not in _OPENFLOW_OPTIONS:
            text = option.text(value)
            raise UsageError(
                f"{option.flag} {text if isinstance(text, str) else text[0]}: simulated hosts have no kernel "
                "and run no programs; leave it out (--stack sets their parameters)"
            )
