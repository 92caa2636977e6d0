"""Every chart there is: a new one is its module, with a `draw`, and a line here.

Importing this imports no matplotlib, which takes half a second: a chart does when it is drawn.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plots.data import Level, PointSummary


@dataclass(frozen=True)
class Chart:
    """`module` is the module in `plots/charts/` that draws it; `title` says what it shows, `reading` how to
    read it, in two sentences."""

    module: str
    title: str
    reading: str

    @property
    def name(self) -> str:
        """The module's own name, with which the names of its files begin."""
        return self.module.rpartition(".")[2]

    def draw(
        self,
        points: Iterable[PointSummary],
        out: Path,
        *,
        expected: Sequence[int] = (),
        levels: Sequence[Level] = (),
    ) -> list[Path]:
        """Draw `points` into the folder `out` as SVG, PDF and PNG; the files written, [] where there is
        nothing to show.

        `expected` are subflow counts that belong on the axes even if no point has them; `levels` the
        published numbers to draw beside ours. Raises StoreError when `out` cannot be written.
        """
        module = importlib.import_module(f"plots.charts.{self.module}")
        files: list[Path] = module.draw(points, out, expected=expected, levels=levels)
        return files


def _charts(*charts: Chart) -> dict[str, Chart]:
    return {chart.name: chart for chart in charts}


