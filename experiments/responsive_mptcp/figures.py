"""responsive-mptcp: subflows that a controller adds where demand is not met, beside ECMP and Hedera.

After the slides of Duan (University of Hong Kong, 2015), whose Table I is from ns-3. What they do not state
is ours and listed in docs/responsive-mptcp.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from engines.registry import SIMULATOR
from experiments.responsive_mptcp.schemes import (
    ECMP8,
    FIRST_FIT,
    MAX_SUBFLOWS,
    R2,
    STACK,
    TABLE,
    responsive,
)
from experiments.responsive_mptcp.statements import JOBS, PERMUTATION, RANDOM, SHUFFLE, THROUGHPUT
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import UNSCHEDULED, Defaults, SweepOptions
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.congestion import BASELINE
from model.spec import RunSpec, SchedulerSpec

NAME = "responsive-mptcp"
SEEDS = 6
OPTIONS = (
    "k", "workload", "engine", "seconds", "warmup", "seed", "seeds", "profile", "rate", "delay", "queue",
)  # fmt: skip
DEFAULTS = Defaults(
    ks=(8,),
    workloads=(RANDOM, PERMUTATION),
    subflows=(MAX_SUBFLOWS,),
    rate_mbps=1000.0,
    queue_pkts=100,
    delay_us=10.0,
    seconds=0.15,
    warmup_s=0.15,
    seeds=SEEDS,
    engines=(SIMULATOR,),
)
SHUFFLES = dataclasses.replace(DEFAULTS, workloads=(SHUFFLE,), seconds=3.0, warmup_s=0.0)
ONE = responsive(2.0, 0.15)


def _one_by_one() -> tuple[Variant, ...]:
    """Return the fast setting with one option changed at a time, and M."""
    changes: tuple[dict[str, Any], ...] = (
        *({"interval_ms": ms} for ms in (1.0, 4.0, 8.0, 16.0, 32.0)),
        *({"demand_gap": gap} for gap in (0.05, 0.25, 0.35, 0.5)),
        *({"rate_variation": share} for share in (0.01, 0.1, 0.2)),
        *({"checks": count} for count in (1, 2, 6, 12)),
        *({"message_ms": ms} for ms in (0.0, 1.0, 10.0)),
        {"message_loss": 0.1},
        {"one_per_tick": True},
    )
    return (
        R2.variant,
        *(_varied(dataclasses.replace(ONE, **change)) for change in changes),
        *(_varied(ONE, most) for most in (1, 2, 3, 6, 8)),
    )


def _varied(scheduler: SchedulerSpec, subflows: int = MAX_SUBFLOWS) -> Variant:
    return dataclasses.replace(R2.variant, scheduler=scheduler, subflows=(subflows,))


BESIDE = (
    *(scheme.variant for scheme in (*TABLE, ECMP8, FIRST_FIT)),
    Variant(cc=BASELINE, subflows=(1,), scheduler=UNSCHEDULED, simulated=STACK),
    Variant(cc=BASELINE, subflows=(1,), scheduler=UNSCHEDULED, routing="scatter", simulated=STACK),
    Variant(cc="dctcp", subflows=(1,), scheduler=UNSCHEDULED, ecn_pkts=20, simulated=STACK),
)
Points = Callable[[SweepOptions, RateOf], list[RunSpec]]


def _points(variants: tuple[Variant, ...]) -> Points:
    """Return the points of these variants on FatTrees."""
    return points_on(fat_trees, variants)


def _figure(
    name: str, title: str, about: str, defaults: Defaults, variants: tuple[Variant, ...], **more: object
) -> Figure:
    return Figure(
        name=name, title=title, about=about, defaults=defaults, topologies=fat_trees,
        points=_points(variants), relative=False, options=OPTIONS, **more,  # type: ignore[arg-type]
    )  # fmt: skip


FIGURES = (
    _figure(
        f"{NAME}-throughput",
        "Throughput and subflows of long flows",
        "Every host sends one flow, to a random host or to its partner of a permutation. A controller adds "
        "subflows to flows below their demand. It carries what 4 subflows on hashed paths do, or more, with "
        "fewer subflows, because it knows which paths are free.",
        DEFAULTS,
        tuple(scheme.variant for scheme in TABLE),
        charts=("trade_off",),
        published=THROUGHPUT,
    ),
    _figure(
        f"{NAME}-shuffle",
        "Completion of map-reduce jobs",
        "Eight hosts send to each of eight others, and eight such jobs run at once. The demand of a flow is "
        "an eighth of a link, so that most flows need one subflow only. A job ends with its last transfer.",
        SHUFFLES,
        tuple(scheme.variant for scheme in TABLE),
        charts=("trade_off",),
        published=JOBS,
    ),
    _figure(
        f"{NAME}-options",
        "What the settings of monitors and controller do",
        "The setting of 2 ms and .15 with one option changed at a time: interval, demand gap, rate "
        "variation, checks, delay and loss of messages, the loop as printed, and the most subflows of a "
        "connection. The subject is a permutation.",
        dataclasses.replace(DEFAULTS, workloads=(PERMUTATION,), seeds=3),
        _one_by_one(),
        charts=("by_controller_option",),
    ),
    _figure(
        f"{NAME}-beside",
        "Beside what the slides leave out",
        "The schemes of the table beside 8 subflows, TCP on hashed paths, packets that choose paths one by "
        "one, DCTCP, and Hedera's first fit. The subject is a permutation.",
        dataclasses.replace(DEFAULTS, workloads=(PERMUTATION,), seeds=3),
        BESIDE,
        charts=("trade_off",),
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="Subflows where demand is not met: responsive multipath TCP beside ECMP and Hedera (HKU, 2015)",
    folder=NAME,
    figures=FIGURES[:2],
    shared_options=OPTIONS,
)
SINGLE = tuple(Experiment(figure.name, figure.title, NAME, (figure,), OPTIONS) for figure in FIGURES)
