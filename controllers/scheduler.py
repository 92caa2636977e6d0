"""What an application may see and change of a running network: the seam for Hedera and its like.

An application is given a Network, looks at flows and ports, and sets the path of single flows; all others go
on as routing decides. `controllers/openflow/control.py` implements a Network on OpenFlow switches, `engines/`
on the fabric. Names, not indices, so that an application needs the topology only where it chooses paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from controllers.hashing import FiveTuple


@dataclass(frozen=True)
class FlowCount:
    """A flow that has carried something: bytes so far, as switches or sending hosts count them, and the
    names of the nodes it passes, host to host."""

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
    """A network that carries packets. Every method may raise RefabricError when it has ended."""

    def flows(self) -> Sequence[FlowCount]: ...

    def ports(self) -> Sequence[PortCount]: ...

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        """Lead one flow along these nodes, host to host, from now on. The other direction is a flow of its
        own. Raises UsageError for what is no path of this flow."""
        ...

    def clear_path(self, flow: FiveTuple) -> None:
        """Leave a flow to routing again. Nothing happens to one whose path was not set."""
        ...


class Application(Protocol):
    """What decides: called again and again, every time with the network as it is then."""

    def tick(self, network: Network, now_s: float) -> None:
        """`now_s` counts from the start of the run, and grows from call to call."""
        ...


class FlowRates:
    """Rates of flows, from two looks at their bytes. At `begun_s`, where that is told, nothing had been sent:
    the first look is then the second."""

    def __init__(self, begun_s: float | None = None) -> None:
        self._before: Mapping[FiveTuple, int] = {}
        self._then_s = begun_s

    def update(self, flows: Sequence[FlowCount], now_s: float) -> dict[FiveTuple, float]:
        """Mb/s of each flow since the look before, new ones from nothing. Empty the first time, and when no
        time has passed."""
        before, then_s = self._before, self._then_s
        self._before, self._then_s = {each.flow: each.octets for each in flows}, now_s
        if then_s is None or now_s <= then_s:
            return {}
        elapsed_s = now_s - then_s
        return {each.flow: (each.octets - before.get(each.flow, 0)) * 8e-6 / elapsed_s for each in flows}
