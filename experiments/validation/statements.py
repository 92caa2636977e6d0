"""What arithmetic and theory predict for the validation experiments, as statements.

They are exact for simulated hosts, and hold within the limits of a machine's clock and kernel for real ones.
docs/published.md lists them.
"""

from __future__ import annotations

import dataclasses

from analysis import laws
from engines.registry import SIMULATOR
from experiments.validation.metrics import (
    EMPTY_WAY_MS,
    FILL_PCT,
    MATHIS_CONSTANT,
    MATHIS_SLOPE,
    OVER_PADHYE,
    SAWTOOTH_MEAN_PCT,
    SAWTOOTH_ROUNDS,
    SHORTFALL_BYTES,
    UNACCOUNTED_PKTS,
    UNDELIVERED_BYTES,
    WAIT_PKTS,
    WAITS_EXACT_PCT,
    WINDOW_TOP_PKTS,
)
from harness.metrics.metric import Metric
from harness.metrics.published import ABOUT, AT_LEAST, Published, Relation, Source
from harness.options.options import ENGINE

ARITHMETIC = "bytes, packets and seconds by hand (docs/experiments/validation.md)"
MATHIS97 = (
    "Mathis, Semke, Mahdavi and Ott, The Macroscopic Behavior of the TCP Congestion Avoidance Algorithm, "
    "CCR 27(3), 1997"
)
PADHYE98 = (
    "Padhye, Firoiu, Towsley and Kurose, Modeling TCP Throughput: A Simple Model and its Empirical "
    "Validation, SIGCOMM 1998"
)
_PAPERS = {ARITHMETIC: "arithmetic", MATHIS97: "CCR'97", PADHYE98: "SIGCOMM'98"}
Tolerance = tuple[float, str]
EXACT = 0.0, "equality of integers"
SAW_PKTS, SAW_ACCESS, SAW_MBPS = 50, 10, 10.0
SAW_TOP = 2 * SAW_PKTS + 2
"""The packets on the path and in the queue, one that is dropped, and one sent before the loss is known."""
FLOOD, FLOOD_SUBFLOWS = "transfers:2000", 4


def _alone(
    metric: Metric, relation: Relation, value: float, words: str, citation: str = ARITHMETIC, access: int = 1
) -> Published:
    """About a single TCP flow on a dumbbell."""
    row = Published(
        metric, "dumbbell", 1, "against_tcp", 1, relation, value, Source.THEORY, words, _PAPERS[citation],
        citation,
    )  # fmt: skip
    return row.on(access=access)


def _of(row: Published, simulated: Tolerance, real: Tolerance | None) -> tuple[Published, ...]:
    """`row` for simulated hosts, and for real ones if they can be measured."""
    rows = [dataclasses.replace(row.within(*simulated), engine=SIMULATOR)]
    if real is not None:
        rows.append(dataclasses.replace(row.within(*real), engine=ENGINE, words=f"{row.words} (real hosts)"))
    return tuple(rows)


FILL = (
    *_of(
        _alone(SHORTFALL_BYTES, ABOUT, 0, "one flow alone uses every byte of its link, at every rate"),
        EXACT,
        None,
    ),
    *_of(
        _alone(FILL_PCT, ABOUT, 100, "one flow alone gets all that headers leave, 1448 of 1514 bytes"),
        EXACT,
        (0.5, "two clocks delimit the measured window, and connections start late in it"),
    ),
)


def _saw(
    metric: Metric, value: float, words: str, simulated: Tolerance, real: Tolerance
) -> tuple[Published, ...]:
    return _of(_alone(metric, ABOUT, value, words, access=SAW_ACCESS), simulated, real)


SAW = (
    *_saw(
        WINDOW_TOP_PKTS, SAW_TOP,
        f"the window is halved when it fills path and queue, {SAW_TOP} packets",
        (2.0, "packets in flight are whole packets"), (6.0, "bursts of a busy kernel fill the queue early"),
    ),
    *_saw(
        SAWTOOTH_ROUNDS, SAW_TOP / 2,
        "the window grows by one packet per round trip: W / 2 round trips up to W",
        (3.0, "a round trip until the loss is known, one for its repair"), (5.0, "the same, sampled"),
    ),
    *_saw(
        SAWTOOTH_MEAN_PCT, 75, "the mean window over round trips is 3/4 of its top",
        (2.0, "a round trip at full height before the repair, one at half"), (4.0, "the same, sampled"),
    ),
)  # fmt: skip

LOSS = (
    *_of(
        _alone(
            MATHIS_SLOPE, ABOUT, -0.5, "p up to 1 %: goodput is proportional to 1 / sqrt(p)", MATHIS97
        ),
        (0.03, "a few hundred losses per rate"),
        (0.05, "fewer losses, in less time"),
    ),
    *_of(
        _alone(
            MATHIS_CONSTANT, ABOUT, round(laws.MATHIS, 3),
            "p up to 1 %: packets per round trip are sqrt(3/2) / sqrt(p)", MATHIS97,
        ),
        (0.12, "10 %: derived for even spacing; random losses give up to 1.31 (the paper, table 1)"),
        (0.25, "20 %: and windows of real hosts are sampled in less time"),
    ),
    *_of(
        _alone(
            OVER_PADHYE, ABOUT, 1, "p of 3 and 10 %: goodput as the model with timeouts predicts", PADHYE98
        ),
        (0.35, "the model describes Reno without SACK, which has more timeouts"),
        (0.5, "the same, and Linux begins its timeouts later"),
    ),
)  # fmt: skip

WAITS = (
    *_saw(
        WAIT_PKTS, 1, "a ping waits a packet time for each packet it finds queued",
        (0.01, "the packet in transmission is half sent on average"),
        (0.05, "queues are sampled at other instants than pings are sent"),
    ),
    *_saw(
        EMPTY_WAY_MS, 30.37, "without a queue a ping takes three transmissions and three delays, 30.37 ms",
        (0.3, "a quarter of a packet time: the packet in transmission"),
        (1.5, "and the schedulers of two hosts"),
    ),
    *_of(
        _alone(
            WAITS_EXACT_PCT, AT_LEAST, 100,
            "each ping waits for the packets queued before it, to within one packet",
            access=SAW_ACCESS,
        ),
        EXACT,
        None,
    ),
)  # fmt: skip


def _flood(metric: Metric, words: str) -> Published:
    return Published(
        metric, "fat_tree", 4, FLOOD, FLOOD_SUBFLOWS, ABOUT, 0, Source.THEORY, words, _PAPERS[ARITHMETIC],
        ARITHMETIC, *EXACT,
    )  # fmt: skip


UNDER_WAY = 10.0 * 16 * FLOOD_SUBFLOWS
"""Packets of all subflows' first windows: real flows begin shortly before the measured window."""
CONSERVED = (
    *_of(
        _flood(UNACCOUNTED_PKTS, "every switch forwarded or dropped exactly the packets that arrived"),
        EXACT,
        (UNDER_WAY, "first windows may be in flight when counting begins"),
    ),
    *_of(
        _flood(UNDELIVERED_BYTES, "every byte sent was received once, although packets were dropped"),
        EXACT,
        None,
    ),
)
