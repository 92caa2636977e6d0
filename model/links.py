"""Links of a point: their ports, events that change them, and traces that they follow. Pure.

The text of a trace is `lte:SEED`, a synthetic cellular link, or `inline:PERIOD:DATA`: the opportunities per
millisecond of a file (harness/options/user_files.py), compressed. Each opportunity carries up to one frame.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import random
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from common.draws import exponential
from common.errors import UsageError
from fabric.plan import FRAME_BITS
from model.spec import NO_SCHEDULER, LinkEvent, LinkSpec, RunSpec
from topos.topology import Topology

MAX_LISTED = 4


def uplink(link: int) -> int:
    """Return the port that transmits from a link's lower-layer end (on a host link, the host's NIC queue)."""
    return 2 * link


def downlink(link: int) -> int:
    """Return the port that transmits towards a link's lower-layer end."""
    return 2 * link + 1


def longest_queue_pkts(link: LinkSpec, topology: Topology) -> int:
    """Return the highest limit of a switch's queue in full packets; 0 if one is unbounded."""
    usual = link.queue_limit_pkts
    return usual and max([usual, *topology.queues_pkts])


def lossy(link: LinkSpec, topology: Topology) -> bool:
    """Return whether any link loses packets at random."""
    return link.loss > 0 or any(topology.losses)


