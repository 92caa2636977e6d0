"""Central flow schedulers and responsive multipath TCP in a point: options, checks, driver and cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ccp.names import is_agents
from common.errors import UsageError
from controllers import schedulers
from controllers.hashing import FiveTuple
from controllers.hedera import check_steerable
from controllers.responsive.controller import Settings, SubflowController
from controllers.responsive.loop import HEADER_BYTES, LOOK_NS, RULE_BYTES, Loop, News
from controllers.routing import per_packet
from controllers.scheduler import Application, FlowCount, Network, PortCount
from model.links import ports_of
from model.spec import (
    LIMITS,
    NO_SCHEDULER,
    PERSISTENT,
    RESPONSIVE,
    SCHEDULERS,
    RunSpec,
    SchedulerSpec,
    check_name,
    sub_seed,
    typed,
)
from topos.topology import Topology

RESPONSIVE_TITLE = "responsive multipath"
FLAGS = {"printed": "one_per_tick", "close": "closes"}
"""Options typed without a value, and their fields: monitors serve one flow per tick, as the slides print
their loop; the controller closes subflows that are not needed any more."""
OPTIONS = {
    "gap": "demand_gap",
    "variation": "rate_variation",
    "checks": "checks",
    "change": "demand_change",
    "message": "message_ms",
    "loss": "message_loss",
    "down_at": "down_at_s",
    "down_for": "down_for_s",
    "monitors": "down_monitors",
    "links": "links_ms",
}
"""Options after the interval, as typed, and their fields of SchedulerSpec."""
IDEAL = "ideal"
USUAL_MS = 100.0
RESPONSIVE_MS = 2.0
POLL_BYTES, ANSWER_BYTES, FLOW_BYTES = HEADER_BYTES + 56, HEADER_BYTES + 16, 120
"""Flow statistics in OpenFlow 1.3: a request, an answer without flows, and one flow with an exact match."""
CONTROLLED_S = 0.5
"""CPU time of monitors and controller in a second of simulated time with 128 flows, for plans."""


def scheduled(spec: RunSpec) -> bool:
    return spec.scheduler.name != NO_SCHEDULER


def scheduler_words(chosen: SchedulerSpec) -> str:
    """Return the scheduler in the syntax of --scheduler: `first_fit:100`, `annealing:ideal`; else empty."""
    if chosen.name == NO_SCHEDULER:
        return ""
    if is_responsive(chosen):
        words = option_words(chosen)
        return f"{chosen.name}:{chosen.interval_ms:g}" + (f":{words}" if words else "")
    return f"{chosen.name}:{IDEAL if chosen.ideal else f'{chosen.interval_ms:g}'}"


def scheduler_title(chosen: SchedulerSpec) -> str:
    """Return the scheduler's name for tables: `first fit every 100 ms`, `ideal annealing`; else empty."""
    if chosen.name == NO_SCHEDULER:
        return ""
    if is_responsive(chosen):
        return _responsive_title(chosen)
    title = schedulers.SCHEDULERS[chosen.name].title
    return f"ideal {title}" if chosen.ideal else f"{title} every {chosen.interval_ms:g} ms"


def parse_scheduler(text: str) -> SchedulerSpec:
    """Parse `none`, `first_fit` (every 100 ms), `first_fit:10`, `annealing:ideal` or `responsive:2:gap=0.25`.

    Raises UsageError."""
    name, colon, rest = (part.strip() for part in text.partition(":"))
    check_name("--scheduler ", name, SCHEDULERS)
    if name == NO_SCHEDULER and colon:
        raise UsageError(f"--scheduler {text}: 'none' takes no interval")
    if name == RESPONSIVE:
        interval, _, options = rest.partition(":")
        interval_ms = _interval_ms(text, name, interval) if colon else RESPONSIVE_MS
        return parse_options(interval_ms, options)
    if name == NO_SCHEDULER or rest == IDEAL:
        return SchedulerSpec(name)
    return SchedulerSpec(name, _interval_ms(text, name, rest) if colon else USUAL_MS)


def _interval_ms(text: str, name: str, interval: str) -> float:
    limits = LIMITS["scheduler.interval_ms"]
    try:
        interval_ms = float(interval)
    except ValueError:
        interval_ms = 0.0
    if interval_ms == 0 or limits.problem(interval_ms):
        ideal = "" if name == RESPONSIVE else f", or NAME:{IDEAL}"
        raise UsageError(
            f"--scheduler {text}: write NAME:MS with an interval of {limits.least:g} to {limits.most:g} "
            f"ms{ideal}"
        )
    return interval_ms


