"""htsim-reference: the SIGCOMM 2011 experiment at the parameters at which csg-htsim was run beside it.

The rows are reference simulations (csg-htsim, the successor of the authors' simulator), not published. What
its programs fix is fixed here too, and was read in its sources: packets of 1500 bytes, all of it data, and
acknowledgements of 40; queues of 100 packets counted in bytes, whose last three places are given by chance;
hosts' queues of 1000; NewReno without SACK or delayed acknowledgements, initial window 10, initial ssthresh
100, 250 ms least timeout; each subflow on a path drawn with replacement; subflows do not reinject.
"""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR
from harness.claims.published import Published, Relation, Source
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec

NAME = "htsim-reference"
CITATION = (
    "No publication: csg-htsim run at these parameters, 2 to 3 seeds (docs/validation.md); its ACKs either "
    "take the reverse path or return at once"
)
GOODPUT = 3.0, "htsim's own seeds move the mean by up to 4 points at 1 subflow, under 3 at 6 and more"
FAIRNESS = 0.02, "between seeds"
Row = dict[int, tuple[float, float]]
ROUTED: Row = {
    1: (50.4, 0.810), 2: (65.1, 0.912), 3: (74.1, 0.942), 4: (80.3, 0.962), 6: (86.1, 0.979),
    8: (87.4, 0.983),
}  # fmt: skip
AT_ONCE: Row = {
    1: (50.2, 0.821), 2: (67.5, 0.913), 3: (77.4, 0.949), 4: (84.1, 0.966), 5: (87.7, 0.977),
    6: (90.8, 0.984), 7: (92.9, 0.988), 8: (92.9, 0.989),
}  # fmt: skip
"""By subflows: mean goodput in % of the link rate, and Jain's index."""
QUEUE_PKTS, RANDOM_PKTS, HOST_QUEUE_PKTS, PACKET_BYTES = 100, 3, 1000, 1500
STACK = {
    "payload_bytes": PACKET_BYTES, "header_bytes": 0, "ack_bytes": 40, "initial_window": 10, "ssthresh": 100,
    "min_rto_ms": 250.0, "delayed_ack_ms": 0.0, "sack": False, "reinject": False,
}  # fmt: skip


def _points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    return [_as_htsim(spec) for spec in points_on(fat_trees)(options, rate_of)]


def _as_htsim(spec: RunSpec) -> RunSpec:
    """Its queues are limited in bytes, so that acknowledgements take little room."""
    link = dataclasses.replace(
        spec.link,
        queue_bytes=spec.link.queue_pkts * PACKET_BYTES,
        random_pkts=RANDOM_PKTS,
        nic_queue_pkts=HOST_QUEUE_PKTS,
    )
    return dataclasses.replace(spec, link=link)


def _rows(row: Row, acks: str) -> tuple[Published, ...]:
    return tuple(
        Published(
            quantity, "fat_tree", 8, "one_to_one", n, Relation.ABOUT, value, Source.REFERENCE,
            f"ACKs {acks}: {what}", "csg-htsim", CITATION, *tolerance,
        )
        for n, (goodput, jain) in row.items()
        for quantity, value, what, tolerance in (
            ("link_pct_mean", goodput, "mean goodput", GOODPUT),
            ("jain", jain, "Jain's index", FAIRNESS),
        )
    )  # fmt: skip


def _figure(name: str, acks: str, told: str, row: Row) -> Figure:
    return Figure(
        name=f"{NAME}-{name}",
        title=f"Beside csg-htsim, ACKs {told}",
        about=(
            "A random permutation on the FatTree with k=8: mean goodput of all flows and how evenly they "
            f"share, by subflows, beside what csg-htsim gives at the same parameters; ACKs {told}. Which "
            "paths collide decides most of it, and that is drawn anew with every seed."
        ),
        defaults=Defaults(
            ks=(8,), workloads=("one_to_one",), subflows=tuple(row), rate_mbps=100.0, queue_pkts=QUEUE_PKTS,
            delay_us=10.0, cc="lia", seconds=4.0, warmup_s=2.0, seeds=6, engines=(SIMULATOR,),
            stack={**STACK, "acks": acks},
        ),
        topologies=fat_trees,
        points=_points,
        charts=("other_simulator",),
        published=_rows(row, told),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name=NAME,
    title="The simulator beside csg-htsim: FatTree k=8, random permutation, 1 to 8 subflows",
    folder=NAME,
    figures=(
        _figure("routed", "routed", "take the reverse path and its queues", ROUTED),
        _figure("at-once", "at_once", "return at once", AT_ONCE),
    ),
)
