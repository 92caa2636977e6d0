"""refabric for Python: run experiments, load their results, read them as numpy arrays.

_private.py  where an installed wheel keeps the other packages
api.py       `run` and `load` with all experiments of the registry
command.py   the command `refabric`
own.py       what a user's file needs to define an experiment

    import refabric

    results = refabric.run("cs244-one-to-one", k=4, engine="simulator", subflows=[1, 8])
    results[1].flows["goodput_mbps"].mean()
    results.plot("rank")

docs/guide/python.md describes it. Importing it needs no root and starts nothing. Names are imported when they
are first used (PEP 562), because the command `refabric` imports this package, too, and needs few of them.

May import `common`, `engines.emulation.sandbox`, `topos`, `workloads`, `plots`, `harness` and `experiments`.
"""

import importlib
from typing import TYPE_CHECKING, Any

from refabric import _private

_private.make_importable()

from common.version import VERSION as __version__

if TYPE_CHECKING:
    from common.errors import HostUnfitError, RefabricError, RunError, StoreError, UsageError
    from harness.api.columns import Columns
    from harness.api.points import Point, Samples
    from harness.api.results import Chart, Charts, Results
    from refabric.api import experiments, load, run

__all__ = [
    "Chart",
    "Charts",
    "Columns",
    "HostUnfitError",
    "Point",
    "RefabricError",
    "Results",
    "RunError",
    "Samples",
    "StoreError",
    "UsageError",
    "__version__",
    "experiments",
    "load",
    "run",
]
_PLACES = {
    "common.errors": ("HostUnfitError", "RefabricError", "RunError", "StoreError", "UsageError"),
    "harness.api.columns": ("Columns",),
    "harness.api.points": ("Point", "Samples"),
    "harness.api.results": ("Chart", "Charts", "Results"),
    "refabric.api": ("experiments", "load", "run"),
}
_MODULES = {name: module for module, names in _PLACES.items() for name in names}


if not TYPE_CHECKING:  # type checkers see only the imports above, so they report unknown names

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
