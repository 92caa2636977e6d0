"""What switches tell a controller, in no version of OpenFlow in particular."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.rules import Match


@dataclass(frozen=True)
class Hello:
    """Versions a switch offers, as wire versions."""

    versions: frozenset[int]


@dataclass(frozen=True)
class Features:
    dpid: int


@dataclass(frozen=True)
class PortUp:
    number: int
    up: bool


@dataclass(frozen=True)
class Ports:
    """All ports of a switch but its own local one; `last` unless more come in another message."""

    ports: tuple[PortUp, ...]
    last: bool


@dataclass(frozen=True)
class PortChanged:
    port: PortUp
    deleted: bool


@dataclass(frozen=True)
class PacketIn:
    port: int
    frame: bytes


@dataclass(frozen=True)
class Removed:
    match: Match
    priority: int


@dataclass(frozen=True)
class Confirmed:
    """The answer to a barrier."""

    number: int


@dataclass(frozen=True)
class Echo:
    """A question whether this end is alive (`asked`), or the answer to ours."""

    asked: bool
    number: int
    data: bytes


@dataclass(frozen=True)
class RuleCount:
    match: Match
    priority: int
    packets: int
    octets: int


@dataclass(frozen=True)
class RuleCounts:
    number: int
    rules: tuple[RuleCount, ...]
    last: bool


@dataclass(frozen=True)
class PortCount:
    port: int
    tx_octets: int
    tx_packets: int
    tx_dropped: int


@dataclass(frozen=True)
class PortCounts:
    number: int
    ports: tuple[PortCount, ...]
    last: bool


@dataclass(frozen=True)
class Refusal:
    """An error message: what it was about, as os-ken names it."""

    number: int
    what: str


Report = (
    Hello
    | Features
    | Ports
    | PortChanged
    | PacketIn
    | Removed
    | Confirmed
    | Echo
    | RuleCounts
    | PortCounts
    | Refusal
)
