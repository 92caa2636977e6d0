"""hedera: a central flow scheduler for large flows by its interval, beside ECMP and MPTCP.

SIGCOMM 2011 (Raiciu et al.) on scheduling; the schedulers are Hedera's (Al-Fares et al., NSDI 2010). There
are two workloads: flows of about a second, each hashed until the scheduler finds it, and a permutation of
endless flows, for which one schedule is enough.
"""

from __future__ import annotations

from dataclasses import replace

from engines.registry import SIMULATED_HOSTS, SIMULATOR
from experiments.sigcomm11.hedera.statements import COME_AND_GO, HEDERA
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import UNSCHEDULED, Defaults, SweepOptions
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.congestion import BASELINE
from model.spec import RunSpec, SchedulerSpec

NAME = "hedera"
INTERVALS_MS = (0.0, 10.0, 100.0, 500.0, 1000.0)
"""Times between two runs of the scheduler; 0 is the ideal scheduler."""
ALONE = Variant(cc=BASELINE, subflows=(1,), scheduler=UNSCHEDULED)


def schedulers(names: tuple[str, ...], intervals_ms: tuple[float, ...]) -> tuple[Variant, ...]:
    """Return TCP under each scheduler at each interval."""
    chosen = (SchedulerSpec(name, each) for name in names for each in intervals_ms)
    return tuple(replace(ALONE, scheduler=each) for each in chosen)


EMULATED = schedulers(("first_fit",), (100.0, 500.0, 1000.0))
"""No ideal scheduler: with real hosts it is not known when flows start, and each run of it takes time."""


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the points of TCP without and with a scheduler, and of MPTCP with the given numbers of
    subflows."""
    several = tuple(count for count in options.subflows if count > 1)
    mptcp = (Variant(subflows=several, scheduler=UNSCHEDULED),) if several else ()
    simulated = SIMULATED_HOSTS.issuperset(options.engines)
    scheduled = schedulers(("first_fit", "annealing"), INTERVALS_MS) if simulated else EMULATED
    return points_on(fat_trees, (ALONE, *scheduled, *mptcp))(options, rate_of)


DEFAULTS = Defaults(
    ks=(8,),
    workloads=(COME_AND_GO, "one_to_one"),
    subflows=(8,),
    rate_mbps=100.0,
    delay_us=10.0,
    seconds=2.0,
    warmup_s=1.0,
    engines=(SIMULATOR,),
)
AT_20_MBPS = "permuted_loop:uniform-200000-4000000"
"""Flow sizes with which flows last about a second at 20 Mb/s, too."""
AT_K4 = DEFAULTS.emulated(
    ks=(4,), workloads=(AT_20_MBPS, "one_to_one"), rate_mbps=20.0, delay_us=None, traffic="native",
    warmup_s=10.0, seconds=15.0,
)  # fmt: skip
EXPERIMENT = Experiment(
    name=NAME,
    title="A central flow scheduler (Hedera) by its interval, beside ECMP and MPTCP (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Central flow scheduling",
            about=(
                "A central flow scheduler polls the network at an interval and assigns paths to large TCP "
                "flows; MPTCP chooses among its paths by itself. For flows of a second an interval of half a "
                "second is mostly too late. For endless flows any interval is short enough, and the quality "
                "of the schedule decides."
            ),
            defaults=DEFAULTS,
            topologies=fat_trees,
            points=points,
            charts=("scheduling",),
            published=HEDERA,
            emulated=AT_K4,
        ),
    ),
)
