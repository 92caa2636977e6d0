"""cs244: the figures of Wilson and O'Connor's CS244 2013 post, which reproduced SIGCOMM 2011 on Mininet.

Theirs had 1 Mb/s links, 100-packet queues and 40 s. Goodput in percent of optimal depends on none of these,
so its figures run at what this machine carries; queues and delays do, so theirs are at 1 Mb/s.
What they measured: docs/published.md.
"""

from __future__ import annotations

from dataclasses import replace

from experiments.sigcomm11.statements import FIGURES
from harness.experiment import Experiment, Figure
from harness.plan.options import QUEUE_SAMPLE_MS, Defaults
from harness.plan.rate import Auto
from harness.plan.sweeps import Variant, fat_trees, points_on
from model.spec import SamplingSpec, StackSpec, TopologySpec

FOLDER = "cs244"
POST_MBPS = 1.0
ALL_SUBFLOWS = tuple(range(1, 9))
QUEUES = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS)
WINDOWS = SamplingSpec(queues_ms=QUEUE_SAMPLE_MS, sockets_ms=200)


def _k8(_topology: TopologySpec) -> TopologySpec:
    return TopologySpec("fat_tree", {"k": 8})


TWICE_K8 = Auto(overload=2.0, basis=_k8)
"""One rate for all sizes, of which k=8 is about as much as the machine can do."""

AS_ASKED = Variant()
FINITE_BUFFER = Variant(simulated=StackSpec(receive_buffer=2172))
"""Nothing else stops a simulated sender whose packets are never dropped: the most that Linux's receive
buffers grow to (net.ipv4.tcp_rmem, 6 MB since 3.4), half of which it offers as a window (tcp_adv_win_scale of
1), in segments of 1448 bytes. What the post's kernel had is not published."""


def _figure(number: int, title: str, about: str, defaults: Defaults, charts: tuple[str, ...],
            cpu_bound: bool = False, variant: Variant = AS_ASKED) -> Figure:  # fmt: skip
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


UNBOUNDED = replace(
    _one_to_one(8, subflows=(1,)), rate_mbps=POST_MBPS, queue_pkts=0, warmup_s=0.0, sampling=QUEUES
)
"""Figures 9 and 10; from the first packet, since what grows all run has no steady state to wait for."""
SAWTEETH = replace(_one_to_one(8, subflows=(1, 8)), rate_mbps=POST_MBPS, sampling=WINDOWS)
"""Figures 11 and 12."""

FIGURES_OF_THE_POST = (
    _figure(
        1,
        "What the paper claims: goodput at k=8",
        "The SIGCOMM 2011 result that the post sets out to reproduce, on 128 hosts. TCP leaves half of the "
        "network unused because flows collide on paths; MPTCP needs up to 8 subflows to use nearly all of "
        "it.",
        _one_to_one(8),
        ("throughput", "rank"),
    ),
    _figure(
        2,
        "Goodput and rank of flows, k=6",
        "The same on 54 hosts. Goodput rises with the number of subflows as it does on the larger tree, and "
        "so does the share of the slowest flows.",
        _one_to_one(6),
        ("throughput", "rank"),
    ),
    _figure(
        3,
        "Goodput and rank of flows, k=8",
        "The post's own measurement at the paper's size, 128 hosts. It found the paper's trend and level, a "
        "few points lower.",
        _one_to_one(8),
        ("throughput", "rank"),
    ),
    _figure(
        4,
        "Rank of link utilisation, k=8",
        "Every link between switches, from the least to the most used. With TCP many lie idle while others "
        "are full; 8 subflows a flow spread the load over nearly all of them.",
        _one_to_one(8, subflows=(1, 8)),
        ("link_utilisation",),
    ),
    _figure(
        5,
        "CPU against size and subflows",
        "How busy the machine is with trees of 16 to 432 hosts whose links all have one rate, chosen so "
        "that it has enough to do with 128. Beyond that it is saturated, and every further subflow costs "
        "more.",
        replace(_one_to_one(4, 6, 8, 10, 12, subflows=(1, 2, 4, 6, 8)), auto=TWICE_K8),
        ("cpu",),
        cpu_bound=True,
    ),
    _figure(
        6,
        "Too much for the machine: k=8",
        "Four times the rate the machine carries at k=8. What is measured is the CPU and not the transport: "
        "goodput stops rising with subflows, and dips where the machine runs out.",
        replace(_one_to_one(8), auto=Auto(overload=4.0)),
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        7,
        "Too much for the machine: k=10 and k=12",
        "250 and 432 hosts at a rate that is just too much for 128. Goodput falls with every subflow, "
        "because each costs CPU time that the packets then lack.",
        replace(_one_to_one(10, 12), auto=TWICE_K8),
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        8,
        "Too much for the machine: k=4 at 1 Gb/s",
        "16 hosts whose links nobody can fill by software on a small machine. TCP, which is cheaper a "
        "packet, then beats MPTCP, though there is nothing wrong with either.",
        replace(_one_to_one(4), rate_mbps=1000.0),
        ("throughput", "cpu"),
        cpu_bound=True,
    ),
    _figure(
        9,
        "Unbounded queues: length over time",
        "TCP on links of 1 Mb/s whose queues never drop. Without losses nothing tells a sender to slow down, "
        "so queues on crowded links grow as long as the run lasts.",
        UNBOUNDED,
        ("queues", "queue_cdf"),
        variant=FINITE_BUFFER,
    ),
    _figure(
        10,
        "Unbounded queues: delay",
        "The same run as its flows feel it: what waits in a queue of hundreds of packets at 1 Mb/s waits "
        "for seconds. Goodput does not show it, since links are as full as before.",
        UNBOUNDED,
        ("rtt",),
        variant=FINITE_BUFFER,
    ),
    _figure(
        11,
        "Round-trip times with 100-packet queues",
        "Round-trip time of every flow with its deviation, under TCP and MPTCP. Drop-tail queues fill and "
        "empty all the time, so it is long on crowded paths and erratic on all.",
        SAWTEETH,
        ("rtt", "cwnd"),
    ),
    _figure(
        12,
        "Queue lengths with 100-packet queues",
        "The queues behind those round-trip times, ten samples a second. They run into their limit, lose a "
        "packet, and drain while a sender halves its window.",
        SAWTEETH,
        ("queues", "queue_cdf"),
    ),
    _figure(
        13,
        "One to several: four clients a server, k=4",
        "Every host receives from four random clients, so its own link leaves each a quarter at best. There "
        "is less for more paths to gain than in a permutation, and MPTCP gains less.",
        Defaults(ks=(4,), workloads=("one_to_several",), subflows=ALL_SUBFLOWS),
        ("throughput", "rank"),
    ),
)

EXPERIMENT = Experiment(
    name="cs244",
    title="every figure of the CS244 2013 post",
    folder=FOLDER,
    figures=FIGURES_OF_THE_POST,
)
SINGLE = tuple(Experiment(f.name, f.title, FOLDER, (f,)) for f in FIGURES_OF_THE_POST)
