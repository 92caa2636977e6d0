"""Engines by name. A factory imports its engine when called: listing them needs no root and starts nothing."""

from __future__ import annotations

from collections.abc import Callable

from engines.engine import Engine
from fabric.errors import UsageError


def _mininet() -> Engine:
    from engines.emulation.engine import MininetEngine

    return MininetEngine()


def _fake() -> Engine:
    from engines.fake import FakeEngine

    return FakeEngine()


ENGINES: dict[str, Callable[[], Engine]] = {
    "mininet": _mininet,
    "fake": _fake,
}


def make(name: str) -> Engine:
    """A new engine. Raises UsageError listing the known ones."""
    try:
        factory = ENGINES[name]
    except KeyError:
        raise UsageError(f"engine {name}: unknown; choose from: {', '.join(ENGINES)}") from None
    return factory()
