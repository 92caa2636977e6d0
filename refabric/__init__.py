"""refabric for Python: run experiments, load their results, read them as numpy arrays.

    import refabric

    results = refabric.run("cs244-one-to-one", k=4, engine="simulator", subflows=[1, 8])
    results[1].flows["goodput_mbps"].mean()
    results.plot("rank")

docs/guide/python.md describes it. Importing it needs no root and starts nothing. Classes are imported when
they are first used (PEP 562): the command `refabric`, which imports this package, needs none of them.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

PACKAGES = Path(__file__).parent / "_packages"


def _make_importable(folder: Path = PACKAGES) -> None:
    """Put the folder first on the import path, if this is an installed wheel.

    There the other packages are below refabric/_packages, because their names (common, model, plots, ...) are
    too general for the top level of somebody's environment. In a clone they are beside this package. Raises
    ImportError if one of its names is in use: the user's own module would be taken for ours.
    """
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        module = sys.modules.get(path.name)
        places = [*getattr(module, "__path__", ()), getattr(module, "__file__", None) or ""]
        if module is not None and not any(place.startswith(str(folder)) for place in places):
            raise ImportError(
                f"importing refabric: a module called {path.name} is imported already ({places[0]}), and "
                "refabric has one of this name; import refabric first, or rename that module"
            )
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


_make_importable()

from common.version import VERSION as __version__

if TYPE_CHECKING:
    from common.errors import HostUnfitError, RefabricError, RunError, StoreError, UsageError
    from harness.python_api import Chart, Charts, Columns, Point, Results, Samples

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
    "grid",
    "load",
    "run",
]


def run(
    experiment: str, *, results: str | os.PathLike[str] = "results", quiet: bool = False, **options: Any
) -> Results:
    """Run the points of an experiment that are not finished yet; return its points.

        refabric.run("cs244-one-to-one", k=4, engine="simulator", subflows=[1, 8], seeds=3)

    `options` are those of `refabric run`, with underscores: `random_drop=10` is `--random-drop 10`. A list
    stands for a comma-separated value (`k=[4, 8]`, `queue=[20, 50]`) or a repeated option
    (`event=["2:p0a0-c0"]`), a mapping for NAME=VALUE (`stack={"min_rto_ms": [10, 200]}`), True for a flag
    (`qmon=True`). Points are stored below `results`; the same call continues an interrupted run. Progress
    goes to stderr, unless `quiet`.

    A name that ends in `.py` is a file of the caller, which is run (docs/guide/own.md).

    Simulated hosts need no root. Raises UsageError for a bad name or value, in the words of the command line;
    HostUnfitError for an engine that this machine or user cannot run; KeyboardInterrupt when interrupted.
    """
    from experiments.registry import CATALOGUE  # noqa: PLC0415
    from harness import python_api  # noqa: PLC0415

    return python_api.run_points(CATALOGUE, experiment, results, quiet, options)


def grid(
    network: str, *, results: str | os.PathLike[str] = "results", quiet: bool = False, **options: Any
) -> Results:
    """Run every combination of the options' values on a network; return its points.

        refabric.grid("star", n=8, queue=[20, 50], delay=[0, 100], subflows=[1, 2])

    `network` is a kind of topology, whose parameters are options too (the size is 4 unless it is given), or
    what `--topology` takes, such as `ls,4` and `file:net.json`. The points are those of the experiment
    `cs244-one-to-one`, in the simulator unless `engine` names others. All else is as for `run`.
    """
    from experiments.registry import CATALOGUE  # noqa: PLC0415
    from harness import python_api  # noqa: PLC0415

    return python_api.run_grid(CATALOGUE, network, results, quiet, options)


def load(
    folder: str | os.PathLike[str], *, experiment: str | None = None, metric: str | Sequence[str] = ()
) -> Results:
    """Return all stored points of a folder such as `results/cs244-one-to-one`.

    `experiment` names the experiment whose charts to draw, where the folder's name does not; `metric` names
    files of metrics and charts of your own, as `--metric` does. Damaged points are left out and listed in
    `broken`. Raises UsageError for a folder without points.
    """
    from experiments.registry import CATALOGUE  # noqa: PLC0415
    from harness import python_api  # noqa: PLC0415

    added = [metric] if isinstance(metric, str) else metric
    return python_api.load_results(CATALOGUE, folder, experiment, added)


def experiments() -> dict[str, str]:
    """Return the title of every experiment, by name, as `refabric list` does."""
    from experiments.registry import CATALOGUE  # noqa: PLC0415

    return {each.name: each.title for each in CATALOGUE}


if not TYPE_CHECKING:  # type checkers see only the imports above, so they report unknown names

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = "common.errors" if name.endswith("Error") else "harness.python_api"
        found = globals()[name] = getattr(importlib.import_module(module), name)
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
