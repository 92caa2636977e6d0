"""cs244: the figures of the CS244 2013 post by Wilson and O'Connor, which reproduced SIGCOMM 2011 on Mininet.

The post used links of 1 Mb/s, queues of 100 packets and 40 s. Goodput in percent of optimal depends on none
of these, so figures of goodput run at the rate that this machine carries. Queue lengths and delays do depend
on them, so those figures run at 1 Mb/s. Published numbers: docs/published.md.

Figure 1 of the post is the paper's own result, and its statements are the paper's. A tolerance is stated with
its reason; where words give a sign alone, the sign is judged.

cs244-one-to-one: TCP and MPTCP with 2 to 8 subflows on a FatTree under a random permutation of long flows.

The figures of SIGCOMM 2011 (Raiciu et al.) on throughput and rank, which a CS244 2013 post reproduced on
Mininet. Its results have a folder of their own: `run_mptcp.sh` runs it for any k and workload.
"""

from __future__ import annotations

import dataclasses
from dataclasses import replace

from experiments.sigcomm11 import congestion_controls
from experiments.sigcomm11.statements import LEVEL, ONE_TO_ONE
from harness.experiment import Experiment, Figure
from harness.metrics.metrics import (
    CPU_BUSY_PCT,
    CPU_SLOPE,
    GOODPUT_DIP,
    GOODPUT_OVER_TCP,
    GOODPUT_PCT_MEAN,
    GOODPUT_PCT_MIN,
    GOODPUT_SLOPE,
    LINKS_BUSY_PCT,
    LINKS_UNUSED_PCT,
    ONE_WAY_S_MAX,
    QUEUE_GROWTH,
    QUEUE_PKTS_MAX,
    QUEUE_VARIATION_PCT,
    RTT_VARIATION_PCT,
    Metric,
)
from harness.metrics.published import A_BOUND, ABOUT, ABOVE, AT_LEAST, BELOW, SIGN, Bound, Published, Source
from harness.options.options import QUEUE_SAMPLE_MS
from harness.options.rates import AutoRate
from harness.plan.sweeps import fat_trees, points_on
from model.spec import STRICT, SamplingSpec, Settings, StackSpec, TopologySpec

CS244 = "Wilson, O'Connor, MPTCP on Mininet, CS244 2013: reproducing network research"


A_FEW_LOWER = (10.0, "the post is a few points below the paper, and permutations move the mean up to 4")
ONE_FLOW = (10.0, "one flow of 128: it depends on the permutation")
SATURATED = (0.0, "saturated is read as at most 5 % idle")
ERRATIC = (0.0, "erratic is read as a deviation of at least a third of the mean")


def _post(k: int, metric: Metric, subflows: int, bound: Bound, words: str) -> Published:
    """The CS244 2013 post, FatTree, random permutation."""
    return Published(
        metric, "fat_tree", k, "one_to_one", subflows, *bound, Source.TEXT, words, "CS244'13", CS244,
        *A_BOUND,
    )  # fmt: skip


def _several(metric: Metric, subflows: int, bound: Bound, words: str) -> Published:
    """The post's figure 13."""
    return dataclasses.replace(_post(4, metric, subflows, bound, words), workload="one_to_several:4")


def _trend(k: int) -> tuple[Published, ...]:
    """Figures 2 and 3: trend and level of the paper, a few points lower; rank curves coincide."""
    return (
        _post(k, GOODPUT_SLOPE, 8, (ABOVE, 0), "goodput rises with subflows as in the paper").within(*SIGN),
        _post(k, GOODPUT_PCT_MEAN, 1, (BELOW, 50), "TCP: the paper's level, a few points lower").within(
            *LEVEL
        ),
        _post(
            k, GOODPUT_PCT_MEAN, 8, (ABOUT, 95), "8 subflows: the paper's level, a few points lower"
        ).within(*A_FEW_LOWER),
        _post(k, GOODPUT_PCT_MIN, 8, (AT_LEAST, 70), "rank curves coincide with the paper's").within(
            *ONE_FLOW
        ),
    )


