"""The metrics of every experiment: those with a column in a table, and those that several papers state.

A paper's own metrics are in its package. A metric in TABLES gets its columns by its own `shown`.
"""

from __future__ import annotations

from harness.claims import readings
from harness.claims.measures import across, dip, over_tcp, over_topology, slope
from harness.claims.metric import Metric, ShownIn
from harness.results.across import alike
from harness.results.summary import Judged

BUSY_LINK_PCT = 50.0
UNUSED_LINK_PCT = 5.0
"""A link below this carries ACKs at most: those of one full flow take about 2.4 % of a link."""

_EVERYWHERE = ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT | ShownIn.COMPARE
_TRANSFERS = ShownIn.SUMMARY | ShownIn.TRANSFERS


def _jain(point: Judged) -> float | None:
    return point.jain


GOODPUT_MBPS_MEAN = Metric(
    "goodput_mbps_mean", "Mb/s", "the mean goodput of the flows", readings.goodput_mbps,
    head="mean goodput", decimals=3, shown=ShownIn.SUMMARY,
)  # fmt: skip
GOODPUT_PCT_MEAN = Metric(
    "goodput_pct_mean", "% of optimal", "the mean goodput of the flows", readings.goodput_pct("mean"),
    head="mean", shown=ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT,
)  # fmt: skip
GOODPUT_PCT_MIN = Metric(
    "goodput_pct_min", "% of optimal", "the slowest flow's goodput", readings.goodput_pct("minimum"),
    head="min", shown=_EVERYWHERE,
)  # fmt: skip
GOODPUT_PCT_MEDIAN = Metric(
    "goodput_pct_median", "% of optimal", "the median flow's goodput", readings.goodput_pct("median"),
    head="median", shown=ShownIn.SUMMARY | ShownIn.RUN | ShownIn.REPORT,
)  # fmt: skip
JAIN = Metric(
    "jain", "", "Jain's index of the flows' goodputs", _jain,
    head="Jain", decimals=3, shown=_EVERYWHERE,
)  # fmt: skip
CPU_BUSY_PCT = Metric(
    "cpu_busy_pct", "% of CPU", "busy CPU time", readings.recorded("cpu_busy_pct"),
    head="CPU", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS,
)  # fmt: skip
FCT_MS_MEAN = Metric(
    "fct_ms_mean", "ms", "the mean completion time of sized flows",
    readings.completion_ms("mean"), of_completed=True, head="mean FCT", shown=_TRANSFERS,
)  # fmt: skip

CALLS_OFFERED_PER_S = Metric(
    "calls_offered_per_s", "calls/s", "calls offered", readings.recorded("calls_offered_per_s"),
    head="offered", shown=_EVERYWHERE,
)  # fmt: skip
CALLS_COMPLETED_PER_S = Metric(
    "calls_completed_per_s", "calls/s", "calls that ended as they should",
    readings.recorded("calls_completed_per_s"), head="completed", shown=_EVERYWHERE,
)  # fmt: skip
SETUP_MS_P50 = Metric(
    "setup_ms_p50", "ms", "the median setup time of a call", readings.recorded("setup_ms_p50"),
    head="setup p50", shown=_EVERYWHERE,
)  # fmt: skip
SETUP_MS_P95 = Metric(
    "setup_ms_p95", "ms", "the setup time of a call, 95th percentile", readings.recorded("setup_ms_p95"),
    head="setup p95", shown=_EVERYWHERE,
)  # fmt: skip
PCSCF_FILL_PCT = Metric(
    "pcscf_fill_pct", "% of the buffer", "the mean fill of the fullest receive buffer of a P-CSCF",
    readings.recorded("pcscf_fill_pct"), head="P queue", decimals=0, shown=_EVERYWHERE,
)  # fmt: skip
SCSCF_FILL_PCT = Metric(
    "scscf_fill_pct", "% of the buffer", "the mean fill of the fullest receive buffer of an S-CSCF",
    readings.recorded("scscf_fill_pct"), head="S queue", decimals=0, shown=_EVERYWHERE,
)  # fmt: skip

