"""One record for each option of a sweep. Pure.

An option that sets a field of the spec names the field, and says how comparisons and commands write its
value. The words of labels and charts belong to the field (model/words.py). Everything outside the
engines that handles such a field uses its record.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import operator
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import UsageError
from controllers.routing import POLICIES
from engines.emulation.dataplanes.dataplane import DATAPLANES, OVS
from engines.registry import ENGINES, SIMULATED_HOSTS
from harness.options import parsers, user_files
from harness.options.parsers import Parser
from harness.options.profiles import DEFAULT, PROFILES
from model.congestion import BASELINE, CONGESTION_CONTROLS, COUPLED_DEFAULT
from model.links import FORMS as TRACE_FORMS
from model.links import event_text
from model.noise import parse_stalls, stalls_words
from model.schedulers import parse_scheduler, scheduler_words
from model.spec import (
    CLOCKS,
    CONTROLLERS,
    DATAPATHS,
    HOST_QUEUES,
    LIMITS,
    LINUX,
    MODES,
    OWN,
    QUEUES,
    SCHEDULERS,
    TCP,
    TRAFFIC,
    TRANSPORTS,
    USUAL,
    OpenFlowSpec,
    RunSpec,
    StackSpec,
    check_name,
    is_own,
    typed,
)
from model.transports import SCATTER
from model.words import USUAL_OF_REAL_HOSTS, WORDS, stack_texts

Text = str | tuple[str, ...]
USUAL_TRAFFIC = str(USUAL_OF_REAL_HOSTS["traffic"])
MAX_SEEDS = 1000
_OPENFLOW = OpenFlowSpec()


class Hosts(enum.Enum):
    """The hosts to which an option applies. Other engines refuse it."""

    ALL = enum.auto()
    REAL = enum.auto()
    SIMULATED = enum.auto()


@dataclass(frozen=True)
class Option:
    """An option of a sweep: its name (`random_drop` is --random-drop), metavariable, help text and parser.

    The texts of a `multiple` option are parsed together. Commas separate values of a `listed` option; several
    are an axis of the sweep.
    """

    name: str
    metavar: str
    help: str
    parse: Parser
    multiple: bool = False
    default: Any = None
    listed: bool = False
    path: str = ""
    """The field of the spec that it sets or chooses, e.g. `link.delay_us`; empty if it is none."""

    def read(self, given: Any) -> Any:
        """Return the value of a text or of a value of its type; of several, a tuple. Raises UsageError.

        Commas divide only what is no value as a whole: a path or a command may have some.
        """
        parse = functools.partial(self.parse, self.flag)
        if self.listed and isinstance(given, list | tuple):
            return parsers.several(f"{self.flag} {given}", given, parse)
        try:
            return parse(given)
        except UsageError:
            if not self.listed or "," not in str(given):
                raise
            return parsers.several(f"{self.flag} {given}", given, parse)

    @property
    def flag(self) -> str:
        return f"--{self.name.replace('_', '-')}"


def exact(value: float) -> str:
    """Return the shortest text that is read as exactly this number: another number would be another point."""
    return repr(float(value)).removesuffix(".0")


def _text(value: Any) -> Text:
    return exact(value) if isinstance(value, float) else str(value)


@dataclass(frozen=True)
class SpecField(Option):
    """An option that sets the field of the spec at `path`, e.g. `link.delay_us`.

    `text` is the inverse of `parse`; commands contain what `repeated` returns, if it is given. Commands that
    repeat a run contain the option if the value is not the default, or `always`, provided that `written` is
    true for the point. If `engines_own` is true, points of other engines in the same sweep keep the default
    of the spec.
    """

    text: Callable[[Any], Text] = _text
    repeated: Callable[[Any], Text] | None = None
    always: bool = False
    written: Callable[[RunSpec], bool] = lambda _spec: True
    hosts: Hosts = Hosts.ALL
    engines_own: bool = False

    @property
    def default_value(self) -> Any:
        """The default of the spec."""
        return self.of(USUAL)

    def of(self, spec: RunSpec) -> Any:
        """Return the field's value in `spec`."""
        return operator.attrgetter(self.path)(spec)

    @property
    def words(self) -> Callable[[Any], str] | None:
        """Describes an unusual value in labels and charts; None for a value that they show anyway."""
        return WORDS.get(self.path)

    @property
    def usual(self) -> Any:
        """The value for real hosts if neither an option nor a figure chooses one; None for the default."""
        return USUAL_OF_REAL_HOSTS.get(self.path)

    def argv(self, spec: RunSpec) -> list[str]:
        """Return the arguments that give this field its value in `spec`; empty if none are needed."""
        value = self.of(spec)
        away = self.hosts is Hosts.REAL and spec.engine in SIMULATED_HOSTS
        if not self.written(spec) or (value == self.default_value and (away or not self.always)):
            return []
        text = (self.repeated or self.text)(value)
        each = (text,) if isinstance(text, str) else text
        return [part for one in each for part in (self.flag, one)]


