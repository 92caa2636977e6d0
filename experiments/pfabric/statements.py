"""What the pFabric papers say, as numbers.

Directions are judged by ratios. Tolerances were set before any run. docs/published.md lists all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from experiments.pfabric.metrics import (
    DCTCP_LARGE_OVER_TCP,
    DCTCP_OVER_MINTCP,
    DCTCP_SMALL_P99_OVER_TCP,
    LARGE_OVER_DCTCP,
    LINERATE_OVER_IDEAL,
    MINTCP_OVER_IDEAL,
    SMALL_MEAN_OVER_IDEAL,
    SMALL_P99_OVER_IDEAL,
    TCP_GAP_GROWTH,
    TCP_OVER_MINTCP,
)
from experiments.pfabric.points import DATA_MINING, HIGHEST_LOAD, LEAF_SPINE, WEB_SEARCH, workload
from harness.metrics.metric import Metric
from harness.metrics.published import ABOUT_ONE, ABOVE_ONE, BELOW, BELOW_ONE, Bound, Published, Source

CITATION = "Alizadeh et al., pFabric: Minimal Near-Optimal Datacenter Transport, SIGCOMM 2013"
NEAR = 0.25, "the paper says near ideal and gives no number; a quarter above it is the limit here"
DIRECTION = 0.0, "the direction alone is stated"
ALIKE = 0.25, "alike without a number; a quarter either way is the limit here"
RECALLED_MEAN = 0.05, "recalled with low confidence, from a curve"
RECALLED_P99 = 0.15, "recalled with low confidence, from a curve, for the tail of a shorter run"


_OVERALL = "near ideal, far below both, the gap grows with load"
_DCTCP = "clearly better below 100 kB, most in the 99th percentile; alike for large flows"
SAID: Mapping[Metric, str] = {
    **dict.fromkeys(
        (MINTCP_OVER_IDEAL, LINERATE_OVER_IDEAL, DCTCP_OVER_MINTCP, TCP_OVER_MINTCP, TCP_GAP_GROWTH), _OVERALL
    ),
    **dict.fromkeys((DCTCP_SMALL_P99_OVER_TCP, DCTCP_LARGE_OVER_TCP), _DCTCP),
    LARGE_OVER_DCTCP: "very large web-search flows",
}
"""What the paper says of each metric, in the words of our notes."""


def _row(
    metric: Metric, sizes: str, bound: Bound, words: str, tolerance: tuple[float, str],
    source: Source = Source.TEXT,
) -> Published:  # fmt: skip
    row = Published(
        metric, "leaf_spine", LEAF_SPINE.k, workload(sizes, HIGHEST_LOAD), 1, *bound, source, words,
        "pFabric", CITATION, *tolerance,
    )  # fmt: skip
    shape = {name: LEAF_SPINE.number(name) for name in LEAF_SPINE.params if name != "leaves"}
    said = SAID.get(metric, "") if source is Source.TEXT else ""
    return replace(row.on(**shape), section="evaluation", quote=said)


OVERALL = tuple(
    row
    for sizes in (WEB_SEARCH, DATA_MINING)
    for row in (
        _row(MINTCP_OVER_IDEAL, sizes, ABOUT_ONE, "minTCP + pFabric is near ideal", NEAR),
        _row(LINERATE_OVER_IDEAL, sizes, ABOUT_ONE, "LineRate + pFabric is near ideal", NEAR),
        _row(DCTCP_OVER_MINTCP, sizes, ABOVE_ONE, "pFabric is far below DCTCP", DIRECTION),
        _row(TCP_OVER_MINTCP, sizes, ABOVE_ONE, "pFabric is far below TCP with drop-tail", DIRECTION),
        _row(TCP_GAP_GROWTH, sizes, ABOVE_ONE, "the gap to TCP grows with the load", DIRECTION),
    )
)
BY_SIZE = (
    *(
        row
        for sizes in (WEB_SEARCH, DATA_MINING)
        for row in (
            _row(
                SMALL_MEAN_OVER_IDEAL, sizes, (BELOW, 1.134),
                "small flows are 1.3 to 13.4 % above ideal on average", RECALLED_MEAN, Source.RECALLED,
            ),
            _row(
                SMALL_P99_OVER_IDEAL, sizes, (BELOW, 1.29),
                "and 3.3 to 29 % at the 99th percentile", RECALLED_P99, Source.RECALLED,
            ),
            _row(
                DCTCP_SMALL_P99_OVER_TCP, sizes, BELOW_ONE,
                "DCTCP is better than TCP for small flows, most in the tail", DIRECTION,
            ),
        )
    ),
    _row(
        LARGE_OVER_DCTCP, WEB_SEARCH, ABOVE_ONE,
        "very large web-search flows are the one case in which pFabric is not better", DIRECTION,
    ),
    _row(DCTCP_LARGE_OVER_TCP, WEB_SEARCH, ABOUT_ONE, "DCTCP and TCP are alike for large flows", ALIKE),
)  # fmt: skip
