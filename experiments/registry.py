"""All experiments by name. A new experiment is a file or package and one line here."""

from __future__ import annotations

from experiments import coupled, cs244_2013, cs244_2017, dctcp, ims, load_balancing, pfabric, studies
from experiments.ccp import figures as ccp
from experiments.responsive_mptcp import figures as responsive_mptcp
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
    whole,
)
from experiments.validation import cross_check, htsim_reference, theory
from harness.catalogue import Catalogue
from harness.experiment import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        cs244_2013.POST,
        *cs244_2013.SINGLE,
        whole.EXPERIMENT,
        *whole.SINGLE,
        cs244_2013.CS244_ONE_TO_ONE,
        congestion_controls.EXPERIMENT,
        several_nics.DUAL_HOMED_TREE,
        several_nics.STAR_OF_HOSTS,
        coupled.FAIRNESS,
        *coupled.SINGLE,
        coupled.SHIFTED,
        dctcp.QUEUE,
        htsim_reference.EXPERIMENT,
        dctcp.SHORT_FLOWS,
        load_balancing.EXPERIMENT,
        short_beside_long.EXPERIMENT,
        short_beside_long.BETWEEN_LINUX_HOSTS,
        short_beside_long.ALIKE,
        studies.SUBFLOW_IDLE,
        hedera.EXPERIMENT,
        flow_level.FLOW_LEVEL_EXPERIMENT,
        flow_level.SIZES_EXPERIMENT,
        flow_level.NEEDED_EXPERIMENT,
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
        several_nics.EXPERIMENT,
        *several_nics.SINGLE,
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
        studies.NOISE,
        studies.COMPLETIONS,
    )
}
CATALOGUE = Catalogue(EXPERIMENTS)