_LIKE_THE_PAPER = "trend and level of the paper, a few points lower; rank curves coincide"
_SATURATED = "dip at 7 subflows; k=10 falls with subflows; k=4 at 1 Gb/s: TCP beats MPTCP"
_QUEUES = "queues grow all run, worst about 450 packets, > 5 s one way"
_VARIANCE = "erratic, large variance"
QUOTES: dict[int, str] = {
    2: _LIKE_THE_PAPER,
    3: _LIKE_THE_PAPER,
    4: "8 subflows: more than 95 % of links above 50 %; TCP: about a third of the links unused",
    5: "saturates at k=10, 12 (and k=8 with 7 subflows); rises with subflows",
    6: _SATURATED,
    7: _SATURATED,
    8: _SATURATED,
    9: _QUEUES,
    10: _QUEUES,
    11: _VARIANCE,
    12: _VARIANCE,
    13: "optimum 25 % a flow; TCP about 19 %; 6 subflows moderately better",
}
"""The post's words on its figures as our notes have them. The notes take 6 to 8, and 9 and 10, together."""
_OF_THE_POST: dict[int, tuple[Published, ...]] = {
    2: _trend(6),
    3: _trend(8),
    4: (
        _post(8, LINKS_BUSY_PCT, 8, (ABOVE, 95), "8 subflows: more than 95 % of links above 50 %"),
        _post(8, LINKS_UNUSED_PCT, 1, (ABOUT, 33), "TCP: about a third of the links unused").within(
            8.0, '"a third" is approximate, and permutations differ'
        ),
    ),
    5: (
        _post(6, CPU_SLOPE, 8, (ABOVE, 0), "CPU use rises with subflows").within(*SIGN),
        *(
            _post(k, CPU_BUSY_PCT, 8, (AT_LEAST, 95), f"the CPU saturates at k={k}")
            .within(*SATURATED)
            .of_saturated()
            for k in (10, 12)
        ),
    ),
    6: (
        _post(8, GOODPUT_DIP, 7, (BELOW, 0), "goodput dips at 7 subflows, where the CPU saturates")
        .within(*SIGN)
        .of_saturated(),
    ),
    7: tuple(
        _post(k, GOODPUT_SLOPE, 8, (BELOW, 0), f"k={k}: goodput falls with subflows")
        .within(*SIGN)
        .of_saturated()
        for k in (10, 12)
    ),
    8: (_post(4, GOODPUT_OVER_TCP, 8, (BELOW, 1), "at 1 Gb/s TCP beats MPTCP").within(*SIGN).of_saturated(),),
    9: (
        _post(8, QUEUE_GROWTH, 1, (ABOVE, 1), "unbounded queues grow all run").within(*SIGN),
        _post(8, QUEUE_PKTS_MAX, 1, (ABOUT, 450), "the worst queue has about 450 packets").within(
            225.0, "half: growth ends with the socket buffers, which are not those of 2013"
        ),
    ),
    10: (_post(8, ONE_WAY_S_MAX, 1, (ABOVE, 5), "delays of more than 5 s one way"),),
    11: tuple(
        _post(8, RTT_VARIATION_PCT, n, (AT_LEAST, 33), f"{who}: erratic, large variance").within(*ERRATIC)
        for n, who in ((1, "TCP"), (8, "8 subflows"))
    ),
    12: tuple(
        _post(8, QUEUE_VARIATION_PCT, n, (AT_LEAST, 33), f"{who}: erratic, large variance").within(*ERRATIC)
        for n, who in ((1, "TCP"), (8, "8 subflows"))
    ),
    13: (
        _several(GOODPUT_PCT_MEAN, 1, (ABOUT, 19), "TCP gets about 19 %").within(
            3.0, "read off bars, and permutations differ"
        ),
        _several(GOODPUT_PCT_MEAN, 6, (BELOW, 25), "25 % per flow is optimal").within(0.5, "rounding"),
        _several(GOODPUT_OVER_TCP, 6, (ABOVE, 1), "6 subflows are moderately better").within(*SIGN),
    ),
}
FIGURE_STATEMENTS: dict[int, tuple[Published, ...]] = {
    1: ONE_TO_ONE,
    **{
        number: tuple(row.stated(QUOTES[number], f"figure {number}") for row in rows)
        for number, rows in _OF_THE_POST.items()
    },
}
"""What the post says about each of its figures; figure 1 is the paper's."""


