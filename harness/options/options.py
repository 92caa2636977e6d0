"""Options of a sweep: one look-up in layers. Pure.

Each layer is a mapping of values by path (`Settings`): what the user gave, over what the figure pins, over
the profile, over the default of the field (`resolve`). A path is that of a field of the spec,
`link.queue_pkts` or `stack.min_rto_ms`, or the name of an option that is no field: `k`, `seeds`, `profile`,
`qmon`.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
from workloads import app, trace

__all__ = [
    "BOTH",
    "ENGINE",
    "MAX_K",
    "QUEUE_SAMPLE_MS",
    "UNSCHEDULED",
    "USUAL_TRAFFIC",
    "SweepOptions",
    "by_path",
    "check_openflow",
    "layer_of",
    "on_real_hosts",
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
DURATIONS = ("warmup_s", "seconds")
_SIZES = ("k", "transport.subflows")
"""What determines how long a run takes: the profile has priority over the figure."""
_USUAL_LAYER: Settings = {
    "k": (), "workload": ("one_to_one",), "transport.subflows": (1,), "transport.cc": (), "engine": (ENGINE,),
    "auto": AUTO, "sampling": SamplingSpec(),
}  # fmt: skip
IN_LAYERS = (
    *SETTABLE, *_USUAL_LAYER, "seeds", "always_whole",
    *(f"{profile}.{path}" for profile in PROFILES for path in ("seconds", "seeds")),
)  # fmt: skip
"""What a figure's layer may have, by path."""
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
    if not isinstance(stack, Mapping):  # several: an axis
        return dict(settings)
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
    """Return the axes of what the user gave, or of a figure's layer: the paths with several values."""
    return {
        path: tuple(value)
        for path, value in given.items()
        if isinstance(value, list) or (isinstance(value, tuple) and path in _SWEPT)
    }


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


def layer_of(defaults: Settings) -> dict[str, Any]:
    """Return the whole layer of a figure, by path: what it runs if no option says otherwise.

    `k`, `workload`, `transport.subflows`, `transport.cc` and `engine` are tuples: each point has one of their
    values. `seeds` is a number. Fields of the spec have the value that it pins, or an axis: several, and
    every point is run with each. If a value is a tuple itself, several are a list. `sampling` is added to
    what is always sampled. `auto` is what `--rate auto` means (`AutoRate`). `paper.seconds`, `smoke.seconds`
    and `smoke.seeds` hold in that profile. `always_whole` says that a brief profile changes nothing in
    virtual time, because the figure takes seconds and shows nothing in a shorter window. None is as if
    absent. Raises UsageError for any other path.
    """
    layer = {path: value for path, value in _flat(defaults).items() if value is not None}
    for path in layer:
        if path not in IN_LAYERS:
            raise UsageError(f"{path}: no option sets such a field; {field_meant(path, SETTABLE)}")
    return {**_USUAL_LAYER, **layer}


def on_real_hosts(defaults: Settings, changes: Settings) -> Settings:
    """Return the layer of a figure for real hosts, in real time: with `changes`, and without the rate and the
    durations, which machine and profile determine, and the stack, which is the kernel's."""
    kernels = {path: value for path, value in _flat(defaults).items() if not path.startswith(_STACK)}
    return {**kernels, **dict.fromkeys(("link.rate_mbps", *DURATIONS)), "engine": (ENGINE,), **changes}


def _pinned(layer: Settings) -> dict[str, Any]:
    """Return the fields of the spec of which the figure has one value."""
    axes = several(layer)
    return {path: value for path, value in layer.items() if path in SETTABLE and path not in axes}


def overriding(given: Settings, defaults: Settings) -> Settings:
    """Return what the user gave all points instead of what the figure pins or what is usual.

    Rates and durations are no settings of a figure, and names of points have the axes.
    """
    own, axes = _pinned(layer_of(defaults)), several(given)
    paths = [path for path in given if (path in BY_PATH or path.startswith(_STACK)) and path not in axes]
    usual = {path: BY_PATH[path].usual for path in paths if path in BY_PATH}
    return {
        path: given[path]
        for path in paths
        if given[path] != own.get(path, usual.get(path) or operator.attrgetter(path)(USUAL))
    }


