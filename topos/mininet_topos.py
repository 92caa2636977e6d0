"""The topologies for stock Mininet: `mn --custom topos/mininet_topos.py --topo ft,4 --test none`.

Names, interfaces, addresses and MACs are those of `topos.build`. The trees have loops, so switches that learn
and flood need spanning tree: `--controller none --switch ovsbr,stp=1` (`datapath=user` without the kernel
module) or `lxbr,stp=1` (needs bridge-utils), and half a minute before the first ping.

`mn` executes this file without `__file__` or a module name, and copies all its globals. The file therefore
finds the repository by its code object, and keeps all names but `topos` private.
"""

import sys as _sys
from functools import partial as _partial
from pathlib import Path as _Path
from typing import Any as _Any

from mininet.topo import Topo as _Topo

_ROOT = str(_Path(_sys._getframe().f_code.co_filename).resolve().parent.parent)
if _ROOT not in _sys.path:
    _sys.path.insert(0, _ROOT)

from common.errors import UsageError as _UsageError  # noqa: E402
from topos import TOPOLOGIES as _TOPOLOGIES  # noqa: E402
from topos import build as _build  # noqa: E402
from topos.topology import Kind as _Kind  # noqa: E402
from topos.topology import Topology as _Topology  # noqa: E402


class _RefabricTopo(_Topo):  # type: ignore[misc]  # Mininet has no types
    """A Mininet Topo that copies one of our topologies and passes on the options of `Topo`."""

    def build(self, topology: _Topology) -> None:
        names = [node.name for node in topology.nodes]
        for number, node in enumerate(topology.nodes):
            nics = topology.nics_of(number)
            if node.kind is _Kind.HOST:
                self.addHost(node.name, ip=f"{nics[0].ip}/8", mac=nics[0].mac)
            else:
                # Mininet would derive the dpid from the name's first number: the pod, for most switches.
                self.addSwitch(node.name, dpid=f"{topology.dpid(number):016x}")
        nic_of_link = {nic.link: nic for nic in topology.nics}
        for number, link in enumerate(topology.links):
            nic = nic_of_link.get(number)
            address = {"addr1": nic.mac, "params1": {"ip": f"{nic.ip}/8"}} if nic else {}
            self.addLink(names[link.a], names[link.b], **address)


def _construct(kind: str, *args: int, **params: _Any) -> _RefabricTopo:
    names = [parameter.name for parameter in _TOPOLOGIES[kind].parameters]
    # Mininet's splitArgs converts "4" to 4 and leaves other text; surplus numbers get unknown names.
    sizes = {names[i] if i < len(names) else f"{names[0]}{i + 1}": value for i, value in enumerate(args)}
    options = {name: params.pop(name) for name in ("hopts", "sopts", "lopts") if name in params}
    try:
        return _RefabricTopo(_build(kind, {**sizes, **params}), **options)
    except _UsageError as error:
        # Raise SystemExit, because `mn` answers any Exception by cleaning up the whole machine.
        raise SystemExit(f"refabric: {error}") from error


topos = {
    name: _partial(_construct, kind)
    for kind, family in _TOPOLOGIES.items()
    if not family.written
    for name in (kind, family.alias)
}
