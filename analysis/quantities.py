"""The record of a quantity: its name, its unit and its words; and the quantities that charts show.

A metric (harness/metrics/metrics.py) builds on such a record, and a published level holds it, so that tables,
statements and charts use the same words. A quantity that no chart needs is written where its metric is.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Quantity:
    """What a number of a result is.

    `name` is its name in CSV, JSON and run.json; `unit` is empty for ratios and counts; `about` says what it
    is in a sentence, and `words` on an axis, where it differs.
    """

    name: str
    unit: str
    about: str
    words: str = ""

    @property
    def short_unit(self) -> str:
        """The unit where there is little room: `%` for every kind of percentage."""
        return "%" if self.unit.startswith("%") else self.unit

    @property
    def axis(self) -> str:
        """The label of an axis: `mean goodput (% of optimal)`."""
        return self.axis_in(self.unit)

    @property
    def short_axis(self) -> str:
        """The label of an axis with the short unit: `mean goodput (%)`."""
        return self.axis_in(self.short_unit)

    def axis_in(self, unit: str) -> str:
        """Return the label of an axis that shows the quantity in `unit`."""
        return f"{self.words or self.about} ({unit})" if unit else self.words or self.about


GOODPUT_MBPS_MEAN = Quantity("goodput_mbps_mean", "Mb/s", "the mean goodput of the flows", "goodput per flow")
GOODPUT_PCT_MEAN = Quantity(
    "goodput_pct_mean", "% of optimal", "the mean goodput of the flows", "mean goodput"
)
GOODPUT_PCT_MIN = Quantity("goodput_pct_min", "% of optimal", "the slowest flow's goodput")
LINK_PCT_MEAN = Quantity(
    "link_pct_mean", "% of the link rate", "the mean goodput of the flows", "mean goodput"
)
JAIN = Quantity("jain", "", "Jain's index of the flows' goodputs", "Jain's index")
DROPS = Quantity("drops", "", "packets that all ports dropped")
INJECTED = Quantity("injected", "", "packets that all hosts sent")

FCT_MS_MEAN = Quantity("fct_ms_mean", "ms", "the mean completion time of sized flows", "completion time")
SLOWDOWN_MEAN = Quantity(
    "slowdown_mean", "", "the mean completion time over that on an idle path", "mean slowdown"
)
SLOWDOWN_P99 = Quantity(
    "slowdown_p99", "", "the completion time over that on an idle path, 99th percentile", "p99 slowdown"
)
GAIN_BETWEEN_RACKS = Quantity("gain_between_racks", "x TCP", "the mean throughput between racks over TCP's")

BUSY_LINK_PCT = 50.0
UNUSED_LINK_PCT = 5.0
"""A link below this carries ACKs at most: those of one full flow take about 2.4 % of a link."""
LINKS_USED_PCT = Quantity(
    "links_used_pct", "% of capacity", "the mean utilisation of links between switches", "links used"
)
LINKS_BUSY_PCT = Quantity(
    "links_busy_pct", "% of links", f"links between switches more than {BUSY_LINK_PCT:g} % used"
)
LINKS_UNUSED_PCT = Quantity(
    "links_unused_pct", "% of links", f"links between switches less than {UNUSED_LINK_PCT:g} % used"
)
SHARE_OF_BOTTLENECK = Quantity(
    "share_of_bottleneck_pct", "% of the link", "the share of the flow under test beside TCP",
    "its share of both flows' goodput",
)  # fmt: skip
SHARE_ON_CONGESTED = Quantity(
    "share_on_congested_path_pct", "% of its traffic", "what a flow sends over the more congested path",
    "sent over the more congested path",
)  # fmt: skip

QUEUE_PKTS_MAX = Quantity("queue_pkts_max", "packets", "the longest queue of a switch")
ONE_WAY_S_MAX = Quantity("one_way_s_max", "s", "the longest one-way delay of a ping")
EMPTY_WAY_MS = Quantity("empty_way_ms", "ms", "the one-way delay of a ping without a queue")
WINDOW_TOP_PKTS = Quantity("window_top_pkts", "packets", "the window when it is halved")
SUBFLOW_IDLE_PCT = Quantity(
    "subflow_idle_pct", "% of the time", "the time in which a subflow has nothing to send"
)
CONTROLLER_MESSAGES = Quantity("controller_messages", "", "messages between monitors and controller")

CPU_BUSY_PCT = Quantity("cpu_busy_pct", "% of CPU", "busy CPU time", "CPU busy")
CPU_S_PER_GB = Quantity(
    "cpu_s_per_gb", "", "CPU seconds of the machine per 10^9 bytes delivered", "CPU seconds per gigabyte"
)

CALLS_OFFERED_PER_S = Quantity("calls_offered_per_s", "calls/s", "calls offered")
CALLS_COMPLETED_PER_S = Quantity(
    "calls_completed_per_s", "calls/s", "calls that ended as they should", "completed"
)
CALLS_LOST_PCT = Quantity("calls_lost_pct", "% of calls", "calls that did not complete", "calls lost")
SETUP_MS_P50 = Quantity("setup_ms_p50", "ms", "the median setup time of a call", "median setup")
SETUP_MS_P95 = Quantity("setup_ms_p95", "ms", "the setup time of a call, 95th percentile")
PCSCF_FILL_PCT = Quantity(
    "pcscf_fill_pct", "% of the buffer", "the mean fill of the fullest receive buffer of a P-CSCF"
)
SCSCF_FILL_PCT = Quantity(
    "scscf_fill_pct", "% of the buffer", "the mean fill of the fullest receive buffer of an S-CSCF"
)
PCSCF_KNEE_PER_S = Quantity("pcscf_knee_per_s", "calls/s", "the load at which the P-CSCFs are full")
SCSCF_KNEE_PER_S = Quantity("scscf_knee_per_s", "calls/s", "the load at which the S-CSCFs are full")
INSTANCE_S = Quantity("instance_s", "", "the seconds that all instances ran", "instance-seconds")
