"""fat-tree-sizes: the permutation of SIGCOMM 2011 at packet level with 128 to 27 648 hosts.

The equilibrium rates of congestion control (flow level) are shown beside it. For its largest networks the
paper has only those. Acknowledgements are routed. The measured window is shorter in larger networks and
starts once they have converged (docs/flow-level.md).
"""

from __future__ import annotations

import dataclasses

from engines.registry import FLOW_LEVEL, SIMULATOR
from experiments.sigcomm11.statements import ONE_TO_ONE
from experiments.sigcomm11.subflows_needed import LARGEST_K, needed
from harness.experiment import Experiment, Figure, RateOf
from harness.options.options import Defaults, SweepOptions
from harness.plan.sweeps import fat_trees, points_on
from model.spec import RunSpec

NAME = "fat-tree-sizes"
DEFAULTS = Defaults(
    ks=(8, 16, 32, 48),
    workloads=("one_to_one",),
    subflows=tuple(range(1, 9)),
    rate_mbps=100.0,
    ccs=("lia",),
    seconds=2.0,
    warmup_s=1.0,
    engines=(SIMULATOR, FLOW_LEVEL),
)
WITH_SEEDS = {48: (1, 8)}
"""Numbers of subflows by k in a run with several seeds, to save time; smaller networks have all."""
IN_TIME = {16: (1, 4, 8), 32: (1, 8), **WITH_SEEDS}
"""The same in a run with one seed, which has k=48 only if an option chooses it."""
SECONDS = {16: (1.0, 1.0), 32: (0.75, 0.25), 48: (0.75, 0.25)}
"""Warm-up and window by k, in virtual seconds, shorter in large networks."""


def _points(options: SweepOptions, rate_of: RateOf) -> list[RunSpec]:
    """Return all points if options choose subflows; else those that finish in time. Durations of SECONDS
    apply unless options choose others."""
    specs = [_for_its_time(spec, options) for spec in points_on(fat_trees)(options, rate_of)]
    if options.subflows != DEFAULTS.subflows:
        return specs
    several = len(options.seeds) > 1
    counts = WITH_SEEDS if several else IN_TIME
    left_out = () if several or options.ks != DEFAULTS.ks else tuple(WITH_SEEDS)
    return [
        spec
        for spec in specs
        if spec.topology.k not in left_out
        and spec.transport.subflows in counts.get(spec.topology.k, options.subflows)
    ]


def _for_its_time(spec: RunSpec, options: SweepOptions) -> RunSpec:
    if (options.base.warmup_s, options.base.seconds) != (DEFAULTS.warmup_s, DEFAULTS.seconds):
        return spec
    warmup_s, seconds = SECONDS.get(spec.topology.k, (options.base.warmup_s, options.base.seconds))
    return dataclasses.replace(spec, warmup_s=warmup_s, seconds=seconds)


EXPERIMENT = Experiment(
    name=NAME,
    title="FatTree k=8, 16, 32 and 48 at packet level and flow level, random permutation (SIGCOMM 2011)",
    folder=NAME,
    figures=(
        Figure(
            name=NAME,
            title="The permutation on larger trees",
            about=(
                "TCP loses slightly more goodput to collisions in larger trees. Eight subflows use the "
                "remaining capacity nearly as well with 8192 hosts as with 128. Black is packet level, grey "
                "the equilibrium of congestion control on the same paths."
            ),
            defaults=DEFAULTS,
            topologies=fat_trees,
            points=_points,
            charts=("flow_level",),
            published=(*ONE_TO_ONE, needed(LARGEST_K, SIMULATOR)),
        ),
    ),
)
