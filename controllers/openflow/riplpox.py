"""RipL-POX for current POX: our controller as a POX component, with RipL-POX's command line.

    POX_DIR=/path/to/pox python -m controllers.openflow.riplpox --topo=ft,4 --routing=hashed --mode=reactive

This starts POX with this component, its OpenFlow listener, and any POX components named after it (`...
log.level --DEBUG`). POX's own command line finds the component through `controllers/pox_ext`. POX listens on
port 6633; `openflow.of_01 --port=6653` changes that.

RipL-POX learns a host's switch from every packet that reaches the controller, even from packets in the middle
of their path, so it learns wrong locations. Here the topology defines where hosts are. RipL-POX also hashes
in the machine's byte order; here the hash is the fabric's (controllers/hashing.py).

OpenFlow 1.0 has no groups: in mode `proactive` all flows between two hosts share a path, as in RipL-POX. The
controller of a run (`--controller pox`) is `pox_app.py`.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import topos
from common.errors import HostUnfitError, UsageError
from controllers.openflow.config import ControllerConfig, mode_of
from controllers.openflow.messages import Message
from controllers.openflow.of10 import LAST_PORT, encode
from controllers.openflow.program import EcmpController
from controllers.rules import Match
from topos.topology import SwitchPorts

ROUTINGS = {"hashed": "hashed", "random": "random", "st": "spanning-tree"}
"""RipL-POX's names for the routing policies."""
USUAL = Path(__file__).parents[2] / ".pox"
"""Default location of POX, used by `setup/install.sh --pox`."""
PORT_DOWN, LINK_DOWN = 1, 1
"""OFPPC_PORT_DOWN in a port's config, OFPPS_LINK_DOWN in its state."""


class PoxConnection(Protocol):
    """The part of POX's connection to a switch that is used here."""

    dpid: int
    features: Any
    sock: socket.socket

    def send(self, data: bytes) -> None: ...
    def disconnect(self, msg: str = ...) -> None: ...


class RiplPox:
    """Handles the events of POX's `core.openflow`, which finds the handlers by their names."""

    def __init__(
        self,
        config: ControllerConfig,
        on_programmed: Callable[[], None],
        on_fault: Callable[[str], None],
    ) -> None:
        """`on_fault` is called for an unusable switch or a rejected message. Raises UsageError for an unknown
        topology, routing or mode."""
        topology = config.build()
        self._on_fault = on_fault
        self._ports = SwitchPorts(topology)
        self._names = [node.name for node in topology.nodes]
        self._connections: dict[int, PoxConnection] = {}
        self.controller = EcmpController(
            topology,
            config.routing,
            config.seed,
            config.mode,
            self._send,
            groups=False,
            on_programmed=on_programmed,
        )

    def _handle_ConnectionUp(self, event: Any) -> None:
        connection: PoxConnection = event.connection
        number = int(connection.dpid)
        found = {port.port_no for port in connection.features.ports if port.port_no < LAST_PORT}
        try:
            switch = self._ports.switch(number)
        except UsageError as error:
            return self._refuse(connection, str(error))
        wanted = set(range(1, len(self._ports.links[switch]) + 1))
        if found != wanted:
            return self._refuse(
                connection, f"{self._names[switch]} has ports {sorted(found)}, not {sorted(wanted)}"
            )
        if self.controller.knows(number):
            return self._refuse(connection, f"a second switch has the datapath id of {self._names[switch]}")
        # A rule and its barrier are two small writes: the second must not wait for the first's ACK.
        connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connections[number] = connection
        self.controller.switch_connected(number)
        for port in connection.features.ports:
            self._port(number, port)
        return None

    def _handle_ConnectionDown(self, event: Any) -> None:
        if self._knows(event):
            del self._connections[event.connection.dpid]
            self.controller.switch_gone(event.connection.dpid)

    def _handle_PacketIn(self, event: Any) -> None:
        if self._knows(event):
            self.controller.packet_in(event.connection.dpid, event.port, bytes(event.data))

    def _handle_BarrierIn(self, event: Any) -> None:
        if self._knows(event):
            self.controller.barrier_reply(event.connection.dpid, event.xid)

    def _handle_FlowRemoved(self, event: Any) -> None:
        """Handle the deletion of a flow's rule; other rules do not request a notification."""
        gone = event.ofp.match
        match = Match(str(gone.nw_dst), 32, str(gone.nw_src), gone.nw_proto, gone.tp_src, gone.tp_dst)
        self.controller.flow_removed(match, event.ofp.priority)

    def _handle_PortStatus(self, event: Any) -> None:
        if self._knows(event):
            try:
                self._port(event.connection.dpid, event.ofp.desc, there=not event.deleted)
            except UsageError as error:  # a port without a link
                self._on_fault(str(error))

    def _handle_ErrorIn(self, event: Any) -> None:
        self._on_fault(f"switch {event.connection.dpid:#x} rejected a message: {event.asString()}")

    def _knows(self, event: Any) -> bool:
        connection: PoxConnection = event.connection
        return self._connections.get(connection.dpid) is connection

    def _port(self, dpid: int, port: Any, *, there: bool = True) -> None:
        if port.port_no < LAST_PORT:
            up = there and not port.config & PORT_DOWN and not port.state & LINK_DOWN
            self.controller.port_changed(dpid, port.port_no, up)

    def _refuse(self, connection: PoxConnection, why: str) -> None:
        self._on_fault(why)
        connection.disconnect(why)

    def _send(self, dpid: int, message: Message) -> None:
        self._connections[dpid].send(encode(message))


