"""Every experiment there is: a new one is its file and a line here."""

from __future__ import annotations

from experiments import (
    beyond,
    coupled,
    coupled_sweep,
    cross_check,
    cs244,
    dctcp,
    dual_homed_load,
    ec2,
    fat_tree_sizes,
    flow_level,
    hedera,
    htsim_reference,
    noise,
    one_to_one,
    oversubscribed,
    robustness,
    short_beside_long,
    short_flows,
    sigcomm11,
    subflow_idle,
    subflows_needed,
    topologies,
    validation,
)
from experiments.experiment import Experiment
from fabric.errors import UsageError

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        cs244.EXPERIMENT,
        *cs244.SINGLE,
        sigcomm11.EXPERIMENT,
        *sigcomm11.SINGLE,
        one_to_one.EXPERIMENT,
        coupled_sweep.EXPERIMENT,
        beyond.DUAL_HOMED_TREE,
        beyond.STAR_OF_HOSTS,
        coupled.FAIRNESS,
        *coupled.SINGLE,
        coupled.SHIFTED,
        dctcp.EXPERIMENT,
        htsim_reference.EXPERIMENT,
        short_flows.EXPERIMENT,
        short_beside_long.EXPERIMENT,
        short_beside_long.ALIKE,
        subflow_idle.EXPERIMENT,
        hedera.EXPERIMENT,
        flow_level.EXPERIMENT,
        fat_tree_sizes.EXPERIMENT,
        subflows_needed.EXPERIMENT,
        cross_check.EXPERIMENT,
        ec2.EXPERIMENT,
        robustness.EXPERIMENT,
        *robustness.SINGLE,
        topologies.EXPERIMENT,
        *topologies.SINGLE,
        oversubscribed.EXPERIMENT,
        *oversubscribed.SINGLE,
        dual_homed_load.EXPERIMENT,
        *dual_homed_load.SINGLE,
        validation.EXPERIMENT,
        *validation.SINGLE,
        noise.EXPERIMENT,
        noise.COMPLETIONS,
    )
}


def find(name: str) -> Experiment:
    """The experiment called `name`. Raises UsageError listing the known ones."""
    try:
        return EXPERIMENTS[name]
    except KeyError:
        raise UsageError(f"experiment {name}: unknown; choose from: {', '.join(EXPERIMENTS)}") from None
