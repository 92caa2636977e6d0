"""Two flows of different classes at one bottleneck between real hosts, run in private namespaces."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import topos
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.hosts.network import FabricNet
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.traffic.driver import TrafficDriver
from engines.emulation.traffic.iperf3 import Iperf3Traffic
from engines.emulation.traffic.native import NativeDriver
from model.flows import FIRST_CPORT, FIRST_PORT, PlannedFlow
from model.spec import LinkSpec, RunSpec, TopologySpec

RATE_MBPS = 10.0
EXPEDITED = 46
WARMUP_S, SECONDS = 2.0, 3.0
STAR = topos.build("star", {"n": 3})


def two_flows() -> tuple[PlannedFlow, PlannedFlow]:
    """Return flows from the first two hosts to the third; the second flow has the higher class."""
    first, second, receiver = (STAR.nodes[host].name for host in STAR.hosts)
    ips = {STAR.nodes[nic.host].name: nic.ip for nic in STAR.nics}
    to = ips[receiver]
    return (
        PlannedFlow(0, first, receiver, ips[first], to, FIRST_PORT, FIRST_CPORT),
        PlannedFlow(1, second, receiver, ips[second], to, FIRST_PORT + 1, FIRST_CPORT, dscp=EXPEDITED),
    )


def goodput(inside: Inside) -> int:
    """Report the goodput of both flows in Mb/s, with the discipline and the traffic driver of the request.

    Seconds are of the fabric's clock, by which its links have their exact rates on any machine.
    """
    discipline, traffic = inside.request["discipline"], inside.request["traffic"]
    link = LinkSpec(RATE_MBPS, queue_pkts=50, discipline=discipline)
    spec = RunSpec(link, TopologySpec("star", {"n": 3}))
    plane = DATAPLANES["fabric"].make(spec, STAR, Path("/tmp"), Caller())
    flows = two_flows()
    with ExitStack() as stack:
        net = stack.enter_context(FabricNet(STAR, plane))
        hosts = {host.name: host for host in net.host_refs()}
        driver: TrafficDriver
        if traffic == "iperf3":
            driver = stack.enter_context(Iperf3Traffic(flows, hosts, Path("/tmp"), seconds=60))
        else:
            driver = stack.enter_context(NativeDriver(flows, hosts))
        driver.open()
        driver.connect(20.0)
        driver.release()
        time.sleep(WARMUP_S)
        before, began_s = driver.received(), plane.reading().now_s
        time.sleep(SECONDS)
        after, elapsed_s = driver.received(), plane.reading().now_s - began_s
        inside.report([8e-6 * ((b or 0) - (a or 0)) / elapsed_s for a, b in zip(before, after, strict=True)])
    return 0