def ripl_config(topo: str, routing: str, mode: str, seed: str) -> ControllerConfig:
    """Convert RipL-POX's options to a configuration. Raises UsageError for unknown values."""
    if routing not in ROUTINGS:
        raise UsageError(f"unknown routing '{routing}': choose one of {', '.join(ROUTINGS)}")
    if not seed.isdecimal():
        raise UsageError(f"the seed must be a number from 0, not '{seed}'")
    kind, params = topos.parse(topo)
    return ControllerConfig(kind, params, ROUTINGS[routing], int(seed), mode_of(mode))


def listen_to(core: Any, component: RiplPox) -> None:
    """Register the component with POX's core, and with its OpenFlow part when that is ready."""
    core.register("riplpox", component)
    core.call_when_ready(lambda: core.openflow.addListeners(component), ["openflow"])


def launch(topo: str, routing: str = "hashed", mode: str = "reactive", seed: str = "0") -> bool | None:
    """Start the component with the options of the command line; POX calls this. False ends POX."""
    from pox.core import core  # noqa: PLC0415 -- importable only inside POX

    log = core.getLogger("riplpox")
    try:
        component = RiplPox(
            ripl_config(topo, routing, mode, seed), lambda: log.info("all switches are programmed"), log.error
        )
    except UsageError as error:
        log.error("%s", error)
        return False
    listen_to(core, component)
    return None


def pox_dir(environment: Mapping[str, str], usual: Path = USUAL) -> Path:
    """Return POX's folder: POX_DIR, else the default. Raises HostUnfitError if POX is not there."""
    home = Path(environment.get("POX_DIR") or usual)
    if not (home / "pox" / "boot.py").is_file():
        raise HostUnfitError(
            f"POX was not found in {home}: run setup/install.sh --pox, or set POX_DIR to a checkout"
        )
    return home


def boot_pox(arguments: list[str]) -> None:
    """Run POX with this command line until it ends. Raises HostUnfitError if POX is not installed."""
    sys.path.insert(0, str(pox_dir(os.environ)))
    from pox.boot import boot  # noqa: PLC0415 -- importable only now

    boot(arguments)


def main(arguments: list[str]) -> int:
    try:
        boot_pox(["controllers.openflow.riplpox", *arguments])
    except HostUnfitError as error:
        print(f"riplpox: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
