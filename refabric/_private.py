"""Where an installed wheel keeps the other packages: below refabric/_packages, not in site-packages.

Their names (common, model, plots, ...) are too general for the top level of somebody's environment. In a
clone they are beside this package, and there is nothing to do (docs/decisions.md).
"""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).parent / "_packages"


def make_importable(folder: Path = FOLDER) -> None:
    """Put the folder first on the import path, if this is an installed wheel.

    Raises ImportError if one of its names is in use: the user's own module would be taken for ours.
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
