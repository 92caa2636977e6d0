"""What SIGCOMM 2011 says about oversubscribed and dual-homed FatTrees and BCube.

The paper gives no digits, so signs are judged. Matrices and loads are our choice: they have their bottleneck
where the paper says it is. docs/published.md lists the statements.
"""

from __future__ import annotations

import functools

from experiments.sigcomm11 import quotes
from experiments.sigcomm11.statements import BY_MATRIX, SIGCOMM11, TWO_NICS, TWO_NICS_FULL
from harness.metrics.metric import Metric
from harness.metrics.metrics import GOODPUT_OVER_SINGLE_HOMED, GOODPUT_OVER_TCP, JAIN_OVER_TCP
from harness.metrics.published import ABOUT, ABOVE, BELOW, SIGN, Published, Relation, Source

NSDI11 = "Wischik et al., Design, implementation and evaluation of congestion control for MPTCP, NSDI 2011"
RECALLED_BAND = (0.1, "the tolerance of recalled values")
TENTH = (0.1, "a tenth: a few flows still meet elsewhere")


def _over_tcp(
    metric: Metric,
    workload: str,
    relation: Relation,
    words: str,
    source: Source,
    tolerance: tuple[float, str] = SIGN,
) -> Published:
    """About 8 subflows on the 4:1 FatTree with 512 hosts."""
    row = Published(
        metric, "fat_tree", 8, workload, 8, relation, 1, source, words, "SIGCOMM'11", SIGCOMM11, *tolerance
    )  # fmt: skip
    row = row.on(oversubscription=4)
    return row.of(BY_MATRIX).stated(quotes.BY_MATRIX) if source is Source.TEXT else row


_gain = functools.partial(_over_tcp, GOODPUT_OVER_TCP)


OVERSUBSCRIBED_BY_LOAD = (
    _gain("connections:1", ABOUT, "no gain where nothing is the bottleneck", Source.TEXT, TENTH),
    _gain("connections:25", ABOVE, "the gain depends on the matrix: flows meet in the core", Source.TEXT),
    _gain("connections:400", ABOUT, "little gain where the core is full whatever the transport",
          Source.RECALLED, RECALLED_BAND),
)  # fmt: skip
OVERSUBSCRIBED_BY_MATRIX = (
    _gain("local:100:pod=0", ABOUT, "no gain where hosts' own links are the bottleneck", Source.TEXT, TENTH),
    _gain("hotspot:32:percent=100", ABOUT, "no gain where receivers' links are the bottleneck",
          Source.TEXT, TENTH),
)  # fmt: skip
NOT_QUITE_FULL = (
    "With four flows per uplink on average, the flows of some uplinks are limited elsewhere, so TCP leaves a "
    "sixth of the uplinks' capacity unused. With two and four connections per host the gain is 1.08 and 1.00 "
    "(docs/experiments/sigcomm11.md)."
)
OVERLOADED = (
    _over_tcp(JAIN_OVER_TCP, "one_to_one", ABOVE, "overloaded: MPTCP shares the core more evenly",
              Source.RECALLED).explained(
        emulated="Equal on 64 hosts at 10 Mb/s: 1.06 and 0.97 times in two runs of one permutation."
    ),
    _gain("one_to_one", ABOUT, "overloaded: the same total goodput", Source.RECALLED, RECALLED_BAND)
    .explained(NOT_QUITE_FULL),
)  # fmt: skip


def _two_nics(
    workload: str, relation: Relation, words: str, tolerance: tuple[float, str] = SIGN
) -> Published:
    """About 8 subflows on the dual-homed FatTree, over 8 on the FatTree with equal ports per host."""
    return Published(
        GOODPUT_OVER_SINGLE_HOMED, "dual_homed_fat_tree", 12, workload, 8, relation, 1, Source.TEXT, words,
        "SIGCOMM'11", SIGCOMM11, *tolerance, quote=quotes.TWO_NICS,
    )  # fmt: skip


ROOM, FULL = TWO_NICS, TWO_NICS_FULL
THINNER = (0.25, "a quarter: its core has three quarters of the FatTree's capacity per host")
DUAL_HOMED_BY_LOAD = (
    *(_two_nics(f"connections:{percent}", ABOVE, ROOM) for percent in (10, 25, 50)),
    _two_nics("connections:400", ABOUT, FULL, THINNER),
)
DUAL_HOMED_BY_MATRIX = (
    _two_nics("local:80:pod=15", ABOVE, ROOM),
    _two_nics("one_to_one", ABOUT, FULL, THINNER),
)


def _bcube(
    metric: Metric, workload: str, relation: Relation, words: str, source: Source = Source.RECALLED
) -> Published:
    """About as many subflows as NICs, over one path, on 125 servers with three NICs."""
    paper, citation = ("SIGCOMM'11", SIGCOMM11) if source is Source.TEXT else ("NSDI'11", NSDI11)
    row = Published(
        metric, "bcube", 5, workload, 3, relation, 1, source, words, paper, citation, *SIGN
    )  # fmt: skip
    return row.on(k=2).stated(quotes.BCUBE if source is Source.TEXT else "")


BCUBE_BY_MATRIX = (
    _bcube(GOODPUT_OVER_TCP, "one_to_one", ABOVE, "BCube: throughput improves", Source.TEXT),
    _bcube(JAIN_OVER_TCP, "one_to_one", ABOVE, "BCube: fairness improves", Source.TEXT),
    _bcube(GOODPUT_OVER_TCP, "connections:30", ABOVE, "sparse traffic: one path uses one NIC of three"),
    _bcube(GOODPUT_OVER_TCP, "neighbours", BELOW, "neighbours: the direct paths alone fill all NICs"),
)
