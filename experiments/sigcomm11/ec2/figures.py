"""ec2: throughput of sequential transfers over TCP and MPTCP between hosts of a cloud shared with other
tenants.

SIGCOMM 2011 (Raiciu et al.) on Amazon EC2: 40 instances, 12 hours, all pairs one after the other. The network
and the other tenants' traffic are assumptions (topos/cloud.py, workloads/sequential.py), not fitted to the
published gain.
"""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR, VIRTUAL_TIME
from experiments.sigcomm11.ec2.statements import EC2, EMULATED_CLOUD, EMULATED_WORKLOAD, WORKLOAD
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import Variant, points_on
from model.spec import RunSpec, SamplingSpec, TopologySpec
from workloads.sequential import TRANSPORTS

NAME = "ec2"
HOSTS = 40
MAX_SUBFLOWS = TRANSPORTS[-1]
BRIEF = {"n": 8, "racks": 4, "tenants": 2}


def clouds(options: SweepOptions) -> list[TopologySpec]:
    """Return a cloud with 40 hosts under test, as in the paper; fewer for real hosts and brief profiles."""
    if options.brief:
        return [TopologySpec("cloud", BRIEF)]
    simulated = VIRTUAL_TIME.issuperset(options.engines)
    return [TopologySpec("cloud", {"n": HOSTS} if simulated else dict(EMULATED_CLOUD))]


def points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return the points. The workload contains all transports, so a brief profile runs one point.

    Results come from the transfers, so nothing else of these thousands of flows is sampled.
    """
    once = Variant(subflows=(MAX_SUBFLOWS,) if options.brief else None)
    made = points_on(clouds, (once,))(options, rate_of)
    return [dataclasses.replace(point, sampling=SamplingSpec()) for point in made]


DEFAULTS = Defaults(
    ks=(8,),
    workloads=(WORKLOAD,),
    subflows=(MAX_SUBFLOWS,),
    ccs=("lia",),
    rate_mbps=100.0,
    seconds=600.0,
    warmup_s=20.0,
    whole_s=7200.0,
    engines=(SIMULATOR,),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="A cloud of several tenants: sequential TCP and MPTCP transfers, 40 hosts (SIGCOMM 2011 on EC2)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="Sequential TCP and MPTCP transfers in a cloud",
            about=(
                "Pairs of 40 hosts make one transfer each over TCP, MPTCP with 2 and MPTCP with 4 subflows, "
                "one after the other. Hosts of other tenants in the same racks send and pause at random. "
                "Between racks there are 2 to 8 paths and MPTCP uses the less busy ones; inside a rack there "
                "is one path."
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
            charts=("sequential_transfers",),
            published=EC2,
            sized=False,
            relative=False,
        ),
    ),
)