def _names(known: Any) -> str:
    return ", ".join(known)


def _is_fabric(spec: RunSpec) -> bool:
    return spec.dataplane != OVS


def _controller(option: str, text: Any) -> str:
    """Parse the name of a controller, or one of the user's."""
    if is_own(str(text)):
        return str(text)
    return parsers.one_of(option, str(text), [*CONTROLLERS, "remote:PORT", "cmd:'PROGRAM ...'"])


STACK_FIELDS: Mapping[str, type] = typing.get_type_hints(StackSpec)
_SWITCH = {"on": True, "off": False, "yes": True, "no": False, "true": True, "false": False}


def parse_stack(option: str, texts: Sequence[str]) -> dict[str, object]:
    """Parse each of `texts`, `name=value` of a StackSpec; several values, with commas between them, are a
    tuple. Raises UsageError."""
    given: dict[str, object] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if name not in STACK_FIELDS or not equals or not value:
            raise UsageError(f"{option} {text}: write NAME=VALUE; names are: {', '.join(STACK_FIELDS)}")
        chosen = parsers.several(f"{option} {text}", value, functools.partial(_stack_value, text, name))
        if given.setdefault(name, chosen) != chosen:
            raise UsageError(f"{option} {text}: {name} is given already; give it once")
    return given


def _stack_value(text: str, name: str, value: str) -> object:
    kind = STACK_FIELDS[name]
    if kind is bool:
        if value not in _SWITCH:
            raise UsageError(f"--stack {text}: write {name}=on or {name}=off")
        return _SWITCH[value]
    if kind is str:
        known, before = parsers.CHOICES[f"stack.{name}"]
        check_name(before, value, known)
        return value
    limits, whole = LIMITS[f"stack.{name}"], kind is int
    try:
        number = int(value) if whole else float(value)
    except ValueError:
        raise UsageError(
            f"--stack {text}: {name} is a {'whole ' if whole else ''}number of {limits.unit}"
        ) from None
    if wrong := limits.problem(number):
        raise UsageError(f"--stack {text}: {wrong}")
    return number


def changed_texts(stack: StackSpec) -> tuple[str, ...]:
    """Return `name=value` of the fields that make this stack of the usual one, and of Linux's, which several
    figures have."""
    return () if stack == StackSpec() else stack_texts(stack, LINUX)


def usual_stack() -> str:
    """Return all names with their default values, for `--help`."""
    return ", ".join(f"{name}={typed(getattr(StackSpec(), name))}" for name in STACK_FIELDS)


