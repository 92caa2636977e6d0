"""FabricNet: a Mininet network with real hosts whose links and switches belong to a data plane.

    with FabricNet(topology, dataplane) as net:         # inside private namespaces: isolation.py
        net.get("p0e0h0").cmd("ping -c1 10.1.0.2")
        net.pingAll()
        mininet.cli.CLI(net)

Only the hosts' NICs exist in the kernel, as veth pairs. The host's end `p0e0h0-eth0` is in its namespace. The
other end `p0e0-eth1`, named like the switch's port, is in the run's namespace; the data plane reads it.

Hosts and switches start nothing until used. A small process holds the namespace of a `FabricHost`, a Mininet
`Host`. Its shell starts at the first `cmd()`, so 1024 hosts do not need 1024 shells. A `FabricSwitch` is a
set of ports of the data plane. Like Mininet's Open vSwitch nodes it runs commands in the run's namespace.
Mininet reads a node's `shell`, `pid`, `stdin`, `stdout` and `pollOut`; here these properties start the shell.

The CLI supports piped commands. Mininet's CLI passes everything readable on stdin to the program that runs on
a host. On a terminal that is the user's input for the program. On a pipe it would be the next commands, which
would be lost.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NoReturn, Self

from mininet.cli import CLI
from mininet.link import Intf, Link
from mininet.log import error, output, setLogLevel
from mininet.net import Mininet
from mininet.node import Host, Node
from mininet.util import getincrementaldecoder

from common.errors import CommandError, DeadlineError, HostUnfitError, RefabricError, RunError
from common.text import one_line
from engines.emulation.dataplanes.dataplane import DataPlane, NoDataPlane
from engines.emulation.hosts.hosts import HostOptions, configure, read_sysctls, routes_kept, start_namespaces
from engines.emulation.kernel import rtnl
from engines.emulation.kernel.namespaces import (
    CLONE_NEWNS,
    MS_NODEV,
    MS_NOSUID,
    HostRef,
    call_in_netns,
    in_threads,
    mount,
    unshare,
)
from engines.emulation.kernel.proc import reserve_fds
from engines.emulation.kernel.rtnl import offloads_off
from topos.topology import Nic, Topology, interface_name

VETH_GROUP = 0x7EFA
_FDS_PER_HOST, _RESERVED_FDS = 6, 1024
"""A pty and pipes per host, but no more: programs that close all descriptors pay per slot."""
_END_S = 10.0


class FabricNet(Mininet):  # type: ignore[misc]
    """`topology` with real hosts, joined by `dataplane`; requires a private network namespace.

    `build()` makes the hosts and their NICs, `start()` also starts the data plane, `stop()` removes
    everything. Raises HostUnfitError if the kernel refuses what a host needs, RunError otherwise.
    """

    hosts: list[FabricHost]
    switches: list[FabricSwitch]
    links: list[FabricLink]
    nameToNode: dict[str, FabricHost | FabricSwitch]

    def __init__(
        self, topology: Topology, dataplane: DataPlane | None = None, options: HostOptions | None = None
    ) -> None:
        self.topology = topology
        self.dataplane = dataplane or NoDataPlane()
        self.options = options or HostOptions()
        self.ifindexes: tuple[int, ...] = ()
        """Interface index of the run-side veth of each of `topology.nics`."""
        self.sysctls: dict[str, str] = {}
        """The values of `options.sysctls` that are in effect on every host."""
        self._holders: list[int] = []
        Mininet.inited = True  # its init() writes machine-wide sysctls (file-max, pty.max, ...)
        setLogLevel("output")
        super().__init__(topo=None, build=False, controller=None)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def build(self) -> None:
        """Make hosts with their namespaces, NICs, addresses and routes."""
        hosts, nics = self.topology.hosts, self.topology.nics
        reserve_fds(_RESERVED_FDS + _FDS_PER_HOST * len(hosts))
        names = [self.topology.nodes[i].name for i in hosts]
        self._holders = start_namespaces(names, self.options.sysctls)
        pids = self._pids()
        self._add_nodes(pids)
        self._add_links()
        checksums = self.options.tx_checksum_offload and self.dataplane.partial_checksums
        self._add_veths(pids, checksums)
        jobs = [(pids[host], self.topology.nics_of(host)) for host in hosts]
        answers, metrics = self.dataplane.answers_arp, self.options.metrics
        in_threads(lambda job: configure(*job, checksums, answers, metrics), jobs)
        self.sysctls = self._sysctls_in_force()
        by_name = {name: index for index, name in socket.if_nameindex()}
        self.ifindexes = tuple(by_name[self._run_end(nic)] for nic in nics)
        self.built = True

    def start(self) -> None:
        """Build if needed, then start the data plane."""
        try:
            if not self.built:
                self.build()
            self.dataplane.start(self.ifindexes, self._pids())
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the data plane, end the hosts' shells and holders, delete every interface. Idempotent."""
        try:
            self.dataplane.stop()
        finally:
            if self.terms:
                self.stopXterms()
            for node in (*self.hosts, *self.switches):
                node.terminate()
            if self._holders:
                with rtnl.route_socket() as route:
                    rtnl.delete_group(route, VETH_GROUP)
                _end_all(self._holders)
            self._holders = []
            self.hosts, self.switches, self.links = [], [], []
            self.nameToNode = {}
            self.built = False

    def host_refs(self) -> list[HostRef]:
        """Return the hosts in the topology's order, as HostRef for kernel/namespaces.py."""
        return [HostRef(host.name, host.holder) for host in self.hosts]

    def configLinkStatus(self, src: str, dst: str, status: str) -> None:
        """Take both directions of a link down or up, for the CLI's `link src dst up|down`.

        Prints a wrong name or status, as Mininet does.
        """
        for name in (src, dst):
            if name not in self.nameToNode:
                error(f"{name} not in network: see `nodes`\n")
                return
        between = self.linksBetween(self.nameToNode[src], self.nameToNode[dst])
        if not between:
            error(f"src and dst not connected: {src} {dst}; see `net`\n")
            return
        if status not in ("up", "down"):
            error(f"link status must be up or down, not {status}\n")
            return
        for link in between:
            self.set_link(link, status == "up")

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise RunError(
            "the network has its nodes and links when it starts; describe another one in a file and run: "
            "refabric shell file:net.json"
        )

    addHost = addSwitch = addController = addNAT = addLink = buildFromTopo = _refuse
    delNode = delHost = delSwitch = delController = delLink = delLinkBetween = _refuse

    def routes_kept(self) -> AbstractContextManager[None]:
        """Keep the hosts' routes while users take their interfaces down and up."""
        nics = {ref: self.topology.nics_of(self.topology.index(ref.name)) for ref in self.host_refs()}
        say = lambda text: error(f"*** {text}\n")  # noqa: E731
        return routes_kept(nics, self.dataplane.answers_arp, self.options.metrics, say)

    def set_link(self, link: FabricLink, up: bool) -> None:
        """Take both directions of a link down or up."""
        self.dataplane.set_link(link.index, up)
        link.up = up

    def iperf(
        self,
        hosts: Sequence[FabricHost] | None = None,
        l4Type: str = "TCP",
        udpBw: str = "10M",
        fmt: str | None = None,
        seconds: int = 5,
        port: int = 5001,
    ) -> list[str]:
        """Measure throughput from the first host to the second; return [server, client] as Mininet does.

        Uses iperf3: Mininet's own version waits forever for output that current iperf 2 does not print.
        `fmt` is k, m or g (bits). Raises RunError if iperf3 fails or does not end.
        """
        client, server = hosts or (self.hosts[0], self.hosts[-1])
        udp = udpBw if l4Type == "UDP" else ""
        output(f"*** Iperf: testing {l4Type} bandwidth between {client} and {server}\n")
        sent_bps, received_bps = iperf_pair(client, server, seconds, port, udp)
        speeds = [format_rate(received_bps, fmt), format_rate(sent_bps, fmt)]
        result = [udpBw, *speeds] if udp else speeds
        output(f"*** Results: {result}\n")
        return result

    def _add_nodes(self, pids: dict[int, int]) -> None:
        for i in self.topology.hosts:
            self.hosts.append(FabricHost(self.topology.nodes[i].name, pids[i]))
        for i in self.topology.switches:
            self.switches.append(FabricSwitch(self.topology.nodes[i].name, self))
        self.nameToNode = {node.name: node for node in (*self.hosts, *self.switches)}

    def _add_links(self) -> None:
        nic_of = {nic.link: nic for nic in self.topology.nics}
        for index, ends in enumerate(self.topology.links):
            a, b = (self.nameToNode[self.topology.nodes[end].name] for end in (ends.a, ends.b))
            link = FabricLink(index)
            nic = nic_of.get(index)
            ip, mac = (nic.ip, nic.mac) if nic else ("", "")
            link.intf1 = FabricIntf(interface_name(a.name, ends.a, a.newPort()), a, link, ip, mac)
            link.intf2 = FabricIntf(interface_name(b.name, ends.b, b.newPort()), b, link)
            self.links.append(link)

    def _run_end(self, nic: Nic) -> str:
        return str(self.links[nic.link].intf2.name)

    def _pids(self) -> dict[int, int]:
        """Return the pids of the processes that hold the hosts' namespaces, by host node."""
        return dict(zip(self.topology.hosts, self._holders, strict=True))

    def _add_veths(self, pids: dict[int, int], checksums: bool) -> None:
        segments = int(self.dataplane.queues_at_hosts or self.options.single_segments)
        with rtnl.route_socket() as route, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            for nic in self.topology.nics:
                ends = (self._run_end(nic), nic.name, pids[nic.host], nic.mac)
                veth = rtnl.Veth(*ends, VETH_GROUP, self.options.mtu, segments)
                try:
                    rtnl.add_veth(route, veth)
                    offloads_off(control, veth.name, checksums)
                except OSError as failure:
                    raise RunError(f"making veth {veth.name} - {veth.peer}: {failure}") from failure

    def _sysctls_in_force(self) -> dict[str, str]:
        names = list(self.options.sysctls)
        if not names:
            return {}
        found = read_sysctls((host.holder for host in self.hosts), names)
        for host, values in zip(self.hosts, found, strict=True):
            if values != found[0]:
                raise HostUnfitError(
                    f"reading sysctls: {host.name} has {values}, but {self.hosts[0].name} has {found[0]}"
                )
        return found[0]


