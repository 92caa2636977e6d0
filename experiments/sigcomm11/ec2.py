"""ec2: throughput between our hosts in a cloud that others use too, by TCP and MPTCP in turn.

SIGCOMM 2011 (Raiciu et al.) on Amazon EC2: 40 instances, 12 hours, all pairs in sequence. Network and
neighbours are assumptions (topos/cloud.py, workloads/sequential.py), not fitted to the published gain.
"""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR, VIRTUAL_TIME
from experiments.sigcomm11.ec2_statements import EC2, EMULATED_CLOUD, EMULATED_WORKLOAD, WORKLOAD
from harness.experiment import Experiment, Figure, RateOf
from harness.plan.options import Defaults, SweepOptions
from harness.plan.sweeps import Variant, points_on
from model.spec import RunSpec, SamplingSpec, TopologySpec
from workloads.sequential import TRANSPORTS

NAME = "ec2"
HOSTS = 40
MOST = TRANSPORTS[-1]
BRIEF = {"n": 8, "racks": 4, "tenants": 2}


def clouds(options: SweepOptions) -> list[TopologySpec]:
    """40 hosts of ours as in the paper; fewer between real hosts, and where things are only to work."""
    if options.brief:
        return [TopologySpec("cloud", BRIEF)]
    simulated = VIRTUAL_TIME.issuperset(options.engines)
    return [TopologySpec("cloud", {"n": HOSTS} if simulated else dict(EMULATED_CLOUD))]


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """The workload has the transports: once is enough where all is to be brief. Transfers tell what is to be
    known: nothing else of thousands of flows is sampled."""
    once = Variant(subflows=(MOST,) if options.brief else None)
    made = points_on(clouds, (once,))(options, rate_of)
    return [dataclasses.replace(point, sampling=SamplingSpec()) for point in made]


DEFAULTS = Defaults(
    ks=(8,),
    workloads=(WORKLOAD,),
    subflows=(MOST,),
    cc="lia",
    rate_mbps=100.0,
    seconds=600.0,
    warmup_s=20.0,
    whole_s=7200.0,
    engines=(SIMULATOR,),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="A cloud of several tenants: TCP and MPTCP in turn between 40 hosts (SIGCOMM 2011 on EC2)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="TCP and MPTCP in turn in a cloud",
            about=(
                "Pairs of 40 hosts make one transfer each over TCP, MPTCP 2 and MPTCP 4, one at a time, "
                "while other tenants' hosts in the same racks send and are silent at random. Between racks "
                "there are 2 to 8 paths, and MPTCP finds those that are not busy; inside a rack there is one."
            ),
            defaults=DEFAULTS,
            emulated=DEFAULTS.emulated(
                workloads=(EMULATED_WORKLOAD,),
                traffic="native",
                rate_mbps=20.0,
                seconds=150.0,
                warmup_s=5.0,
                whole_s=None,
            ),
            topologies=clouds,
            points=points,
            charts=("in_turn",),
            published=EC2,
            sized=False,
            relative=False,
        ),
    ),
)
