"""One file per chart, in a folder per subject.

agents/     congestion controls by an agent
goodput/    goodput, fairness, link utilisation
hosts/      end hosts and machines
ims/        SIP calls through an IMS
laws/       laws of TCP, conservation of packets
on_demand/  subflows that a controller adds
pfabric/    completion times by load and flow size
queues/     queues, windows, round-trip times
times/      completion times

May import `topos`, `controllers`, `workloads`, `ccp`, `model`, `analysis`, `engines`, `plots.data` and
`plots.shared`.
"""
