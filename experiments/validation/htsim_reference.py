"""htsim-reference: the SIGCOMM 2011 experiment with the parameters of reference simulations with csg-htsim.

The statements are reference simulations (csg-htsim, the successor of the authors' simulator), not
publications. Parameters that its programs fix are the same here, as read in its sources: packets of 1500
bytes, all of it data, and acknowledgements of 40 bytes; queues of 100 packets, counted in bytes, with random
drop in the last three slots; host queues of 1000 packets; NewReno without SACK and delayed acknowledgements,
initial window 10, initial ssthresh 100, min RTO 250 ms; each subflow on a path drawn with replacement; no
reinjection.
"""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import JAIN, LINK_PCT_MEAN
from harness.metrics.published import Published, Relation, Source
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec

NAME = "htsim-reference"
CITATION = (
    "No publication: csg-htsim run at these parameters, 2 to 3 seeds (docs/experiments/validation.md); its "
    "ACKs either take the reverse path or return at once"
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
    "processing_frames": 0.0,
}  # fmt: skip


def _as_htsim(spec: RunSpec) -> RunSpec:
    """Return the point with queues as in csg-htsim: limited in bytes, so that acknowledgements take little
    space."""
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
            metric, "fat_tree", 8, "one_to_one", n, Relation.ABOUT, value, Source.REFERENCE,
            f"ACKs {acks}: {what}", "csg-htsim", CITATION, *tolerance,
        )
        for n, (goodput, jain) in row.items()
        for metric, value, what, tolerance in (
            (LINK_PCT_MEAN, goodput, "mean goodput", GOODPUT),
            (JAIN, jain, "Jain's index", FAIRNESS),
        )
    )  # fmt: skip


def _figure(name: str, acks: str, acks_do: str, row: Row) -> Figure:
    return Figure(
        name=f"{NAME}-{name}",
        title=f"Compared with csg-htsim, ACKs {acks_do}",
        about=(
            "A random permutation on the FatTree with k=8: mean goodput of all flows and their fairness by "
            f"subflows, beside csg-htsim at the same parameters; ACKs {acks_do}. Collisions of paths decide "
            "most of the result, and every seed draws other paths."
        ),
        defaults={
            "k": (8,), "workload": ("one_to_one",), "transport.subflows": tuple(row),
            "transport.cc": ("lia",), "engine": (SIMULATOR,),
            "link.rate_mbps": 100.0, "warmup_s": 4.0, "seconds": 16.0, "seeds": 6,
            "link.queue_pkts": QUEUE_PKTS, "link.delay_us": 10.0, "link.clock_ppm": 0.0,
            "stack": {**STACK, "acks": acks},
        },
        topologies=fat_trees,
        points=points_on(fat_trees, adapt=_as_htsim),
        charts=("other_simulator",),
        published=_rows(row, acks_do),
    )  # fmt: skip


EXPERIMENT = Experiment(
    name=NAME,
    title="The simulator compared with csg-htsim: FatTree k=8, random permutation, 1 to 8 subflows",
    folder=NAME,
    figures=(
        _figure("routed", "routed", "take the reverse path and its queues", ROUTED),
        _figure("at-once", "at_once", "return at once", AT_ONCE),
    ),
)