TABLES = (
    GOODPUT_MBPS_MEAN,
    Metric(
        "reference_mbps", "Mb/s", "the goodput of the baseline", lambda p: p.reference_mbps,
        head="baseline", decimals=3, shown=ShownIn.SUMMARY,
    ),
    GOODPUT_PCT_MEAN,
    GOODPUT_PCT_MIN,
    GOODPUT_PCT_MEDIAN,
    Metric(
        "goodput_pct_max", "% of optimal", "the fastest flow's goodput", readings.goodput_pct("maximum"),
        head="max", shown=ShownIn.SUMMARY,
    ),
    JAIN,
    Metric(
        "retransmits", "", "segments that all flows retransmitted", lambda p: p.retransmits,
        head="retransmits", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS,
    ),
    Metric(
        "drops", "", "packets that all ports dropped", lambda p: p.drops,
        head="drops", decimals=0, shown=ShownIn.SUMMARY | ShownIn.REPORT | ShownIn.COMPARE,
    ),
    CPU_BUSY_PCT,
    Metric(
        "late_p99_us", "\N{MICRO SIGN}s", "how late frames were delivered, 99th percentile",
        readings.recorded("late_p99_us"), head="late p99", decimals=0, shown=_EVERYWHERE | ShownIn.TRANSFERS,
    ),
    Metric(
        "flows_started", "", "sized flows that started in the measured window", readings.flows_started,
        head="started", decimals=0, shown=ShownIn.SUMMARY,
    ),
    Metric(
        "flows_completed", "", "sized flows that completed", readings.flows_completed,
        head="completed", decimals=0, shown=_TRANSFERS,
    ),
    FCT_MS_MEAN,
    Metric(
        "fct_ms_median", "ms", "the median completion time of sized flows",
        readings.completion_ms("median"), head="median FCT", shown=ShownIn.SUMMARY,
    ),
    Metric(
        "fct_ms_p99", "ms", "the completion time of sized flows, 99th percentile",
        readings.completion_ms("p99"), head="p99 FCT", shown=_TRANSFERS,
    ),
    Metric(
        "slowdown_mean", "", "the mean completion time over that on an idle path",
        readings.slowdown("mean"), head="mean slowdown", shown=_TRANSFERS,
    ),
    Metric(
        "slowdown_p99", "", "the completion time over that on an idle path, 99th percentile",
        readings.slowdown("p99"), head="p99 slowdown", shown=ShownIn.SUMMARY,
    ),
    CALLS_OFFERED_PER_S,
    CALLS_COMPLETED_PER_S,
    SETUP_MS_P50,
    SETUP_MS_P95,
    PCSCF_FILL_PCT,
    SCSCF_FILL_PCT,
)  # fmt: skip
"""In the order in which tables show them (summary.csv: harness/results/columns.py)."""

LINK_PCT_MEAN = Metric(
    "link_pct_mean", "% of the link rate", "the mean goodput of the flows", readings.goodput_of_link_pct
)
JAIN_OVER_TCP = Metric(
    "jain_over_tcp", "x TCP", "Jain's index over TCP's", over=over_tcp(_jain), on_any_size=True
)
GOODPUT_OVER_TCP = Metric(
    "goodput_over_tcp", "x TCP", "the mean goodput over TCP's",
    over=over_tcp(readings.goodput_mbps), on_any_size=True,
)  # fmt: skip
GOODPUT_SLOPE = Metric(
    "goodput_slope", "% of a link per subflow", "how goodput grows with subflows",
    over=slope(readings.goodput_of_link_pct), on_any_size=True,
)  # fmt: skip
GOODPUT_DIP = Metric(
    "goodput_dip", "% of a link", "the goodput minus that at one subflow fewer and one more",
    over=dip(readings.goodput_of_link_pct),
)  # fmt: skip
GOODPUT_OVER_SINGLE_HOMED = Metric(
    "goodput_over_single_homed", "x FatTree", "the mean goodput over the FatTree's",
    over=over_topology("fat_tree", readings.goodput_mbps), on_any_size=True,
)  # fmt: skip
FCT_VARIATION_PCT = Metric(
    "fct_variation_pct", "% of mean", "the standard deviation of sized flows' completion times",
    readings.completion_ms("deviation_pct"), of_completed=True,
)  # fmt: skip
LINKS_USED_PCT = Metric(
    "links_used_pct", "% of capacity", "the mean utilisation of links between switches",
    readings.links_used_pct,
)  # fmt: skip
LINKS_BUSY_PCT = Metric(
    "links_busy_pct", "% of links", f"links between switches more than {BUSY_LINK_PCT:g} % used",
    readings.share_of_links_pct(lambda port: port.utilisation_pct > BUSY_LINK_PCT),
)  # fmt: skip
LINKS_UNUSED_PCT = Metric(
    "links_unused_pct", "% of links", f"links between switches less than {UNUSED_LINK_PCT:g} % used",
    readings.share_of_links_pct(lambda port: port.utilisation_pct < UNUSED_LINK_PCT),
)  # fmt: skip
ACROSS_MEAN = Metric(
    "across_mean", "points of optimal", "the simulated mean minus the emulated one",
    over=across(lambda pair: pair.mean_difference), setting=alike,
)  # fmt: skip
ACROSS_SPEARMAN = Metric(
    "across_spearman", "", "the rank correlation of emulated and simulated flows",
    over=across(lambda pair: pair.rank_correlation), setting=alike,
)  # fmt: skip
CPU_SLOPE = Metric(
    "cpu_slope", "% of CPU per subflow", "how CPU use grows with subflows",
    over=slope(readings.recorded("cpu_busy_pct")),
)  # fmt: skip
QUEUE_PKTS_MAX = Metric(
    "queue_pkts_max", "packets", "the longest queue of a switch", readings.longest_queue_pkts
)
BOTTLENECK_PKTS = Metric(
    "bottleneck_pkts", "packets", "the median queue of the busiest port", readings.bottleneck_queue_pkts(50)
)
BUFFER_PCT = Metric(
    "buffer_pct", "% of the buffer", "the busiest port's queue length, 99th percentile over time",
    readings.buffer_needed_pct,
)  # fmt: skip
QUEUE_GROWTH = Metric(
    "queue_growth", "x", "packets queued late in the run over those early in it", readings.queue_growth
)
QUEUE_VARIATION_PCT = Metric(
    "queue_variation_pct", "% of mean", "the deviation of queue lengths", readings.queue_variation_pct
)
ONE_WAY_S_MAX = Metric(
    "one_way_s_max", "s", "the longest one-way delay of a ping", readings.longest_one_way_s
)
RTT_VARIATION_PCT = Metric(
    "rtt_variation_pct", "% of mean", "the deviation of round-trip times", readings.rtt_variation_pct
)
