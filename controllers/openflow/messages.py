"""Messages from a controller to a switch, independent of the version of OpenFlow."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.rules import Choice, Match

ARP_PRIORITY = 10
PUNT_PRIORITY = 1
UNKNOWN_PRIORITY = 5
TABLE_PRIORITY = 100
"""Base priority of table rules; the length of the prefix is added, so the longest prefix wins."""
EXACT_PRIORITY = 200
CHOSEN_PRIORITY = 300
"""Priority of the rules of a flow whose path an application has set."""


@dataclass(frozen=True)
class Clear:
    """Delete all rules and groups."""


@dataclass(frozen=True)
class Install:
    """Send matching packets `to` a port or a choice; None drops them.

    Replaces a rule with equal match and priority. `idle_s`: delete the rule after that time without a packet
    (0: never). `notify`: report the deletion.
    """

    match: Match
    priority: int
    to: int | Choice | None
    idle_s: int = 0
    notify: bool = False


@dataclass(frozen=True)
class Remove:
    """Delete the rule with this match and priority."""

    match: Match
    priority: int


@dataclass(frozen=True)
class SetChoice:
    """Create a choice or, if not `new`, replace the one with its number."""

    choice: Choice
    new: bool = True


@dataclass(frozen=True)
class DropChoice:
    number: int


@dataclass(frozen=True)
class Punt:
    """Send ARP, or IPv4 without a better match, to the controller."""

    arp: bool


@dataclass(frozen=True)
class Send:
    """Send a frame out of a port."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class Barrier:
    """Reply with this number when all earlier messages have been processed."""

    number: int


Message = Clear | Install | Remove | SetChoice | DropChoice | Punt | Send | Barrier
