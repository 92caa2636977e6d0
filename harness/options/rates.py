"""Link rates as options and figures give them, what `auto` means for a figure, and the durations that links
need at their rate. Pure."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

import topos
from common.text import joined
from engines.registry import LINUX
from harness.labels import named, queue_label
from model.noise import queue_us
from model.spec import RunSpec, TopologySpec

SIMULATED_MBPS = 100.0
GUEST_MBPS = 10.0
FIXED = "fixed"

RateKey = tuple[str, tuple[tuple[str, int | str], ...]]


def rate_key(topology: TopologySpec) -> RateKey:
    """Return a topology as a dictionary key."""
    return topology.kind, tuple(sorted(topology.params.items()))


def same_topology(topology: TopologySpec) -> TopologySpec:
    """Return the topology: the usual basis of a rate."""
    return topology


@dataclass(frozen=True)
class AutoRate:
    """The meaning of `--rate auto` for a figure: `overload` times the rate that this machine carries on
    `basis(topology)`.

    An overload above 1 is more than the machine carries, whatever machine it is. With a basis other than the
    topology itself, networks of different sizes share one rate.
    """

    overload: float = 1.0
    basis: Callable[[TopologySpec], TopologySpec] = same_topology

    def of(self, carried: RateChoice, topology: TopologySpec) -> RateChoice:
        """Return the rate for `topology`, given the rate `carried` on its basis."""
        basis = self.basis(topology)
        basis_words = "" if basis == topology else f" of {named(basis)}"
        times = "" if self.overload == 1.0 else f" x {self.overload:g}"
        rate = None if carried.rate_mbps is None else self.overload * carried.rate_mbps
        return RateChoice(rate, f"auto{basis_words}{times}{carried.how.removeprefix('auto')}", carried.begun)


@dataclass(frozen=True)
class RateChoice:
    """A link rate in Mb/s and how it was chosen; None if it is not known before it is measured.

    `begun` says that finished points have this rate, so it is not measured again.
    """

    rate_mbps: float | None
    how: str
    begun: bool = False


AUTO = AutoRate()
UNKNOWN_RATE = RateChoice(None, "")


def fixed(rate_mbps: float) -> RateChoice:
    """Return the rate that an option, a figure or a profile gives."""
    return RateChoice(rate_mbps, FIXED)


def virtual_mbps(engines: Collection[str]) -> float:
    """The rate of engines in virtual time, where nothing names one."""
    return GUEST_MBPS if LINUX in engines else SIMULATED_MBPS


SETTLING_MBIT = 200.0
"""What a flow's link carries while its MPTCP settles: 40 s at 5 Mb/s. After 20 s, windows of 40 s still
delivered 5 to 6 % more than subflows carried (k=8, 6 to 8 subflows)."""
WINDOW_MBIT = 1.5 * SETTLING_MBIT
SETTLING_DELAYS, WINDOW_DELAYS = 160.0, 240.0
"""The same in delays of one full queue and the path: a queue of 100 packets takes 0.24 s at 5 Mb/s."""
MAX_S = 300.0
"""Neither a warm-up nor a window is made longer than this."""


def long_enough(spec: RunSpec, growing: Collection[str]) -> RunSpec:
    """Return the point with its `growing` durations (`SweepOptions.growing`) long enough for its links, 5
    minutes each at most. One without warm-up keeps none: its flows have sizes and begin at their own times.
    """
    if spec.events and "events" not in growing:
        return spec
    warmup_s, seconds = _needed_s(spec, growing)
    return dataclasses.replace(
        spec,
        warmup_s=max(spec.warmup_s, min(warmup_s, MAX_S)) if spec.warmup_s else 0.0,
        seconds=max(spec.seconds, min(seconds, MAX_S)),
    )


def cut_durations(specs: Sequence[RunSpec], growing: Collection[str]) -> list[str]:
    """Return a line for each link that would need more than 5 minutes."""
    needed = {spec.link: (spec, *_needed_s(spec, growing)) for spec in specs}
    return [_cut(*each) for each in needed.values() if max(each[1:]) > MAX_S]


def _needed_s(spec: RunSpec, growing: Collection[str]) -> tuple[float, float]:
    """Return whole seconds of warm-up and of measurement; 0 for what does not grow."""
    rate_mbps, queue_s = spec.link.rate_mbps, delay_s(spec)
    warmup_s = math.ceil(max(SETTLING_MBIT / rate_mbps, SETTLING_DELAYS * queue_s))
    seconds = math.ceil(max(WINDOW_MBIT / rate_mbps, WINDOW_DELAYS * queue_s))
    return float(warmup_s * ("warmup_s" in growing)), float(seconds * ("seconds" in growing))


def _cut(spec: RunSpec, warmup_s: float, seconds: float) -> str:
    """Describe which durations were cut, and how to avoid it."""
    cut = [
        *([(f"{warmup_s:.0f} s of warm-up", "--warmup")] if warmup_s > MAX_S else []),
        *([(f"a window of {seconds:.0f} s", "--seconds")] if seconds > MAX_S else []),
    ]
    delay = f" and {spec.link.delay_us:g} us of delay" if spec.link.delay_us else ""
    return (
        f"links of {spec.link.rate_mbps:g} Mb/s with {queue_label(spec)} queues{delay} need "
        f"{joined([what for what, _ in cut])}, cut at {MAX_S:.0f} s; choose a higher --rate, or give "
        f"{joined([option for _, option in cut])}"
    )


def delay_s(spec: RunSpec) -> float:
    """Return how long one full queue and the longest path there and back take."""
    link = spec.link
    if not link.delay_us:
        return queue_us(link) / 1e6
    links = _links(spec.topology.kind, tuple(sorted(spec.topology.params.items())))
    return (queue_us(link) + 2 * links * link.delay_us) / 1e6


@functools.lru_cache(maxsize=64)
def _links(kind: str, params: tuple[tuple[str, int], ...]) -> int:
    """Return the links from the first host to the node farthest from it."""
    topology = topos.build(kind, dict(params))
    seen = frontier = {topology.hosts[0]}
    links = 0
    while frontier := {there for here in frontier for there in topology.adjacency[here]} - seen:
        seen = seen | frontier
        links += 1
    return links
