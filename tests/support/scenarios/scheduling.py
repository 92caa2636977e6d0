"""Functions that the tests of set paths and of the controller's repairs run in private namespaces."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import topos
from controllers.hashing import FiveTuple
from controllers.openflow.control import ControlClient
from controllers.rules import Routes
from controllers.scheduler import Network
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.dataplanes.ovs.daemons import command
from engines.emulation.hosts.network import FabricNet
from engines.emulation.sandbox.inside import Caller, Inside
from model.network_plan import port_names
from model.spec import LinkSpec, OpenFlowSpec, RunSpec, TopologySpec, sub_seed

ICMP = 1
PINGS = 40
MENDED_S = 10.0
FT4 = topos.build("ft", {"k": 4})
SPEC = RunSpec(LinkSpec(20.0), TopologySpec("fat_tree", {"k": 4}))
ROUTES = Routes(FT4, SPEC.routing, sub_seed(SPEC.seed, "routing"))
THERE = FiveTuple("10.0.0.2", "10.3.1.3", ICMP, 0, 0)
BACK = FiveTuple("10.3.1.3", "10.0.0.2", ICMP, 0, 0)
Hop = tuple[str, str]


@contextmanager
def lab(dataplane: str, mode: str) -> Iterator[tuple[FabricNet, Network]]:
    spec = RunSpec(SPEC.link, SPEC.topology, dataplane=dataplane, openflow=OpenFlowSpec(mode=mode))
    plane = DATAPLANES[dataplane].make(spec, FT4, Path("/tmp"), Caller())
    with FabricNet(FT4, plane) as net, plane.network(spec, dict) as network:
        yield net, network


def names(nodes: Sequence[int]) -> list[str]:
    return [FT4.nodes[node].name for node in nodes]


def elsewhere() -> list[str]:
    """Return a path of THERE that shares no switch above the edges with the usual ones, there and back."""
    taken = {*ROUTES.path(THERE)[2:-2], *ROUTES.path(BACK)[2:-2]}
    usual = ROUTES.path(THERE)
    paths = FT4.shortest_paths(usual[0], usual[-1])
    return names(min(paths, key=lambda path: len(taken.intersection(path))))


def carried(net: FabricNet, network: Network) -> set[Hop]:
    """Ping; return the hops that at least as many packets took."""
    before = {(port.node, port.peer): port.packets for port in network.ports()}
    received = net.get("p0e0h0").cmd(f"ping -q -c{PINGS} -i0.02 -W5 {THERE.dst}")
    assert " 0% packet loss" in received, received
    time.sleep(0.1)
    return {
        (port.node, port.peer)
        for port in network.ports()
        if port.packets - before[port.node, port.peer] >= PINGS * 0.9
    }


def await_way(net: FabricNet) -> None:
    """Wait until the controller has found another path: what is in flight when a link is cut is lost."""
    until = time.monotonic() + MENDED_S
    while "1 received" not in net.get("p0e0h0").cmd(f"ping -q -c1 -W1 {THERE.dst}"):
        assert time.monotonic() < until, f"no way within {MENDED_S} s of the cut"


def steered(inside: Inside) -> int:
    """Report the hops of pings without a set path, with one, and after it is cleared; no ping may be lost.

    On Open vSwitch then also what the controller repairs (`_mended`).
    """
    with lab(**inside.request) as (net, network):
        steps: list[Callable[[], None]] = [
            lambda: None,
            lambda: network.set_path(THERE, elsewhere()),
            lambda: network.clear_path(THERE),
        ]
        hops = []
        for step in steps:
            step()
            carried(net, network)  # none is lost; Open vSwitch's datapath may follow rules of before a moment
            hops.append(sorted(_between_switches(carried(net, network))))
        inside.report({"steered": hops})
        if isinstance(network, ControlClient):
            inside.report(_mended(net, network, inside.request["mode"]))
    return 0


def under_pox(inside: Inside) -> int:
    """Report the hops of pings under POX's rules, by the bridges' own counters."""
    wanted = OpenFlowSpec(controller="pox", mode=inside.request)
    spec = RunSpec(SPEC.link, SPEC.topology, dataplane="ovs", openflow=wanted)
    plane = DATAPLANES["ovs"].make(spec, FT4, Path("/tmp"), Caller())
    with FabricNet(FT4, plane) as net:
        before = plane.reading().tx_packets
        net.get("p0e0h0").cmd(f"ping -q -c{PINGS} -i0.02 -W5 {THERE.dst}")
        sent = plane.reading().tx_packets - before
    hops = {
        (node, peer) for (node, peer, _), n in zip(port_names(FT4), sent, strict=True) if n >= PINGS * 0.9
    }
    inside.report([list(hop) for hop in sorted(_between_switches(hops))])
    return 0


def expected() -> list[list[list[str]]]:
    """Return what `steered` should report."""
    paths = (names(ROUTES.path(THERE)), names(ROUTES.path(BACK)), elsewhere())
    usual, back, other = (list(pairwise(path)) for path in paths)
    return [
        [list(hop) for hop in sorted(_between_switches({*there, *back}))] for there in (usual, other, usual)
    ]


def _between_switches(hops: set[Hop]) -> set[Hop]:
    switches = {FT4.nodes[switch].name for switch in FT4.switches}
    return {hop for hop in hops if set(hop) <= switches}


def _mended(net: FabricNet, network: ControlClient, mode: str) -> dict[str, object]:
    """Ping while a link of the path is cut and comes back, and after a switch has lost all its rules.

    Packets that went astray count from here on: one may, while a set path comes or goes.
    """
    usual = names(ROUTES.path(THERE))
    strayed = network.counts()["astray"]
    host = net.get("p0e0h0")
    net.configLinkStatus(usual[1], usual[2], "down")
    await_way(net)
    cut = sorted(_between_switches(carried(net, network)))
    net.configLinkStatus(usual[1], usual[2], "up")
    if mode == "reactive":
        command("ovs-ofctl", "-O", "OpenFlow13", "del-flows", usual[3], "ip,nw_dst=10.0.0.0/8")
    command("ovs-vsctl", "--no-wait", "del-controller", usual[2])
    time.sleep(0.5)
    version = "OpenFlow15" if mode == "proactive" else "OpenFlow13"
    command("ovs-ofctl", "-O", version, "del-flows", usual[2])
    command("ovs-vsctl", "--no-wait", "set-controller", usual[2], "tcp:127.0.0.1:6653")
    time.sleep(2.5)
    host.cmd(f"ping -q -c3 -i0.3 -W2 {THERE.dst}")
    back = " 0% packet loss" in host.cmd(f"ping -q -c5 -i0.1 -W5 {THERE.dst}")
    host.cmd("ping -q -c2 -i0.2 -W1 10.99.0.1")
    counts = network.counts()
    counts["astray"] -= strayed
    return {"link": usual[1:3], "cut": cut, "back": back, "counts": counts}
