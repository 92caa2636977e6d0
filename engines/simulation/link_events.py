"""Link events in a simulation: links fail, degrade or recover at given times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from engines.core_setup.stack import PS_PER_S
from model.link_events import ports_of
from model.network_plan import port_rates_bps
from model.spec import RunSpec
from topos.topology import Topology


class Network(Protocol):
    """The part of a simulation used here."""

    def run_until(self, limit_ps: int) -> None: ...
    def set_port_up(self, port: int, up: bool, now_ps: int) -> None: ...
    def set_port_rate(self, port: int, rate_bps: int) -> None: ...


class _Change(NamedTuple):
    at_ps: int
    ports: tuple[int, int]
    rate_bps: int
    """0 for a cut."""


class Timeline:
    """Runs a simulation and carries out the spec's link events at their exact times."""

    def __init__(self, simulation: Network, spec: RunSpec, topology: Topology) -> None:
        self._simulation = simulation
        rates = port_rates_bps(topology, spec.link)
        self._ahead: Sequence[_Change] = [
            _Change(round(event.t_s * PS_PER_S), ports, round(event.share * int(rates[ports[0]])))
            for event in sorted(spec.events, key=lambda event: event.t_s)
            for ports in [ports_of(event, topology)]
        ]

    def run_until(self, limit_ps: int) -> None:
        """Run up to and including this time. Packets that arrive at an event's time arrive before it."""
        while self._ahead and self._ahead[0].at_ps <= limit_ps:
            change, *self._ahead = self._ahead
            self._simulation.run_until(change.at_ps)
            for port in change.ports:
                self._simulation.set_port_up(port, change.rate_bps > 0, change.at_ps)
                if change.rate_bps:
                    self._simulation.set_port_rate(port, change.rate_bps)
        self._simulation.run_until(limit_ps)