_FIELDS: tuple[SpecField, ...] = (
    SpecField(
        "dataplane", "NAME",
        f"Carry packets between real hosts by this data plane: {_names(DATAPLANES)}. "
        f"[default: {USUAL.dataplane}]",
        parsers.choice(DATAPLANES),
        path="dataplane", always=True, hosts=Hosts.REAL, engines_own=True,
    ),
    SpecField(
        "controller", "NAME",
        f"Program Open vSwitch with this controller: {_names(CONTROLLERS)}, {OWN}. "
        f"[default: {_OPENFLOW.controller}]",
        _controller,
        path="openflow.controller", hosts=Hosts.REAL, engines_own=True,
    ),
    SpecField(
        "mode", "NAME",
        f"Install OpenFlow rules in this mode: {_names(MODES)}. [default: {_OPENFLOW.mode}]",
        parsers.of_field("openflow.mode"),
        path="openflow.mode", hosts=Hosts.REAL, engines_own=True,
    ),
    SpecField(
        "datapath", "NAME",
        f"Use this datapath of Open vSwitch: {_names(DATAPATHS)}. [default: {_OPENFLOW.datapath}]",
        parsers.of_field("openflow.datapath"),
        path="openflow.datapath", hosts=Hosts.REAL, engines_own=True,
    ),
    SpecField(
        "routing", "NAME[:VALUE]",
        f"Choose paths by this policy: {_names(policy.form(name) for name, policy in POLICIES.items())}; "
        f"{SCATTER} chooses one per packet. "
        f"[default: {USUAL.routing} or the figure's]",
        parsers.of_field("routing"),
        path="routing", always=True,
    ),
    SpecField(
        "transport", "NAME[:SETTING=NUMBER,...]",
        f"Let simulated hosts send and receive by this transport: {_names(TRANSPORTS)} (`refabric list` has "
        f"their settings); {TCP} includes MPTCP. Real hosts have {TCP} only. "
        f"[default: {TCP} or the figure's]",
        parsers.of_field("transport.protocol"),
        path="transport.protocol",
    ),
    SpecField(
        "queue", "PKTS",
        f"Limit the queue of every port to PKTS packets; 0 means no limit. [default: "
        f"{USUAL.link.queue_pkts} or the figure's]",
        parsers.of_field("link.queue_pkts"),
        path="link.queue_pkts", always=True, written=lambda spec: not spec.link.queue_bytes,
    ),
    SpecField(
        "delay", "US", "Delay packets on every link by US microseconds. [default: 0 or the figure's]",
        parsers.of_field("link.delay_us"),
        path="link.delay_us", always=True,
    ),
    SpecField(
        "host_delay", "US",
        "Delay packets on hosts' links by US microseconds more, in each direction. "
        "[default: 0 or the figure's]",
        parsers.of_field("link.host_delay_us"),
        path="link.host_delay_us",
    ),
    SpecField(
        "clock_tolerance", "PPM",
        "Let the transmit clock of each node be off by a random share of up to PPM millionths. "
        f"[default: {exact(USUAL.link.clock_ppm)}, as IEEE 802.3 allows, or the figure's]",
        parsers.of_field("link.clock_ppm"),
        path="link.clock_ppm",
    ),
    SpecField(
        "queue_bytes", "BYTES", "Limit the queues of switches to BYTES bytes instead of packets.",
        parsers.of_field("link.queue_bytes"),
        path="link.queue_bytes",
    ),
    SpecField(
        "traffic", "NAME",
        f"Generate the traffic of real hosts by this program: {_names(TRAFFIC)} (one process for all hosts). "
        f"[default: {USUAL_TRAFFIC} or the figure's]",
        parsers.of_field("traffic"),
        path="traffic", always=True, hosts=Hosts.REAL, engines_own=True,
    ),
    SpecField(
        "loss", "PERCENT",
        "Lose PERCENT of the packets on every link between switches at random. [default: 0 or the figure's]",
        parsers.percent("link.loss"),
        path="link.loss", text=lambda share: exact(100 * share),
    ),
    SpecField(
        "link_trace", "TRACE",
        f"Let links between switches carry packets at the delivery opportunities of TRACE instead of their "
        f"rate: {TRACE_FORMS} (milliseconds, one per line). [default: none, or the figure's]",
        user_files.link_trace_of,
        path="link.trace",
    ),
    SpecField(
        "ecn", "PKTS",
        "Mark ECN-capable packets that find PKTS or more packets in a queue; 0 means never. "
        "[default: 0 or the figure's]",
        parsers.of_field("link.ecn_pkts"),
        path="link.ecn_pkts",
    ),
    SpecField(
        "random_drop", "PKTS",
        "Drop packets at random in the last PKTS slots of each switch queue. [default: 0]",
        parsers.of_field("link.random_pkts"),
        path="link.random_pkts",
    ),
    SpecField(
        "discipline", "NAME[:SETTING=NUMBER,...]",
        f"Let this discipline choose what each switch port drops, marks and sends next: {_names(QUEUES)} "
        "(`refabric list` has their settings). "
        f"Open vSwitch has {USUAL.link.discipline} only. [default: {USUAL.link.discipline} or the "
        "figure's]",
        parsers.of_field("link.discipline"),
        path="link.discipline",
    ),
    SpecField(
        "host_queue", "NAME",
        f"Queue the packets of a real host in a {HOST_QUEUES[0]} of the fabric or in a {HOST_QUEUES[1]} of "
        f"its kernel. [default: {USUAL.link.host_queue}; with Open vSwitch {HOST_QUEUES[1]}]",
        parsers.of_field("link.host_queue"),
        path="link.host_queue", hosts=Hosts.REAL, written=_is_fabric,
    ),
    SpecField(
        "event", "S:NODE-NODE[:SHARE]",
        "Cut the link between two nodes S seconds after the start of traffic, or leave it SHARE of its rate. "
        "Repeatable.",
        parsers.events,
        multiple=True, path="events", text=lambda events: tuple(map(event_text, events)),
    ),
    SpecField(
        "reroute", "MS",
        "Let routing leave a cut link out, and use one that is back, MS milliseconds after its --event; 0: "
        "never. [default: 0]",
        parsers.of_field("reroute_ms"),
        path="reroute_ms",
    ),
    SpecField(
        "write", "BYTES", "Let senders write BYTES bytes at a time; 0 leaves it to the traffic program.",
        parsers.of_field("transport.write_bytes"),
        path="transport.write_bytes", hosts=Hosts.REAL,
    ),
    SpecField(
        "sysctl", "NAME=VALUE", "Set the sysctl NAME (net.*) in every real host. Repeatable.",
        parsers.sysctls,
        multiple=True, path="transport.sysctls", hosts=Hosts.REAL,
        text=lambda values: tuple(f"{name}={value}" for name, value in sorted(values.items())),
    ),
    SpecField(
        "scheduler", "NAME[:MS|:ideal]",
        f"Let a central scheduler place large flows every MS milliseconds: {_names(SCHEDULERS)}; "
        "responsive:2:gap=0.15 adds subflows to connections below their demand. "
        "[default: none or the figure's]",
        lambda _flag, text: parse_scheduler(text),
        path="scheduler", text=scheduler_words,
    ),
    SpecField(
        "stalls", "WHERE:EVERY:MIN-MAX",
        "Stall the CPUs of fabric, hosts or all every EVERY ms on average, for MIN to MAX ms each.",
        lambda _flag, text: parse_stalls(text),
        path="noise", text=stalls_words,
    ),
    SpecField(
        "clock", "NAME",
        f"Run the fabric by this clock: {CLOCKS[0]} (stops while the machine stalls) or {CLOCKS[1]}. "
        f"[default: {USUAL.clock} or the figure's]",
        parsers.choice(CLOCKS),
        path="clock",
    ),
    SpecField(
        "agent_delay", "US",
        "Answer the reports of simulated datapaths under an agent (--cc ccp:NAME) after US microseconds.",
        parsers.of_field("agent.delay_us"),
        path="agent.delay_us", hosts=Hosts.SIMULATED,
    ),
    SpecField(
        "agent_jitter", "US", "Delay a simulated agent's answers by a random time of up to US microseconds.",
        parsers.of_field("agent.jitter_us"),
        path="agent.jitter_us", hosts=Hosts.SIMULATED,
    ),
    SpecField(
        "report_interval", "US",
        "Let datapaths under an agent report every US microseconds; 0: once per round trip.",
        parsers.of_field("agent.report_us"),
        path="agent.report_us",
    ),
    SpecField(
        "parts", "N",
        "Divide the network of a simulation into up to N parts, which run in parallel on several CPUs "
        "(docs/simulator.md). [default: 1]",
        parsers.of_field("parts"),
        path="parts", hosts=Hosts.SIMULATED, engines_own=True,
    ),
    SpecField(
        "stack", "NAME=VALUE",
        "Set a parameter of the simulated hosts' stacks. Repeatable. Defaults, unless the figure has others: "
        f"{usual_stack()}.",
        parse_stack,
        multiple=True, path="stack", text=stack_texts,
        repeated=changed_texts,
        hosts=Hosts.SIMULATED, engines_own=True,
    ),
)  # fmt: skip
SPEC_FIELDS = tuple(field if field.multiple else dataclasses.replace(field, listed=True) for field in _FIELDS)
"""Options of fields of the spec. Each takes several values, except those that are given several times."""

