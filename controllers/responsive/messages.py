"""Messages between monitors and controller: each takes a time and may be lost. They are counted."""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator
from dataclasses import dataclass

from controllers.hashing import FiveTuple
from controllers.responsive.controller import Close, Demand, Grant, Move, Unknown
from controllers.responsive.monitor import Path, Request

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


@dataclass
class Counts:
    """Messages that were sent, and those among them that were lost. `rules` are installed in switches, one
    for each switch of a path that is granted or moved to; their bytes are included in `octets`."""

    messages: int = 0
    lost: int = 0
    rules: int = 0
    octets: int = 0


class Channel:
    """Messages under way, in the order in which they arrive. Times are in ns."""

    def __init__(self, delay_ns: int, loss: float, seed: int) -> None:
        self.counts = Counts()
        self._delay_ns = delay_ns
        self._loss = loss
        self._rng = random.Random(seed)
        self._heap: list[tuple[int, int, Message]] = []

    @property
    def next_ns(self) -> int | None:
        """Return when the next message arrives; None if none is under way."""
        return self._heap[0][0] if self._heap else None

    def send(self, message: Message, now_ns: int) -> None:
        self.counts.messages += 1
        self.counts.octets += size_bytes(message)
        if isinstance(message, Grant | Move):
            switches = len(message.path) - 2
            self.counts.rules += switches
            self.counts.octets += switches * RULE_BYTES
        if self._loss and self._rng.random() < self._loss:
            self.counts.lost += 1
            return
        heapq.heappush(self._heap, (now_ns + self._delay_ns, self.counts.messages, message))

    def arrived(self, now_ns: int) -> Iterator[Message]:
        """Yield what has arrived by now, including answers that take no time."""
        while self._heap and self._heap[0][0] <= now_ns:
            yield heapq.heappop(self._heap)[2]
