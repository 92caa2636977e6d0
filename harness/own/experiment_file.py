"""Load the experiment of a user's file, which runs the file.

Only the file that the user names is run. Its folder is not put on the import path, so it cannot import files
beside it, and nothing is imported from the current folder.
"""

from __future__ import annotations

import dataclasses
import sys
import types
from pathlib import Path

from common.errors import RefabricError, UsageError
from common.named_files import text_of
from harness.experiment import Experiment
from harness.own.guard import described

SUFFIX = ".py"
MAX_BYTES = 1 << 20
MODULE = "refabric_experiment"


def is_file(name: str) -> bool:
    """Return whether the argument names a file and not a registered experiment."""
    return name.endswith(SUFFIX)


def load(name: str) -> Experiment:
    """Return the one Experiment that the file defines at its top level. Raises UsageError."""
    path = Path(name)
    module = types.ModuleType(f"{MODULE}_{path.stem}")
    module.__file__ = str(path)
    text = text_of(f"experiment {path}", path, MAX_BYTES)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except RefabricError:
        raise
    except Exception as error:
        raise UsageError(f"experiment {described(error, str(path))}") from error
    found = [value for value in vars(module).values() if isinstance(value, Experiment)]
    if len(found) != 1:
        raise UsageError(
            f"experiment {path}: it defines {len(found)} experiments; define one, e.g. EXPERIMENT = "
            "experiment(...), or begin with `refabric new experiment mine.py`"
        )
    figures = tuple(dataclasses.replace(figure, file=str(path)) for figure in found[0].figures)
    return dataclasses.replace(found[0], figures=figures)
