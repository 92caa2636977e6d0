"""Link events: validation, text form, and the ports that each event changes. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from common.errors import UsageError
from model.network_plan import downlink, uplink
from model.spec import LinkEvent, RunSpec
from topos.topology import Topology

MIN_SHARE = 1e-4
"""Smallest share of its rate that a link may keep unless it is cut: packets take 10,000 times as long."""
MAX_LISTED = 4


def check_events(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for an event outside the run, on an unknown link, or with an invalid share."""
    end_s = spec.warmup_s + spec.seconds
    for event in spec.events:
        ports_of(event, topology)
        if not 0 <= event.t_s < end_s:
            raise UsageError(
                f"event {event_text(event)}: the run lasts from 0 to {end_s:g} s; choose a time in it"
            )
        if event.share and not MIN_SHARE <= event.share <= 1:
            raise UsageError(
                f"event {event_text(event)}: the share must be 0 (cut) or from {MIN_SHARE:g} to 1 "
                f"(full rate), not {event.share:g}"
            )


def changes_in_window(spec: RunSpec) -> bool:
    """Return whether a link changes in the measured window, so that goodput should change in it."""
    return any(spec.warmup_s < event.t_s < spec.warmup_s + spec.seconds for event in spec.events)


def ports_of(event: LinkEvent, topology: Topology) -> tuple[int, int]:
    """Return the ports of both directions of the event's link. Raises UsageError for an unknown link."""
    try:
        link = topology.link_between(topology.index(event.a), topology.index(event.b))
    except UsageError as error:
        raise UsageError(f"event {event_text(event)}: {error}") from None
    return uplink(link), downlink(link)


def event_text(event: LinkEvent) -> str:
    """Return the event in the syntax of --event: `10:p0a0-c0:0`."""
    return f"{event.t_s:g}:{event.a}-{event.b}:{event.share:g}"


def words(events: Sequence[LinkEvent]) -> str:
    """Return all events in the syntax of --event.

    For more than `MAX_LISTED` events, return their number, their time range and a short digest, so that
    different lists have different texts.
    """
    typed = [event_text(event) for event in events]
    if len(typed) <= MAX_LISTED:
        return f"events {', '.join(typed)}"
    times = [event.t_s for event in events]
    digest = hashlib.sha256(" ".join(typed).encode()).hexdigest()[:4]
    return f"{len(typed)} link events from {min(times):g} to {max(times):g} s ({digest})"


def outage(spec: RunSpec) -> tuple[float, float] | None:
    """Return when the first link is cut and when the last one is restored, in s from the window's start.

    Returns None if no link is cut, or if a cut link is not restored in the run.
    """
    cuts = [event.t_s for event in spec.events if not event.share]
    back = {frozenset((event.a, event.b)): event.t_s for event in spec.events if event.share == 1}
    cut = {frozenset((event.a, event.b)) for event in spec.events if not event.share}
    if not cuts or not cut <= back.keys():
        return None
    return min(cuts) - spec.warmup_s, max(back[link] for link in cut) - spec.warmup_s
