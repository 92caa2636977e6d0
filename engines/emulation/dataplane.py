"""The seam between the hosts' veths and whatever carries frames between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class DataPlane(Protocol):
    """Takes frames from the run-side veth ends and delivers them to the run-side end of their destination.

    All calls come from one thread, in the run's own network namespace.
    """

    def start(self, ifindexes: Sequence[int]) -> None:
        """Begin to carry frames. `ifindexes[nic]` is the run-side veth of `topology.nics[nic]`."""

    def stop(self) -> None:
        """Carry nothing more, and let go of the interfaces. Harmless when not started."""

    def set_link(self, link: int, up: bool) -> None:
        """`topology.links[link]` fails (frames on it are lost) or comes back."""


class NoDataPlane:
    """Hosts without a network between them: every frame is lost."""

    def start(self, ifindexes: Sequence[int]) -> None:
        del ifindexes

    def stop(self) -> None:
        pass

    def set_link(self, link: int, up: bool) -> None:
        del link, up
