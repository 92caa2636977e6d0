"""Congestion controls that are built into the kernel, as in the engine `linux`.

Nothing is registered; `COUNTERS` has one line for each of them: `rf_lia ACKS LOSSES`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from common.errors import HostUnfitError
from engines.emulation.congestion.registration import NO_SETTINGS, Counts
from engines.emulation.kernel.netns import HostRef, sysctl_path
from model.congestion import kernel_name

FOLDER = Path("/proc/refabric")
COUNTERS = FOLDER / "congestion"


class BuiltIn:
    """The counters of built-in congestion controls, which skip no window reduction and repair none."""

    def __init__(self, names: Iterable[str], settings: Mapping[str, int] = NO_SETTINGS) -> None:
        """Raise HostUnfitError if this kernel lacks one of `names` (model/congestion.py).

        `settings` are the values that some of them take, by name: files next to `COUNTERS`.
        """
        self._kernel_names = {kernel_name(name) for name in names}
        available = sysctl_path("net.ipv4.tcp_available_congestion_control").read_text().split()
        if missing := sorted(self._kernel_names.difference(available)):
            raise HostUnfitError(
                f"congestion control {missing[0]} is not built into this kernel (it has: "
                f"{', '.join(available)}); run: refabric kernel build"
            )
        for name, value in settings.items():
            (FOLDER / name).write_text(f"{value}\n")

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Do nothing: a guest has no other sockets than the run's."""

    def counts(self) -> Counts:
        """Return the counters since boot, summed over these algorithms."""
        if not self._kernel_names:
            return Counts()
        return sum(counted(COUNTERS.read_text(), self._kernel_names), Counts())


def counted(text: str, names: Iterable[str]) -> list[Counts]:
    """Return the counters of the algorithms `names` in the text of `COUNTERS`."""
    lines = [line.split() for line in text.splitlines()]
    return [Counts(int(acks), int(losses)) for name, acks, losses in lines if name in set(names)]
