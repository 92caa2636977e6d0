"""ccp-fidelity and ccp-fairness: agents beside the kernel's congestion controls, beyond the paper's links.

Real hosts and their simulated twins: a FatTree of 16 hosts with plain TCP, with eight subflows of MPTCP and
with ECN; and a bottleneck that a flow in an agent shares with a flow of the kernel's Reno.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from analysis.quantities import Quantity
from ccp.names import PREFIX
from engines.registry import LINUX, SIMULATOR
from experiments.ccp.statements import goodput_mbps, paired
from experiments.coupled import SHARE_OF_BOTTLENECK
from harness.experiment import Figure
from harness.metrics.measures import Estimate, Subject, is_about, measured_over, ratio
from harness.metrics.metrics import Metric
from harness.metrics.published import Published, Relation, Source
from harness.options.options import ENGINE, SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from harness.results.point_results import PointResult
from model.spec import LINUX as LINUX_STACK
from model.spec import RunSpec, Settings, TopologySpec

ALGORITHMS = ("reno", "cubic")
MARK_PKTS = 20
SUBFLOWS = 8
REPLICAS = 6
START_SPREAD_MS, RANDOM_DROP_PKTS = 1000.0, 5
"""As in coupled-fairness: simulated replicas must not stay identical."""
BOTH: Settings = {
    "k": (4,), "workload": ("one_to_one",), "transport.subflows": (1, SUBFLOWS),
    "engine": (SIMULATOR, ENGINE),
    "agent.delay_us": 1000.0, "traffic": "native",
}  # fmt: skip
"""Real agents poll for reports every millisecond, so simulated ones answer after that time."""
BOTTLENECK: Settings = {
    **BOTH, "workload": ("against_tcp",), "transport.subflows": (1,),
    "link.rate_mbps": 10.0, "warmup_s": 20.0, "seconds": 40.0,
    "link.queue_pkts": 50, "link.delay_us": 5000.0,
}  # fmt: skip
PAPER = "same algorithm"
CITATION = "No publication: what must follow where the same algorithm runs in an agent (docs/ccp.md)"
_HOSTS = {SIMULATOR: "simulated", ENGINE: "real hosts", LINUX: "real hosts in virtual time"}
CLOSE = 0.05, "the mean over a permutation's flows moves by a few percent between repetitions"


def beside_kernel(options: SweepOptions) -> list[Settings]:
    """Return each algorithm in an agent and in the kernel: TCP and subflows of MPTCP, then TCP with ECN."""
    ccs = options.ccs or tuple(name for cc in ALGORITHMS for name in (cc, PREFIX + cc))
    plain: list[Settings] = [{"transport.cc": cc, "stack": LINUX_STACK} for cc in ccs]
    marked = [{**each, "transport.subflows": 1, "link.ecn_pkts": MARK_PKTS} for each in plain]
    return plain + marked


def dumbbells(_options: SweepOptions) -> list[TopologySpec]:
    """Return one network: the flow under test and one of the kernel's Reno, REPLICAS times."""
    return [TopologySpec("dumbbell", {"n": 2, "lanes": REPLICAS})]


def _desynchronised(spec: RunSpec) -> RunSpec:
    if spec.engine != SIMULATOR:
        return spec
    return replace(
        spec,
        link=replace(spec.link, random_pkts=spec.link.random_pkts or RANDOM_DROP_PKTS),
        stack=replace(spec.stack, start_spread_ms=spec.stack.start_spread_ms or START_SPREAD_MS),
    )


def setting(spec: RunSpec) -> RunSpec:
    return spec.neutral("transport.cc", "transport.subflows")


@functools.cache
def over_kernel(cc: str, ecn_pkts: int) -> Metric:
    """Return a metric: the mean goodput with an agent over that of the kernel, per seed."""

    def measure(points: Sequence[PointResult], subject: Subject) -> Estimate | None:
        chosen = [
            p
            for p in points
            if is_about(subject, p)
            and p.spec.transport.subflows == subject.subflows
            and p.spec.link.ecn_pkts == ecn_pkts
        ]
        return measured_over((ratio(goodput_mbps(a), goodput_mbps(b)), (a, b)) for a, b in paired(chosen, cc))

    with_ecn = ", ECN" if ecn_pkts else ""
    return Metric(
        Quantity(
            f"agent_over_kernel_{cc}_ecn{ecn_pkts}",
            "x the kernel's",
            f"mean goodput of {cc} in an agent{with_ecn}",
        ),
        over=measure,
        setting=setting,
    )


def _same(cc: str, subflows: int, ecn_pkts: int, engine: str) -> Published:
    how = "MPTCP's subflows" if subflows > 1 else "TCP"
    words = f"{cc} in an agent as {how}{' with ECN' if ecn_pkts else ''}: the kernel's goodput"
    return Published(
        over_kernel(cc, ecn_pkts), "fat_tree", 4, "one_to_one", subflows, Relation.ABOUT, 1.0,
        Source.EXPECTED, f"{words} ({_HOSTS[engine]})", PAPER,
        CITATION, *CLOSE, engine=engine,
    )  # fmt: skip


def _fair(engine: str) -> Published:
    row = Published(
        SHARE_OF_BOTTLENECK, "dumbbell", 2, "against_tcp", 1, Relation.ABOUT, 50.0, Source.EXPECTED,
        f"a flow in an agent and one of the kernel's share evenly ({engine})", PAPER, CITATION, 5.0,
        "a twentieth: two flows of the same kind differ by as much over 40 s", engine=engine,
        algorithm=f"{PREFIX}reno",
    )  # fmt: skip
    return row.on(lanes=REPLICAS)


SAME = tuple(
    _same(cc, subflows, ecn, engine)
    for engine in _HOSTS
    for cc in ALGORITHMS
    for subflows, ecn in ((1, 0), (SUBFLOWS, 0), (1, MARK_PKTS))
)
FIDELITY = Figure(
    name="ccp-fidelity",
    title="Reno and CUBIC in an agent beside the kernel's",
    about=(
        "A permutation on a FatTree under Reno and CUBIC, in the kernel and in an agent: as plain TCP, as "
        "eight uncoupled subflows of MPTCP, and with ECN. Each pair should have the same goodput, between "
        "real hosts and in the simulator."
    ),
    defaults=BOTH,
    topologies=fat_trees,
    points=points_on(fat_trees, beside_kernel),
    charts=("by_congestion_control",),
    published=SAME,
)  # fmt: skip
FAIRNESS = Figure(
    name="ccp-fairness",
    title="A flow in an agent beside one of the kernel's Reno",
    about=(
        "Two flows share a link, six times in one run: one of Reno in the kernel, and one of Reno in an "
        "agent or in the kernel. Both should get half."
    ),
    defaults={**BOTTLENECK, "transport.cc": ("reno", f"{PREFIX}reno")},
    topologies=dumbbells,
    points=points_on(dumbbells, ({"stack": LINUX_STACK},), _desynchronised),
    charts=("share",),
    published=tuple(_fair(engine) for engine in _HOSTS),
    sized=False,
    relative=False,
)  # fmt: skip
