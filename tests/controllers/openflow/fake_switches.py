"""Fake switches that keep the rules they get and confirm barriers on request, and walks of packets."""

from __future__ import annotations

import ipaddress
import struct

from controllers.hashing import PROTO_TCP, FiveTuple
from controllers.openflow.config import Mode
from controllers.openflow.messages import (
    Barrier,
    Clear,
    DropChoice,
    Install,
    Message,
    Punt,
    Remove,
    Send,
    SetChoice,
)
from controllers.openflow.program import EcmpController
from controllers.rules import Choice, Match
from topos import Topology
from topos.topology import SwitchPorts


def tcp(src: str = "10.0.0.2", dst: str = "10.3.1.3", sport: int = 40000, dport: int = 5001) -> FiveTuple:
    return FiveTuple(src, dst, PROTO_TCP, sport, dport)


def frame(flow: FiveTuple) -> bytes:
    """Return the first bytes of an Ethernet frame of this flow."""
    src, dst = (ipaddress.IPv4Address(ip).packed for ip in (flow.src, flow.dst))
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40, 0, 0x4000, 64, flow.proto, 0, src, dst)
    return bytes(12) + b"\x08\x00" + ip + struct.pack("!HH", flow.sport, flow.dport) + bytes(16)


def applies(match: Match, flow: FiveTuple) -> bool:
    if ipaddress.IPv4Address(flow.dst) not in ipaddress.IPv4Network(f"{match.dst}/{match.bits}"):
        return False
    asked = (match.src, match.proto, match.sport, match.dport)
    header = (flow.src, flow.proto, flow.sport, flow.dport)
    return all(want in (None, have) for want, have in zip(asked, header, strict=True))


class FakeSwitches:
    """A network of fake switches under one EcmpController. `sent` has all messages to them, in order."""

    def __init__(
        self, topology: Topology, mode: Mode, policy: str = "hashed", *, groups: bool = True
    ) -> None:
        self.topology = topology
        self.ports = SwitchPorts(topology)
        self.sent: list[tuple[int, Message]] = []
        self.rules: dict[int, dict[tuple[Match, int], Install]] = {
            topology.dpid(s): {} for s in topology.switches
        }
        self.choices: dict[int, dict[int, Choice]] = {topology.dpid(s): {} for s in topology.switches}
        self.punts: dict[int, set[bool]] = {topology.dpid(s): set() for s in topology.switches}
        self.unconfirmed: list[tuple[int, int]] = []
        self.arrived: list[tuple[bytes, tuple[int, ...]]] = []
        self.programmed = 0
        self.controller = EcmpController(
            topology, policy, 5, mode, self._send, groups=groups, on_programmed=self._count
        )

    def connect_all(self) -> None:
        for switch in self.topology.switches:
            self.controller.switch_connected(self.topology.dpid(switch))
        self.confirm_all()
        self.sent.clear()

    def confirm_one(self) -> None:
        self.controller.barrier_reply(*self.unconfirmed.pop(0))

    def confirm_all(self) -> None:
        while self.unconfirmed:
            self.confirm_one()

    def offer(self, flow: FiveTuple) -> tuple[int, ...] | None:
        """Send a packet from its source host. Return the nodes it passes to its destination, or None if a
        switch drops it or hands it to the controller."""
        nic = self.topology.nic_by_ip(flow.src)
        nodes = self.walk(flow, (nic.host, nic.switch))
        if nodes[-1] in self.topology.hosts:
            return nodes
        if nodes[-1] >= 0:
            self.controller.packet_in(self.topology.dpid(nodes[-1]), 1, frame(flow))
        return None

    def walk(self, flow: FiveTuple, nodes: tuple[int, ...]) -> tuple[int, ...]:
        """Extend `nodes` up to a host, to the switch that hands the packet to the controller, or to -1 where
        it is dropped. A choice takes its first bucket."""
        while nodes[-1] in self.topology.switches:
            assert len(set(nodes)) == len(nodes), f"a loop: {nodes}"
            here = self.topology.dpid(nodes[-1])
            fitting = [rule for rule in self.rules[here].values() if applies(rule.match, flow)]
            if not fitting:
                return nodes if False in self.punts[here] else (*nodes, -1)
            to = max(fitting, key=lambda rule: rule.priority).to
            if to is None:
                return (*nodes, -1)
            port = self.choices[here][to.number].buckets[0].port if isinstance(to, Choice) else to
            nodes = (*nodes, self.ports.neighbour(nodes[-1], port))
        return nodes

    def name(self, nodes: tuple[int, ...]) -> list[str]:
        return [self.topology.nodes[node].name for node in nodes]

    def nodes(self, *names: str) -> tuple[int, ...]:
        return tuple(self.topology.index(name) for name in names)

    def _count(self) -> None:
        self.programmed += 1

    def _send(self, to: int, message: Message) -> None:
        self.sent.append((to, message))
        match message:
            case Clear():
                self.rules[to], self.choices[to], self.punts[to] = {}, {}, set()
            case Install(match, priority):
                if isinstance(message.to, Choice):
                    assert message.to.number in self.choices[to], "a rule before its group"
                self.rules[to][match, priority] = message
            case Remove(match, priority):
                self.rules[to].pop((match, priority), None)
            case SetChoice(choice, new):
                assert new != (choice.number in self.choices[to])
                self.choices[to][choice.number] = choice
            case DropChoice(number):
                del self.choices[to][number]
            case Punt(arp):
                self.punts[to].add(arp)
            case Send(port, sent):
                onward = self.ports.neighbour(self.ports.switch(to), port)
                self.arrived.append((sent, (self.ports.switch(to), onward)))
            case Barrier(number):
                self.unconfirmed.append((to, number))
