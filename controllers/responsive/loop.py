"""Monitors, controller and their messages on one network, driven by a clock.

Messages have a delay and a loss; the controller, or some of the monitors, may be out for a time.
"""

from __future__ import annotations

import heapq
import math
import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controllers.hashing import FiveTuple
from controllers.responsive.controller import (
    Close,
    Demand,
    Grant,
    Monitor,
    Move,
    Order,
    Path,
    Request,
    Settings,
    SubflowController,
    Unknown,
)

NS_PER_S = 1_000_000_000


class Outage:
    """One interval in which either the controller is down, or each monitor is down with probability
    `down_monitors`. Times are in ns."""

    def __init__(self, settings: Settings, seed: int) -> None:
        self.from_ns = ns(settings.down_at_s)
        self.until_ns = self.from_ns + ns(settings.down_for_s)
        self._share = settings.down_monitors
        self._seed = seed
        self._hit: dict[str, bool] = {}

    @property
    def of_monitors(self) -> bool:
        return self._share > 0

    def hits(self, src: str) -> bool:
        """Return whether the monitor of the sender `src` is one of those that go down."""
        if src not in self._hit:
            self._hit[src] = random.Random(f"{self._seed} {src}").random() < self._share
        return self._hit[src]

    def now(self, now_ns: int) -> bool:
        return self.from_ns <= now_ns < self.until_ns

    def controller_is_up(self, now_ns: int) -> bool:
        return self.of_monitors or not self.now(now_ns)

    def monitor_is_up(self, src: str, now_ns: int) -> bool:
        return not (self.of_monitors and self.now(now_ns) and self.hits(src))


def ns(seconds: float) -> int:
    return round(seconds * NS_PER_S)


HEADER_BYTES = 66
"""Ethernet, IP, and TCP with timestamps."""
FLOW_BYTES, RATE_BYTES, COUNT_BYTES, NODE_BYTES = 13, 4, 1, 2
"""A 5-tuple, a rate, a subflow's number or a bit for each subflow, and a node of a path."""
RULE_BYTES = HEADER_BYTES + 120
"""A message that installs a rule for one flow: OpenFlow 1.3's FLOW_MOD with an exact match and one action."""


@dataclass(frozen=True)
class Begun:
    """A flow has begun. Its monitor sends it, and repeats it until the demand arrives. `paths` are those of
    the flow's subflows, with their numbers, if a controller that has started again asks for them."""

    flow: FiveTuple
    paths: tuple[tuple[int, Path], ...] = ()


@dataclass(frozen=True)
class Ended:
    """A flow has ended. Its monitor sends it, and repeats it until a demand of 0 arrives."""

    flow: FiveTuple


@dataclass(frozen=True)
class Done:
    """A monitor has carried out this order, or found that it had."""

    order: Close | Move


@dataclass(frozen=True)
class Restarted:
    """The controller has started again and knows nothing; sent to the monitor of the sender `src`."""

    src: str


Message = Begun | Ended | Restarted | Request | Done | Demand | Grant | Move | Close | Unknown


def size_bytes(message: Message) -> int:
    """Return the bytes of a message on the wire."""
    size = HEADER_BYTES + FLOW_BYTES
    match message:
        case Restarted():
            size = HEADER_BYTES
        case Begun():
            size += sum(COUNT_BYTES + NODE_BYTES * len(path) for _, path in message.paths)
        case Request():
            size += RATE_BYTES + COUNT_BYTES
        case Demand():
            size += RATE_BYTES
        case Grant() | Move():
            size += COUNT_BYTES + NODE_BYTES * len(message.path)
        case Close() | Done():
            size += COUNT_BYTES
    return size


