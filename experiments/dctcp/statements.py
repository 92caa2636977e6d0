"""What was published: SIGCOMM 2010 on the queue and the throughput of DCTCP. docs/published.md lists it."""

from __future__ import annotations

from harness.metrics.metric import Metric
from harness.metrics.metrics import BOTTLENECK_PKTS, BUFFER_PCT, GOODPUT_PCT_MEAN
from harness.metrics.published import A_BOUND, Published, Relation, Source

DCTCP10 = "Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010"


def _dctcp(metric: Metric, bound: tuple[Relation, float], words: str) -> Published:
    """About long flows to one receiver, as in queue.py."""
    return Published(
        metric, "star", 5, "one_to_several:4:servers=1", 1, *bound, Source.RECALLED, words, "DCTCP'10",
        DCTCP10, *A_BOUND, algorithm="dctcp",
        section="Queue and throughput of long flows",
    )  # fmt: skip


DCTCP = (
    _dctcp(GOODPUT_PCT_MEAN, (Relation.AT_LEAST, 25), "the same or better throughput than TCP").within(
        0.5, "TCP can give each of four flows at most a quarter of what one flow gets alone"
    ),
    _dctcp(BUFFER_PCT, (Relation.BELOW, 10), "with 90 % less buffer space"),
    _dctcp(
        BOTTLENECK_PKTS, (Relation.ABOUT, 20), "a queue that is stable near the threshold of 20 packets"
    ).within(7.0, "the model of section 3.3 lets the queue of four flows vary between 13 and 24"),
)
