"""Functions that isolation and network tests run in private namespaces; each returns its exit status."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from pathlib import Path

from mininet.log import lg

import topos
from common.errors import UsageError
from engines.emulation.hosts.hosts import HostOptions
from engines.emulation.hosts.network import FabricNet
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.namespaces import call_in_netns, sysctl_path
from engines.emulation.sandbox.inside import Inside
from tests.support.dataplanes.python_dataplane import StandIn
from tests.support.waiting import until

IPERF3_PORT = 5201


def echo(inside: Inside) -> int:
    """Report the request and what the namespaces look like."""
    Path("/tmp/left").write_text("x")
    Path("/run/left").write_text("x")
    inside.report({"request": inside.request, "tmp": _names("/tmp")})
    inside.report({"net": _names("/sys/class/net"), "pids": _pids()})
    print("a line of output")
    return 7


def report_much(inside: Inside) -> int:
    """Send one report with the requested number of bytes."""
    inside.report("x" * inside.request)
    return 0


def write_to(inside: Inside) -> int:
    """Write a file into the folder named by the request."""
    Path(inside.request, "result").write_text("kept")
    return 0


def write_to_given(inside: Inside) -> int:
    """Write to the given descriptor; report whether a program that starts here has it."""
    (fd,) = inside.given
    os.write(fd, b"given")
    found = os.spawnlp(os.P_WAIT, "test", "test", "-e", f"/proc/self/fd/{fd}")
    inside.report("inherited" if found == 0 else "not inherited")
    return 0


def refuse(inside: Inside) -> int:
    raise UsageError(f"no such thing: {inside.request}")


def crash(_inside: Inside) -> int:
    print("about to fail", file=sys.stderr)
    raise ZeroDivisionError("a bug")


def hang(inside: Inside) -> int:
    """Wait until SIGTERM, or ignore that too if the request is `stubborn`."""
    if inside.request == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    inside.report({"pid": os.getpid()})
    try:
        time.sleep(1000)
    except KeyboardInterrupt:
        inside.report({"ended": "in order"})
        raise
    return 0


def network_up(inside: Inside) -> int:
    """Start a k=4 network with shells and processes in hosts, then wait to be killed."""
    net = FabricNet(topo4 := topos.build("ft", {"k": 4}), StandIn(topo4))
    net.start()
    host = net.get("p0e0h0")
    host.cmd("sleep 1000 & echo started")
    background = net.get("p1e0h0").popen(["iperf3", "-s", "-D"])
    background.wait(10)
    inside.report({"ready": True, "shell": host.shell.pid})
    time.sleep(1000)
    return 0


def mininet_face(inside: Inside) -> int:
    """Make the calls that a Mininet user makes."""
    topology = topos.build("ft", {"k": 4})
    plane = StandIn(topology)
    options = HostOptions(
        sysctls={"net.ipv4.tcp_no_metrics_save": "1", "net.ipv4.tcp_congestion_control": "reno"}
    )
    lg.setLogLevel("error")
    with FabricNet(topology, plane, options) as net:
        a, b = net.get("p0e0h0", "p3e1h1")
        inside.report({"names": sorted(net), "refs": len(net.host_refs())})
        inside.report({"ping": a.cmd("ping -c1 -W2", b.IP()), "all": net.pingAll(timeout="2")})
        net.configLinkStatus("p0e0h0", "p0e0", "down")
        inside.report(
            {"down": net.ping([a, b], timeout="0.3"), "status": [ln.status() for ln in net.links[:2]]}
        )
        net.configLinkStatus("p0e0h0", "p0e0", "up")
        inside.report({"healed": net.ping([a, b], timeout="2")})
        inside.report({"sysctls": net.sysctls, "kinds": sorted(plane.kinds), "longest": plane.longest})
        inside.report({"popen": b.pexec("cat /proc/net/dev")[0], "switch": net["p0e0"].cmd("echo hello")})
        inside.report({"route": a.cmd("ip -4 route; ip neigh; ip -6 addr")})
    inside.report({"after": _names("/sys/class/net"), "pids": _pids()})
    return 0


def _listens(pid: int, port: int) -> bool:
    """Return whether a TCP socket in the namespace of `pid` listens on the port (proc(5): state 0A)."""
    lines = [line.split() for name in ("tcp", "tcp6") for line in _lines(Path(f"/proc/{pid}/net/{name}"))]
    return any(line[3] == "0A" and int(line[1].split(":")[1], 16) == port for line in lines)


def _lines(table: Path) -> list[str]:
    return table.read_text().splitlines()[1:] if table.exists() else []


def tcp_frames(inside: Inside) -> int:
    """Transfer data over TCP; report the longest frame on the wire."""
    topology = topos.build("star", {"n": 2})
    plane = StandIn(topology)
    with FabricNet(topology, plane) as net:
        server = net.hosts[1].popen(["iperf3", "-s", "-1"])
        until(lambda: _listens(server.pid, IPERF3_PORT), 10.0, "iperf3 listens")
        client = net.hosts[0].popen(["iperf3", "-c", net.hosts[1].IP(), "-n", "200K"])
        inside.report({"exit": client.wait(20), "longest": plane.longest, "kinds": sorted(plane.kinds)})
        server.kill()
        server.wait(10)
    return 0


def offloads(inside: Inside) -> int:
    """Report the features of a host's NIC with and without transmit checksum offload."""
    for label, checksum in (("with", True), ("without", False)):
        with FabricNet(topos.build("star", {"n": 2}), None, HostOptions(tx_checksum_offload=checksum)) as net:
            inside.report({label: sorted(call_in_netns(net.hosts[0].holder, _features))})
    return 0


def _features() -> frozenset[str]:
    with socket.socket() as control:
        return rtnl.enabled(control, socket.if_nameindex()[-1][1])


def bad_sysctl(_inside: Inside) -> int:
    """Set a sysctl that does not exist."""
    options = HostOptions(sysctls={"net.ipv4.no_such": "1"})
    FabricNet(topos.build("ft", {"k": 4}), None, options).start()
    return 0


def tcp_tables(inside: Inside) -> int:
    """Report each host's TCP hash table: negative where it is the whole machine's."""
    name = "net.ipv4.tcp_child_ehash_entries"
    if not sysctl_path(name).exists():
        return 0  # before Linux 6.1 there is one for all
    sysctl_path(name).write_text("1024")
    with FabricNet(topos.build("star", {"n": 40})) as net:  # more than one thread's worth
        read = sysctl_path("net.ipv4.tcp_ehash_entries").read_text
        inside.report({"entries": [int(call_in_netns(host.pid, read)) for host in net.host_refs()]})
    return 0


def dual_homed(inside: Inside) -> int:
    """Report whether both NICs of a host answer, each over its own wire."""
    topology = topos.build("dhft", {"k": 4})
    with FabricNet(topology, StandIn(topology)) as net:
        nics = topology.nics_of(topology.hosts[-1])
        first = topology.nics_of(topology.hosts[0])
        lost = [
            net.hosts[0].cmd(f"ping -c1 -W2 -I {ours.ip} {theirs.ip} >/dev/null; echo $?").strip()
            for ours in first
            for theirs in nics
        ]
        inside.report({"statuses": lost, "rules": net.hosts[0].cmd("ip rule")})
    return 0


def _pids() -> list[int]:
    return sorted(int(entry) for entry in _names("/proc") if entry.isdigit())


def _names(folder: str) -> list[str]:
    return sorted(entry.name for entry in Path(folder).iterdir())
