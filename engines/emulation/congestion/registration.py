"""Congestion controls of a run, registered with this kernel or built into the guests', and their counters."""

from __future__ import annotations

import errno
import socket
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.errors import HostUnfitError, RunError
from engines.emulation.congestion.libbpf import BpfObject, LibbpfError
from engines.emulation.kernel.namespaces import HostRef, map_in_netns, sysctl_path
from model.congestion import kernel_name

NO_SETTINGS: Mapping[str, int] = {}
OBJECTS = Path(__file__).parent / "objects"
_SO_NETNS_COOKIE = 71
"""include/uapi/asm-generic/socket.h"""


@dataclass(frozen=True)
class CongestionCounts:
    """Counters since registration over all sockets: ACKs, window reductions, and repairs of skipped ones."""

    acks: int = 0
    losses: int = 0
    repairs: int = 0

    def __add__(self, other: CongestionCounts) -> CongestionCounts:
        return CongestionCounts(
            self.acks + other.acks, self.losses + other.losses, self.repairs + other.repairs
        )

    def __sub__(self, other: CongestionCounts) -> CongestionCounts:
        return CongestionCounts(
            self.acks - other.acks, self.losses - other.losses, self.repairs - other.repairs
        )


class Registered:
    """The registered congestion controls of a run. They take sockets of admitted hosts only."""

    def __init__(self, objects: Mapping[str, BpfObject]) -> None:
        self._objects = objects

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Take sockets of these hosts that connect from now on. Raises RunError."""
        admit(self._objects.values(), hosts)

    def counts(self) -> CongestionCounts:
        """Return the counters of all algorithms, summed."""
        each = (CongestionCounts(*loaded.counters(3)) for loaded in self._objects.values())
        return sum(each, CongestionCounts())


@contextmanager
def registered(names: Iterable[str], settings: Mapping[str, int] = NO_SETTINGS) -> Iterator[Registered]:
    """Register the algorithms with these names (model/congestion.py) while the context lasts.

    `settings` are the values that some of them take, by name.

    The end of the context or of the process unregisters them, however it ends. Raises HostUnfitError if the
    kernel refuses, RunError if the kernel already has an algorithm of that name.
    """
    objects: dict[str, BpfObject] = {}
    try:
        for name in sorted(set(names)):
            objects[name] = registered_object(name, settings.get(name))
        yield Registered(objects)
    finally:
        for loaded in objects.values():
            loaded.close()


def compiled(name: str) -> Path:
    """Return the path of the algorithm's object, which setup/install.sh compiles."""
    return OBJECTS / f"{name}.o"


def registered_object(name: str, setting: int | None = None) -> BpfObject:
    """Register one algorithm until the object is closed; see `registered` for the errors."""
    try:
        loaded = BpfObject(compiled(name))
    except OSError as error:
        raise HostUnfitError(
            f"opening the object of congestion control {name}: {error.strerror or error}; "
            "run: sudo setup/install.sh"
        ) from error
    try:
        loaded.load(registers=True)
        if setting is not None:
            loaded.set(setting)
        loaded.register()
    except LibbpfError as error:
        loaded.close()
        if error.errno == errno.EEXIST:
            raise RunError(
                f"registering congestion control {kernel_name(name)}: the kernel already has one, from a "
                "process that is still running; end that process (sudo bpftool link shows it)"
            ) from error
        raise HostUnfitError(f"congestion control {name}: {error.strerror}\n{last_lines(error)}") from error
    return loaded


def admit(objects: Iterable[BpfObject], hosts: Iterable[HostRef]) -> None:
    """Let the objects take sockets of these hosts. Raises RunError."""
    found = list(objects)
    if not found:
        return
    try:
        for cookie in map_in_netns([(host.pid, _netns_cookie) for host in hosts]):
            for each in found:
                each.admit(cookie)
    except OSError as error:
        raise RunError(f"admitting hosts to congestion controls: {error.strerror}") from error


def _netns_cookie() -> int:
    """Return the number that this thread's network namespace, and no other since boot, has."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return int.from_bytes(any_socket.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), sys.byteorder)


def last_lines(error: LibbpfError, count: int = 6) -> str:
    """Return libbpf's last messages before it failed; they contain the verifier's error."""
    return "\n".join(error.said[-count:])


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

    def counts(self) -> CongestionCounts:
        """Return the counters since boot, summed over these algorithms."""
        if not self._kernel_names:
            return CongestionCounts()
        return sum(counted(COUNTERS.read_text(), self._kernel_names), CongestionCounts())


def counted(text: str, names: Iterable[str]) -> list[CongestionCounts]:
    """Return the counters of the algorithms `names` in the text of `COUNTERS`."""
    lines = [line.split() for line in text.splitlines()]
    return [CongestionCounts(int(acks), int(losses)) for name, acks, losses in lines if name in set(names)]
