"""The controller's logic: from switches' reports to messages for them. No sockets and no clock.

A front end calls the methods when events happen and sends the messages; both front ends share this logic.

Reactive mode: the first packet of a flow arrives from the switch where the flow enters. The rules of its path
go to all other switches first, each confirmed by a barrier, then to that switch, then the packet is sent out.
So no packet reaches a switch before its rule does. Rules expire after IDLE_S seconds without a packet. If an
application moves a running flow, switches get the new rules one after another from the far end, so packets in
flight always find the rest of a path.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise

from common.errors import UsageError
from controllers.hashing import FiveTuple
from controllers.openflow.config import Mode
from controllers.openflow.messages import (
    CHOSEN_PRIORITY,
    EXACT_PRIORITY,
    TABLE_PRIORITY,
    UNKNOWN_PRIORITY,
    ArpRequest,
    Barrier,
    Clear,
    DropChoice,
    Install,
    Message,
    Punt,
    Remove,
    Send,
    SetChoice,
    arp_reply,
    parse,
)
from controllers.rules import Choice, Match, Routes, Rule, exactly
from topos.topology import Kind, Topology

IDLE_S = 10
"""Idle timeout of RipL-POX."""
MAX_HELD = 64
"""Packets of one flow held while its rules are installed; further ones are dropped."""

log = logging.getLogger("refabric.controller")

SendMessage = Callable[[int, Message], None]
"""A function that sends a message to the switch with this datapath id."""


@dataclass
class ControllerCounts:
    """Statistics. `astray` counts packets that were off their flow's path and were sent to its end."""

    packets_in: int = 0
    flows_set_up: int = 0
    rules_told: int = 0
    arp_answered: int = 0
    unknown: int = 0
    astray: int = 0
    held_dropped: int = 0


@dataclass
class _Setup:
    """Rules being installed: batches not yet sent, and the barriers that must arrive before the next."""

    flow: FiveTuple
    nodes: tuple[int, ...]
    priority: int
    batches: list[list[Rule]]
    awaited: set[int] = field(default_factory=set)
    held: list[tuple[int, bytes]] = field(default_factory=list)
    obsolete: list[tuple[int, Remove]] = field(default_factory=list)


