"""Registers congestion controls with the kernel for as long as a context lives, and counts what they did."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from common.errors import HostUnfitError, RunError
from engines.emulation.congestion.libbpf import LibbpfError, Object
from model.congestion import kernel_name

OBJECTS = Path(__file__).parent / "objects"


@dataclass(frozen=True)
class Counts:
    """Since registration, over all sockets: ACKs seen, windows reduced, and impossible windows repaired."""

    acks: int = 0
    losses: int = 0
    repairs: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(self.acks + other.acks, self.losses + other.losses, self.repairs + other.repairs)

    def __sub__(self, other: Counts) -> Counts:
        return Counts(self.acks - other.acks, self.losses - other.losses, self.repairs - other.repairs)


class Registered:
    """The algorithms of a run."""

    def __init__(self, objects: Mapping[str, Object]) -> None:
        self._objects = objects

    def counts(self) -> Counts:
        """Over all of them."""
        return sum((self.counts_of(name) for name in self._objects), Counts())

    def counts_of(self, name: str) -> Counts:
        """Of one algorithm, by refabric's name."""
        return Counts(*self._objects[name].counters(3))


@contextmanager
def registered(names: Iterable[str]) -> Iterator[Registered]:
    """Register the algorithms of these names (model/congestion.py); none is left after the context or
    the process, whatever ends it.

    Raises HostUnfitError where the kernel refuses, RunError when it has one of that name already.
    """
    objects: dict[str, Object] = {}
    try:
        for name in sorted(set(names)):
            objects[name] = _register(name)
        yield Registered(objects)
    finally:
        for loaded in objects.values():
            loaded.close()


def compiled(name: str) -> Path:
    """The object of an algorithm, which setup/install.sh makes."""
    return OBJECTS / f"{name}.o"


def _register(name: str) -> Object:
    try:
        loaded = Object(compiled(name))
    except OSError as error:
        raise HostUnfitError(
            f"congestion control {name} cannot be opened: {error.strerror or error}"
        ) from error
    try:
        loaded.load()
        loaded.register()
    except LibbpfError as error:
        loaded.close()
        if error.errno == errno.EEXIST:
            raise RunError(
                f"the kernel has a congestion control {kernel_name(name)} already, of a process that still "
                "runs: end that one (sudo bpftool link names it)"
            ) from error
        raise HostUnfitError(f"congestion control {name}: {error.strerror}\n{last_lines(error)}") from error
    return loaded


def last_lines(error: LibbpfError, count: int = 6) -> str:
    """What libbpf said last before it failed: the verifier's objection stands there."""
    return "\n".join(error.said[-count:])
