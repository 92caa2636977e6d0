"""sigcomm11: all figures of Improving Datacenter Performance and Robustness with Multipath TCP (SIGCOMM
2011).

SECTIONS has the paper's sections in their order. Their figures are also experiments of their own. As parts of
the paper they share the results folder `sigcomm11` and are called `sigcomm11-<figure>`. A new figure is one
line of SECTIONS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from engines.registry import FLOW_LEVEL, LINUX, SIMULATOR
from experiments.sigcomm11 import (
    congestion_controls,
    ec2,
    flow_level,
    hedera,
    oversubscribed,
    robustness,
    several_nics,
    short_beside_long,
    topologies,
)
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import GOODPUT_PCT_MEAN
from harness.metrics.published import Published
from harness.options.options import on_real_hosts
from model.spec import Settings

NAME = "sigcomm11"
SHARED_OPTIONS = ("engine", "profile", "seed", "seeds")
"""Options that have the same meaning for every figure. Sizes, matrices and links differ by figure."""


def _simulated(figure: Figure, name: str, emulated: Settings, guests: Settings | None = None) -> Figure:
    """Return the simulated variant of a figure whose own experiment uses real hosts. It gets an emulated
    variant that takes minutes, and optionally one in virtual time."""
    defaults = {**figure.defaults, "engine": (SIMULATOR,)}
    return replace(figure, name=name, defaults=defaults, emulated=emulated, guests=guests)


_PERMUTATION, _BY_CC = congestion_controls.PERMUTATION, congestion_controls.EXPERIMENT.figures[0]
_AT_K8 = on_real_hosts(
    _PERMUTATION.defaults, {"transport.subflows": (1, 8), "warmup_s": 60.0, "seconds": 60.0}
)
"""The paper's size. MPTCP needs 20 s to converge at the 5 Mb/s that two cores carry (docs/fidelity.md), and
45 s at 2 Mb/s, which they carry on a noisy machine. There a window of 20 s was too short: hosts received 8 %
more in it than the links carried."""
_IN_VIRTUAL_TIME = on_real_hosts(_PERMUTATION.defaults, {
    "transport.subflows": (1, 8), "engine": (LINUX,),
    "link.rate_mbps": 100.0, "warmup_s": 4.0, "seconds": 6.0,
})  # fmt: skip
"""The paper's size and link rate. 4 s hold twice the packets that settling took at 5 Mb/s."""
_AT_K4 = on_real_hosts(_BY_CC.defaults, {"k": (4,), "warmup_s": 6.0, "seconds": 8.0})


def _of_models(known: Sequence[Published]) -> tuple[Published, ...]:
    """Return the statements on mean goodput for flow-level models, which the paper draws beside packets."""
    means = [row for row in known if row.metric is GOODPUT_PCT_MEAN]
    return tuple(replace(row, engine=FLOW_LEVEL, words=f"flow level: {row.words}") for row in means)


def _in_minutes(figures: Sequence[Figure], matrices: int) -> tuple[Figure, ...]:
    """Return the figures with only the first `matrices` matrices between real hosts, so that the whole paper
    takes half an hour. Their own experiments run all matrices."""
    return tuple(replace(figure, emulated=_first(figure.emulated, matrices)) for figure in figures)


def _first(emulated: Settings | None, matrices: int) -> Settings | None:
    if emulated is None or not matrices:
        return None
    return {**emulated, "workload": emulated["workload"][:matrices]}


SECTIONS: Mapping[str, tuple[Figure, ...]] = {
    "FatTree, random permutation": (
        _simulated(_PERMUTATION, _PERMUTATION.name, _AT_K8, _IN_VIRTUAL_TIME),
        _simulated(_BY_CC, "congestion-controls", _AT_K4),
        *(replace(f, published=_of_models(f.published)) for f in flow_level.FLOW_LEVEL_EXPERIMENT.figures),
        *flow_level.SIZES_EXPERIMENT.figures,
    ),
    "How many subflows": flow_level.NEEDED_EXPERIMENT.figures,
    "Other networks": topologies.EXPERIMENT.figures,
    "Oversubscribed FatTree": (*_in_minutes(oversubscribed.FIGURES[:1], 1), *oversubscribed.FIGURES[1:]),
    "Dual-homed FatTree": _in_minutes(several_nics.FIGURES, 1),
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
    title="SIGCOMM 2011, all figures: multipath TCP in data centres",
    folder=NAME,
    figures=FIGURES,
    shared_options=SHARED_OPTIONS,
)
SINGLE = tuple(figure.alone(NAME) for figure in FIGURES)