def check_events(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for an event outside the run, or on an unknown link, and as `check_reroute`."""
    check_reroute(spec, topology)
    end_s = spec.warmup_s + spec.seconds
    for event in spec.events:
        ports_of(event, topology)
        if not event.t_s < end_s:
            raise UsageError(
                f"event {event_text(event)}: the run lasts from 0 to {end_s:g} s; choose a time in it"
            )


def check_reroute(spec: RunSpec, topology: Topology) -> None:
    """Raise UsageError for rerouting without an event, or where routing does not choose the paths."""
    option = f"--reroute {spec.reroute_ms:g}"
    if not spec.reroute_ms:
        return
    if not spec.events:
        raise UsageError(f"{option}: no link of this run fails: add --event, or leave it out")
    chosen = {
        f"hosts of {topology.kind} forward, and choose paths themselves": topology.hosts_forward,
        "replacement=off chooses the paths of subflows": not spec.stack.replacement,
        f"the scheduler {spec.scheduler.name} chooses paths": spec.scheduler.name != NO_SCHEDULER,
    }
    for why, given in chosen.items():
        if given:
            raise UsageError(f"{option}: {why}: leave one out")


def links_left_out(spec: RunSpec, topology: Topology) -> list[tuple[float, frozenset[int]]]:
    """Return when routing changes, in s from the start of traffic and in order, and the links between
    switches that it leaves out from then on: those that were down `reroute_ms` before."""
    hosts = {nic.link for nic in topology.nics}
    down: set[int] = set()
    changes: list[tuple[float, frozenset[int]]] = []
    for event in sorted(spec.events if spec.reroute_ms else (), key=lambda event: event.t_s):
        link = ports_of(event, topology)[0] // 2
        if link in hosts:
            continue
        (down.discard if event.share else down.add)(link)
        t_s = event.t_s + spec.reroute_ms / 1000
        if changes and changes[-1][0] == t_s:
            changes.pop()
        changes.append((t_s, frozenset(down)))
    before = (frozenset[int](), *(cut for _, cut in changes))
    return [change for change, known in zip(changes, before, strict=False) if change[1] != known]


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


def events_words(events: Sequence[LinkEvent]) -> str:
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


LTE, INLINE = "lte", "inline"
FORMS = f"{LTE}:SEED or @FILE"
PS_PER_MS = 1_000_000_000
MAX_OPPORTUNITIES = 4_000_000
MAX_PERIOD_MS = 3_600_000
MIN_TRACE_MBPS = 0.01
LTE_MEAN_MBPS, LTE_PERIOD_MS = 5.96, 140_000
"""The mean rate of the uplink trace that CCP's authors used (SIGCOMM 2018). The length is our choice."""
_STEP_MS, _BALLS, _RATIO = 250, 16, 1.36
"""The rate has `_BALLS` + 1 levels, each `_RATIO` times the one below, and may change every `_STEP_MS`."""
_OUTAGE_EVERY_S, _OUTAGE_MS = 20.0, (200, 1700)

FIXED, CELL, DROP = LINK_KINDS = ("fixed", "cell", "drop")
"""Kinds of links that CCP's evaluation compares: fixed rate, rate from a trace, random loss."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class LinkTrace:
    """Delivery opportunities: `per_ms[i]` of them at the end of millisecond i. They repeat."""

    per_ms: Counts

    @property
    def mean_mbps(self) -> float:
        """The rate if every opportunity carries a full frame."""
        return float(self.per_ms.sum()) * FRAME_BITS / 1000 / len(self.per_ms)

    def opportunities_ps(self) -> npt.NDArray[np.int64]:
        """Return the instants of all opportunities in ps, in order, within (0, `period_ps`]."""
        ends = (np.arange(len(self.per_ms), dtype=np.int64) + 1) * PS_PER_MS
        return np.repeat(ends, self.per_ms)

    @property
    def period_ps(self) -> int:
        return len(self.per_ms) * PS_PER_MS


def link_kind(link: LinkSpec) -> str:
    """Return which of LINK_KINDS the links between switches are."""
    return CELL if link.trace else DROP if link.loss else FIXED


@lru_cache(maxsize=8)
def link_trace(text: str) -> LinkTrace:
    """Return the trace of a spec's text. Raises UsageError."""
    kind, _, rest = text.partition(":")
    if kind == LTE:
        return lte(_seed(rest))
    if kind == INLINE:
        return _unpacked(rest)
    raise UsageError(f"--link-trace {text}: choose {FORMS}")


def lte(seed: int) -> LinkTrace:
    """Return a trace like the published one: 5.96 Mb/s on average, seconds of 2.4 (10th percentile), 5.8 and
    10.7 Mb/s (90th), and outages of up to 1.7 s.

    The level of the rate is the number of heads among coins of which one, drawn at random, is turned at each
    step (Ehrenfest's urn), so the logarithm of the rate is nearly normal and forgets its value in 2 s.
    Outages begin at random, every 20 s on average. All machines draw the same trace.
    """
    rng = random.Random(f"lte {seed}")
    level = sum(rng.random() < 0.5 for _ in range(_BALLS))
    levels = [_RATIO**n for n in range(_BALLS + 1)]
    rate: list[float] = []
    for _ in range(LTE_PERIOD_MS // _STEP_MS):
        rate += [levels[level]] * _STEP_MS
        level += -1 if rng.randrange(_BALLS) < level else 1
    start_ms = round(1000 * _OUTAGE_EVERY_S * exponential(rng))
    while start_ms < LTE_PERIOD_MS:
        end_ms = min(LTE_PERIOD_MS, start_ms + rng.randint(*_OUTAGE_MS))
        rate[start_ms:end_ms] = [0.0] * (end_ms - start_ms)
        start_ms = end_ms + round(1000 * _OUTAGE_EVERY_S * exponential(rng))
    frames = LTE_PERIOD_MS * LTE_MEAN_MBPS * 1000 / FRAME_BITS
    carried = list(itertools.accumulate(rate))
    whole = [0, *(int(frames * each / carried[-1]) for each in carried)]
    return LinkTrace(np.array([b - a for a, b in itertools.pairwise(whole)], np.int64))


def packed(trace: LinkTrace) -> str:
    """Return the trace as the text of a spec; `link_trace` reads it."""
    data = zlib.compress(trace.per_ms.astype("<u2").tobytes(), level=9)
    return f"{INLINE}:{len(trace.per_ms)}:{base64.b85encode(data).decode()}"


def trace_words(text: str) -> str:
    """Return a trace in a few words: `lte:1`, or length and rate of a file's trace."""
    if text.startswith(f"{INLINE}:"):
        trace = link_trace(text)
        return f"a trace of {len(trace.per_ms) / 1000:g} s, {trace.mean_mbps:.3g} Mb/s"
    return text


def _seed(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) < 2**31:
        raise UsageError(f"--link-trace {LTE}:{text}: the seed is a whole number from 0 to 2^31 - 1")
    return int(text)


def _unpacked(text: str) -> LinkTrace:
    period, _, data = text.partition(":")
    try:
        count = int(period)
        if not 0 < count <= MAX_PERIOD_MS:
            raise ValueError(f"a period of {count} ms")
        reader = zlib.decompressobj()
        octets = reader.decompress(base64.b85decode(data), 2 * count + 1)
        if len(octets) != 2 * count:
            raise ValueError(f"{len(octets)} bytes for {count} ms")
    except (ValueError, zlib.error, binascii.Error) as error:
        raise UsageError(f"a stored link trace cannot be read: {error}") from None
    return checked(np.frombuffer(octets, "<u2").astype(np.int64), "a stored link trace")


def checked(per_ms: Counts, what: str) -> LinkTrace:
    """Return the trace of these counts. Raises UsageError, with `what`, for one that carries nothing or is
    too long."""
    count = int(per_ms.sum())
    if count == 0:
        raise UsageError(f"{what}: it has no delivery opportunity")
    if count > MAX_OPPORTUNITIES or len(per_ms) > MAX_PERIOD_MS:
        raise UsageError(
            f"{what}: {count} opportunities in {len(per_ms)} ms; at most {MAX_OPPORTUNITIES} in an hour fit"
        )
    trace = LinkTrace(per_ms)
    if trace.mean_mbps < MIN_TRACE_MBPS:
        raise UsageError(
            f"{what}: {count} opportunities in {len(per_ms)} ms are {trace.mean_mbps:.2g} Mb/s; a link "
            f"carries {MIN_TRACE_MBPS:g} Mb/s or more"
        )
    return trace
