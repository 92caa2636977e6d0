"""Engines by name. A factory imports its engine when called: listing them starts and needs nothing."""

from __future__ import annotations

from collections.abc import Callable

from engines.engine import Engine
from fabric.errors import UsageError


def _mininet() -> Engine:
    from engines.emulation.engine import MininetEngine  # noqa: PLC0415

    return MininetEngine()


def _simulator() -> Engine:
    from engines.simulation.engine import SimulatorEngine  # noqa: PLC0415

    return SimulatorEngine()


def _fake() -> Engine:
    from engines.fake import FakeEngine  # noqa: PLC0415

    return FakeEngine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "mininet": _mininet,
    "simulator": _simulator,
    "fake": _fake,
}


def make(name: str) -> Engine:
    """A new engine. Raises UsageError listing the known ones."""
    try:
        factory = ENGINES[name]
    except KeyError:
        raise UsageError(f"engine {name}: unknown; choose from: {', '.join(ENGINES)}") from None
    return factory()
