"""Messages from switches to a controller, independent of the version of OpenFlow."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.rules import Match


@dataclass(frozen=True)
class Hello:
    """OpenFlow versions that a switch offers, as wire versions."""

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
    """The ports of a switch except its local one; `last` is False if another message follows."""

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
    """An echo request (`asked`), or the answer to ours."""

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
    """An error message, as text from os-ken."""

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