@dataclass(frozen=True)
class SweepOptions:
    """The options of one sweep, resolved: what a figure's functions make its points from.

    `base` has the fields that all points share; its engine, topology, workload, link rate, congestion
    control, subflows and seed are not used. `ccs` is empty if neither the user nor the figure chose any;
    MPTCP then runs `coupled_cc`. `rate_mbps` is None for `auto`, which means `auto`. In a brief profile,
    networks that no k chooses are small too.
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
    profile: Profile
    auto: AutoRate
    topologies: tuple[TopologySpec, ...]
    """Networks that replace FatTrees."""
    growing: frozenset[str]
    """The durations that become longer on links that need it, by path: those that no option chose, nor, in
    real time, the figure. Those of points with `events`, too, if it is among them."""
    chosen: Settings
    """The fields of the spec that the user or the figure chose, usual values too."""

    def on(self, engine: str) -> RunSpec:
        """Return the fields that all points of this engine have in common."""
        foreign = Hosts.REAL if engine in SIMULATED_HOSTS else Hosts.SIMULATED
        usual = {f.path: f.default_value for f in SPEC_FIELDS if f.engines_own and f.hosts is foreign}
        return dataclasses.replace(self.base.changed(usual), engine=engine)


def resolve(given: Settings, defaults: Settings, coupled_cc: str = COUPLED_DEFAULT) -> SweepOptions:
    """Return the options of a sweep: at each path the value of the first layer that has one.

    The layers are what the user gave, what the user's files say, what the figure has for the profile, what it
    pins, the profile, and the rest of the figure. `given` has one value at each path that can be an axis;
    axes of the figure do not count. `coupled_cc` is what MPTCP runs on this machine unless an option names
    another. Raises UsageError.
    """
    own = layer_of(defaults)
    engines = given.get("engine", own["engine"])
    virtual_time = VIRTUAL_TIME.issuperset(engines)
    profile = PROFILES[given.get("profile", DEFAULT)]
    if profile.brief and virtual_time and own.get("always_whole"):
        profile = PROFILES[DEFAULT]
    pinned = _pinned(own)
    _check_hosts(given, pinned, engines)
    in_profile = {path: own[key] for path in ("seconds", "seeds") if (key := f"{profile.name}.{path}") in own}
    first = ChainMap(dict(given), _of_files(given), in_profile)
    fixed = {path: value for path, value in own.items() if path not in (*_SIZES, *several(own))}
    sizes = {path: own[path] for path in _SIZES}
    layers = ChainMap(*first.maps, fixed, profile.layer(virtual_time), sizes)
    rate_mbps = _rate_mbps(given, layers.get("link.rate_mbps"))
    chosen = {path: value for path, value in {**pinned, **given}.items() if path in SETTABLE}
    if _SYSCTLS in given:
        chosen[_SYSCTLS] = {**pinned.get(_SYSCTLS, {}), **given[_SYSCTLS]}
    sampling = SamplingSpec(QUEUE_SAMPLE_MS if given.get("qmon") else 0, SOCKET_SAMPLE_MS, PING_MS)
    common = {
        "sampling": sampling.joined(own["sampling"]),
        **_durations_s(first, pinned, profile, rate_mbps, engines),
    }
    first_seed = given.get("seed", 1)
    return SweepOptions(
        ks=layers["k"],
        workloads=given.get("workload") or named_workloads("--workload", own["workload"]),
        subflows=layers["transport.subflows"],
        ccs=layers["transport.cc"],
        coupled_cc=coupled_cc,
        engines=engines,
        rate_mbps=rate_mbps,
        seeds=tuple(range(first_seed, first_seed + layers["seeds"])),
        base=_base(given, chosen, common, engines),
        profile=profile,
        auto=own["auto"],
        topologies=given.get("topology", ()),
        growing=_growing(first, own, profile, engines),
        chosen=chosen,
    )


def sweeps_of(given: Settings, defaults: Settings, coupled_cc: str = COUPLED_DEFAULT) -> list[SweepOptions]:
    """Return the options of a sweep for each combination of the values of its axes, those of the last one
    first: the axes of the figure to which the user gave no value, then the user's. Raises UsageError."""
    of_stack = any(path.startswith(_STACK) for path in given)
    taken = {*given, *(["stack"] if of_stack else [])}
    own = several(layer_of(defaults))
    axes = {path: values for path, values in own.items() if path not in taken} | several(given)
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


