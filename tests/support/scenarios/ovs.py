"""Functions that the tests of Open vSwitch run in private namespaces."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import topos
from common.errors import RunError
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.dataplanes.ovs.dataplane import OvsDataPlane
from engines.emulation.hosts.network import FabricNet
from engines.emulation.sandbox.inside import Caller, Inside
from model.spec import LinkSpec, OpenFlowSpec, RunSpec, TopologySpec
from tests.support.leftovers import snapshot, wait_until_gone
from tests.support.scenarios.kills import Outer

_RULE = re.compile(r"n_packets=(\d+).*nw_src=([\d.]+),nw_dst=([\d.]+).* actions=")


def plane_of(kind: str, params: dict[str, int], mode: str = "reactive") -> tuple[FabricNet, OvsDataPlane]:
    """Return a network that is not started yet, and its data plane."""
    spec = RunSpec(
        LinkSpec(10.0), TopologySpec(kind, params), dataplane="ovs", openflow=OpenFlowSpec(mode=mode)
    )
    topology = topos.build(kind, params)
    plane = DATAPLANES["ovs"].make(spec, topology, Path("/tmp"), Caller())
    assert isinstance(plane, OvsDataPlane)
    return FabricNet(topology, plane), plane


def pinged_rules(inside: Inside) -> int:
    """Ping between the requested pairs of hosts; report the rules of each switch and how often they match."""
    net, plane = plane_of("fat_tree", {"k": 4})
    with net:
        received = [
            " 0% packet loss" in net.get(a).cmd(f"ping -c2 -i0.2 -W5 {net.get(b).IP()}")
            for a, b in inside.request
        ]
        rules = [
            (switch.name, src, dst, int(packets))
            for switch in net.switches
            for packets, src, dst in _RULE.findall(plane.dpctl(switch.name, "dump-flows"))
        ]
    inside.report({"received": received, "rules": rules})
    return 0


def carried(inside: Inside) -> int:
    """Send twice 10 Mb/s of UDP into 10 Mb/s; report the counters of the bottleneck's port."""
    net, plane = plane_of("dumbbell", {"n": 1})
    with net:
        before = plane.reading()
        net.iperf((net.hosts[0], net.hosts[1]), l4Type="UDP", udpBw="20M", seconds=3)
        after = plane.reading()
        inside.report({"sent": int((after.tx_bytes - before.tx_bytes).max())})
    return 0


def controller_dies(inside: Inside) -> int:
    """Kill the controller or the switch; report the error that a point gets."""
    net, plane = plane_of("star", {"n": 2})
    with net:
        plane.check()
        pid = plane.pids()[inside.request]
        os.kill(pid, signal.SIGKILL)
        end = time.monotonic() + 5
        while time.monotonic() < end:
            try:
                plane.check()
            except RunError as error:
                inside.report({"message": str(error)})
                break
            time.sleep(0.01)
    return 0


def ovs_up(inside: Inside) -> int:
    """Start a k=4 network under its controller, then wait to be killed."""
    net, _ = plane_of("fat_tree", {"k": 4})
    net.start()
    inside.report({"ready": True})
    time.sleep(1000)
    return 0


def kill_when_up(inside: Inside) -> int:
    """Kill the process of role `request` once the network is up; report what is left."""
    before = snapshot()
    outer = Outer.start("ovs_up", module="ovs")
    outer.until_report()
    os.kill(outer.chain()[inside.request], signal.SIGKILL)
    status, stderr = outer.finish()
    inside.report({"status": status, "stderr": stderr[-500:], "left": wait_until_gone(before)})
    return 0