def check_scheduler(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for a scheduler that cannot schedule this network."""
    if not scheduled(spec):
        return
    words = scheduler_words(spec.scheduler)
    if spec.events and not is_responsive(spec.scheduler):
        raise UsageError(f"--scheduler {words}: schedulers do not handle link failures; omit --event")
    if per_packet(spec.routing):
        raise UsageError(
            f"--scheduler {words} with routing '{spec.routing}': each packet chooses its own path there; "
            "choose --routing hashed"
        )
    if is_responsive(spec.scheduler):
        _check_responsive(spec, words)
        loop_of(spec, topology)
    else:
        check_steerable(topology)


def _check_responsive(spec: RunSpec, words: str) -> None:
    """Raise UsageError for what connections that get subflows one by one cannot have."""
    if spec.transport.joins_late:
        raise UsageError(f"--scheduler {words}: the controller decides when subflows join; omit --join-after")
    if spec.scheduler.closes and is_agents(spec.transport.cc):
        raise UsageError(f"--scheduler {words}: an agent's subflows stay open; omit close, or choose --cc")
    if spec.stack.connections == PERSISTENT:
        raise UsageError(f"--scheduler {words}: persistent connections keep subflows; omit that option")


def application_of(spec: RunSpec, topology: Topology) -> Application:
    """Return the scheduler application of the spec. Raises UsageError for an unsuitable network."""
    seed, chosen = sub_seed(spec.seed, "scheduler"), spec.scheduler
    return schedulers.make(
        chosen.name, topology, spec.link.rate_mbps, seed, ideal=chosen.ideal, routing=spec.routing
    )


def ticking_s(spec: RunSpec) -> float:
    """Return the approximate CPU time of a simulated point's ticks, in s; 0 for an ideal scheduler, whose
    ticks depend on the flows."""
    if not scheduled(spec) or spec.scheduler.ideal:
        return 0.0
    if is_responsive(spec.scheduler):
        return (spec.warmup_s + spec.seconds) * CONTROLLED_S
    ticks = (spec.warmup_s + spec.seconds) * 1000 / spec.scheduler.interval_ms
    return ticks * schedulers.SCHEDULERS[spec.scheduler.name].tick_s


@dataclass
class Account:
    """Statistics of a scheduler's ticks: ticks, paths set, and total and largest CPU time.

    At every tick the scheduler sends a request to each of the `switches`, which answers. The switch of each
    flow's sender reports the flow. Setting a path takes one message per switch on it.
    """

    switches: int = 0
    ticks: int = 0
    reported: int = 0
    moves: int = 0
    rules: int = 0
    cpu_s: float = 0.0
    max_cpu_s: float = 0.0

    @property
    def counts(self) -> dict[str, float]:
        """Return the metrics that are identical on every machine."""
        polls = self.ticks * self.switches
        octets = polls * (POLL_BYTES + ANSWER_BYTES) + self.reported * FLOW_BYTES + self.rules * RULE_BYTES
        return {
            "scheduler_ticks": self.ticks,
            "scheduler_moves": self.moves,
            "scheduler_messages": 2 * polls + self.rules,
            "scheduler_octets": octets,
        }

    @property
    def times(self) -> dict[str, float]:
        """Return mean and largest CPU time of a tick on this machine, in ms."""
        mean_s = self.cpu_s / self.ticks if self.ticks else 0.0
        return {"scheduler_cpu_ms_mean": 1000 * mean_s, "scheduler_cpu_ms_max": 1000 * self.max_cpu_s}


class Driver:
    """Runs an application's ticks and records their statistics: the Network that it gets is this one, which
    counts what is read and set in the real one."""

    def __init__(self, application: Application, network: Network, switches: int = 0) -> None:
        """`switches` is the number of switches that get requests."""
        self.account = Account(switches)
        self._application = application
        self._network = network
        self.ports: Callable[[], Sequence[PortCount]] = network.ports
        self.clear_path: Callable[[FiveTuple], None] = network.clear_path

    def tick(self, now_s: float) -> None:
        began_s = time.thread_time()
        self._application.tick(self, now_s)
        cpu_s = time.thread_time() - began_s
        self.account.ticks += 1
        self.account.cpu_s += cpu_s
        self.account.max_cpu_s = max(self.account.max_cpu_s, cpu_s)

    def flows(self) -> Sequence[FlowCount]:
        found = self._network.flows()
        self.account.reported += len(found)
        return found

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self._network.set_path(flow, path)
        self.account.moves += 1
        self.account.rules += len(path) - 2


def is_responsive(chosen: SchedulerSpec) -> bool:
    return chosen.name == RESPONSIVE


def opens_subflows(spec: RunSpec) -> bool:
    """Return whether connections start with one subflow, and a controller opens the others."""
    return is_responsive(spec.scheduler)


def parse_options(interval_ms: float, text: str) -> SchedulerSpec:
    """Parse what follows the interval: `gap=0.25:checks=5:printed`. Raises UsageError."""
    values: dict[str, float | int | bool] = {}
    for part in filter(None, text.split(":")):
        word, equals, value = (each.strip() for each in part.partition("="))
        if part.strip() in FLAGS:
            values[FLAGS[part.strip()]] = True
        elif word in OPTIONS and equals:
            values[OPTIONS[word]] = _number(word, value)
        else:
            known = ", ".join([*(f"{each}=VALUE" for each in OPTIONS), *FLAGS])
            raise UsageError(f"--scheduler {RESPONSIVE}: unknown option '{part}'; choose from: {known}")
    return SchedulerSpec(RESPONSIVE, interval_ms, **values)  # type: ignore[arg-type]


def _number(word: str, value: str) -> float | int:
    limits = LIMITS[f"scheduler.{OPTIONS[word]}"]
    try:
        number = int(value) if limits.whole else float(value)
    except ValueError:
        kind = "a whole number" if limits.whole else "a number"
        raise UsageError(f"--scheduler {RESPONSIVE}: {word}={value} must be {kind}") from None
    if wrong := limits.problem(number):
        raise UsageError(f"--scheduler {RESPONSIVE}: {word}={value} {wrong}")
    return number


def option_words(chosen: SchedulerSpec) -> str:
    """Return the options that differ from the defaults, as typed: `gap=0.25:printed`, or empty."""
    usual = SchedulerSpec()
    words = [
        f"{word}={typed(getattr(chosen, name))}"
        for word, name in OPTIONS.items()
        if getattr(chosen, name) != getattr(usual, name)
    ]
    return ":".join([*words, *(word for word, name in FLAGS.items() if getattr(chosen, name))])


def _responsive_title(chosen: SchedulerSpec) -> str:
    """Return the name for tables: `responsive multipath every 2 ms (gap=0.25)`."""
    words = option_words(chosen)
    return f"{RESPONSIVE_TITLE} every {chosen.interval_ms:g} ms" + (
        f" ({words.replace(':', ', ')})" if words else ""
    )


def settings_of(spec: RunSpec) -> Settings:
    """Return the settings of the monitors and the controller."""
    chosen = spec.scheduler
    return Settings(
        monitor_s=chosen.interval_ms / 1000,
        demand_gap=chosen.demand_gap,
        rate_variation=chosen.rate_variation,
        checks=chosen.checks,
        demand_change=chosen.demand_change,
        max_subflows=spec.transport.subflows,
        message_s=chosen.message_ms / 1000,
        message_loss=chosen.message_loss,
        one_per_tick=chosen.one_per_tick,
        down_at_s=chosen.down_at_s,
        down_for_s=chosen.down_for_s,
        down_monitors=chosen.down_monitors,
        closes=chosen.closes,
        links_s=chosen.links_ms / 1000,
    )


def loop_of(spec: RunSpec, topology: Topology, *, look_ns: int = LOOK_NS) -> Loop:
    """Return monitors and controller of the spec. Raises UsageError for an unsuitable network."""
    settings = settings_of(spec)
    seed = sub_seed(spec.seed, "scheduler")
    controller = SubflowController(topology, spec.link.rate_mbps, settings, seed, spec.routing)
    news = link_news(spec, topology) if settings.links_s else ()
    return Loop(settings, controller, sub_seed(spec.seed, "messages"), look_ns=look_ns, news=news)


def link_news(spec: RunSpec, topology: Topology) -> list[News]:
    """Return what the controller learns of the spec's link events. A link that is cut has failed in both
    directions; a link with any rate has not failed."""
    failed: set[int] = set()
    news = []
    for t_s in sorted({event.t_s for event in spec.events}):
        for event in spec.events:
            if event.t_s == t_s:
                ways = ports_of(event, topology)
                failed = failed - set(ways) if event.share else failed | set(ways)
        news.append(News(round(t_s * 1e9 + spec.scheduler.links_ms * 1e6), frozenset(failed)))
    return news


def loop_metrics(loop: Loop, seconds: float) -> dict[str, float]:
    """Return what monitors and controller did in a run of `seconds`."""
    channel = loop.channel
    return {
        "controller_messages": channel.messages,
        "controller_messages_lost": channel.lost,
        "controller_messages_unheard": loop.unheard,
        "controller_rules": channel.rules,
        "controller_kbps": 8e-3 * channel.octets / seconds,
        "subflow_requests": loop.requests,
        "subflows_opened": sum(each.number > 0 for each in loop.opened),
        "subflows_closed": len(loop.closed),
        "subflows_moved": loop.moved,
    }
