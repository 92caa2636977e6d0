"""Responsive multipath TCP in a point: its options in the scheduler's spec, as typed and in words."""

from __future__ import annotations

from common.errors import UsageError
from controllers.responsive.controller import Controller
from controllers.responsive.loop import LOOK_NS, Loop, News
from controllers.responsive.settings import Settings
from model.fields.limits import LIMITS
from model.link_events import ports_of
from model.spec import RunSpec, SchedulerSpec, sub_seed, typed
from topos.topology import Topology

NAME = "responsive"
TITLE = "responsive multipath"
FLAGS = {"printed": "one_per_tick", "close": "closes"}
"""Options typed without a value, and their fields: monitors serve one flow per tick, as the slides print
their loop; the controller closes subflows that are not needed any more."""
WORDS = {
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


def is_responsive(chosen: SchedulerSpec) -> bool:
    return chosen.name == NAME


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
        elif word in WORDS and equals:
            values[WORDS[word]] = _number(word, value)
        else:
            known = ", ".join([*(f"{each}=VALUE" for each in WORDS), *FLAGS])
            raise UsageError(f"--scheduler {NAME}: unknown option '{part}'; choose from: {known}")
    chosen = SchedulerSpec(NAME, interval_ms, **values)  # type: ignore[arg-type]
    check_outage(chosen)
    return chosen


def check_outage(chosen: SchedulerSpec) -> None:
    """Raise UsageError if monitors go down for no time."""
    if chosen.down_monitors and not chosen.down_for_s:
        raise UsageError(
            f"--scheduler {NAME}: monitors={typed(chosen.down_monitors)} says which monitors go down; add "
            "down_for=S, the time for which they do"
        )


def _number(word: str, value: str) -> float | int:
    limits = LIMITS[f"scheduler.{WORDS[word]}"]
    try:
        number = int(value) if limits.whole else float(value)
    except ValueError:
        kind = "a whole number" if limits.whole else "a number"
        raise UsageError(f"--scheduler {NAME}: {word}={value} must be {kind}") from None
    if wrong := limits.problem(number):
        raise UsageError(f"--scheduler {NAME}: {word}={value} {wrong}")
    return number


def option_words(chosen: SchedulerSpec) -> str:
    """Return the options that differ from the defaults, as typed: `gap=0.25:printed`, or empty."""
    usual = SchedulerSpec()
    words = [
        f"{word}={typed(getattr(chosen, name))}"
        for word, name in WORDS.items()
        if getattr(chosen, name) != getattr(usual, name)
    ]
    return ":".join([*words, *(word for word, name in FLAGS.items() if getattr(chosen, name))])


def title(chosen: SchedulerSpec) -> str:
    """Return the name for tables: `responsive multipath every 2 ms (gap=0.25)`."""
    words = option_words(chosen)
    return f"{TITLE} every {chosen.interval_ms:g} ms" + (f" ({words.replace(':', ', ')})" if words else "")


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
    controller = Controller(topology, spec.link.rate_mbps, settings, seed)
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
    counts = loop.channel.counts
    return {
        "controller_messages": counts.messages,
        "controller_messages_lost": counts.lost,
        "controller_messages_unheard": loop.unheard,
        "controller_rules": counts.rules,
        "controller_kbps": 8e-3 * counts.octets / seconds,
        "subflow_requests": loop.requests,
        "subflows_opened": sum(each.number > 0 for each in loop.opened),
        "subflows_closed": len(loop.closed),
        "subflows_moved": loop.moved,
    }
