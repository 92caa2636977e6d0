"""All charts by name. To add one, write its function in a module of plots/charts/ and add a record here.

Importing this module does not import matplotlib, which takes half a second; drawing a chart does.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.results.point_results import PointResult
from plots.data import Inputs


@dataclass(frozen=True)
class Chart:
    """A chart: the function `name` in `module` of `plots/charts/` draws it into files whose names begin so.
    `title` says what it shows, `reading` says in two sentences how to read it."""

    name: str
    module: str
    title: str
    reading: str
    function: Callable[[Sequence[PointResult]], Any] | None = field(default=None, compare=False)
    """Of a user's file: makes one matplotlib.figure.Figure of all points except the baselines and the failed
    ones, or None where there is nothing to show."""

    def draw(self, inputs: Inputs) -> list[Path]:
        """Draw the points as SVG, PDF and PNG; return the files written.

        The list is empty where there is nothing to show. Raises StoreError when the folder cannot be written.
        """
        if self.function is None:
            module = importlib.import_module(f"plots.charts.{self.module}")
            drawn: Callable[[Inputs], list[Path]] = getattr(module, self.name)
            return drawn(dataclasses.replace(inputs, chart=self.name, title=self.title))
        from plots.shared import saving, style  # noqa: PLC0415

        shown = [point for point in inputs.points if not point.is_baseline and not point.failed]
        with style.look():
            figure = self.function(shown) if shown else None
            return saving.save(figure, inputs.out, self.name) if figure is not None else []


# fmt: off
_RECORDS = (
    Chart("throughput", "throughput", "Mean goodput by transport",
          "Each bar (or dot, one per seed) is the mean goodput of all flows under one transport, in "
          "percent of the goodput of one flow alone on the same links. A dashed line is the published "
          "value; a hatched or hollow mark is a suspect point, which the machine could not carry."),
    Chart("rank", "throughput", "Goodput of every flow",
          "Each curve is one transport; its flows are sorted from the slowest to the fastest. A flat, high "
          "curve is a fair and well-used network; a curve that starts low has flows that share a link "
          "while other links are idle."),
    Chart("by_congestion_control", "congestion_controls", "Goodput by congestion control",
          "Above, each algorithm has one row: the mean goodput of all flows, the slowest flow as a "
          "diamond, and the segments retransmitted per 100 delivered. Below, each curve is the goodput of "
          "every flow under one algorithm, from the slowest to the fastest."),
    Chart("link_utilisation", "throughput", "Utilisation of every link",
          "The links between switches, each direction separately, are sorted from the least to the most "
          "used; the small charts show each layer and the links of the hosts. A curve that lies low on the "
          "left has idle links while flows queue elsewhere."),
    Chart("windows_beside", "ccp_agents", "Windows over time, side by side",
          "Each row is the congestion window of one flow under one congestion control, on the same scale. "
          "Where curves have the same shape and height, the controls behave the same."),
    Chart("by_agent_delay", "ccp_agents", "Goodput and drops by the agent's delay",
          "Each curve is a congestion control in an agent; the dotted line has no agent. A flat curve does "
          "not suffer from late answers; rising drops show reductions that came too late."),
    Chart("by_report_interval", "ccp_agents",
          "Last completion of an incast by the agent's reporting interval",
          "Each small chart is one link rate, each curve one flow size: when the last flow is complete, "
          "over the same without an agent. At 1 the agent costs nothing; a rising curve suffers from rare "
          "reports."),
    Chart("by_link", "ccp_agents", "Goodput and time in queues by kind of link",
          "Each small chart is one kind of link, each mark one congestion control: filled in an agent, "
          "hollow in the kernel. Where a pair of marks lies together, both behave the same; up and left is "
          "better."),
    Chart("subflows_beside", "demand_over_time", "Real hosts beside simulated ones, with subflows on demand",
          "Each mark above is one flow, real against simulated: marks on the diagonal are equal. Below are "
          "the subflows of some flows over time, real and simulated."),
    Chart("rtt", "windows_and_rtt", "Round-trip time of every flow",
          "Each row is one transport, its flows sorted by mean round-trip time: the line with its band is "
          "the sender's estimate and one standard deviation, dots with whiskers are pings along the same "
          "paths. What exceeds the few milliseconds of an idle network is queueing delay; a wide band is a "
          "queue that fills and drains."),
    Chart("queues", "queue_lengths", "Queue lengths over time",
          "At each moment the greys show the length that 50 %, 90 % and 99 % of the switch queues do not "
          "exceed, and the longest queue; the coloured lines are the queues that are longest on average. A "
          "sawtooth is TCP that fills a queue to its limit and backs off; a queue without a limit only "
          "grows, and the delay with it."),
    Chart("queue_cdf", "queue_lengths", "Distribution of queue lengths",
          "Each curve shows the share of the samples of all switch queues, over the measured window, that "
          "are no longer than the value on the axis. The further right it rises, the longer packets wait; "
          "the small charts show in which layer and direction."),
    Chart("noise", "cpu_stalls", "Effect of CPU stalls on the results",
          "Each mark is the mean change caused by stalls, against points without stalls of the same "
          "settings and seeds; the horizontal axis is the 99th percentile of lateness over the time that a "
          "full queue takes to drain. Inside the grey band the change is within the tolerance of the "
          "metric."),
    Chart("bottleneck", "queue_lengths", "Queue at the bottleneck",
          "Each curve is the queue at the port that sends most under one transport: above over time, below "
          "the share of the time in which it is no longer than the value on the axis; the legend has the "
          "goodput of all flows. A good transport keeps the queue short but does not let it run empty, "
          "which would leave the link idle."),
    Chart("fct", "completion_times", "Completion times of sized flows",
          "Above, each curve shows the share of flows that completed within the time on the axis; below, "
          "the slowdown by flow size, which is the completion time over that of the flow alone on its "
          "path, as a mean and as the 99th percentile. A good transport keeps short flows near 1 and does "
          "not delay long ones."),
    Chart("fct_by_load", "fct_by_load", "Completion times by load",
          "Each curve is one way to choose paths: above the mean of all flows' completion times, below their "
          "99th percentile. A curve that rises late carries a high load with short queues."),
    Chart("normalised_by_load", "normalised_times", "Completion times of all flows, by load",
          "Each curve is one arm: the mean of completion time over the time that the flow would take "
          "alone. At 1 nothing waits; the ideal scheduler is the lowest curve that the arrivals allow for."),
    Chart("normalised_by_size", "normalised_times", "Completion times by flow size and load",
          "Each small chart is one range of flow sizes, each curve one arm. Small flows show how long "
          "packets wait in queues; large ones show how much of the links an arm uses."),
    Chart("normalised_cdf", "normalised_times", "Distribution of completion times",
          "Each curve is one arm: the share of flows that completed within a multiple of their time alone, "
          "above of all flows and below of those up to 100 kB. A curve that rises late has a long tail."),
    Chart("normalised_losses", "normalised_times", "Packets dropped and retransmitted",
          "Above are packets that queues dropped, in percent of those sent; below are segments "
          "retransmitted, in percent of those delivered. Each curve is one arm."),
    Chart("queue_by_arm", "normalised_times", "Queue lengths by arm",
          "Each curve shows how often the queue of a switch port has at least the length on the axis. A "
          "curve that ends further left belongs to an arm that keeps queues shorter."),
    Chart("normalised_parts", "normalised_times", "What each part contributes",
          "Each row is pFabric with one part changed; the number is the completion time over the time "
          "alone. The further right a mark, the more the changed part matters."),
    Chart("normalised_by_flow", "normalised_times", "Linux hosts and simulated ones, flow by flow",
          "Each dot is one flow: its completion time over its time alone between Linux hosts and between "
          "simulated ones. On the dashed line both are equal."),
    Chart("normalised_sensitivity", "normalised_times", "Sensitivity to buffer and timeout",
          "Above, completion times by the size of a port's buffer; below, by the length of a timeout. "
          "Where a curve is flat, the value does not matter."),
    Chart("trade_off", "subflows_on_demand", "Throughput or completion time by subflows per flow",
          "Each mark is one scheme: how many subflows its flows have on average, and what they carry, or "
          "how long a job takes. Further left is cheaper; higher throughput, or a shorter time, is better."),
    Chart("by_controller_option", "subflows_on_demand", "Subflows on demand, one option changed at a time",
          "Each row is the usual setting with one option changed; the dashed line is the usual setting "
          "itself. If a mark is on the line, the option does not matter for this column."),
    Chart("by_assumption", "subflows_on_demand", "What one assumption does to each scheme",
          "Each row is one assumption changed, each mark one scheme: the change of its goodput, and of its "
          "subflows, against the usual setting. If a mark is on the line, the assumption does not matter."),
    Chart("time_to_demand", "demand_over_time", "Time from a flow's start to its demand",
          "Each curve is one scheme: the share of flows that have reached their demand. A curve further "
          "left is faster; one that ends below 100 % has flows that never reach it."),
    Chart("demand_over_time", "demand_over_time", "Goodput and subflows over time, by scheme",
          "Each curve is one scheme: above what a flow carries on average, below how many subflows it has. "
          "In the grey time links or the controller are down; a curve that stays up does not depend on "
          "them."),
    Chart("short_and_long", "completion_times", "Short flows beside long ones",
          "Above, each curve shows the share of short flows that completed within the time on the axis. "
          "Below, each row is one transport: the completion time of short flows with its standard "
          "deviation, and the mean utilisation of the links between switches; diamonds are published "
          "values."),
    Chart("cwnd", "windows_and_rtt", "Congestion windows over time",
          "Each small chart is one flow and each line the congestion window of one subflow; rows go from "
          "the fastest to the slowest flow of each transport. Long teeth show a subflow that has its path "
          "to itself; a window near its minimum shares a full queue with many."),
    Chart("share", "bottleneck_shares", "Share of a bottleneck beside TCP",
          "Each marker is the share of one MPTCP flow on a link that it shares with one plain TCP flow: "
          "the mean over independent repetitions, which are the dots. A fair flow has half of the link, "
          "the lower dashed line; a flow whose subflows each take as much as one TCP reaches the upper "
          "one."),
    Chart("other_simulator", "cross_checks", "Comparison with another simulator",
          "Above is the mean goodput of all flows, below Jain's fairness index, by the number of subflows: "
          "a dot is one seed, a marker the mean. Dashed lines are another simulator at the same "
          "parameters; where markers lie on them the two agree."),
    Chart("shift", "bottleneck_shares", "Traffic on the more congested of two paths",
          "Each marker is the share of its traffic that an MPTCP flow sends over the path with more "
          "competitors: the mean over independent repetitions, which are the dots. The lower the marker, "
          "the more traffic the algorithm moves away from congestion; the dashed line is the value that "
          "theory expects."),
    Chart("by_network", "gains", "The same traffic on several networks",
          "Each row is one network and each marker one transport: above the mean goodput of all flows in "
          "percent of one flow alone, below Jain's fairness index. Where hosts have several links, a flow "
          "may exceed 100 %."),
    Chart("by_load", "gains", "Throughput and gain by load",
          "Above, the mean throughput of a host against the number of connections per host; below, the "
          "same over the throughput of TCP on the first network. Where a curve lies above 1, several paths "
          "or NICs help at that load."),
    Chart("by_matrix", "gains", "Throughput and gain by traffic matrix",
          "Each row is one traffic matrix and each marker one transport on one network: above the "
          "throughput of a sending host, below the same over the throughput of TCP on the first network. "
          "At 1 there is no gain."),
    Chart("fill", "tcp_laws", "Goodput of one flow alone on its link",
          "Each square is one link rate, with the payload received and the difference from the computed "
          "value. The dashed line is that computation: back-to-back frames of 1514 bytes with 1448 bytes "
          "of payload each."),
    Chart("sawtooth", "tcp_laws", "Sawtooth of TCP Reno beside the textbook",
          "The coloured line is the sampled congestion window; the dashed line is computed from the path "
          "alone, starting at the first halving. Where the two coincide, the window grows and falls as it "
          "should, for as long as it should; a tooth is W/2 round trips of growth and one for the repair."),
    Chart("wait", "tcp_laws", "Delay of pings beside the queue length",
          "Each dot is one ping, with the packets queued before it and the time of its way to the "
          "receiver. The dashed line is the delay of the empty path plus one packet time for each of those "
          "packets, the first of which may be partly sent."),
    Chart("loss_law", "tcp_laws", "Goodput by loss rate",
          "Each square is one loss rate and each dot one flow: goodput times the mean round-trip time, in "
          "packets, on two logarithmic axes, so that a square-root law is a straight line. The dashed line "
          "is that law; the dotted line is a model with timeouts, which bends away where windows are too "
          "small for fast retransmit."),
    Chart("conserved", "tcp_laws", "Packets received and sent by switches",
          "For each layer of switches the upper bar is the packets received, the lower bar the packets "
          "sent on and the packets dropped by full queues. Bars of equal length show that no packet "
          "appeared and none vanished."),
    Chart("cross_check", "cross_checks", "Emulated and simulated, flow by flow",
          "Each dot is one flow, with its goodput between emulated hosts and between simulated hosts over "
          "the same path; on the diagonal both are equal. Below, the flows of each engine are sorted from "
          "the slowest to the fastest: curves that coincide are the same distribution."),
    Chart("flow_level", "cross_checks", "Flow level beside packet level",
          "Bars are the mean goodput of all flows, at packet level and by models of steady rates; below is "
          "the goodput of every flow from the slowest to the fastest, TCP on the left. Where curves "
          "coincide the model agrees with the packet-level simulation."),
    Chart("subflows_needed", "subflows_needed", "Subflows needed for 90 %",
          "Each mark is one network: the smallest number of subflows with which its flows reach 90 % on "
          "average, against its number of hosts. A flat curve needs no more subflows in larger networks; "
          "an open mark is the same at packet level."),
    Chart("loss_and_cost", "congestion_controls", "Cost of subflows",
          "Each small chart is one cost against the number of subflows, with one curve per congestion "
          "control and TCP on its left. A curve that rises pays for its goodput with losses, retransmitted "
          "packets or CPU time; losses are packets that met a full queue, between switches or on the last "
          "link to a host."),
    Chart("failure", "link_failure", "Goodput while links fail",
          "Above is the goodput of all flows together over time, in percent of that before the failure; "
          "links are down in the grey interval. Below is the goodput of every flow in that interval, from "
          "the slowest to the fastest: flows at zero on the left stand still."),
    Chart("scheduling", "flow_scheduling", "Central flow scheduling by interval",
          "Each curve is one central scheduler of TCP's large flows, by the interval at which it looks at "
          "the network; level lines are TCP and MPTCP without a scheduler. An ideal scheduler looks "
          "whenever a flow begins or ends; where a curve falls below MPTCP's line, the scheduler reacts "
          "too late for flows that come and go."),
    Chart("sequential_transfers", "transfers", "Sequential transfers by TCP and MPTCP",
          "Above are all transfers between racks from the slowest to the fastest, one curve per transport; "
          "below are means by the number of paths between the two hosts. Where curves lie apart, MPTCP "
          "finds capacity that one path does not have; between hosts with only one path there is none."),
    Chart("cpu", "cpu", "CPU use",
          "The upper charts show the share of the machine's CPU time that was busy, for every size and "
          "number of subflows, and what it was spent on; the last one shows the busiest point second by "
          "second. Near 100 % the machine and not the network limits goodput, and such points are marked "
          "as suspect."),
    Chart("subflow_idle", "subflow_idle", "Idle subflows by host tuning",
          "Each row is one tuning of the end hosts: on the left the goodput of the flows, on the right the "
          "share of the time in which subflows have nothing unsent and nothing unacknowledged (idle). A "
          "starved subflow has nothing to send while another subflow of its connection holds unsent data: "
          "capacity that the packet scheduler leaves unused."),
    Chart("ladder", "ims_calls", "Calls, setup times and receive buffers by step",
          "Each group is one step: above the calls offered (outline) and completed, in the middle the "
          "median setup time and its 95th percentile, below how full receive buffers are. The function "
          "with the full buffer is the one to scale; where both are full, retransmissions have filled the "
          "other."),
    Chart("knee", "ims_calls", "Calls completed and setup time by load",
          "Each curve is a number of instances; triangles are knees computed from service times alone. A "
          "curve that follows the dotted line completes what is offered; one that falls spends its time on "
          "retransmissions."),
    Chart("controlled", "ims_calls", "An IMS over time",
          "From above: calls offered and completed, instances that take new calls, messages that wait, and "
          "the median setup time. A buffer that stays full after the load has fallen is an overload that "
          "keeps itself alive."),
    Chart("policies", "ims_calls", "Calls lost by policy and cost",
          "Each row is one policy: on the left the share of calls lost, on the right the time that all "
          "instances ran together. Short bars are better and cheaper."),
)
# fmt: on
CHARTS: dict[str, Chart] = {chart.name: chart for chart in _RECORDS}
