"""Open vSwitch between real hosts: paths, rates, deaths and leftovers, paths that applications set, repairs
of the controller, and users' own controllers."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import pytest

import topos
from common.errors import HostUnfitError, RunError
from controllers.groups import ecmp_groups
from controllers.hashing import FiveTuple
from controllers.openflow.control import ControlClient
from controllers.routing import path
from controllers.rules import Routes
from controllers.scheduler import Network
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.emulation.dataplanes.ovs.daemons import check_installed, command
from engines.emulation.dataplanes.ovs.dataplane import OvsDataPlane
from engines.emulation.engine import MininetEngine
from engines.emulation.hosts.network import FabricNet
from engines.emulation.sandbox.inside import Caller, Inside
from engines.engine import Silent
from model.network_plan import port_names
from model.result import RunResult
from model.spec import (
    QDISC,
    LinkEvent,
    LinkSpec,
    OpenFlowSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    TransportSpec,
    sub_seed,
)
from tests.live.test_engine_points import check_paths
from tests.soak.kill_matrix import go_through
from tests.support.leftovers import apart, snapshot, wait_until_gone
from tests.support.machine_noise import exact, repeated
from tests.support.sandboxed import report, reports
from tests.support.scenarios.kills import Outer

pytestmark = pytest.mark.emulation

ROOT = Path(__file__).resolve().parents[3]
ICMP = 1
RATE_MBPS = 1.0
"""What Open vSwitch's user-space datapath carries on two cores that others use too."""

QUEUE_PKTS = 50
"""A full queue lasts 0.6 s, so a flow that lost its last packet goes on within the window."""


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    try:
        check_installed()
    except HostUnfitError as error:
        pytest.skip(str(error))


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


def test_a_five_tuple_takes_the_path_that_routing_says() -> None:
    """Seen in the rules of the switches: those on the path have one, used by every packet, and no others."""
    topology = topos.build("fat_tree", {"k": 4})
    names = [topology.nodes[host].name for host in topology.hosts]
    pairs = [(names[i], names[(5 * i + 7) % 16]) for i in range(8)]
    seen = report(pinged_rules, pairs)
    assert seen["received"] and all(seen["received"])
    tables, seed = ecmp_groups(topology), sub_seed(1, "routing")
    for a, b in pairs:
        for src, dst in ((a, b), (b, a)):
            src_ip, dst_ip = (topology.nics_of(topology.index(name))[0].ip for name in (src, dst))
            nodes = path(topology, tables, "hashed", seed, FiveTuple(src_ip, dst_ip, ICMP, 0, 0))
            used = {switch: packets for switch, *ends, packets in seen["rules"] if ends == [src_ip, dst_ip]}
            assert set(used) == {topology.nodes[node].name for node in nodes[1:-1]}
            assert set(used.values()) <= {1, 2}, "the first is put out by the controller at its last switch"


def spec(dataplane: str, subflows: int) -> RunSpec:
    return RunSpec(
        link=LinkSpec(RATE_MBPS, queue_pkts=QUEUE_PKTS, host_queue=QDISC),
        topology=TopologySpec("fat_tree", {"k": 4}),
        transport=TransportSpec(subflows),
        dataplane=dataplane,
        warmup_s=5.0,
        seconds=10.0,
        sampling=SamplingSpec(queues_ms=100),
    )


def run(wanted: RunSpec, raw: Path) -> RunResult:
    engine = MininetEngine()
    try:
        engine.check(wanted)
        return engine.run(wanted, Silent(), raw)
    finally:
        engine.close()


@pytest.mark.physics
def test_both_data_planes_give_one_result(tmp_path: Path) -> None:
    """Same paths, and goodput alike at a rate that both carry, where hosts feel their own queue on both."""
    specs = [spec(plane, subflows=4) for plane in ("fabric", "ovs")]
    fabric, ovs = (repeated(functools.partial(run, wanted, tmp_path)) for wanted in specs)
    for result in (fabric, ovs):
        check_paths(specs[0], result)
        assert not any(port.drops for port in result.ports if port.layer == "host-edge")
    with exact():
        assert "late_p99_us" not in ovs.metrics
        assert sum(port.drops for port in ovs.ports) == ovs.metrics["drops"]
    assert all(0 <= port.utilisation_pct <= 101 for port in ovs.ports)
    assert all(port.max_queue_pkts <= 100 for port in ovs.ports)
    means = [fmean(flow.goodput_mbps for flow in result.flows) for result in (fabric, ovs)]
    assert 0.85 * means[0] <= means[1] <= 1.15 * means[0], (fabric.reasons, ovs.reasons)


