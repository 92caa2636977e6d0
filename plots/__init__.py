"""Charts from results, one a module; each draws a list of `PointSummary` and writes SVG, PDF and PNG.

registry.py      every chart's name, title and how to read it; what the rest of refabric draws by
data.py          what a chart needs to know of a point; points grouped into panels
style.py         palette, marks, captions
sheet.py         title, legend, axes and caption, each in its place
saving.py        one sheet a panel, written whole
throughput.py    mean goodput against the number of subflows
rank.py          goodput of every flow, slowest to fastest
by_congestion_control.py  TCP, PacketScatter and MPTCP by algorithm: goodput, segments sent again, rank
link_utilisation.py  every link, least to most used, all together and layer by layer
rtt.py           round-trip time of every flow with its deviation
queues.py        queue lengths over time: bands, and the worst by name
queue_cdf.py     distribution of queue lengths; queue_lengths.py reads them for both
cwnd.py          congestion windows over time of the fastest, median and slowest flow
lanes.py         what charts of lanes have in common: algorithms side by side, every lane a repetition
share.py         share of a bottleneck that MPTCP has beside one TCP
shift.py         where MPTCP sends when one of two bottlenecks is worse
fill.py  saw.py  wait.py  loss_law.py  conserved.py  what arithmetic and theory say beside what was measured
by_network.py    several networks under the same traffic: goodput and fairness
flow_level.py    flow-level models beside packets
subflows_needed.py  subflows needed for 90 %, by number of hosts
cpu.py           how busy the machine was, with what, second by second
"""
