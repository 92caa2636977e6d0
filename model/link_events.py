"""Link events: what is wrong with them, and the ports they are about. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from common.errors import UsageError
from model.network_plan import downlink, uplink
from model.spec import LinkEvent, RunSpec
from topos.topology import Topology

LEAST_SHARE = 1e-4
"""Of a link's rate, unless it is cut: a packet then takes ten thousand times as long."""
MOST_TOLD = 4


def check_events(spec: RunSpec, topology: Topology) -> None:
    """Raises UsageError for an event outside the run, of a link that is not there, or with no such share."""
    end_s = spec.warmup_s + spec.seconds
    for event in spec.events:
        ports_of(event, topology)
        if not 0 <= event.t_s < end_s:
            raise UsageError(f"event {told(event)}: the run is from 0 to {end_s:g} s; choose a time in it")
        if event.share and not LEAST_SHARE <= event.share <= 1:
            raise UsageError(
                f"event {told(event)}: a share is 0 (cut), or from {LEAST_SHARE:g} to 1 (as before), "
                f"not {event.share:g}"
            )


def ports_of(event: LinkEvent, topology: Topology) -> tuple[int, int]:
    """Both directions of the event's link. Raises UsageError for an unknown node or link."""
    try:
        link = topology.link_between(topology.index(event.a), topology.index(event.b))
    except UsageError as error:
        raise UsageError(f"event {told(event)}: {error}") from None
    return uplink(link), downlink(link)


def told(event: LinkEvent) -> str:
    """As one types it: `10:p0a0-c0:0`."""
    return f"{event.t_s:g}:{event.a}-{event.b}:{event.share:g}"


def words(events: Sequence[LinkEvent]) -> str:
    """All of them as one types them; of more than `MOST_TOLD` how many, when, and a digest, so that others
    are told apart."""
    typed = [told(event) for event in events]
    if len(typed) <= MOST_TOLD:
        return f"events {', '.join(typed)}"
    times = [event.t_s for event in events]
    digest = hashlib.sha256(" ".join(typed).encode()).hexdigest()[:4]
    return f"{len(typed)} link events from {min(times):g} to {max(times):g} s ({digest})"


def outage(spec: RunSpec) -> tuple[float, float] | None:
    """When the first link is cut and the last one is as before again, in s from the opening of the measured
    window; None where nothing is cut, or does not come back in the run."""
    cuts = [event.t_s for event in spec.events if not event.share]
    back = {frozenset((event.a, event.b)): event.t_s for event in spec.events if event.share == 1}
    cut = {frozenset((event.a, event.b)) for event in spec.events if not event.share}
    if not cuts or not cut <= back.keys():
        return None
    return min(cuts) - spec.warmup_s, max(back[link] for link in cut) - spec.warmup_s