@pytest.mark.machine
def test_a_link_that_is_cut_carries_nothing(tmp_path: Path) -> None:
    """Between edge and aggregation, from the start: flows find the other way, and nothing goes over it."""
    link = LinkSpec(RATE_MBPS, queue_pkts=10)  # so that losses are soon retransmitted
    cut = (LinkEvent(0.5, "p0e0", "p0a0"),)
    wanted = dataclasses.replace(spec("ovs", 1), link=link, warmup_s=3.0, seconds=3.0, events=cut)
    result = run(wanted, tmp_path)
    over = [port for port in result.ports if {port.node, port.peer} == {"p0e0", "p0a0"}]
    assert [port.tx_packets for port in over] == [0, 0]
    (instead,) = (port for port in result.ports if (port.node, port.peer) == ("p0e0", "p0a1"))
    assert instead.tx_packets > 0


@pytest.mark.machine
def test_a_student_watches_the_rules_appear() -> None:
    commands = "s1h0 ping -c1 -W5 s1h2\nsh ovs-ofctl -O OpenFlow13 dump-flows s1\nexit\n"
    done = refabric("shell", "--dataplane", "ovs", "star,3", stdin=commands)
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout
    assert "nw_src=10.0.0.1,nw_dst=10.0.0.3" in done.stdout


def filled(inside: Inside) -> int:
    """Send twice 10 Mb/s of UDP into 10 Mb/s; report the counters of the bottleneck's port."""
    net, plane = plane_of("dumbbell", {"n": 1})
    with net:
        before = plane.reading()
        net.iperf((net.hosts[0], net.hosts[1]), l4Type="UDP", udpBw="20M", seconds=3)
        after = plane.reading()
        inside.report({"sent": int((after.tx_bytes - before.tx_bytes).max())})
    return 0


@pytest.mark.physics
def test_a_bottleneck_carries_its_rate_and_no_more() -> None:
    seen = report(filled)
    assert 0.9 < seen["sent"] * 8 / (10e6 * 3) < 1.1


def dies(inside: Inside) -> int:
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


@pytest.mark.parametrize("who", ["controller", "ovs"])
def test_a_death_is_reported_with_its_last_words(who: str) -> None:
    message = report(dies, who)["message"]
    name = "OpenFlow controller" if who == "controller" else "ovs-vswitchd"
    assert f"{name} exited with -9" in message or f"{name} ended: " in message


def ovs_up(inside: Inside) -> int:
    """Start a network under its controller, then wait to be killed."""
    net, _ = plane_of("dumbbell", {"n": 1})
    net.start()
    inside.report({"ready": True})
    time.sleep(1000)
    return 0


def kill_when_up(inside: Inside) -> int:
    """Kill the process of role `request` once the network is up; report what is left."""
    apart()
    before = snapshot()
    outer = Outer.start("ovs_up", module="tests.live.dataplanes.test_ovs")
    outer.until_report()
    os.kill(outer.chain()[inside.request], signal.SIGKILL)
    status, stderr = outer.finish()
    inside.report({"status": status, "stderr": stderr[-500:], "left": wait_until_gone(before)})
    return 0


@pytest.mark.parametrize("role", ["outer", "init"])
def test_nothing_is_left_of_a_killed_network(role: str) -> None:
    """Every process of the chain: tests/live/sandbox, without Open vSwitch."""
    seen = report(kill_when_up, role)
    assert seen["left"] == []
    assert seen["status"] != 0


PINGS = 40
MENDED_S = 10.0
FT4 = topos.build("ft", {"k": 4})
STEERED = RunSpec(LinkSpec(20.0), TopologySpec("fat_tree", {"k": 4}))
ROUTES = Routes(FT4, STEERED.routing, sub_seed(STEERED.seed, "routing"))
THERE = FiveTuple("10.0.0.2", "10.3.1.3", ICMP, 0, 0)
BACK = FiveTuple("10.3.1.3", "10.0.0.2", ICMP, 0, 0)
Hop = tuple[str, str]


@contextmanager
def lab(dataplane: str, mode: str) -> Iterator[tuple[FabricNet, Network]]:
    spec = RunSpec(STEERED.link, STEERED.topology, dataplane=dataplane, openflow=OpenFlowSpec(mode=mode))
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
    """Wait until the controller has made a way: what is in flight when a link is cut is lost."""
    until = time.monotonic() + MENDED_S
    while "1 received" not in net.get("p0e0h0").cmd(f"ping -q -c1 -W1 {THERE.dst}"):
        assert time.monotonic() < until, f"no way within {MENDED_S} s"


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
    await_way(net)
    back = " 0% packet loss" in host.cmd(f"ping -q -c5 -i0.1 -W5 {THERE.dst}")
    host.cmd("ping -q -c2 -i0.2 -W1 10.99.0.1")
    counts = network.counts()
    counts["astray"] -= strayed
    return {"link": usual[1:3], "cut": cut, "back": back, "counts": counts}


