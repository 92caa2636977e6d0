"""`refabric shell ft,4`: Mininet's CLI on a fabric in private namespaces, on the caller's terminal.

Commands can also be piped in (`echo pingall | refabric shell ft,4`). Then there is no prompt, and the
commands' output goes to stdout. Hosts are set up as for a run: its sysctls, congestion control and subflows.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NoReturn

from common.errors import HostUnfitError
from engines.emulation.congestion.agent import installed
from engines.emulation.congestion.ranks import HIDE_SACKS, on_interfaces
from engines.emulation.dataplanes.dataplane import DATAPLANES, OVS, DataPlane
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.dataplanes.ovs.controller import reachable
from engines.emulation.hosts.hosts import HostOptions, restricted, sysctls_of
from engines.emulation.kernel import mptcp_genl
from engines.emulation.kernel.mptcp_genl import MptcpEvent, PathManagement
from engines.emulation.kernel.namespaces import MS_BIND, HostRef, mount
from engines.emulation.path_manager import MptcpWatcher, PathManager, signal_path_manager
from engines.emulation.sandbox import client
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.sandbox.isolation import spawn_interactive
from engines.emulation.traffic.driver import subflow_paths
from engines.emulation.traffic.iperf3 import prefer_congestion_control
from engines.kernel_hosts import MINTCP
from model.congestion import kernel_name
from model.flows import AddressPair
from model.spec import RunSpec
from topos.topology import Topology

DataPlaneFactory = Callable[[RunSpec, Topology, Path, Caller], DataPlane]
LOGS = Path("/tmp")
"""The shell's private folder for logs, which ends with it (inside.py)."""
NAMES = Path("/etc/hosts")
NO_READER = 128 + signal.SIGPIPE


def main(spec: RunSpec, command: str = "refabric shell", *, wait_s: float = 0.0, factory: str = "") -> int:
    """Open the shell on the network of `spec`, with its links and transport.

    Returns the exit status. `command` is what the user typed, for messages. `factory` ("module:function")
    names a DataPlaneFactory to use instead of the spec's data plane. Raises UsageError, HostUnfitError (no
    root, or the machine lacks something) or BusyError (another emulation runs, after waiting `wait_s`) before
    anything is started; later it raises what spawn_interactive raises.
    """
    from engines.emulation import engine  # noqa: PLC0415 -- without its readers of results inside

    topology = spec.network()
    if factory:
        client.require(command)
    else:
        engine.check_with(spec, topology, (), command)
    request = {"spec": spec.to_json(), "factory": factory}
    with reachable(spec) as given, emulation_lock(wait_s, _say_waiting):
        return spawn_interactive("shell", request, give=given)


def inside(inside: Inside) -> int:
    """Run the shell in the private namespaces."""
    # Import Mininet here only: it takes 0.15 s, which the outer process can save.
    from mininet.log import lg  # noqa: PLC0415

    from engines.emulation.hosts.network import FabricCLI, FabricNet  # noqa: PLC0415

    if inside.caller.folder >= 0:
        os.fchdir(inside.caller.folder)
    relay.take(inside.given)
    spec = RunSpec.from_json(inside.request["spec"])
    topology = spec.network()
    make = _factory(inside.request["factory"], inside.caller) or DATAPLANES[spec.dataplane].make
    plane = make(spec, topology, LOGS, inside.caller)
    cc = spec.transport.cc
    sysctls = {**sysctls_of(spec, topology, ()), **spec.transport.sysctls}
    with ExitStack() as stack:
        _name_hosts(topology)
        congestion, _ = installed(spec, [cc], inside.caller.user, stack)
        net = stack.enter_context(FabricNet(topology, plane, HostOptions(sysctls)))
        stack.enter_context(net.routes_kept())
        hosts = net.host_refs()
        congestion.admit(hosts)
        watcher = _subflows(spec, topology, hosts, stack)
        if not prefer_congestion_control(dict.fromkeys(hosts, kernel_name(cc))):
            raise HostUnfitError(f"--cc {cc}: {restricted(kernel_name(cc))}")
        hidden = [HIDE_SACKS] if cc == MINTCP else []
        stack.enter_context(on_interfaces(hidden, {host.name: host for host in hosts}, topology))
        lg.ch.setStream(sys.stdout)
        lg.ch.handleError = _reader_is_gone
        if sys.stdin.isatty():
            print(_banner(topology, spec), flush=True)
        try:
            FabricCLI(net, [plane.check, *([watcher.reports] if watcher else [])])
        except BrokenPipeError:
            return NO_READER
    return 0