class EcmpController:
    """The controller of one network.

    `send` sends messages. `on_programmed` is called once, when every switch has confirmed its first rules.
    `groups`: whether switches have groups; without them proactive rules are one per pair of hosts. `flows`:
    node indices, host to host, of the flows that have their own rules.

    Raises UsageError as `Routes`, and in mode `proactive` for a policy that has no table.
    """

    def __init__(
        self,
        topology: Topology,
        policy: str,
        seed: int,
        mode: Mode,
        send: SendMessage,
        *,
        groups: bool = True,
        on_programmed: Callable[[], None] = lambda: None,
    ) -> None:
        self.topology = topology
        self.mode = mode
        self.counts = ControllerCounts()
        self.flows: dict[FiveTuple, tuple[int, ...]] = {}
        self._policy, self._seed, self._groups = policy, seed, groups
        self._send = send
        self._on_programmed = on_programmed
        self._numbers = count(1)
        self._chosen: dict[FiveTuple, tuple[int, ...]] = {}
        self._setups: dict[FiveTuple, _Setup] = {}
        self._setup_of: dict[int, _Setup] = {}
        self._awaiting_base: dict[int, int] = {}
        self._connected: set[int] = set()
        self._programmed: set[int] = set()
        self._announced = False
        self._ends_down: set[tuple[int, int]] = set()
        self._cut: frozenset[int] = frozenset()
        self._use(Routes(topology, policy, seed))

    # Reports of switches.

    def switch_connected(self, dpid: int) -> None:
        """Program a switch that has connected; this replaces everything it has."""
        self.switch_gone(dpid)
        self._connected.add(dpid)
        self._send(dpid, Clear())
        self._send(dpid, Punt(arp=True))
        if self.mode is not Mode.PROACTIVE:
            self._send(dpid, Punt(arp=False))
        self._change_table(dpid, {}, self._base[dpid])
        if self.mode is Mode.PROACTIVE:
            through = {flow: nodes for flow, nodes in self._chosen.items() if self._on_path(dpid, nodes)}
            self.flows.update(through)
            for rule in [rule for each in through.items() for rule in self.routes.rules(*each)]:
                if rule.dpid == dpid:
                    self._send(dpid, Install(rule.match, CHOSEN_PRIORITY, rule.to))
        self._awaiting_base[self._barrier(dpid)] = dpid

    def knows(self, dpid: int) -> bool:
        """Return whether this switch is connected."""
        return dpid in self._connected

    def switch_gone(self, dpid: int) -> None:
        """Forget a switch whose connection ended. Flows through it are set up again by their next packet."""
        self._connected.discard(dpid)
        self._programmed.discard(dpid)
        self._awaiting_base = {n: other for n, other in self._awaiting_base.items() if other != dpid}
        for setup in [s for s in self._setups.values() if self._on_path(dpid, s.nodes)]:
            self._abandon(setup)
        for flow in [flow for flow, nodes in self.flows.items() if self._on_path(dpid, nodes)]:
            del self.flows[flow]

    def barrier_reply(self, dpid: int, number: int) -> None:
        if number in self._awaiting_base:
            del self._awaiting_base[number]
            self._programmed.add(dpid)
            if not self._announced and len(self._programmed) == len(self.topology.switches):
                self._announced = True
                self._on_programmed()
            return
        setup = self._setup_of.pop(number, None)
        if setup is not None:
            setup.awaited.discard(number)
            if not setup.awaited:
                self._next_batch(setup)

    def packet_in(self, dpid: int, port: int, frame: bytes) -> None:
        """Handle a packet that matches no rule of the switch."""
        self.counts.packets_in += 1
        packet = parse(frame)
        if isinstance(packet, ArpRequest):
            self._answer(dpid, port, packet)
        elif packet is not None:
            self._route(dpid, packet, frame)

    def flow_removed(self, match: Match, priority: int) -> None:
        """Forget a flow whose rule has expired, after a rule with `notify` was deleted."""
        flow = FiveTuple(match.src or "", match.dst, match.proto or 0, match.sport or 0, match.dport or 0)
        if priority == self._priority(flow):
            self.flows.pop(flow, None)

    def port_changed(self, dpid: int, port: int, up: bool) -> None:
        """Handle a change of a port's link.

        When links between switches are cut or restored, tables are computed again. Flows that used a cut
        link get another path with their next packet.
        """
        switch = self.routes.ports.switch(dpid)
        link = self.routes.ports.link_at(switch, port)
        change = self._ends_down.discard if up else self._ends_down.add
        change((link, switch))
        cut = frozenset(link for link, _ in self._ends_down if not self._is_hosts(link))
        if cut != self._cut:
            log.info("links down: %s", ", ".join(self._name_of(link) for link in sorted(cut)) or "none")
            self._cut = cut
            self._reroute()

    # Requests of applications.

    def set_path(self, flow: FiveTuple, nodes: Sequence[int]) -> None:
        """Route this flow along this path (node indices, host to host) until the path is cut or cleared.

        Raises UsageError if it is not a path of the flow.
        """
        self.routes.check(flow, nodes)
        if self.mode is Mode.PROACTIVE and not self._all_connected(nodes):
            raise UsageError("a switch on that path is not connected: wait until it is")
        before = self._chosen.get(flow, ())
        self._chosen[flow] = tuple(nodes)
        if flow not in self._setups and (flow in self.flows or self.mode is Mode.PROACTIVE):
            setup = self._set_up(flow, tuple(nodes), CHOSEN_PRIORITY, one_by_one=True)
            off = [switch for switch in before[1:-1] if switch not in nodes]
            setup.obsolete += [
                (self.topology.dpid(switch), Remove(exactly(flow), CHOSEN_PRIORITY)) for switch in off
            ]
            self._next_batch(setup)

    def clear_path(self, flow: FiveTuple) -> None:
        """Return a flow to normal routing; no effect if its path was not set."""
        before = self._chosen.pop(flow, None)
        if before is not None and flow not in self._setups:  # otherwise `_finish` releases it
            self._release(flow, before)

    def _release(self, flow: FiveTuple, nodes: tuple[int, ...]) -> None:
        """Remove the rules of a path that is no longer set; for a running flow, install others first."""
        obsolete = [
            (self.topology.dpid(switch), Remove(exactly(flow), CHOSEN_PRIORITY)) for switch in nodes[1:-1]
        ]
        usual = self._usual_path(flow) if self.mode is not Mode.PROACTIVE and flow in self.flows else None
        if usual is None:
            for dpid, message in obsolete:
                self._send_connected(dpid, message)
            self.flows.pop(flow, None)
            return
        setup = self._set_up(flow, usual, EXACT_PRIORITY, one_by_one=True)
        setup.obsolete += obsolete
        self._next_batch(setup)

    def _usual_path(self, flow: FiveTuple) -> tuple[int, ...] | None:
        """Return the flow's path by routing; None if links are cut or a switch is not connected."""
        try:
            nodes = self.routes.path(flow)
        except UsageError:
            return None
        return nodes if self._all_connected(nodes) else None

    # Single flows.

    def _answer(self, dpid: int, port: int, request: ArpRequest) -> None:
        try:
            nic = self.topology.nic_by_ip(request.wanted)
        except UsageError:
            self.counts.unknown += 1
            return
        if nic.ip != request.ip:  # a host that announces itself needs no answer
            self.counts.arp_answered += 1
            self._send(dpid, Send(port, arp_reply(request, nic.mac)))

    def _route(self, dpid: int, flow: FiveTuple, frame: bytes) -> None:
        if setup := self._setups.get(flow):
            if len(setup.held) < MAX_HELD:
                setup.held.append((dpid, frame))
            else:
                self.counts.held_dropped += 1
            return
        known = self.flows.get(flow)
        try:
            nodes = self._chosen.get(flow) or known or self.routes.path(flow)
        except UsageError as error:
            log.warning("dropped: %s", error)
            self.counts.unknown += 1
            if not self._is_known(flow.dst):
                self._send(dpid, Install(Match(flow.dst), UNKNOWN_PRIORITY, None, IDLE_S))
            return
        if not self._on_path(dpid, nodes):
            self.counts.astray += 1
            self._deliver(nodes, frame)
        elif known == nodes and dpid == self.topology.dpid(nodes[1]):  # the packet arrived before its rule
            self._put_out(dpid, nodes, frame)
        elif self._all_connected(nodes):
            setup = self._set_up(flow, nodes, self._priority(flow))
            setup.held.append((dpid, frame))
            self._next_batch(setup)
        else:
            self.counts.held_dropped += 1

    def _set_up(
        self, flow: FiveTuple, nodes: tuple[int, ...], priority: int, *, one_by_one: bool = False
    ) -> _Setup:
        rules = [
            rule
            for rule, switch in zip(self.routes.rules(flow, nodes), reversed(nodes[1:-1]), strict=True)
            if priority == CHOSEN_PRIORITY or not self._covered(switch, nodes[-2])
        ]
        batches = [[rule] for rule in rules] if one_by_one else [rules[:-1], rules[-1:]]
        setup = _Setup(flow, nodes, priority, [batch for batch in batches if batch])
        self._setups[flow] = setup
        return setup

    def _next_batch(self, setup: _Setup) -> None:
        """Send the next rules, and wait for their barriers except after the last batch."""
        idle_s = 0 if self.mode is Mode.PROACTIVE else IDLE_S
        while setup.batches and not setup.awaited:
            batch = setup.batches.pop(0)
            for rule in batch:
                notify = idle_s > 0 and rule.dpid == self.topology.dpid(setup.nodes[1])
                self._send(rule.dpid, Install(rule.match, setup.priority, rule.to, idle_s, notify))
                self.counts.rules_told += 1
                number = self._barrier(rule.dpid)
                if setup.batches:
                    setup.awaited.add(number)
                    self._setup_of[number] = setup
        if not setup.awaited:
            self._finish(setup)

    def _finish(self, setup: _Setup) -> None:
        del self._setups[setup.flow]
        self.flows[setup.flow] = setup.nodes
        self.counts.flows_set_up += 1
        for dpid, frame in setup.held:
            if self._on_path(dpid, setup.nodes):
                self._put_out(dpid, setup.nodes, frame)
            else:
                self._deliver(setup.nodes, frame)
        for dpid, message in setup.obsolete:
            self._send_connected(dpid, message)
        chosen, is_chosen = self._chosen.get(setup.flow), setup.priority == CHOSEN_PRIORITY
        if chosen is not None and (chosen != setup.nodes or not is_chosen):  # set during this setup
            self._next_batch(self._set_up(setup.flow, chosen, CHOSEN_PRIORITY, one_by_one=True))
        elif chosen is None and is_chosen:  # cleared during this setup
            self._release(setup.flow, setup.nodes)

    def _abandon(self, setup: _Setup) -> None:
        self._setups.pop(setup.flow, None)
        for number in setup.awaited:
            self._setup_of.pop(number, None)
        self.counts.held_dropped += len(setup.held)

    def _put_out(self, dpid: int, nodes: tuple[int, ...], frame: bytes) -> None:
        switch = self.routes.ports.switch(dpid)
        onward = nodes[nodes.index(switch) + 1]
        self._send(dpid, Send(self.routes.ports.towards(switch, onward), frame))

    def _deliver(self, nodes: tuple[int, ...], frame: bytes) -> None:
        """Send a packet that is off its flow's path to the last switch of the path.

        It followed older rules, which a switch's datapath may use for a moment after the next switch has
        its new ones.
        """
        last = self.topology.dpid(nodes[-2])
        if last in self._connected:
            self._put_out(last, nodes, frame)

    def _priority(self, flow: FiveTuple) -> int:
        return CHOSEN_PRIORITY if flow in self._chosen else EXACT_PRIORITY

    # Tables.

    def _use(self, routes: Routes) -> None:
        self.routes = routes
        self._base = {self.topology.dpid(switch): self._base_of(switch) for switch in self.topology.switches}
        if self.mode is Mode.PROACTIVE and not self._groups:
            for rule in routes.pair_rules():
                self._base[rule.dpid][rule.match] = rule

    def _base_of(self, switch: int) -> dict[Match, Rule]:
        if self.mode is Mode.HYBRID:
            rules: tuple[Rule, ...] = self.routes.downward(switch)
        elif self.mode is Mode.PROACTIVE and self._groups:
            rules = self.routes.table(switch)
        else:
            rules = ()
        return {rule.match: rule for rule in rules}

    def _covered(self, switch: int, attachment: int) -> bool:
        return self.mode is Mode.HYBRID and self.routes.leads_down(switch, attachment)

    def _change_table(self, dpid: int, old: Mapping[Match, Rule], new: Mapping[Match, Rule]) -> None:
        had, has = _choices(old.values()), _choices(new.values())
        for number, choice in has.items():
            if had.get(number) != choice:
                self._send(dpid, SetChoice(choice, new=number not in had))
        for match, rule in new.items():
            if old.get(match) != rule:
                self._send(dpid, Install(match, TABLE_PRIORITY + match.bits, rule.to))
        for match in old.keys() - new.keys():
            self._send(dpid, Remove(match, TABLE_PRIORITY + match.bits))
        for number in had.keys() - has.keys():
            self._send(dpid, DropChoice(number))

    def _reroute(self) -> None:
        before = self._base
        self._use(Routes(self.topology, self._policy, self._seed, self._cut))
        for dpid in sorted(self._connected):
            self._change_table(dpid, before[dpid], self._base[dpid])
        for setup in [s for s in self._setups.values() if self._crosses_cut(s.nodes)]:
            self._abandon(setup)
        for flow, nodes in [item for item in self.flows.items() if self._crosses_cut(item[1])]:
            del self.flows[flow]
            for switch in nodes[1:-1]:
                self._send_connected(self.topology.dpid(switch), Remove(exactly(flow), self._priority(flow)))
        for flow in [flow for flow, nodes in self._chosen.items() if self._crosses_cut(nodes)]:
            log.warning("the path set for %s is cut; the flow returns to routing", flow)
            del self._chosen[flow]
            for dpid in self._connected:  # older rules would never expire while the flow uses them
                self._send(dpid, Remove(exactly(flow), EXACT_PRIORITY))

    def _crosses_cut(self, nodes: Sequence[int]) -> bool:
        return any(self.topology.link_between(a, b) in self._cut for a, b in pairwise(nodes))

    # Switches.

    def _barrier(self, dpid: int) -> int:
        number = next(self._numbers)
        self._send(dpid, Barrier(number))
        return number

    def _send_connected(self, dpid: int, message: Message) -> None:
        if dpid in self._connected:
            self._send(dpid, message)

    def _on_path(self, dpid: int, nodes: Sequence[int]) -> bool:
        return any(self.topology.dpid(switch) == dpid for switch in nodes[1:-1])

    def _all_connected(self, nodes: Sequence[int]) -> bool:
        return all(self.topology.dpid(switch) in self._connected for switch in nodes[1:-1])

    def _is_known(self, ip: str) -> bool:
        return any(nic.ip == ip for nic in self.topology.nics)

    def _is_hosts(self, link: int) -> bool:
        return self.topology.nodes[self.topology.links[link].a].kind is Kind.HOST

    def _name_of(self, link: int) -> str:
        return "-".join(self.topology.nodes[end].name for end in self.topology.links[link].ends)


def _choices(rules: Iterable[Rule]) -> dict[int, Choice]:
    return {rule.to.number: rule.to for rule in rules if isinstance(rule.to, Choice)}
