"""`refabric shell ft,4`: Mininet's CLI on a fabric in private namespaces, on the caller's terminal.

Commands can also be piped in (`echo pingall | refabric shell ft,4`). Then there is no prompt, and the
commands' output goes to stdout.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path

import topos
from engines.emulation.dataplanes.dataplane import DATAPLANES, FABRIC, OVS, DataPlane
from engines.emulation.dataplanes.ovs import relay
from engines.emulation.dataplanes.ovs.controller import reachable
from engines.emulation.sandbox import client
from engines.emulation.sandbox.client import emulation_lock
from engines.emulation.sandbox.inside import Caller, Inside
from engines.emulation.sandbox.isolation import spawn_interactive
from engines.kernel_hosts import USUAL_OPENFLOW, shell_network
from model.spec import OpenFlowSpec, RunSpec
from topos.topology import Topology

DataPlaneFactory = Callable[[RunSpec, Topology, Path, Caller], DataPlane]
LOGS = Path("/tmp")
"""The shell's private folder for logs, which ends with it (inside.py)."""


def main(
    topology: str,
    rate_mbps: float,
    queue_pkts: int,
    *,
    wait_s: float = 0.0,
    dataplane: str = FABRIC,
    openflow: OpenFlowSpec = USUAL_OPENFLOW,
    factory: str = "",
) -> int:
    """Open the shell on `topology` ("ft,4"), with links of `rate_mbps` and queues of `queue_pkts`.

    Returns the exit status. `dataplane` is a name of DATAPLANES; `factory` ("module:function") names a
    DataPlaneFactory to use instead. Raises UsageError, HostUnfitError (no root, or the machine lacks
    something) or BusyError (another emulation runs, after waiting `wait_s`) before anything is started;
    later it raises what spawn_interactive raises.
    """
    spec, built = shell_network(topology, rate_mbps, queue_pkts, dataplane, openflow)
    if not factory:
        DATAPLANES[dataplane].check(spec, built)
    client.require(f"refabric shell {topology}")
    if not factory:
        DATAPLANES[dataplane].check_machine(spec)
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
    topology = topos.build(spec.topology.kind, spec.topology.params)
    make = _factory(inside.request["factory"], inside.caller) or DATAPLANES[spec.dataplane].make
    plane = make(spec, topology, LOGS, inside.caller)
    with FabricNet(topology, plane) as net, net.routes_kept():
        lg.ch.setStream(sys.stdout)
        if sys.stdin.isatty():
            print(_banner(topology, spec), flush=True)
        FabricCLI(net)
    return 0


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
    return (
        f"{topology.kind} {dict(topology.params)}: {len(topology.hosts)} hosts, "
        f"{len(topology.switches)} switches, {len(topology.links)} links of {spec.link.rate_mbps:g} Mb/s, "
        f"queues of {spec.link.queue_pkts} packets.\n"
        f"Try: nodes   net   {host} ping -c3 {other}   iperf {host} {other}   "
        f"link {host} {switch} down   pingall   {rules}exit"
    )


def _say_waiting(owner: str) -> None:
    print(f"waiting for another emulation to end: {owner}", file=sys.stderr, flush=True)
