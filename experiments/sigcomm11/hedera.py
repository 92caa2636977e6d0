"""hedera: a central flow scheduler for large flows by its interval, beside ECMP and MPTCP.

SIGCOMM 2011 (Raiciu et al.) on scheduling; the schedulers are Hedera's (Al-Fares et al., NSDI 2010). There
are two workloads: flows of about a second, each hashed until the scheduler finds it, and a permutation of
endless flows, for which one schedule is enough.

The statements are the paper's on a central scheduler, as recalled: signs, and which values are close.
"""

from __future__ import annotations

from analysis.quantities import Quantity
from engines.registry import SIMULATED_HOSTS, SIMULATOR
from experiments.sigcomm11.statements import SIGCOMM11
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import Metric, between
from harness.metrics.published import SIGN, Published, Relation, Source
from harness.metrics.where import ANY
from harness.options.options import UNSCHEDULED, SweepOptions, on_real_hosts
from harness.plan.sweeps import PLAIN_TCP, fat_trees, points_on
from harness.results.point_results import PointResult
from model.congestion import BASELINE
from model.result import under_test
from model.schedulers import scheduler_title
from model.spec import SchedulerSpec, Settings

SUBFLOWS = 8


def carried_mbps(point: PointResult) -> float:
    """Return the total goodput of all flows, in Mb/s. The mean is meaningless where flows come and go."""
    return sum(flow.goodput_mbps for flow in under_test(point.flows))


def _over_first_fit(interval_ms: float) -> Metric:
    chosen = SchedulerSpec("first_fit", interval_ms)
    return between(
        Quantity(
            f"mptcp_over_first_fit_{interval_ms:g}ms",
            "x first fit",
            f"the goodput of MPTCP over that of TCP with {scheduler_title(chosen)}",
        ),
        carried_mbps,
        {"transport.subflows": SUBFLOWS, "scheduler": UNSCHEDULED, "transport.cc": ANY},
        {"transport.subflows": 1, "scheduler": chosen, "transport.cc": BASELINE},
    )


OVER_FIRST_FIT = {interval_ms: _over_first_fit(interval_ms) for interval_ms in (0.0, 10.0, 500.0, 1000.0)}
"""By the scheduler's interval in ms; 0 is ideal."""


COME_AND_GO = "permuted_loop:uniform-1000000-20000000"
NEAR = (0.1, "recalled without digits: within a tenth counts as near")


def _mptcp(interval_ms: float, relation: Relation, words: str, within: tuple[float, str]) -> Published:
    """MPTCP with 8 subflows over first fit at an interval, on 128 hosts. The flow sizes are our choice."""
    return Published(
        OVER_FIRST_FIT[interval_ms], "fat_tree", 8, COME_AND_GO, SUBFLOWS, relation, 1,
        Source.RECALLED, words, "SIGCOMM'11", SIGCOMM11, *within,
    )  # fmt: skip


HEDERA = (
    _mptcp(0, Relation.ABOUT, "an ideal scheduler is near MPTCP", NEAR),
    _mptcp(10, Relation.ABOUT, "a scheduler that runs every 10 ms is near MPTCP", NEAR),
    _mptcp(500, Relation.ABOVE, "a scheduler that runs every 500 ms is below MPTCP", SIGN),
    _mptcp(1000, Relation.ABOVE, "a scheduler that runs every second is below MPTCP", SIGN),
)


NAME = "hedera"
INTERVALS_MS = (0.0, 10.0, 100.0, 500.0, 1000.0)
"""Times between two runs of the scheduler; 0 is the ideal scheduler."""
ALONE = {**PLAIN_TCP, "scheduler": UNSCHEDULED}


def schedulers(names: tuple[str, ...], intervals_ms: tuple[float, ...]) -> tuple[Settings, ...]:
    """Return TCP under each scheduler at each interval."""
    chosen = (SchedulerSpec(name, each) for name in names for each in intervals_ms)
    return tuple({**ALONE, "scheduler": each} for each in chosen)


EMULATED = schedulers(("first_fit",), (100.0, 500.0, 1000.0))
"""No ideal scheduler: with real hosts it is not known when flows start, and each run of it takes time."""


def curves(options: SweepOptions) -> tuple[Settings, ...]:
    """Return TCP without and with a scheduler, and MPTCP with the given numbers of subflows."""
    several = tuple(count for count in options.subflows if count > 1)
    mptcp = ({"transport.subflows": several, "scheduler": UNSCHEDULED},) if several else ()
    simulated = SIMULATED_HOSTS.issuperset(options.engines)
    scheduled = schedulers(("first_fit", "annealing"), INTERVALS_MS) if simulated else EMULATED
    return (ALONE, *scheduled, *mptcp)


DEFAULTS: Settings = {
    "k": (8,), "workload": (COME_AND_GO, "one_to_one"), "transport.subflows": (SUBFLOWS,),
    "engine": (SIMULATOR,),
    "link.rate_mbps": 100.0, "warmup_s": 1.0, "seconds": 2.0,
    "link.delay_us": 10.0,
}  # fmt: skip
AT_20_MBPS = "permuted_loop:uniform-200000-4000000"
"""Flow sizes with which flows last about a second at 20 Mb/s, too."""
AT_K4 = on_real_hosts(DEFAULTS, {
    "k": (4,), "workload": (AT_20_MBPS, "one_to_one"),
    "link.rate_mbps": 20.0, "warmup_s": 10.0, "seconds": 15.0,
    "link.delay_us": None, "traffic": "native",
})  # fmt: skip
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
            points=points_on(fat_trees, curves),
            charts=("scheduling",),
            published=HEDERA,
            emulated=AT_K4,
        ),
    ),
)
