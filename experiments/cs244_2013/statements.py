"""What was published: the figures of the CS244 2013 post, which reproduced SIGCOMM 2011 on Mininet.

docs/published.md lists every statement. Figure 1 of the post is the paper's own result, and its statements
are the paper's. A tolerance is stated with its reason; where words give a sign alone, the sign is judged.
"""

from __future__ import annotations

import dataclasses

from experiments.sigcomm11.statements import LEVEL, ONE_TO_ONE
from harness.metrics.metric import Metric
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
)
from harness.metrics.published import A_BOUND, ABOUT, ABOVE, AT_LEAST, BELOW, SIGN, Bound, Published, Source

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
FIGURES: dict[int, tuple[Published, ...]] = {
    1: ONE_TO_ONE,
    **{
        number: tuple(row.stated(QUOTES[number], f"figure {number}") for row in rows)
        for number, rows in _OF_THE_POST.items()
    },
}
"""What the post says about each of its figures; figure 1 is the paper's."""
