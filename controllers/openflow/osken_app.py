"""The controller as a process: `python -m controllers.openflow.osken_app CONFIG.json`.

os-ken encodes OpenFlow; connections use asyncio in one thread instead of os-ken's application manager. With
the manager's native threads a closed connection blocks its sender forever without a notification, and it does
not report when it listens. `controllers/openflow/__init__.py` defines the process's output and exit codes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import sys
import time
from pathlib import Path

from common.errors import RefabricError, UsageError
from controllers.openflow.channel import ControllerError, SwitchChannel
from controllers.openflow.config import ControllerConfig, Mode, parse_address, read_config
from controllers.openflow.control import ControlServer
from controllers.openflow.messages import Confirmed, Message, PacketIn, Refusal, Removed, Report
from controllers.openflow.of13 import OPENFLOW_13, OPENFLOW_15, Codec
from controllers.openflow.program import EcmpController
from topos.topology import SwitchPorts

UNFIT = 3
BACKLOG = 1024
"""All switches connect at the same time."""
TAKE_OVER_S = 2.0
"""Maximum time for which a switch's old connection may outlive its new one."""

log = logging.getLogger("refabric.controller")


class Server:
    """Manages the connections and passes events between them and the EcmpController."""

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self.topology = config.build()
        self._ports = SwitchPorts(self.topology)
        self._codec = Codec(OPENFLOW_15 if config.mode is Mode.PROACTIVE else OPENFLOW_13)
        self.channels: dict[int, SwitchChannel] = {}
        self.controller = EcmpController(
            self.topology,
            config.routing,
            config.seed,
            config.mode,
            self._send,
            on_programmed=self._programmed,
        )
        self._ready_s = 0.0
        self._all_there = asyncio.Event()
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Serve until SIGTERM. Raises ControllerError for the errors listed in the contract."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._end)
        listener = await self._listen()
        control = ControlServer(self)
        if self._config.control:
            await control.start(Path(self._config.control))
        self._ready_s = time.monotonic()
        _say(event="ready", listen=self._config.listen)
        try:
            waiting = asyncio.create_task(self._expect_all())
            await self._over
        finally:
            waiting.cancel()
            control.stop()
            listener.close()

    async def _listen(self) -> asyncio.AbstractServer:
        address = parse_address(self._config.listen)
        try:
            if isinstance(address, Path):
                return await asyncio.start_unix_server(self._accept, address, backlog=BACKLOG)
            return await asyncio.start_server(self._accept, *address, backlog=BACKLOG)
        except OSError as error:
            raise ControllerError(f"cannot listen on {self._config.listen}: {error}") from error

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        channel = SwitchChannel(self._codec, reader, writer)
        try:
            await channel.serve(self)
        except ControllerError as error:
            self._fail(error)
        except Exception as error:  # a bug, which asyncio would only log
            if not self._over.done():
                self._over.set_exception(error)
        finally:
            if self.channels.get(channel.dpid) is channel:
                del self.channels[channel.dpid]
                self.controller.switch_gone(channel.dpid)

    async def _expect_all(self) -> None:
        try:
            await asyncio.wait_for(self._all_there.wait(), self._config.connect_s)
        except TimeoutError:
            absent = [s for s in self.topology.switches if self.topology.dpid(s) not in self.channels]
            short = {
                s: self._missing(c)
                for s in self.topology.switches
                if (c := self.channels.get(self.topology.dpid(s)))
            }
            parts = [f"{self._name(s)} lacks port {', '.join(map(str, m))}" for s, m in short.items() if m]
            if absent:
                parts.append(f"{len(absent)} did not connect, the first of them {self._name(absent[0])}")
            why = "; ".join(parts) or "some did not confirm their rules"
            self._fail(
                ControllerError(f"not all switches are ready after {self._config.connect_s:g} s: {why}")
            )

    # Events of a SwitchChannel.

    async def identified(self, channel: SwitchChannel, dpid: int) -> None:
        try:
            switch = self._ports.switch(dpid)
        except UsageError as error:
            raise ControllerError(str(error)) from error
        if old := self.channels.get(dpid):
            try:
                await asyncio.wait_for(old.closed.wait(), TAKE_OVER_S)
            except TimeoutError:
                raise ControllerError(
                    f"two switches connected with the datapath id {dpid:#x} of {self._name(switch)}"
                ) from None
        self.channels[dpid] = channel

    def ports_changed(self, channel: SwitchChannel) -> None:
        switch = self._ports.switch(channel.dpid)
        if extra := sorted(set(channel.ports) - set(range(1, len(self._ports.links[switch]) + 1))):
            wanted = len(self._ports.links[switch])
            raise ControllerError(
                f"switch {self._name(switch)} has a port {extra[0]}, but only {wanted} links"
            )
        if self._missing(channel):
            return
        if not self.controller.knows(channel.dpid):
            log.info("switch %s connected", self._name(switch))
            self.controller.switch_connected(channel.dpid)
        for port, up in channel.ports.items():
            self.controller.port_changed(channel.dpid, port, up)

    def reported(self, channel: SwitchChannel, report: Report) -> None:
        if not self.controller.knows(channel.dpid):
            return
        match report:
            case PacketIn(port, frame):
                self.controller.packet_in(channel.dpid, port, frame)
            case Confirmed(number):
                self.controller.barrier_reply(channel.dpid, number)
            case Removed(match, priority):
                self.controller.flow_removed(match, priority)
            case Refusal(_, what):
                name = self._name(self._ports.switch(channel.dpid))
                group = "GROUP_MOD" in what
                hint = "; mode proactive needs groups that specify their hash: choose hybrid" if group else ""
                raise ControllerError(f"switch {name} rejected a message: {what}{hint}")

    def _send(self, dpid: int, message: Message) -> None:
        self.channels[dpid].send(message)

    def _programmed(self) -> None:
        self._all_there.set()
        seconds = round(time.monotonic() - self._ready_s, 3)
        _say(event="programmed", switches=len(self.topology.switches), seconds=seconds)

    def _missing(self, channel: SwitchChannel) -> list[int]:
        wanted = range(1, len(self._ports.links[self._ports.switch(channel.dpid)]) + 1)
        return [port for port in wanted if port not in channel.ports]

    def _name(self, switch: int) -> str:
        return self.topology.nodes[switch].name

    def _end(self) -> None:
        if not self._over.done():
            self._over.set_result(None)

    def _fail(self, error: ControllerError) -> None:
        log.error("%s", error)
        if not self._over.done():
            self._over.set_exception(error)


def _say(**event: object) -> None:
    print(json.dumps(event), flush=True)


async def _serve(config: ControllerConfig) -> None:
    await Server(config).run()


def main(arguments: list[str]) -> int:
    """Run the controller. Exit code: 0 after SIGTERM, 2 for an invalid configuration, else 3."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    if len(arguments) != 1:
        print("usage: python -m controllers.openflow.osken_app CONFIG.json", file=sys.stderr)
        return 2
    try:
        asyncio.run(_serve(read_config(Path(arguments[0]))))
    except RefabricError as error:
        print(f"controller: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else UNFIT
    return 0


if __name__ == "__main__":
    os.environ.setdefault("OSKEN_HUB_TYPE", "native")
    sys.exit(main(sys.argv[1:]))