def _end_all(pids: Sequence[int]) -> None:
    """Kill and reap the holders. Only this code reaps them, so their pids cannot be reused before."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + _END_S
    for pid in pids:
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > deadline:
                raise RunError(f"ending host namespaces: process {pid} did not end after SIGKILL")
            time.sleep(0.0005)


SHELL_S = 10.0
_PROMPT = chr(127)


class _LazyShell(Node):  # type: ignore[misc]
    """A Mininet node whose shell starts on first use."""

    def __init__(self, name: str, holder: int, **params: Any) -> None:
        self.holder = holder
        """Pid of a process in the node's network namespace."""
        self._shell: subprocess.Popen[bytes] | None = None
        self._ended = False
        self._master: Any = None
        self._poller: Any = None
        super().__init__(name, **params)

    @property
    def shell(self) -> subprocess.Popen[bytes] | None:
        if self._shell is None and not self._ended:
            self._start()
        return self._shell

    @shell.setter
    def shell(self, value: object) -> None:
        assert value is None  # Node.__init__ clears it

    @property
    def stdout(self) -> Any:
        return self._master if self.shell else None

    @stdout.setter
    def stdout(self, value: object) -> None:
        assert value is None

    stdin = stdout

    @property
    def pollOut(self) -> Any:
        return self._poller if self.shell else None

    @pollOut.setter
    def pollOut(self, value: object) -> None:
        assert value is None

    @property
    def pid(self) -> int:
        """A process in this node's namespace, for `mnexec -a` and nsenter: always the holder."""
        return self.holder

    @pid.setter
    def pid(self, value: object) -> None:
        assert value is None

    def startShell(self, mnopts: str | None = None) -> None:
        """Do nothing when Node.__init__ calls this; the shell starts later."""
        del mnopts

    def _start(self) -> None:
        """Start bash on a pty as Mininet does, in the node's namespaces, and wait for its prompt."""
        master, self.slave = pty.openpty()
        self._master = os.fdopen(master, "r")
        self._poller = select.poll()
        self._poller.register(self._master)
        self._shell = self._enter(self._spawn_shell)
        self.outToNode[master] = self
        self.inToNode[master] = self
        self.decoder = getincrementaldecoder()
        self.readbuf = ""
        self.waiting = True
        self._await_prompt()
        self.cmd("unset HISTFILE; stty -echo; set +m")

    def _spawn_shell(self) -> subprocess.Popen[bytes]:
        if self.inNamespace:
            unshare(CLONE_NEWNS)
            mount("sysfs", "/sys", "sysfs", MS_NOSUID | MS_NODEV)
        argv = ["bash", "--norc", "--noediting", "-is", f"mininet:{self.name}"]
        env = {**os.environ, "PS1": _PROMPT}
        fd = self.slave
        return subprocess.Popen(argv, stdin=fd, stdout=fd, stderr=fd, env=env, start_new_session=True)

    def _await_prompt(self) -> None:
        seen = ""
        while self.waiting:
            text = self.monitor(timeoutms=round(SHELL_S * 1000))
            seen += text
            if self.waiting and not text:
                raise DeadlineError(
                    f"starting the shell of {self.name}: no prompt within {SHELL_S:g} s, output {seen!r}"
                )

    def _enter(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        """Run `start` on a temporary thread in the node's network namespace."""
        return call_in_netns(self.holder, start)

    def popen(self, *args: Any, **kwargs: Any) -> subprocess.Popen[Any]:
        """Run a command (list, string or words) in this node's network namespace, as Mininet's `popen`.

        The program starts directly, in a new session, not through mnexec(1). It sees the run's /sys; a
        program started by `cmd` sees the host's /sys.
        """
        if self.privateDirs:
            running: subprocess.Popen[Any] = Node.popen(self, *args, **kwargs)
            return running
        kwargs.pop("mncmd", None)
        words = args[0] if len(args) == 1 else args
        argv = words.split() if isinstance(words, str) else [str(word) for word in words]
        if kwargs.pop("shell", False):
            argv = [os.environ.get("SHELL", "/bin/bash"), "-c", " ".join(argv)]
        options: dict[str, Any] = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "start_new_session": True,
        }
        options.update(kwargs)
        return self._enter(lambda: self._popen(argv, **options))

    def terminate(self) -> None:
        """Send SIGHUP to the shell and its programs; kill what does not end in time."""
        self._ended = True
        shell, self._shell = self._shell, None
        if shell is None:
            return
        if shell.poll() is None:
            os.killpg(shell.pid, signal.SIGHUP)
        for table in (self.outToNode, self.inToNode):
            table.pop(self._master.fileno(), None)
        self._master.close()
        os.close(self.slave)
        try:
            shell.wait(1.0)
        except subprocess.TimeoutExpired:
            shell.kill()
            shell.wait(SHELL_S)

    cleanup = terminate

    def config(self, **params: Any) -> dict[str, Any]:
        return _unchanged(self.name, params)

    @classmethod
    def setup(cls) -> None:
        """Require nothing beyond what doctor checks."""

    def __repr__(self) -> str:
        interfaces = ",".join(f"{intf.name}:{intf.IP()}" for intf in self.intfList())
        return f"<{type(self).__name__} {self.name}: {interfaces} pid={self.holder}> "