def _base(given: Settings, chosen: Settings, common: Settings, engines: tuple[str, ...]) -> RunSpec:
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
    base = RunSpec(LinkSpec(1.0)).changed({**values, **common})
    if base.link.queue_bytes and "link.queue_pkts" in given:
        raise UsageError("--queue and --queue-bytes: a queue is counted in packets or in bytes; choose one")
    return base


def _value(option: SpecField, chosen: Settings, simulated: bool) -> Any:
    """Return the value of one field: the one that was chosen, else the usual one."""
    if simulated and option.hosts is Hosts.REAL:
        return option.default_value
    return chosen.get(option.path, option.default_value if option.usual is None else option.usual)


def _rate_mbps(given: Settings, rate_mbps: float | str | None) -> float | None:
    """Return the link rate; None for `auto`. Raises UsageError if `auto` is not possible."""
    if rate_mbps is not None and rate_mbps != BY_MACHINE:
        return float(rate_mbps)
    if given.get("dataplane") == OVS:
        raise UsageError(
            f"--dataplane {OVS}: --rate auto is what the fabric carries here, and {OVS} carries far less: "
            "give --rate MBPS, e.g. --rate 1"
        )
    return None


def _of_files(given: Settings) -> dict[str, Any]:
    """Return what the user's files say: a network's lowest rate, and no warm-up if all flows and programs are
    those of files, which start at their times. Raises UsageError."""
    layer: dict[str, Any] = {}
    if rate_mbps := _rate_of_file(given):
        layer["link.rate_mbps"] = rate_mbps
    workloads = given.get("workload", ())
    if workloads and all(
        each.matrix == trace.NAME
        or (each.matrix == app.NAME and not app.parsed(each.params["programs"]).background)
        for each in workloads
    ):
        layer["warmup_s"] = 0.0
    return layer


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
    first: Settings, pinned: Settings, profile: Profile, rate_mbps: float | None, engines: tuple[str, ...]
) -> Settings:
    """Return the seconds of warm-up and of measurement, by path: of the first layers, else what the figure
    pins, else the profile's. In a brief profile what it pins is shorter: links that are slower than the
    figure's carry as many packets, for at most so long."""
    virtual_time = VIRTUAL_TIME.issuperset(engines)
    usual_mbps = virtual_mbps(engines)
    usual = profile.durations_s(rate_mbps or usual_mbps, virtual_time)
    if profile.brief:
        meant_mbps = pinned.get("link.rate_mbps", usual_mbps)
        slower = max(1.0, meant_mbps / (rate_mbps or meant_mbps)) if virtual_time else 1.0
        most = PINNED_PART if virtual_time else 1.0
        pinned = {
            path: min(pinned[path] * slower, most * usual[path]) for path in DURATIONS if path in pinned
        }
    layers = ChainMap(dict(first), dict(pinned), dict(usual))
    return {path: layers[path] for path in DURATIONS}


def _growing(first: Settings, own: Settings, profile: Profile, engines: tuple[str, ...]) -> frozenset[str]:
    """Return which durations may become longer: none in a brief profile or in virtual time, and not those
    that a figure pins. Guests are the exception: a figure without a rate pins durations that fit the rate
    of a machine, and guests run at a lower one. Its events have times that fit them."""
    pinned_s = any(path in own for path in DURATIONS)
    if set(engines) == {LINUX}:
        grow = "link.rate_mbps" not in own
    else:
        grow = not pinned_s and not VIRTUAL_TIME.issuperset(engines)
    if profile.brief or not grow:
        return frozenset()
    growing = [path for path in DURATIONS if path not in first]
    return frozenset([*growing, *([] if pinned_s else ["events"])])


def _check_hosts(given: Settings, pinned: Settings, engines: tuple[str, ...]) -> None:
    """Raise UsageError for an option that applies to the hosts of none of the `engines`."""
    simulated = [name in SIMULATED_HOSTS for name in engines]
    none_simulated = all(name in LINUX_HOSTS for name in engines)
    stack = {path: value for path, value in {**pinned, **given}.items() if path.startswith(_STACK)}
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