FOLDER = "cs244"
POST_MBPS = 1.0
ALL_SUBFLOWS = tuple(range(1, 9))
QUEUES = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS)
WINDOWS = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS, sockets_ms=200)


def _k8(_topology: TopologySpec) -> TopologySpec:
    return TopologySpec("fat_tree", {"k": 8})


TWICE_K8 = AutoRate(overload=2.0, basis=_k8)
"""One rate for all sizes, at which k=8 needs about all that the machine can do: twice the calibrated rate."""

AS_CHOSEN: Settings = {}
FINITE_BUFFER: Settings = {"stack": StackSpec(receive_buffer=2172)}
"""A receive window, in segments of 1448 bytes: nothing else limits a simulated sender without drops. Linux
lets receive buffers grow to 6 MB (net.ipv4.tcp_rmem, since 3.4) and offers half as a window
(tcp_adv_win_scale 1). The values of the post's kernel are not published."""


def _figure(number: int, title: str, about: str, defaults: Settings, charts: tuple[str, ...],
            cpu_bound: bool = False, curve: Settings = AS_CHOSEN) -> Figure:  # fmt: skip
    return Figure(
        name=f"cs244-fig{number}",
        title=title,
        about=about,
        defaults=defaults,
        topologies=fat_trees,
        points=points_on(fat_trees, (curve,)),
        charts=charts,
        published=FIGURE_STATEMENTS[number],
        cpu_bound=cpu_bound,
    )


def _one_to_one(*ks: int, subflows: tuple[int, ...] = ALL_SUBFLOWS) -> Settings:
    return {"k": ks, "workload": ("one_to_one",), "transport.subflows": subflows}


def _overloaded(*ks: int, subflows: tuple[int, ...] = ALL_SUBFLOWS) -> Settings:
    """Return the defaults of a figure that shows what too little CPU time costs.

    The links of the post's emulator ran by real time. The elastic clock would wait for the CPUs instead.
    """
    return {**_one_to_one(*ks, subflows=subflows), "clock": STRICT}


UNBOUNDED: Settings = {
    **_one_to_one(8, subflows=(1,)),
    "link.rate_mbps": POST_MBPS, "warmup_s": 0.0,
    "link.queue_pkts": 0, "sampling": QUEUES,
}  # fmt: skip
"""Figures 9 and 10, without warm-up: queues that grow during the whole run have no steady state."""
SAWTEETH: Settings = {
    **_one_to_one(8, subflows=(1, 8)),
    "link.rate_mbps": POST_MBPS,
    "sampling": WINDOWS,
}  # fmt: skip
"""Figures 11 and 12."""