class MessageChannel:
    """Messages under way, in the order in which they arrive. Times are in ns.

    `messages` were sent, and `lost` of them were lost. `rules` are installed in switches, one for each switch
    of a path that is granted or moved to; their bytes are included in `octets`.
    """

    def __init__(self, delay_ns: int, loss: float, seed: int) -> None:
        self.messages = self.lost = self.rules = self.octets = 0
        self._delay_ns = delay_ns
        self._loss = loss
        self._rng = random.Random(seed)
        self._heap: list[tuple[int, int, Message]] = []

    @property
    def next_ns(self) -> int | None:
        """Return when the next message arrives; None if none is under way."""
        return self._heap[0][0] if self._heap else None

    def send(self, message: Message, now_ns: int) -> None:
        self.messages += 1
        self.octets += size_bytes(message)
        if isinstance(message, Grant | Move):
            switches = len(message.path) - 2
            self.rules += switches
            self.octets += switches * RULE_BYTES
        if self._loss and self._rng.random() < self._loss:
            self.lost += 1
            return
        heapq.heappush(self._heap, (now_ns + self._delay_ns, self.messages, message))

    def arrived(self, now_ns: int) -> Iterator[Message]:
        """Yield what has arrived by now, including answers that take no time."""
        while self._heap and self._heap[0][0] <= now_ns:
            yield heapq.heappop(self._heap)[2]


LOOK_NS = 100_000
"""Interval at which a sender notices flows that have begun or ended."""
ROUND_TRIPS = 3
"""Round trips without an answer, after which a monitor repeats a message."""


class MultipathNetwork(Protocol):
    """A running network whose connections can get subflows. Every method may raise RefabricError."""

    def connections(self) -> Mapping[FiveTuple, int]:
        """Return the running connections by the 5-tuple of their first subflow, with the payload bytes that
        all their subflows have had acknowledged."""
        ...

    def running(self) -> frozenset[FiveTuple]:
        """Return the connections that `connections` would list."""
        ...

    def open_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        """Add subflow `number` to a connection, on this path, host to host; the connection began with number
        0. Return False if the connection has ended."""
        ...

    def move_subflow(self, flow: FiveTuple, number: int, path: Sequence[str]) -> bool:
        """Route an open subflow along this path from now on. Return the same as `open_subflow`."""
        ...

    def close_subflow(self, flow: FiveTuple, number: int) -> bool:
        """Close a subflow other than number 0; the others carry what it had not delivered. Its number can be
        used again. Return the same as `open_subflow`."""
        ...


@dataclass(frozen=True)
class SubflowChange:
    """A subflow that was opened, got its first path (number 0), or was closed at `t_ns`."""

    t_ns: int
    flow: FiveTuple
    number: int


@dataclass(frozen=True)
class News:
    """At `t_ns` the controller learns that exactly these links have failed, as `Candidates` numbers them."""

    t_ns: int
    failed: frozenset[int]


@dataclass
class Unanswered:
    """When a message was sent that needs an answer."""

    message: Message
    sent_ns: int