class FabricHost(_LazyShell, Host):  # type: ignore[misc]
    """A host with its own network namespace, real NICs and a real kernel stack."""


class FabricSwitch(_LazyShell):
    """A switch of the data plane. Its commands run in the run's namespace, as with Open vSwitch."""

    portBase = 1
    """Number of the first interface; interfaces are numbered like OpenFlow ports (topos/topology.py)."""

    def __init__(self, name: str, fabric: FabricNet) -> None:
        self._fabric = fabric
        super().__init__(name, os.getpid(), inNamespace=False)

    def start(self, _controllers: object) -> None:
        """Take all links of the switch up, for the CLI's `switch X start`."""
        self._set_links(True)

    def stop(self, deleteIntfs: bool = False) -> None:
        """Take all links of the switch down, for the CLI's `switch X stop`."""
        del deleteIntfs
        self._set_links(False)

    def connected(self) -> bool:
        return True

    def dpctl(self, *args: str) -> str:
        """Return the output of the CLI's `dpctl dump-flows` and similar commands."""
        return self._fabric.dataplane.dpctl(self.name, *args)

    def _set_links(self, up: bool) -> None:
        for interface in self.intfList():
            self._fabric.set_link(interface.link, up)

    def _enter(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        return start()


class FabricIntf(Intf):  # type: ignore[misc]
    """A configured interface whose properties are known without a process."""

    def __init__(self, name: str, node: _LazyShell, link: FabricLink, ip: str = "", mac: str = "") -> None:
        super().__init__(
            name, node=node, link=link, mac=mac or None, moveIntfFn=lambda *_: None
        )  # it was created in its namespace
        self.ip: str | None = ip or None
        self.prefixLen: str | None = "32" if ip else None

    def config(self, **params: Any) -> dict[str, Any]:
        return _unchanged(self.name, params)

    def setIP(self, ipstr: str, prefixLen: int | None = None) -> NoReturn:
        del prefixLen
        raise RunError(f"{self.name} keeps its address: packets to {ipstr} would have no path")

    def setMAC(self, macstr: str) -> NoReturn:
        raise RunError(f"{self.name} keeps its MAC address: frames to {macstr} would have no path")

    def updateIP(self) -> str | None:
        return self.ip

    def updateMAC(self) -> str | None:
        return self.mac if self.mac is None else str(self.mac)

    def isUp(self, setUp: bool = False) -> bool:
        del setUp
        return bool(self.link.up)

    def status(self) -> str:
        return "OK" if self.link.up else "DOWN"


def _unchanged(name: str, params: Mapping[str, object]) -> dict[str, Any]:
    """Return nothing changed. Raises RunError for settings, which the network has from its start."""
    if params:
        raise RunError(
            f"{name}: {', '.join(params)} cannot be changed here; see the options of refabric shell, and "
            "rate_mbps, delay_us, loss_pct and queue_pkts of a link in a network's file"
        )
    return {}


class FabricLink(Link):  # type: ignore[misc]
    """Link `index` of the topology, between two nodes; its frames pass through the data plane."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.up = True
        self.intf1: FabricIntf
        self.intf2: FabricIntf

    def stop(self) -> None:
        """Do nothing: the network removes all interfaces at once."""

    def delete(self) -> None:
        raise RunError(f"deleting {self}: it is part of the topology; use `link ... down` instead")


class FabricCLI(CLI):  # type: ignore[misc]
    """Read commands until `exit` or the end of stdin; starts at once, as Mininet's CLI does."""

    def __init__(self, net: FabricNet, checks: Sequence[Callable[[], object]] = ()) -> None:
        """`checks` raise RefabricError for what has died in the network, such as the user's controller."""
        self._checks = checks
        self._faults: set[str] = set()
        """What was said already."""
        if not sys.stdin.isatty():
            self.prompt = ""
            CLI.readlineInited = True  # Do not write ~/.mininet_history from scripts.
        super().__init__(net, stdin=sys.stdin)

    def onecmd(self, line: str) -> bool:
        """Execute one command; print its error and continue if it fails, whatever it was. Say once what
        has died in the network."""
        self._report_faults()
        try:
            return bool(super().onecmd(line))
        except BrokenPipeError:
            raise
        except (Exception, SystemExit) as failure:  # a slip of the user's must not end the network
            error(f"*** {one_line(str(failure)) or type(failure).__name__}\n")
            return False
        finally:
            self._report_faults()

    def _report_faults(self) -> None:
        for check in self._checks:
            try:
                check()
            except RefabricError as failure:
                if str(failure) not in self._faults:
                    error(f"*** {failure}\n")
                self._faults.add(str(failure))

    def do_source(self, line: str) -> bool:
        """Read commands from a file, up to its end or `exit`. Usage: source FILE"""
        path = line.strip()
        if not path:
            error("*** usage: source FILE\n")
            return False
        try:
            commands = Path(path).read_text().splitlines()
        except (OSError, UnicodeDecodeError) as failure:
            reason = failure.strerror if isinstance(failure, OSError) else "it is not a text file"
            error(f"*** source {path}: {reason}\n")
            return False
        return any(self.onecmd(self.precmd(command)) for command in commands)

    def waitForNode(self, node: FabricHost | FabricSwitch) -> None:
        """Print a command's output until it ends; Ctrl-C interrupts the command."""
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            try:
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def do_EOF(self, line: str) -> str:
        """End the CLI at the end of piped commands, without an empty line."""
        return str(super().do_EOF(line)) if self.isatty() else "end of input"


LISTEN_S = 5.0
TRANSFER_END_S = 15.0
_UNITS = {"k": 1e3, "m": 1e6, "g": 1e9}


def iperf_pair(
    client: FabricHost, server: FabricHost, seconds: int, port: int, udp_rate: str = ""
) -> tuple[float, float]:
    """Return bit/s sent by the client and received by the server; UDP at `udp_rate` ("10M") if given.

    Raises CommandError with iperf3's output, DeadlineError if it does not start or end in time.
    """
    serving = server.popen(["iperf3", "-s", "-1", "--forceflush", "-p", str(port)], stderr=subprocess.STDOUT)
    try:
        _await_listening(serving)
        argv = ["iperf3", "-J", "-c", str(server.IP()), "-p", str(port), "-t", str(seconds)]
        argv += ["-u", "-b", udp_rate] if udp_rate else []
        return _transfer(client, argv, seconds + TRANSFER_END_S)
    finally:
        serving.kill()
        serving.communicate(timeout=TRANSFER_END_S)


def format_rate(bps: float, unit: str | None = None) -> str:
    """Return `9.41 Mbits/sec`; `unit` is k, m or g, or None for a unit by size."""
    prefix = unit.lower() if unit else ("g" if bps >= 1e9 else "m" if bps >= 1e6 else "k")
    return (
        f"{bps / _UNITS[prefix]:.3g} {prefix.replace('k', 'K').replace('m', 'M').replace('g', 'G')}bits/sec"
    )


def _await_listening(serving: subprocess.Popen[Any]) -> None:
    assert serving.stdout is not None
    deadline = time.monotonic() + LISTEN_S
    seen = b""
    while b"listening" not in seen:
        left_s = deadline - time.monotonic()
        if left_s <= 0 or not select.select([serving.stdout], [], [], left_s)[0]:
            raise DeadlineError(
                f"starting iperf3 -s: it did not listen within {LISTEN_S:g} s; output {seen.decode()!r}"
            )
        chunk = os.read(serving.stdout.fileno(), 4096)
        if not chunk:
            raise CommandError(f"iperf3 -s exited with {serving.wait(1)}: {seen.decode().strip()}")
        seen += chunk


def _transfer(client: FabricHost, argv: list[str], deadline_s: float) -> tuple[float, float]:
    running = client.popen(argv, stderr=subprocess.STDOUT)
    try:
        text, _ = running.communicate(timeout=deadline_s)
    except subprocess.TimeoutExpired:
        running.kill()
        running.communicate(timeout=TRANSFER_END_S)
        raise DeadlineError(
            f"{' '.join(argv)} did not end within {deadline_s:g} s; check whether a link is down"
        ) from None
    try:
        report = json.loads(text)
        sent = report["end"].get("sum_sent") or report["end"]["sum"]
        received = report["end"].get("sum_received") or report["end"]["sum"]
        return float(sent["bits_per_second"]), float(received["bits_per_second"])
    except (ValueError, KeyError) as error:
        words = text.decode(errors="replace").strip()[-300:]
        raise CommandError(f"{' '.join(argv)} (exit {running.returncode}): {words}") from error
