"""responsive-mptcp-assumptions: what the slides do not state, one assumption changed at a time.

Each of the schemes below runs with the usual assumptions and with each change that concerns it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from experiments.responsive_mptcp.schemes import ECMP4, HEDERA, R2, R8, WITH_HEDERA
from harness.experiment import RateOf
from harness.options.options import SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.schedulers import is_responsive
from model.spec import RunSpec, SchedulerSpec

SCHEMES = (R2, R8, ECMP4, WITH_HEDERA)
QUEUES_PKTS = 25, 400
DELAYS_US = (40.0,)
MIN_RTOS_MS = 1.0, 200.0
DELAYED_ACKS_MS = 0.0, 40.0
"""The usual values are 100 packets, 10 us, 10 ms and 1 ms; 200 and 40 ms are Linux's."""
VARIATIONS = 0.02, 0.1
CHECKS = 2, 6
HEDERAS = SchedulerSpec("annealing", 100.0), SchedulerSpec("first_fit", 10.0)
Change = Callable[[RunSpec], RunSpec]


def _queue(pkts: int) -> Change:
    return lambda spec: replace(spec, link=replace(spec.link, queue_pkts=pkts, nic_queue_pkts=pkts))


def _delay(us: float) -> Change:
    return lambda spec: replace(spec, link=replace(spec.link, delay_us=us))


def _stack(**fields: float) -> Change:
    return lambda spec: replace(spec, stack=replace(spec.stack, **fields))  # type: ignore[arg-type]


def _monitors(**fields: float) -> Change:
    return lambda spec: replace(spec, scheduler=replace(spec.scheduler, **fields))  # type: ignore[arg-type]


def _scheduler(chosen: SchedulerSpec) -> Change:
    return lambda spec: replace(spec, scheduler=chosen)


OF_ALL: tuple[Change, ...] = (
    *(_queue(pkts) for pkts in QUEUES_PKTS),
    *(_delay(us) for us in DELAYS_US),
    *(_stack(min_rto_ms=ms) for ms in MIN_RTOS_MS),
    *(_stack(delayed_ack_ms=ms) for ms in DELAYED_ACKS_MS),
)
OF_MONITORS: tuple[Change, ...] = (
    *(_monitors(rate_variation=share) for share in VARIATIONS),
    *(_monitors(checks=count) for count in CHECKS),
)
OF_HEDERA: tuple[Change, ...] = tuple(_scheduler(chosen) for chosen in HEDERAS)


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return each scheme as usual, and with each assumption changed."""
    usual = points_on(fat_trees, tuple(scheme.variant for scheme in SCHEMES))(options, rate_of)
    return [spec for point in usual for spec in (point, *_changed(point))]


def _changed(point: RunSpec) -> Iterator[RunSpec]:
    yield from (change(point) for change in OF_ALL)
    if is_responsive(point.scheduler):
        yield from (change(point) for change in OF_MONITORS)
    if point.scheduler == HEDERA:
        yield from (change(point) for change in OF_HEDERA)
