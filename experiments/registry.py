"""All experiments by name. A new experiment is a file or package and one line here."""

from __future__ import annotations

from experiments.ccp import figures as ccp
from experiments.coupled import wire
from experiments.cs244_2013 import one_to_one, post
from experiments.cs244_2017 import figures as cs244_2017
from experiments.dctcp import queue, short_flows
from experiments.ims import figures as ims
from experiments.pfabric import figures as pfabric
from experiments.responsive_mptcp import figures as responsive_mptcp
from experiments.sigcomm11 import (
    congestion_controls,
    dual_homed_and_star,
    dual_homed_load,
    fat_tree_sizes,
    flow_level,
    oversubscribed,
    short_beside_long,
    subflows_needed,
    topologies,
    whole,
)
from experiments.sigcomm11.ec2 import figures as ec2
from experiments.sigcomm11.hedera import figures as hedera
from experiments.sigcomm11.robustness import figures as robustness
from experiments.studies import noise, subflow_idle
from experiments.validation import cross_check, htsim_reference, theory
from harness.catalogue import Catalogue
from harness.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        post.EXPERIMENT,
        *post.SINGLE,
        whole.EXPERIMENT,
        *whole.SINGLE,
        one_to_one.EXPERIMENT,
        congestion_controls.EXPERIMENT,
        dual_homed_and_star.DUAL_HOMED_TREE,
        dual_homed_and_star.STAR_OF_HOSTS,
        wire.FAIRNESS,
        *wire.SINGLE,
        wire.SHIFTED,
        queue.EXPERIMENT,
        htsim_reference.EXPERIMENT,
        short_flows.EXPERIMENT,
        short_beside_long.EXPERIMENT,
        short_beside_long.BETWEEN_LINUX_HOSTS,
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
        ccp.EXPERIMENT,
        *ccp.SINGLE,
        oversubscribed.EXPERIMENT,
        *oversubscribed.SINGLE,
        dual_homed_load.EXPERIMENT,
        *dual_homed_load.SINGLE,
        theory.EXPERIMENT,
        *theory.SINGLE,
        pfabric.EXPERIMENT,
        *pfabric.SINGLE,
        cs244_2017.EXPERIMENT,
        *cs244_2017.SINGLE,
        responsive_mptcp.EXPERIMENT,
        *responsive_mptcp.SINGLE,
        ims.EXPERIMENT,
        *ims.SINGLE,
        noise.EXPERIMENT,
        noise.COMPLETIONS,
    )
}
CATALOGUE = Catalogue(EXPERIMENTS)
