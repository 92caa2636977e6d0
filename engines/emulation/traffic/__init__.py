"""Traffic generators: iperf3 processes, or one process for the flows of all hosts.

demands.py         what a point's flows need: congestion controls, paths
driver.py          the protocol of a traffic driver
iperf3.py          one server and one client of iperf3 per flow
iperf3_traffic.py  iperf3 as a traffic driver
native.py          traffic of all hosts from one process
stalls.py          detection of flows that deliver nothing although frames are due

May import `common`, `fabric`, `topos`, `model` and `engines.emulation`.
"""
