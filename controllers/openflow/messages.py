"""What a controller tells a switch, in no version of OpenFlow in particular."""

from __future__ import annotations

from dataclasses import dataclass

from controllers.rules import Choice, Match

ARP_PRIORITY = 10
PUNT_PRIORITY = 1
UNKNOWN_PRIORITY = 5
TABLE_PRIORITY = 100
"""Plus the bits of the prefix: the longest one wins."""
EXACT_PRIORITY = 200
CHOSEN_PRIORITY = 300
"""Of the rules of a flow whose path an application has set."""


@dataclass(frozen=True)
class Clear:
    """Forget all rules and groups."""


@dataclass(frozen=True)
class Install:
    """What matches goes `to` a port or a choice; nowhere if None. Replaces a rule with equal match and
    priority. `idle_s`: forgotten after so long without a packet; 0 keeps it. `notify`: say so then."""

    match: Match
    priority: int
    to: int | Choice | None
    idle_s: int = 0
    notify: bool = False


@dataclass(frozen=True)
class Remove:
    """Forget the rule with this match and priority."""

    match: Match
    priority: int


@dataclass(frozen=True)
class SetChoice:
    """Make a choice, or (not `new`) replace the one of its number."""

    choice: Choice
    new: bool = True


@dataclass(frozen=True)
class DropChoice:
    number: int


@dataclass(frozen=True)
class Punt:
    """Send ARP, or IPv4 that matches nothing better, to the controller."""

    arp: bool


@dataclass(frozen=True)
class Send:
    """Put a frame out of a port."""

    port: int
    frame: bytes


@dataclass(frozen=True)
class Barrier:
    """Say so, with this number, when everything told before is done."""

    number: int


Message = Clear | Install | Remove | SetChoice | DropChoice | Punt | Send | Barrier
