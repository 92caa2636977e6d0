"""refabric for Python: run experiments, load their results, read them as numpy arrays.

    import refabric

    results = refabric.run("cs244-one-to-one", k=4, engine="simulator", subflows=[1, 8])
    results[1].flows["goodput_mbps"].mean()
    results.plot("rank")

docs/guide/python.md describes it. Importing it needs no root and starts nothing.
"""

from refabric import _private

_private.make_importable()

from common.errors import HostUnfitError, RefabricError, RunError, StoreError, UsageError
from common.version import VERSION as __version__
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
