"""cross-check: the same points on real Linux stacks and in the simulator, compared flow by flow.

Network, permutation, five-tuples, tables and hash are the same in both, and so is every subflow's path. Only
the end hosts differ. Simulated hosts use the stack that is closest to Linux: `model.spec.LINUX`.
"""

from __future__ import annotations

from common.errors import UsageError
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import ACROSS_MEAN, ACROSS_SPEARMAN, Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, SweepOptions
from harness.plan.sweeps import PLAIN_TCP, fat_trees, points_on
from model import transports
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.spec import LINUX, Settings

NAME = "cross-check"
SIZES = (4, 8)
SUBFLOWS = 8
CCS = (BASELINE, COUPLED_DEFAULT)
PAPER = "same paths"
CITATION = (
    "No publication: what must follow where two engines send the same flows over the same paths "
    "(docs/experiments/cross-check.md)"
)
PATHS = "which links a flow shares, and with how many, decides most of its goodput; the rest is chance"
LEVEL = 5.0, "permutations move the mean by up to 4 points (reference simulations)"


def _expected(
    metric: Metric, k: int, name: str, bound: tuple[Relation, float], words: str, why: tuple[float, str]
) -> Published:
    subflows = 1 if name == transports.TCP else SUBFLOWS
    return Published(
        metric, "fat_tree", k, "one_to_one", subflows, *bound, Source.EXPECTED, words, PAPER, CITATION,
        *why, algorithm=name,
    )  # fmt: skip


def _expectations(k: int) -> tuple[Published, ...]:
    tcp = transports.TCP
    return (
        _expected(
            ACROSS_SPEARMAN, k, tcp, (Relation.AT_LEAST, 0.8), "TCP: the flows' ranks agree", (0.0, PATHS)
        ),
        *(
            _expected(
                ACROSS_MEAN, k, name, (Relation.ABOUT, 0), f"{transports.title(name)}: the same mean", LEVEL
            )
            for name in (tcp, *CCS)
        ),
        *(
            _expected(
                ACROSS_SPEARMAN, k, name, (Relation.ABOVE, 0),
                f"{transports.title(name)}: the flows' ranks agree",
                (0.0, "eight subflows even out what paths do to one, so only the sign is expected"),
            )
            for name in CCS
        ),
    )  # fmt: skip


def curves(options: SweepOptions) -> list[Settings]:
    """Return TCP, and MPTCP under each congestion control. Raises UsageError if options leave no MPTCP."""
    counts = tuple(count for count in options.subflows if count > 1)
    if not counts:
        raise UsageError(
            f"--subflows 1: {NAME} compares MPTCP too, and TCP is always part of it; give counts from 2 up"
        )
    return [
        {**PLAIN_TCP, "stack": LINUX},
        *({"transport.cc": cc, "transport.subflows": counts, "stack": LINUX} for cc in options.ccs or CCS),
    ]


EXPERIMENT = Experiment(
    name=NAME,
    title="Emulation and simulation compared: the same flows on the same paths, flow by flow",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Emulated and simulated",
            about=(
                "The same permutation of flows, with the same addresses, ports and so paths, once between "
                "real Linux hosts and once between simulated ones. Where both agree, the network decides; "
                "where they differ, the end hosts do."
            ),
            defaults={
                "k": SIZES,
                "workload": ("one_to_one",),
                "transport.subflows": (SUBFLOWS,),
                "engine": ("simulator", ENGINE),
                "traffic": "native",
            },
            topologies=fat_trees,
            points=points_on(fat_trees, curves),
            charts=("cross_check",),
            published=tuple(row for k in SIZES for row in _expectations(k)),
            baselines=True,
        ),
    ),
)
