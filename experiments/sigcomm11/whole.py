"""sigcomm11: whole, Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM 2011).

Its sections in their order, each of figures that experiments of their own have too: a new one is a line of
SECTIONS. In here figures share the folder `sigcomm11` and are called `sigcomm11-<figure>`, as they are alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engines.registry import FLOW_LEVEL, SIMULATOR
from experiments.coupled import sweep
from experiments.cs244_2013 import one_to_one
from experiments.sigcomm11 import (
    dual_homed_load,
    ec2,
    fat_tree_sizes,
    flow_level,
    hedera,
    oversubscribed,
    robustness,
    short_beside_long,
    subflows_needed,
    topologies,
)
from harness.claims.metrics import GOODPUT_PCT_MEAN
from harness.claims.published import Published
from harness.experiment import Experiment, Figure
from harness.plan.options import Defaults

NAME = "sigcomm11"
SHARED_OPTIONS = ("engine", "profile", "seed", "seeds")
"""What means the same to every figure of the paper: sizes, matrices and links are each one's own."""


def _simulated(figure: Figure, name: str, emulated: Defaults) -> Figure:
    """A figure that alone is about real hosts: simulated, and emulated at a size that takes minutes."""
    return replace(
        figure, name=name, defaults=replace(figure.defaults, engines=(SIMULATOR,)), emulated=emulated
    )


_PERMUTATION, _BY_CC = one_to_one.EXPERIMENT.figures[0], sweep.EXPERIMENT.figures[0]
_AT_K8 = _PERMUTATION.defaults.emulated(subflows=(1, 8), warmup_s=60.0, seconds=60.0)
"""The paper's own size. MPTCP takes 20 s to settle at the 5 Mb/s that two cores carry (docs/fidelity.md), and
45 s at the 2 Mb/s that they carry on a bad day, where 20 s are too short to look at as well: what was
delivered in them was 8 % more than what was carried."""
_AT_K4 = _BY_CC.defaults.emulated(ks=(4,), warmup_s=6.0, seconds=8.0)


def _of_models(known: Sequence[Published]) -> tuple[Published, ...]:
    """What the paper says of packets' means, asked of flow-level models, which it drew beside them."""
    means = [row for row in known if row.metric is GOODPUT_PCT_MEAN]
    return tuple(replace(row, engine=FLOW_LEVEL, words=f"flow level: {row.words}") for row in means)


def _in_minutes(figures: Sequence[Figure], matrices: int) -> tuple[Figure, ...]:
    """These with that many matrices between real hosts. Alone they run all of theirs; the whole paper may
    take half an hour."""
    return tuple(replace(figure, emulated=_first(figure.emulated, matrices)) for figure in figures)


def _first(emulated: Defaults | None, matrices: int) -> Defaults | None:
    if emulated is None or not matrices:
        return None
    return replace(emulated, workloads=emulated.workloads[:matrices])


SECTIONS: Mapping[str, tuple[Figure, ...]] = {
    "FatTree, random permutation": (
        _simulated(_PERMUTATION, "throughput", _AT_K8),
        _simulated(_BY_CC, "congestion-controls", _AT_K4),
        *(replace(f, published=_of_models(f.published)) for f in flow_level.EXPERIMENT.figures),
        *fat_tree_sizes.EXPERIMENT.figures,
    ),
    "How many subflows": subflows_needed.EXPERIMENT.figures,
    "Other networks": topologies.EXPERIMENT.figures,
    "Oversubscribed FatTree": (*_in_minutes(oversubscribed.FIGURES[:1], 1), *oversubscribed.FIGURES[1:]),
    "Dual-homed FatTree": _in_minutes(dual_homed_load.FIGURES, 1),
    "Short flows": (*short_beside_long.FIGURES[:1], *_in_minutes(short_beside_long.FIGURES[1:], 0)),
    "Central scheduling": _in_minutes(hedera.EXPERIMENT.figures, 1),
    "Losses, fairness, cost, failing links": robustness.EXPERIMENT.figures,
    "A cloud of several tenants": ec2.EXPERIMENT.figures,
}
FIGURES = tuple(
    replace(figure, name=f"{NAME}-{figure.name}", section=section, separate_variants=True)
    for section, figures in SECTIONS.items()
    for figure in figures
)
EXPERIMENT = Experiment(
    name=NAME,
    title="SIGCOMM 2011 whole: multipath TCP in data centres",
    folder=NAME,
    figures=FIGURES,
    shared_options=SHARED_OPTIONS,
)
SINGLE = tuple(Experiment(f.name, f.title, NAME, (f,)) for f in FIGURES)