def _reader_is_gone(_record: object) -> NoReturn:
    """Pass on that nobody reads the output, as in `refabric shell ... | head`, instead of logging it."""
    failure = sys.exception()
    assert failure is not None
    raise failure


def _subflows(
    spec: RunSpec, topology: Topology, hosts: Sequence[HostRef], stack: ExitStack
) -> MptcpWatcher | None:
    """Give every MPTCP connection between hosts the spec's subflows; None for a spec of plain TCP."""
    subflows = spec.transport.subflows
    if subflows == 1:
        return None
    policy, ours = subflow_paths(topology, subflows), {nic.ip for nic in topology.nics}

    def pairs(event: MptcpEvent) -> Sequence[AddressPair]:
        return policy(event) if {event.path.laddr, event.path.raddr} <= ours else ()

    def any_ports(sport: int, dport: int) -> bool:
        del sport, dport
        return True

    if mptcp_genl.support().level is PathManagement.USERSPACE:
        return stack.enter_context(PathManager(hosts, subflows, any_ports, pairs))
    servers = {host: topology.nics_of(topology.index(host.name))[0].ip for host in hosts}
    return stack.enter_context(signal_path_manager(hosts, subflows, any_ports, servers))


def _name_hosts(topology: Topology) -> None:
    """Let programs find hosts by name: add them to the run's own /etc/hosts."""
    if not NAMES.exists():
        print(f"*** {NAMES} is missing: programs must use addresses instead of hosts' names", flush=True)
        return
    lines = [f"{topology.nics_of(host)[0].ip} {topology.nodes[host].name}" for host in topology.hosts]
    own = LOGS / "hosts"
    own.write_text("\n".join([*lines, NAMES.read_text(errors="replace")]))
    own.chmod(0o644)
    mount(str(own), str(NAMES.resolve()), flags=MS_BIND)


def _factory(name: str, caller: Caller) -> DataPlaneFactory | None:
    """Return the function that a test names, where the outer process is root itself."""
    if not name or caller.user is not None:
        return None
    module, _, function = name.partition(":")
    factory: DataPlaneFactory = getattr(importlib.import_module(module), function)
    return factory


def _banner(topology: Topology, spec: RunSpec) -> str:
    host, other = (topology.nodes[topology.hosts[end]].name for end in (0, -1))
    rules = "dpctl dump-flows   " if spec.dataplane == OVS else ""
    switch = topology.nodes[topology.nics_of(topology.hosts[0])[0].switch].name
    params = {name: value for name, value in topology.params.items() if name != "network"}
    mptcp = f", MPTCP with {spec.transport.subflows} subflows" if spec.transport.subflows > 1 else ""
    return (
        f"{topology.kind} {params}: {len(topology.hosts)} hosts, "
        f"{len(topology.switches)} switches, {len(topology.links)} links of {spec.link.rate_mbps:g} Mb/s, "
        f"queues of {spec.link.queue_pkts} packets; {spec.transport.cc}{mptcp}.\n"
        f"Try: nodes   net   {host} ping -c3 {other}   iperf {host} {other}   "
        f"link {host} {switch} down   pingall   {rules}exit"
    )


def _say_waiting(owner: str) -> None:
    print(f"waiting for another emulation to end: {owner}", file=sys.stderr, flush=True)
