"""pfabric: completion times under pFabric, DCTCP, TCP and an ideal scheduler, by load and by flow size.

After Alizadeh et al., pFabric, SIGCOMM 2013 (section 5: 144 hosts below 9 leaves and 4 spines), and its
workshop paper, HotNets 2012 (54 hosts of a FatTree). Hosts are simulated; cs244-2017 has Linux hosts.
"""

from __future__ import annotations

import functools
from typing import Any

from experiments.pfabric.points import (
    FAT_TREE,
    HIGHEST_LOAD,
    HOTNETS_HOST_DELAY_US,
    LEAF_SPINE,
    LOADS,
    SMALL_FAT_TREE,
    SMALL_LEAF_SPINE,
    SMALL_STAR,
    STAR,
    WEB_SEARCH,
    Settings,
    defaults,
    of_arms,
    one_of,
    points_on,
    settings_of,
)
from experiments.pfabric.statements import BY_SIZE, OVERALL
from harness.experiment import Experiment, Figure
from model.arms import ARMS, COMPARED, MAX_WINDOW, MINTCP, MINTCP_STACK, PARTS
from model.spec import StackSpec

NAME = "pfabric"
OPTIONS = (
    "workload",
    "engine",
    "seconds",
    "warmup",
    "seed",
    "seeds",
    "profile",
    "rate",
    "delay",
    "host_delay",
)
_NETWORK = one_of(LEAF_SPINE, SMALL_LEAF_SPINE)
_COMPARISON = points_on(_NETWORK, of_arms(COMPARED))
BUFFERS_KB = (6, 12, 18, 24, 36, 72, 144)
"""Half a bandwidth-delay product to eight of them."""
RTOS_MS = (0.015, 0.03, 0.045, 0.09, 0.2, 1.0)
FEW_LOADS = (20, 50, 80)


def _one_by_one() -> tuple[Settings, ...]:
    """Return minTCP + pFabric with other buffers, then with other timeouts."""
    base = settings_of(ARMS[MINTCP])
    buffers = ({**base, "link.queue_bytes": kb * 1024, "stack": _window(kb)} for kb in BUFFERS_KB)
    timeouts = ({**base, "stack": StackSpec(**{**MINTCP_STACK, "min_rto_ms": ms})} for ms in RTOS_MS)
    known = list(buffers)
    return (*known, *(one for one in timeouts if one not in known))


def _window(kb: int) -> StackSpec:
    """Return a stack whose window is at most the buffer less one packet, and at most the paper's."""
    limit = max(1, min(MAX_WINDOW, kb * 1024 // 1500 - 1))
    stack: dict[str, Any] = {**MINTCP_STACK, "max_window": limit}
    return StackSpec(**{**stack, "initial_window": min(stack["initial_window"], limit)})


_figure = functools.partial(
    Figure, topologies=_NETWORK, points=_COMPARISON, sized=False, relative=False, options=OPTIONS
)
"""By default a figure compares all arms on the leaf-spine."""
FIGURES = (
    _figure(
        name=f"{NAME}-overall",
        title="Completion times of all flows, by load",
        about=(
            "Flows arrive at random between all pairs of 144 hosts. Each chart shows the mean of their "
            "completion times over their times alone. pFabric stays near the ideal scheduler at every load, "
            "and DCTCP and TCP move away from it as the load grows."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_by_load",),
        published=OVERALL,
    ),
    _figure(
        name=f"{NAME}-sizes",
        title="Completion times by flow size and load",
        about=(
            "The same points by flow size, as the paper groups them: up to 100 kB, on average and at the "
            "99th percentile, up to 10 MB, and above. Small flows gain most from priorities; the largest "
            "flows pay for them."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_by_size",),
        published=BY_SIZE,
    ),
    _figure(
        name=f"{NAME}-distribution",
        title="Distribution of completion times",
        about="Every flow at a load of 60 %, by its completion time over its time alone. The tail shows "
        "which flows wait.",
        defaults=defaults((60,)),
        charts=("normalised_cdf",),
    ),
    _figure(
        name=f"{NAME}-losses",
        title="Packets dropped and retransmitted, by load",
        about=(
            "pFabric's queues are short and drop what can wait, so it loses more packets than DCTCP. What "
            "counts is that small flows do not lose them."
        ),
        defaults=defaults(LOADS),
        charts=("normalised_losses",),
    ),
    _figure(
        name=f"{NAME}-queues",
        title="Queue lengths of switches",
        about=(
            "How long the switches' queues are at a load of 80 %, sampled every millisecond. Long queues of "
            "pFabric hold what can wait."
        ),
        defaults=defaults((HIGHEST_LOAD,)),
        charts=("queue_by_arm",),
    ),
    _figure(
        name=f"{NAME}-parts",
        title="What each part of pFabric contributes",
        about=(
            "minTCP + pFabric at a load of 80 %, with one part changed at a time: the order in which queues "
            "send, what they drop, spraying, the size of the buffer, the sender, and what a priority is. The "
            "distance from the full design is what that part contributes."
        ),
        defaults=defaults((HIGHEST_LOAD,)),
        points=points_on(_NETWORK, of_arms(PARTS)),
        charts=("normalised_parts",),
    ),
    _figure(
        name=f"{NAME}-sensitivity",
        title="Sensitivity to buffer and timeout",
        about=(
            "minTCP + pFabric at a load of 80 %, with smaller and larger buffers, and with shorter and "
            "longer timeouts. The paper's values are 36 kB, two bandwidth-delay products, and 45 us, three "
            "round trips."
        ),
        defaults=defaults((HIGHEST_LOAD,), (WEB_SEARCH,)),
        points=points_on(_NETWORK, _one_by_one()),
        charts=("normalised_sensitivity",),
    ),
    _figure(
        name=f"{NAME}-fat-tree",
        title="The same on a FatTree of 54 hosts",
        about=(
            "The network of the workshop paper (HotNets 2012), with its round trip of 12 us and the arms of "
            "the later paper. Paths between pods have six links; those of the leaf-spine have four."
        ),
        defaults=defaults(FEW_LOADS, (WEB_SEARCH,), HOTNETS_HOST_DELAY_US),
        topologies=one_of(FAT_TREE, SMALL_FAT_TREE),
        points=points_on(one_of(FAT_TREE, SMALL_FAT_TREE), of_arms(COMPARED)),
        charts=("normalised_by_load",),
    ),
    _figure(
        name=f"{NAME}-star",
        title="The same on a star of 28 hosts",
        about=(
            "The network of the CS244 2017 reproduction, at 10 Gb/s and with the paper's delays. One switch "
            "has all queues."
        ),
        defaults=defaults(FEW_LOADS, (WEB_SEARCH,)),
        topologies=one_of(STAR, SMALL_STAR),
        points=points_on(one_of(STAR, SMALL_STAR), of_arms(COMPARED)),
        charts=("normalised_by_load",),
    ),
)
EXPERIMENT = Experiment(
    name=NAME,
    title="pFabric beside DCTCP, TCP and an ideal scheduler, by load (SIGCOMM 2013, HotNets 2012)",
    folder=NAME,
    figures=FIGURES,
    shared_options=OPTIONS,
)
SINGLE = tuple(Experiment(figure.name, figure.title, NAME, (figure,), OPTIONS) for figure in FIGURES)
