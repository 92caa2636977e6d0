"""Run a function of a test in the private namespaces in which the program runs."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engines.emulation.sandbox.inside import Inside
from engines.emulation.sandbox.isolation import spawn_inside

ROOT = Path(__file__).resolve().parents[2]


def reports(
    scenario: Callable[[Inside], int], request: object = None, deadline_s: float = 120.0, **options: Any
) -> list[Any]:
    """Return what a module's function reports there. Its status must be 0."""
    module = ".".join(Path(inspect.getfile(scenario)).resolve().relative_to(ROOT).with_suffix("").parts)
    target, found = f"{module}:{scenario.__name__}", list[Any]()
    assert spawn_inside(target, request, deadline_s=deadline_s, on_report=found.append, **options) == 0
    return found


def report(scenario: Callable[[Inside], int], request: object = None, deadline_s: float = 120.0) -> Any:
    """Return the only report of a function, or the union of several."""
    first, *more = reports(scenario, request, deadline_s)
    for each in more:
        first |= each
    return first