class Loop:
    """Monitors, controller and the messages between them. `look_ns` is how often senders look for new and
    ended flows; `news` is in the order of time."""

    def __init__(
        self,
        settings: Settings,
        controller: SubflowController,
        seed: int,
        *,
        look_ns: int = LOOK_NS,
        news: Sequence[News] = (),
    ) -> None:
        self.channel = MessageChannel(ns(settings.message_s), settings.message_loss, seed)
        self.opened: list[SubflowChange] = []
        self.closed: list[SubflowChange] = []
        self.moved = 0
        self.requests = 0
        self.unheard = 0
        """Messages that reached the controller or a monitor while it was down."""
        self._settings = settings
        self._controller = controller
        self._monitors: dict[str, Monitor] = {}
        self._seen: frozenset[FiveTuple] = frozenset()
        self._unanswered: dict[FiveTuple, Unanswered] = {}
        self._ordered: dict[tuple[FiveTuple, int], Unanswered] = {}
        self._news = deque(news)
        self._step_ns = max(1, ns(settings.monitor_s))
        self._look_ns = look_ns
        self._next_tick_ns = self._step_ns
        self._next_look_ns = 0
        self._outage = Outage(settings, seed)
        self._restarts = settings.down_for_s > 0
        self._repeat_ns = max(self._step_ns, ROUND_TRIPS * 2 * ns(settings.message_s))

    @property
    def next_ns(self) -> int:
        """Return when `run` must be called next."""
        arrives = self.channel.next_ns
        due = min(self._next_tick_ns, self._next_look_ns)
        due = min(due, self._outage.until_ns) if self._restarts else due
        due = min(due, self._news[0].t_ns) if self._news else due
        return due if arrives is None else min(due, arrives)

    def run(self, network: MultipathNetwork, now_ns: int) -> None:
        """Do what is due: deliver messages, look for flows, and let monitors check them."""
        if self._restarts and now_ns >= self._outage.until_ns:
            self._restarts = False
            self._restart_monitors(network, now_ns) if self._outage.of_monitors else self._restart(now_ns)
        while self._news and self._news[0].t_ns <= now_ns:
            moves = self._controller.set_failed(self._news.popleft().failed)
            self._send(moves if self._outage.controller_is_up(now_ns) else (), now_ns)
        self._deliver(network, now_ns)
        if now_ns >= self._next_look_ns:
            self._look(network, now_ns)
            self._next_look_ns = (now_ns // self._look_ns + 1) * self._look_ns
        if now_ns >= self._next_tick_ns:
            self._tick(network, now_ns)
            self._next_tick_ns = (now_ns // self._step_ns + 1) * self._step_ns
        self._deliver(network, now_ns)

    def subflows(self, by_ns: float = math.inf) -> dict[FiveTuple, int]:
        """Return how many subflows each flow had at this time; none for flows that the controller never
        answered."""
        count = Counter(each.flow for each in tuple(self.opened) if each.t_ns <= by_ns)
        count.subtract(each.flow for each in tuple(self.closed) if each.t_ns <= by_ns)
        return dict(count)

    def _restart(self, now_ns: int) -> None:
        """Restart the controller, which asks all monitors for their flows."""
        self._ordered.clear()
        self._controller.restart()
        for src in self._monitors:
            self.channel.send(Restarted(src), now_ns)

    def _restart_monitors(self, network: MultipathNetwork, now_ns: int) -> None:
        """Restart the monitors that were down: they read their flows from a file, and ask for the demands.

        They notice flows that have begun or ended meanwhile like any others.
        """
        running = network.running()
        octets = network.connections()
        for src, monitor in self._monitors.items():
            if self._outage.hits(src):
                monitor.restart(octets, now_ns / NS_PER_S)
                for flow in [flow for flow in monitor.flows if flow in running]:
                    self._introduce(flow, now_ns)

    def _noticed(self, running: frozenset[FiveTuple], now_ns: int) -> frozenset[FiveTuple]:
        """Return the running flows as the monitors know them: a monitor that is down notices no change."""
        if not (self._outage.of_monitors and self._outage.now(now_ns)):
            return running
        learned = (flow for flow in running if not self._outage.hits(flow.src))
        return frozenset([*learned, *(flow for flow in self._seen if self._outage.hits(flow.src))])

    def _look(self, network: MultipathNetwork, now_ns: int) -> None:
        running = self._noticed(network.running(), now_ns)
        if running == self._seen:
            return
        octets = network.connections()
        for flow in sorted(running - self._seen, key=_order):
            self._monitor(flow).begin(flow, octets.get(flow, 0), now_ns / NS_PER_S)
            self._ask(Begun(flow), now_ns)
        for flow in sorted(self._seen - running, key=_order):
            self._monitor(flow).end(flow)
            self._ask(Ended(flow), now_ns)
        self._seen = running

    def _tick(self, network: MultipathNetwork, now_ns: int) -> None:
        octets = network.connections()
        for src, monitor in self._monitors.items():
            if not self._outage.monitor_is_up(src, now_ns):
                continue
            for request in monitor.tick(octets, now_ns / NS_PER_S):
                self.requests += 1
                self.channel.send(request, now_ns)
        waiting = [
            each for flow, each in self._unanswered.items() if self._outage.monitor_is_up(flow.src, now_ns)
        ]
        if self._outage.controller_is_up(now_ns):
            waiting += self._ordered.values()
        for each in [one for one in waiting if now_ns - one.sent_ns >= self._repeat_ns]:
            each.sent_ns = now_ns
            self.channel.send(each.message, now_ns)

    def _ask(self, message: Begun | Ended, now_ns: int) -> None:
        self._unanswered[message.flow] = Unanswered(message, now_ns)
        self.channel.send(message, now_ns)

    def _deliver(self, network: MultipathNetwork, now_ns: int) -> None:
        for message in self.channel.arrived(now_ns):
            if not self._is_heard(message, now_ns):
                self.unheard += 1
                continue
            match message:
                case Begun() | Ended() | Request() | Done():
                    self._hear(message, now_ns)
                case Demand():
                    self._demand(message)
                case Grant():
                    self._grant(message, network, now_ns)
                case Move() | Close():
                    self._carry_out(message, network, now_ns)
                case Unknown(flow):
                    self._introduce(flow, now_ns)
                case Restarted(src):
                    for flow in list(self._monitors[src].flows):
                        self._introduce(flow, now_ns)

    def _is_heard(self, message: Message, now_ns: int) -> bool:
        """Return whether the recipient of a message is up."""
        match message:
            case Begun() | Ended() | Request() | Done():
                return self._outage.controller_is_up(now_ns)
            case Restarted(src):
                return self._outage.monitor_is_up(src, now_ns)
            case Demand() | Grant() | Move() | Close() | Unknown():
                return self._outage.monitor_is_up(message.flow.src, now_ns)

    def _hear(self, message: Begun | Ended | Request | Done, now_ns: int) -> None:
        """Let the controller answer a monitor."""
        orders: Sequence[Order] = ()
        match message:
            case Begun(flow, paths):
                orders = self._controller.begin(flow, paths)
            case Ended(flow):
                orders = self._controller.end(flow)
            case Request():
                orders = self._controller.request(message)
            case Done(order):
                self._answered(order)
        self._send(orders, now_ns)

    def _send(self, orders: Sequence[Order], now_ns: int) -> None:
        for order in orders:
            if isinstance(order, Move | Close):
                self._ordered[order.flow, order.number] = Unanswered(order, now_ns)
            elif isinstance(order, Demand) and order.mbps == 0.0:
                self._ordered = {key: one for key, one in self._ordered.items() if key[0] != order.flow}
            self.channel.send(order, now_ns)

    def _answered(self, order: Move | Close) -> None:
        waiting = self._ordered.get((order.flow, order.number))
        if waiting is not None and waiting.message == order:
            del self._ordered[order.flow, order.number]
        if isinstance(order, Close):
            self._controller.closed(order.flow, order.number)

    def _introduce(self, flow: FiveTuple, now_ns: int) -> None:
        """Report a running flow and its subflows to a controller that has started again."""
        watched = self._monitor(flow).flows.get(flow)
        if watched is not None:
            self._ask(Begun(flow, tuple(watched.paths.items())), now_ns)

    def _demand(self, demand: Demand) -> None:
        waiting = self._unanswered.get(demand.flow)
        if waiting is not None and isinstance(waiting.message, Ended) == (demand.mbps == 0.0):
            del self._unanswered[demand.flow]
        self._monitor(demand.flow).set_demand(demand.flow, demand.mbps)

    def _grant(self, grant: Grant, network: MultipathNetwork, now_ns: int) -> None:
        """Open the subflow, unless it is open."""
        watched = self._monitor(grant.flow).flows.get(grant.flow)
        if watched is None or grant.number in watched.paths:
            return
        act = network.open_subflow if grant.number else network.move_subflow
        if act(grant.flow, grant.number, grant.path):
            self.opened.append(SubflowChange(now_ns, grant.flow, grant.number))
            self._monitor(grant.flow).set_subflow(grant.flow, grant.number, grant.path)

    def _carry_out(self, order: Move | Close, network: MultipathNetwork, now_ns: int) -> None:
        """Move or close a subflow, unless that has been done, and answer."""
        watched = self._monitor(order.flow).flows.get(order.flow)
        if watched is not None and order.number in watched.paths:
            self._change(order, network, now_ns)
        self.channel.send(Done(order), now_ns)

    def _change(self, order: Move | Close, network: MultipathNetwork, now_ns: int) -> None:
        if isinstance(order, Move):
            if network.move_subflow(order.flow, order.number, order.path):
                self.moved += 1
                self._monitor(order.flow).set_subflow(order.flow, order.number, order.path)
        elif network.close_subflow(order.flow, order.number):
            self.closed.append(SubflowChange(now_ns, order.flow, order.number))
            self._monitor(order.flow).set_subflow(order.flow, order.number, None)

    def _monitor(self, flow: FiveTuple) -> Monitor:
        if flow.src not in self._monitors:
            self._monitors[flow.src] = Monitor(self._settings)
        return self._monitors[flow.src]


def _order(flow: FiveTuple) -> tuple[str, str, int, int]:
    return flow.src, flow.dst, flow.sport, flow.dport
