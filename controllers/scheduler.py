"""The interface of central flow schedulers such as Hedera: what they can observe and change.

An application gets a Network, reads flows and ports, and sets the paths of single flows; routing determines
the others. `controllers/openflow/control.py` implements a Network on OpenFlow switches, `engines/` on the
fabric. Nodes are given by name, so an application needs the topology only to choose paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controllers.hashing import FiveTuple


@dataclass(frozen=True)
class FlowCount:
    """A flow that has carried data: bytes so far, as switches or sending hosts count them, and the names of
    the nodes on its path, host to host."""

    flow: FiveTuple
    octets: int
    path: tuple[str, ...]


@dataclass(frozen=True)
class PortCount:
    """What the port of `node` towards `peer` has sent and dropped since the start."""

    node: str
    peer: str
    octets: int
    packets: int
    dropped: int


class Network(Protocol):
    """A running network. Every method may raise RefabricError if the network has ended."""

    def flows(self) -> Sequence[FlowCount]: ...

    def ports(self) -> Sequence[PortCount]: ...

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        """Route one flow along these nodes, host to host; the opposite direction is another flow.

        Raises UsageError if this is not a path of the flow.
        """
        ...

    def clear_path(self, flow: FiveTuple) -> None:
        """Return a flow to normal routing; no effect if its path was not set."""
        ...


class Application(Protocol):
    """A scheduler, called periodically with the network in its current state."""

    def tick(self, network: Network, now_s: float) -> None:
        """Make decisions; `now_s` counts from the start of the run and increases from call to call."""
        ...


class FlowRates:
    """Rates of flows from two readings of their bytes.

    With `begun_s`, no flow had sent anything at that time, and the first reading gives rates.
    """

    def __init__(self, begun_s: float | None = None) -> None:
        self._before: Mapping[FiveTuple, int] = {}
        self._then_s = begun_s

    def update(self, flows: Sequence[FlowCount], now_s: float) -> dict[FiveTuple, float]:
        """Return each flow's Mb/s since the previous reading; new flows started from 0 bytes. Empty for a
        first reading without `begun_s`, and if no time has passed."""
        before, then_s = self._before, self._then_s
        self._before, self._then_s = {each.flow: each.octets for each in flows}, now_s
        if then_s is None or now_s <= then_s:
            return {}
        elapsed_s = now_s - then_s
        return {each.flow: (each.octets - before.get(each.flow, 0)) * 8e-6 / elapsed_s for each in flows}