CHARTS: dict[str, Chart] = _charts(
    Chart(
        "goodput.throughput",
        "Mean goodput by transport",
        "Each bar (or dot, one a seed) is the mean goodput of all flows under one transport, in percent of "
        "what one flow reaches alone on the same links. A dashed line is the published level; a hatched or "
        "hollow mark is a point that the machine could not carry, which tells of the machine and not of "
        "the transport.",
    ),
    Chart(
        "goodput.rank",
        "Goodput of every flow",
        "Each curve is one transport, its flows sorted from the slowest to the fastest. A flat and high "
        "curve is a fair and well used network; one that starts low has flows that share a link while "
        "others lie idle.",
    ),
    Chart(
        "goodput.by_congestion_control",
        "By congestion control",
        "Above, a row for each algorithm: the mean goodput of all flows with the slowest flow as a diamond, "
        "and how many segments were sent again for each 100 delivered, few where queues were pushed gently. "
        "Below, the goodput of every flow, sorted from the slowest to the fastest, where a flat high curve "
        "is a fair and well used network.",
    ),
    Chart(
        "goodput.link_utilisation",
        "Utilisation of every link",
        "The links between switches, each direction by itself, are sorted from the least to the most used; "
        "below, the same for each layer and the hosts' own links. Where a curve lies low on the left, links "
        "idle while flows queue elsewhere; a curve that is above 50 % almost everywhere uses the network "
        "it was given.",
    ),
    Chart(
        "queues.rtt",
        "Round-trip time of every flow",
        "Each row is one transport, its flows sorted by their mean round-trip time: the line with its band "
        "is the sender's own estimate and one standard deviation, dots with whiskers are pings along the "
        "same paths. What lies above the few milliseconds of an idle network is time spent in queues, and "
        "a wide band is a queue that swells and drains.",
    ),
    Chart(
        "queues.queues",
        "Queue lengths over time",
        "At each moment the greys tell how long half, 90 % and 99 % of the switches' queues are at most, "
        "and the longest one; the coloured lines are the queues that are longest on average, by name. "
        "Sawteeth are TCP filling a queue to its limit and backing off; a queue without a limit only grows, "
        "and the delay with it.",
    ),
    Chart(
        "queues.queue_cdf",
        "Distribution of queue lengths",
        "A curve tells what share of the switches' queues, over the measured window, is as long as the axis "
        "below says or shorter. The further right it climbs the longer packets wait, and the small charts "
        "tell in which layer and direction they do.",
    ),
    Chart(
        "hosts.noise",
        "What stalls change",
        "Each mark is the mean change that stalls made, against quiet points of the same settings and seeds, "
        "at one share of the time that a full queue takes. Inside the grey band the number may be used "
        "as it is; where marks leave it, the machine shows in the number.",
    ),
    Chart(
        "queues.bottleneck",
        "The queue of the bottleneck",
        "Each curve is one transport's queue at the port that sends most: above over time, below the share "
        "of the time it is as long as the axis says or shorter; the legend tells what all flows got. A good "
        "transport keeps the queue short and never lets it run empty, for then the link idles.",
    ),
    Chart(
        "times.fct",
        "Completion times of sized flows",
        "Above, a curve tells what share of the flows were done within the time the axis says; below, how "
        "much longer flows of each size took than alone on their path, on average and the worst in a "
        "hundred. A good transport keeps short flows near 1 without making long ones wait.",
    ),
    Chart(
        "times.short_and_long",
        "Short flows beside long ones",
        "Above, a curve tells what share of the short flows were done within the time the axis says. Below, "
        "each row is one choice: how long short flows took, with the deviation as a line, and how much of "
        "the network was used; dashed is what was published.",
    ),
    Chart(
        "queues.cwnd",
        "Congestion windows over time",
        "Each small chart is one flow, each line in it one subflow's congestion window; rows go from the "
        "fastest to the slowest flow of each transport. A window that grows in long teeth has its path to "
        "itself, one that stays near the floor shares a full queue with many.",
    ),
    Chart(
        "goodput.share",
        "Share of a bottleneck beside TCP",
        "Each marker is what one MPTCP flow gets of a link that it shares with one plain TCP, on average "
        "over independent repetitions, which are the dots. A flow that is fair has half of it, at the lower "
        "dashed line; one whose subflows each take a TCP's share is at the upper one.",
    ),
    Chart(
        "goodput.beside_reference",
        "Beside a reference simulator",
        "Mean goodput of all flows above, how evenly they share it below, by subflows: a dot is one seed, a "
        "marker their mean. Dashed is another simulator at the same parameters; where the marks lie on it "
        "the two agree.",
    ),
    Chart(
        "goodput.shift",
        "Traffic on the worse of two paths",
        "Each marker is the share of its traffic that an MPTCP flow sends over the path with more "
        "competitors, on average over independent repetitions, which are the dots. The lower it lies the "
        "more the algorithm moves traffic away from congestion; dashed is what theory expects of it.",
    ),
    Chart(
        "goodput.by_network",
        "The same traffic on several networks",
        "Each row is one network, each marker one transport: above the mean goodput of all flows in percent "
        "of what one flow reaches alone, below how evenly they share it. Markers that lie apart are what "
        "several paths are good for there; where hosts have several links a flow may have more than 100 %.",
    ),
    Chart(
        "goodput.by_load",
        "Throughput and gain by load",
        "Above, what a host gets on average against how many connections it has; below, the same over what "
        "TCP gives on the first network. Where a curve lies above 1 several paths or NICs are good for "
        "something at that load.",
    ),
    Chart(
        "goodput.by_matrix",
        "Throughput and gain by traffic matrix",
        "Each row is one traffic matrix, each marker one transport on one network: above what a sending host "
        "gets, below the same over what TCP gives on the first network. At 1 there is nothing to gain.",
    ),
    Chart(
        "laws.fill",
        "What a flow alone has of its link",
        "Each square is one link rate, with the payload that arrived and what is missing of what arithmetic "
        "gives. Dashed is that arithmetic: a frame of 1514 bytes after the other, 1448 of them payload.",
    ),
    Chart(
        "laws.saw",
        "Reno's saw beside the textbook's",
        "The coloured line is the congestion window, sampled; dashed is what the textbook makes of the path "
        "alone, begun at the first halving. Where the two coincide the window grows and falls as it should, "
        "for as long as it should.",
    ),
    Chart(
        "laws.wait",
        "What pings wait beside what is queued",
        "Each dot is a ping, with the packets that stood before it and how long its way took. Dashed is the "
        "empty path and a packet time for each of those packets, the first of which may be partly sent.",
    ),
    Chart(
        "laws.loss_law",
        "Goodput by the probability of loss",
        "Each square is one loss rate, its flows the dots; both axes are logarithmic, so a square-root law "
        "is a straight line. Dashed is that law, dotted a model with timeouts, which bends away from it "
        "where windows are too small for a loss to be noticed otherwise.",
    ),
    Chart(
        "laws.conserved",
        "Packets in, packets out",
        "For each layer of switches the upper bar is the packets that came, the lower one those that were "
        "sent on and those that full queues dropped. Both bars are equally long where no packet appeared and "
        "none vanished.",
    ),
    Chart(
        "goodput.cross_check",
        "Emulated and simulated, flow by flow",
        "Each dot is a flow, with what it got between real Linux hosts and between simulated ones over "
        "the same path; on the diagonal both are equal. Below, the flows of each engine are sorted from "
        "the slowest to the fastest: curves that coincide are the same distribution, whichever flow has "
        "which place in it.",
    ),
    Chart(
        "goodput.flow_level",
        "Flow level beside packet level",
        "Bars are the mean goodput of all flows, packet by packet and by models of steady rates; below, the "
        "goodput of every flow from the slowest to the fastest, TCP on the left. Where curves coincide a "
        "model gives what packets give.",
    ),
    Chart(
        "goodput.subflows_needed",
        "Subflows needed for 90 %",
        "Each mark is a network: the least number of subflows with which its flows reach 90 % on average, "
        "against its number of hosts. A curve that stays flat needs no more subflows however large the "
        "network; an open mark is the same packet by packet.",
    ),
    Chart(
        "hosts.loss_and_cost",
        "What subflows cost",
        "Each small chart is one cost against the number of subflows, a curve for each congestion control, "
        "TCP on its left. A curve that stays low sends many subflows without filling queues; one that rises "
        "pays for its goodput with losses, packets sent again, or CPU time.",
    ),
    Chart(
        "goodput.failure",
        "Goodput while links fail",
        "Above, what all flows deliver together over time, in percent of what they did before; in the grey "
        "interval links are down. Below, every flow's goodput in that interval, from the slowest to the "
        "fastest: those at zero on the left stand still.",
    ),
    Chart(
        "goodput.scheduling",
        "Central scheduling by interval",
        "Each curve is one scheduler of TCP's large flows, by how often it looks at the network; the level "
        "lines are TCP and MPTCP without one. Where a curve falls below MPTCP's line the scheduler comes too "
        "late for flows that come and go.",
    ),
    Chart(
        "goodput.in_turn",
        "Transfers in turn, TCP and MPTCP",
        "Above, every transfer between racks from the slowest to the fastest, a curve for each transport; "
        "below, means by the number of paths that join the two hosts. Where curves lie apart MPTCP finds "
        "capacity that one path does not have; with one path there is none to be found.",
    ),
    Chart(
        "hosts.cpu",
        "CPU use",
        "The share of the machine's CPUs that was busy, for every size and number of subflows, then what it "
        "was busy with, and the busiest point second by second. Where it nears 100 % the machine and no "
        "longer the network decides what flows get, and such points are marked as suspect.",
    ),
    Chart(
        "hosts.subflow_idle",
        "Subflows that run dry, by tuning",
        "Each row is one tuning of the end hosts: on the left what the flows got, on the right how much of "
        "their time the subflows had nothing to send. A subflow that is idle while another of its "
        "connection waits to send is capacity that the packet scheduler left unused.",
    ),
)
