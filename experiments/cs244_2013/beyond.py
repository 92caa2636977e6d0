"""Two figures beyond the post: trees of hosts with two NICs, and a star, where nothing is to be gained."""

from __future__ import annotations

from experiments.sigcomm11.statements import DUAL_HOMED, FULL, SPARSE, STAR
from harness.experiment import Experiment, Figure
from harness.plan.options import Defaults, SweepOptions
from harness.plan.rate import Auto
from harness.plan.sweeps import points_on
from model.spec import TopologySpec


def dual_homed(topology: TopologySpec) -> TopologySpec:
    """The dual-homed tree of the same k: both run at the rate that it is carried at."""
    return TopologySpec("dual_homed_fat_tree", topology.params)


def both_trees(options: SweepOptions) -> list[TopologySpec]:
    """For each k the FatTree and the dual-homed one, whose host costs as many switch ports."""
    return [TopologySpec(kind, {"k": k}) for k in options.ks for kind in ("fat_tree", "dual_homed_fat_tree")]


def stars(options: SweepOptions) -> list[TopologySpec]:
    """For each k a star of as many hosts as the FatTree has."""
    return [TopologySpec("star", {"n": k**3 // 4}) for k in options.ks]


def _alone(figure: Figure) -> Experiment:
    """A figure with a folder of its own."""
    return Experiment(figure.name, figure.title, figure.name, (figure,))


DUAL_HOMED_TREE = _alone(
    Figure(
        name="dual-homed",
        title="Two NICs a host: one to several on the dual-homed FatTree and on the FatTree",
        about=(
            "Servers receive from four random clients each, on trees of equal cost a host. TCP uses one "
            "NIC of two; MPTCP's subflows use both, which gains much while a quarter of the hosts serve, "
            "and nothing when all do and fill the dual-homed tree's thinner core."
        ),
        defaults=Defaults(
            ks=(4,), workloads=(SPARSE, FULL), subflows=(1, 2, 4, 8), auto=Auto(basis=dual_homed)
        ),
        topologies=both_trees,
        points=points_on(both_trees),
        charts=("throughput", "rank", "link_utilisation"),
        published=DUAL_HOMED,
    )
)

STAR_OF_HOSTS = _alone(
    Figure(
        name="star",
        title="Nothing to gain: a permutation on a star",
        about=(
            "All hosts on one switch, each sending one flow and receiving one: there is one path, and the "
            "hosts' own links are its only bottleneck. MPTCP can but equal TCP; what it falls short is its "
            "overhead."
        ),
        defaults=Defaults(ks=(4,), workloads=("one_to_one",), subflows=(1, 2, 4, 8)),
        topologies=stars,
        points=points_on(stars),
        charts=("throughput", "rank"),
        published=STAR,
    )
)