@pytest.mark.parametrize(
    ("dataplane", "mode"),
    [("fabric", "reactive"), ("ovs", "reactive"), ("ovs", "hybrid"), ("ovs", "proactive")],
)
def test_a_set_path_is_taken_and_given_back_and_the_controller_repairs(dataplane: str, mode: str) -> None:
    """Repairs: a link that was cut, rules that a switch forgot."""
    seen = report(steered, {"dataplane": dataplane, "mode": mode})
    usual, chosen, again = seen["steered"]
    if mode == "proactive":
        there = {tuple(hop) for hop in expected()[1]} & {tuple(hop) for hop in chosen}
        assert len(there) >= 4 and usual == again != chosen
    else:
        assert seen["steered"] == expected()
    if dataplane == "fabric":
        return
    there_and_back = 8  # hops between switches, across the core
    assert len(usual) == len(seen["cut"]) == there_and_back
    assert [hop for hop in seen["cut"] if set(hop) == set(seen["link"])] == []
    assert seen["back"]
    assert seen["counts"]["astray"] == 0
    if mode != "proactive":
        assert [hop for hop in usual if set(hop) == set(seen["link"])]
        assert 1 <= seen["counts"]["unknown"] <= 2, (
            "an unknown address: one packet came in, or two before the rule"
        )


def under_pox(inside: Inside) -> int:
    """Report the hops of pings under POX's rules, by the bridges' own counters."""
    wanted = OpenFlowSpec(controller="pox", mode=inside.request)
    spec = RunSpec(STEERED.link, STEERED.topology, dataplane="ovs", openflow=wanted)
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


@pytest.mark.skipif(not os.environ.get("POX_DIR"), reason="POX_DIR names no checkout of POX")
@pytest.mark.parametrize("mode", ["reactive", "hybrid"])
def test_flows_take_the_hashed_path_under_pox_too(mode: str) -> None:
    assert reports(under_pox, mode) == expected()[:1]


HUB = Path(__file__).with_name("hub.py")
INSIDE = f"cmd:{sys.executable} {HUB} 6653"
PING = "s1h0 ping -c2 -W5 s1h2\n"


@pytest.fixture
def hub() -> Iterator[int]:
    """Yield the port of a controller that runs on this machine, outside of every run."""
    with subprocess.Popen([sys.executable, str(HUB), "0"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


def refabric(*arguments: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("refabric")), *arguments], input=stdin, cwd=ROOT, timeout=180,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def shell(controller: str) -> subprocess.CompletedProcess[str]:
    return refabric("shell", "--dataplane", "ovs", "--controller", controller, "star,3", stdin=PING)


@pytest.mark.machine
def test_a_command_runs_inside_and_decides() -> None:
    done = shell(INSIDE)
    assert "2 received" in done.stdout, done.stderr


@pytest.mark.machine
def test_a_controller_that_ends_is_mentioned() -> None:
    ends = f"cmd:timeout 8 {sys.executable} {HUB} 6653"
    commands = "s1h0 ping -c1 -W5 s1h2\nsh sleep 9\ns1h0 echo still-here\nexit\n"
    done = refabric("shell", "--dataplane", "ovs", "--controller", ends, "star,3", stdin=commands)
    assert done.returncode == 0, done.stderr
    assert "1 received" in done.stdout and "still-here" in done.stdout
    assert done.stdout.count("the OpenFlow controller exited") == 1


@pytest.mark.machine
def test_a_program_outside_is_reached(hub: int) -> None:
    done = shell(f"remote:{hub}")
    assert "2 received" in done.stdout, done.stderr


def test_nothing_is_left_whichever_part_is_killed() -> None:
    """One after another, in one results folder: the run that it carries must be complete in the end, like an
    undisturbed one."""
    any_of = "outside controller|parent|relay"
    found = go_through(kills=3, seed=1, only=f"remote: SIGKILL to ({any_of}) at traffic")
    assert found["faults"] == []
    assert [cell.split()[3] for cell in found["cells"]] == ["outside", "parent", "relay"]
    assert found["completed"] == 1


@pytest.mark.machine
@pytest.mark.parametrize(
    ("controller", "words"),
    [
        ("remote:1", "start the controller first"),
        ("cmd:no-such-program", "there is no program no-such-program"),
        (f"cmd:{sys.executable} -c raise(SystemExit('broken'))", "broken"),
    ],
)
def test_one_that_does_not_work_is_one_line(controller: str, words: str) -> None:
    done = shell(controller)
    assert done.returncode != 0
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