K = Option("k", "K,...", "Run FatTrees of these sizes: even numbers from 4, e.g. 4,8.", parsers.ks)
SUBFLOWS = Option(
    "subflows", "N,...", "Run these subflow counts from 1 to 32, e.g. 1-8 or 1,2,8; 1 is plain TCP.",
    parsers.subflows, path="transport.subflows",
)  # fmt: skip
CC = Option(
    "cc", "NAME,...",
    f"Run these congestion controls: {_names(CONGESTION_CONTROLS)}. [default: the figure's, or "
    f"{COUPLED_DEFAULT} for MPTCP ({BASELINE} where this machine lacks it) and {BASELINE} for TCP]",
    parsers.ccs, path="transport.cc",
)  # fmt: skip
GRID_OPTIONS: tuple[Option, ...] = (
    K,
    Option(
        "topology", "NETWORK",
        "Run on this network instead of FatTrees, e.g. ls,4 or file:net.json. Repeatable.",
        user_files.topologies, multiple=True, path="topology",
    ),
    Option(
        "workload", "NAME[:VALUE],...",
        "Run these traffic matrices, e.g. one_to_one,stride:4, or all; trace:flows.csv runs a file's flows.",
        parsers.workloads, path="workload",
    ),
    SUBFLOWS,
    CC,
    Option(
        "engine", "NAME,...",
        f"Run the points in these engines: {_names(ENGINES)}; {parsers.BOTH} means the simulator and real "
        f"hosts. [default: {parsers.ENGINE} or the figure's]",
        parsers.engines, path="engine",
    ),
    Option(
        "rate", "MBPS|auto",
        "Set the link rate in Mb/s; auto means the highest rate that this machine carries, or 100 Mb/s in "
        "the simulator. [default: auto or the figure's]",
        parsers.rate, listed=True, path="link.rate_mbps",
    ),
    Option(
        "seconds", "S", "Measure each point for S seconds.", parsers.of_field("seconds"),
        listed=True, path="seconds",
    ),
    Option(
        "warmup", "S", "Run traffic for S seconds before measuring.", parsers.of_field("warmup_s"),
        listed=True, path="warmup_s",
    ),
    Option("seed", "N", "Start with seed N. [default: 1]", parsers.limited("seed"), default=1, path="seed"),
    Option("seeds", "COUNT", "Run COUNT seeds, counting up from --seed.", parsers.count(MAX_SEEDS)),
    Option(
        "profile", "NAME",
        f"Take other defaults from this profile: {_names(PROFILES)}. [default: {DEFAULT}]",
        parsers.choice(PROFILES), default=DEFAULT,
    ),
)  # fmt: skip
"""Options that say which points there are."""

BY_NAME: Mapping[str, SpecField] = {field.name: field for field in SPEC_FIELDS}
BY_PATH: Mapping[str, SpecField] = {field.path: field for field in SPEC_FIELDS}
OPTIONS: tuple[Option, ...] = (*GRID_OPTIONS[:7], *SPEC_FIELDS, *GRID_OPTIONS[7:])
"""All of them, in the order of `--help`."""