FIGURES_OF_THE_POST = (
    _figure(
        1,
        "The paper's result: goodput at k=8",
        "The SIGCOMM 2011 result that the post set out to reproduce, on 128 hosts. TCP leaves half of the "
        "network unused because flows collide on paths. MPTCP uses nearly all of it with 8 subflows.",
        _one_to_one(8),
        ("throughput", "rank"),
    ),
    _figure(
        2,
        "Goodput and rank of flows, k=6",
        "The same on 54 hosts. Goodput rises with the number of subflows as on the larger tree, and so does "
        "the goodput of the slowest flows.",
        _one_to_one(6),
        ("throughput", "rank"),
    ),
    _figure(
        3,
        "Goodput and rank of flows, k=8",
        "The post's own measurement at the paper's size, 128 hosts. It found the paper's trend at a level "
        "that is a few points lower.",
        _one_to_one(8),
        ("throughput", "rank"),
    ),
    _figure(
        4,
        "Rank of link utilisation, k=8",
        "Utilisation of every link between switches, in rising order. With TCP many links are idle while "
        "others are full. With 8 subflows per flow nearly all links carry traffic.",
        _one_to_one(8, subflows=(1, 8)),
        ("link_utilisation",),
    ),
    _figure(
        5,
        "CPU utilisation by network size and subflows",
        "CPU utilisation of the machine for trees of 16 to 432 hosts at one link rate, at which 128 hosts "
        "need about all of it. Beyond that size the CPU is saturated, and every further subflow costs more.",
        {**_overloaded(4, 6, 8, 10, 12, subflows=(1, 2, 4, 6, 8)), "auto": TWICE_K8},
        ("cpu",),
        cpu_bound=True,
    ),
    _figure(
        6,
        "An overloaded machine: k=8",
        "Links have four times the rate that the machine carries at k=8. The CPU limits goodput, not the "
        "transport: goodput stops rising with subflows, and falls where the CPU is saturated.",
        {**_overloaded(8), "auto": AutoRate(overload=4.0)},
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        7,
        "An overloaded machine: k=10 and k=12",
        "250 and 432 hosts at a rate that is slightly too high for 128. Goodput falls with every "
        "further subflow, because each needs CPU time that packet forwarding then lacks.",
        {**_overloaded(10, 12), "auto": TWICE_K8},
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        8,
        "An overloaded machine: k=4 at 1 Gb/s",
        "16 hosts with links that software on a small machine cannot fill. TCP needs less CPU time per "
        "packet and so gets more goodput than MPTCP. The result says nothing about the transports.",
        {**_overloaded(4), "link.rate_mbps": 1000.0},
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        9,
        "Unbounded queues: length over time",
        "TCP on links of 1 Mb/s whose queues never drop packets. Without losses senders do not slow down, so "
        "queues of congested links grow during the whole run.",
        UNBOUNDED,
        ("queues", "queue_cdf"),
        curve=FINITE_BUFFER,
    ),
    _figure(
        10,
        "Unbounded queues: delay",
        "Round-trip times of the same run: a packet behind hundreds of others at 1 Mb/s waits for seconds. "
        "Goodput does not show this, because links are as full as with short queues.",
        UNBOUNDED,
        ("rtt",),
        curve=FINITE_BUFFER,
    ),
    _figure(
        11,
        "Round-trip times with 100-packet queues",
        "Round-trip time of every flow with its deviation, under TCP and MPTCP. Drop-tail queues fill and "
        "drain all the time, so round trips are long on congested paths and vary on all.",
        SAWTEETH,
        ("rtt", "cwnd"),
    ),
    _figure(
        12,
        "Queue lengths with 100-packet queues",
        "The queues that cause these round-trip times, sampled ten times per second. They fill to their "
        "limit, drop a packet, and drain when the sender halves its window.",
        SAWTEETH,
        ("queues", "queue_cdf"),
    ),
    _figure(
        13,
        "One to several: four clients per server, k=4",
        "Every host receives from four random clients, so its own link limits each flow to a quarter of the "
        "rate. Additional paths bring less than in a permutation, and so MPTCP gains less.",
        {"k": (4,), "workload": ("one_to_several",), "transport.subflows": ALL_SUBFLOWS},
        ("throughput", "rank"),
    ),
)

POST = Experiment(
    name="cs244",
    title="All figures of the CS244 2013 post on MPTCP",
    folder=FOLDER,
    figures=FIGURES_OF_THE_POST,
)
SINGLE = tuple(figure.alone(FOLDER) for figure in FIGURES_OF_THE_POST)


ONE_TO_ONE_NAME = "cs244-one-to-one"
CS244_ONE_TO_ONE = Experiment(
    name=ONE_TO_ONE_NAME,
    title="TCP and MPTCP on a FatTree, random permutation (SIGCOMM 2011; CS244 2013)",
    folder=ONE_TO_ONE_NAME,
    figures=(replace(congestion_controls.PERMUTATION, name=ONE_TO_ONE_NAME),),
)
