"""`refabric shell ft,4`: Mininet's command line on a fabric, in private namespaces, on the caller's terminal.

Commands can also be piped in (`echo pingall | refabric shell ft,4`): then there is no prompt, and what
the commands print goes to stdout.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import topos
from engines.emulation.dataplane import DataPlane
from engines.emulation.engine import check_hosts
from engines.emulation.inside import Inside
from engines.emulation.isolation import require_root, spawn_interactive
from engines.emulation.lock import Owner, emulation_lock
from fabric.errors import UsageError
from topos.topology import Topology

DataPlaneFactory = Callable[[Topology, float, int], DataPlane]
FABRIC = "engines.emulation.shell:make_dataplane"


def main(
    topology: str, rate_mbps: float, queue_pkts: int, *, wait_s: float = 0.0, dataplane: str = FABRIC
) -> int:
    """Open the shell on `topology` ("ft,4"), every link of `rate_mbps` with queues of `queue_pkts`.

    Returns the exit status. `dataplane` names the DataPlaneFactory, "module:function". Raises
    UsageError, HostUnfitError (not root), BusyError (another emulation, after waiting `wait_s`) before
    anything is started; what spawn_interactive raises after.
    """
    kind, params = topos.parse(topology)
    built = topos.build(kind, params)
    check_hosts(built)
    if not rate_mbps > 0:
        raise UsageError(f"the link rate must be above 0 Mb/s, not {rate_mbps:g}")
    if queue_pkts < 1:
        raise UsageError(f"a queue must hold at least 1 packet, not {queue_pkts}")
    require_root(f"refabric shell {topology}")
    request = {
        "kind": built.kind,
        "params": dict(built.params),
        "rate_mbps": rate_mbps,
        "queue_pkts": queue_pkts,
        "dataplane": dataplane,
    }
    with emulation_lock(wait_s, _say_waiting):
        return spawn_interactive("engines.emulation.shell:inside", request)


def make_dataplane(topology: Topology, rate_mbps: float, queue_pkts: int) -> DataPlane:
    """The C++ core in real time, hashed paths."""
    from engines.emulation.fabric_dataplane import shell_dataplane  # noqa: PLC0415 (only inside)

    return shell_dataplane(topology, rate_mbps, queue_pkts)


def inside(inside: Inside) -> int:
    """The shell itself, in the private namespaces."""
    # Mininet takes 0.15 s to import, which the outer process need not spend.
    from mininet.log import lg  # noqa: PLC0415

    from engines.emulation.fabric_cli import FabricCLI  # noqa: PLC0415
    from engines.emulation.network import FabricNet  # noqa: PLC0415

    request = inside.request
    topology = topos.build(request["kind"], request["params"])
    plane = _factory(request["dataplane"])(topology, request["rate_mbps"], request["queue_pkts"])
    with FabricNet(topology, plane) as net:
        lg.ch.setStream(sys.stdout)
        if sys.stdin.isatty():
            print(_banner(topology, request), flush=True)
        FabricCLI(net)
    return 0


def _factory(name: str) -> DataPlaneFactory:
    module, _, function = name.partition(":")
    factory: DataPlaneFactory = getattr(importlib.import_module(module), function)
    return factory


def _banner(topology: Topology, request: dict[str, Any]) -> str:
    host, other = (topology.nodes[topology.hosts[end]].name for end in (0, -1))
    switch = topology.nodes[topology.nics_of(topology.hosts[0])[0].switch].name
    return (
        f"{topology.kind} {dict(topology.params)}: {len(topology.hosts)} hosts, "
        f"{len(topology.switches)} switches, {len(topology.links)} links of {request['rate_mbps']:g} Mb/s, "
        f"queues of {request['queue_pkts']} packets.\n"
        f"Try: nodes   net   {host} ping -c3 {other}   iperf {host} {other}   "
        f"link {host} {switch} down   pingall   exit"
    )


def _say_waiting(owner: Owner) -> None:
    print(f"waiting for another emulation to end: {owner}", file=sys.stderr, flush=True)
