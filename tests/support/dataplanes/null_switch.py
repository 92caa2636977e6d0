"""For `mn --custom`: a switch without Open vSwitch or brctl, to test that a topology is built."""

from __future__ import annotations

from mininet.node import Switch


class NullSwitch(Switch):  # type: ignore[misc]
    """Ports and nothing behind them."""

    def start(self, controllers: object) -> None:
        """Nothing to start."""


switches = {"null": NullSwitch}
