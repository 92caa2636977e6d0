"""cs244: the figures of the CS244 2013 post by Wilson and O'Connor, which reproduced SIGCOMM 2011 on Mininet.

The post used links of 1 Mb/s, queues of 100 packets and 40 s. Goodput in percent of optimal depends on none
of these, so figures of goodput run at the rate that this machine carries. Queue lengths and delays do depend
on them, so those figures run at 1 Mb/s. Published numbers: docs/published.md.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.cs244_2013.statements import FIGURES
from harness.experiment import Experiment, Figure
from harness.options.options import QUEUE_SAMPLE_MS, Defaults
from harness.options.rates import AutoRate
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.spec import STRICT, SamplingSpec, StackSpec, TopologySpec

FOLDER = "cs244"
POST_MBPS = 1.0
ALL_SUBFLOWS = tuple(range(1, 9))
QUEUES = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS)
WINDOWS = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS, sockets_ms=200)


def _k8(_topology: TopologySpec) -> TopologySpec:
    return TopologySpec("fat_tree", {"k": 8})


TWICE_K8 = AutoRate(overload=2.0, basis=_k8)
"""One rate for all sizes, at which k=8 needs about all that the machine can do: twice the calibrated rate."""

NO_VARIANT = Variant()
FINITE_BUFFER = Variant(simulated=StackSpec(receive_buffer=2172))
"""A receive window, in segments of 1448 bytes: nothing else limits a simulated sender without drops. Linux
lets receive buffers grow to 6 MB (net.ipv4.tcp_rmem, since 3.4) and offers half as a window
(tcp_adv_win_scale 1). The values of the post's kernel are not published."""


def _figure(number: int, title: str, about: str, defaults: Defaults, charts: tuple[str, ...],
            cpu_bound: bool = False, variant: Variant = NO_VARIANT) -> Figure:  # fmt: skip
    return Figure(
        name=f"cs244-fig{number}",
        title=title,
        about=about,
        defaults=defaults,
        topologies=fat_trees,
        points=points_on(fat_trees, (variant,)),
        charts=charts,
        published=FIGURES[number],
        cpu_bound=cpu_bound,
    )


def _one_to_one(*ks: int, subflows: tuple[int, ...] = ALL_SUBFLOWS) -> Defaults:
    return Defaults(ks=ks, workloads=("one_to_one",), subflows=subflows)


def _overloaded(*ks: int, subflows: tuple[int, ...] = ALL_SUBFLOWS) -> Defaults:
    """Return the defaults of a figure that shows what too little CPU time costs.

    The links of the post's emulator ran by real time. The elastic clock would wait for the CPUs instead.
    """
    return replace(_one_to_one(*ks, subflows=subflows), pins={"clock": STRICT})


UNBOUNDED = replace(
    _one_to_one(8, subflows=(1,)), rate_mbps=POST_MBPS, queue_pkts=0, warmup_s=0.0, sampling=QUEUES
)
"""Figures 9 and 10, without warm-up: queues that grow during the whole run have no steady state."""
SAWTEETH = replace(_one_to_one(8, subflows=(1, 8)), rate_mbps=POST_MBPS, sampling=WINDOWS)
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
        replace(_overloaded(4, 6, 8, 10, 12, subflows=(1, 2, 4, 6, 8)), auto=TWICE_K8),
        ("cpu",),
        cpu_bound=True,
    ),
    _figure(
        6,
        "An overloaded machine: k=8",
        "Links have four times the rate that the machine carries at k=8. The CPU limits goodput, not the "
        "transport: goodput stops rising with subflows, and falls where the CPU is saturated.",
        replace(_overloaded(8), auto=AutoRate(overload=4.0)),
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        7,
        "An overloaded machine: k=10 and k=12",
        "250 and 432 hosts at a rate that is slightly too high for 128. Goodput falls with every "
        "further subflow, because each needs CPU time that packet forwarding then lacks.",
        replace(_overloaded(10, 12), auto=TWICE_K8),
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        8,
        "An overloaded machine: k=4 at 1 Gb/s",
        "16 hosts with links that software on a small machine cannot fill. TCP needs less CPU time per "
        "packet and so gets more goodput than MPTCP. The result says nothing about the transports.",
        replace(_overloaded(4), rate_mbps=1000.0),
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
        variant=FINITE_BUFFER,
    ),
    _figure(
        10,
        "Unbounded queues: delay",
        "Round-trip times of the same run: a packet behind hundreds of others at 1 Mb/s waits for seconds. "
        "Goodput does not show this, because links are as full as with short queues.",
        UNBOUNDED,
        ("rtt",),
        variant=FINITE_BUFFER,
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
        Defaults(ks=(4,), workloads=("one_to_several",), subflows=ALL_SUBFLOWS),
        ("throughput", "rank"),
    ),
)

EXPERIMENT = Experiment(
    name="cs244",
    title="All figures of the CS244 2013 post on MPTCP",
    folder=FOLDER,
    figures=FIGURES_OF_THE_POST,
)
SINGLE = tuple(Experiment(f.name, f.title, FOLDER, (f,)) for f in FIGURES_OF_THE_POST)
