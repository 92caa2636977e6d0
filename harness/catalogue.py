"""The experiments that a command can run. `experiments.registry` makes the catalogue and passes it on."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.errors import RefabricError, UsageError
from common.files import text_of
from common.text import did_you_mean
from harness.experiment import Experiment
from harness.own_experiment import described

FILE_SUFFIX = ".py"
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Catalogue:
    """Experiments by name, in the order of `refabric list`."""

    experiments: Mapping[str, Experiment]

    def __iter__(self) -> Iterator[Experiment]:
        return iter(self.experiments.values())

    def find(self, name: str) -> Experiment:
        """Return the experiment called `name`, or that of a user's file (`./mine.py`).

        Raises UsageError that names the closest matches, and for a file whose experiment would share the
        folder of a registered one.
        """
        if name.endswith(FILE_SUFFIX):
            own = load_file(name)
            if any(own.folder in (each.folder, each.name) for each in self):
                raise UsageError(
                    f"experiment {name}: refabric has one called {own.name}; choose another name"
                )
            return own
        if name not in self.experiments:
            meant = did_you_mean(name, self.experiments)
            raise UsageError(f"experiment {name}: unknown; {meant}`refabric list` shows all experiments")
        return self.experiments[name]


def load_file(name: str) -> Experiment:
    """Run a user's file; return the one Experiment that it defines at its top level. Raises UsageError.

    Only this file is run. Its folder is not put on the import path, so it cannot import files beside it, and
    nothing is imported from the current folder.
    """
    path = Path(name)
    module = types.ModuleType(f"refabric_experiment_{path.stem}")
    module.__file__ = str(path)
    text = text_of(f"experiment {path}", path, MAX_FILE_BYTES)
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
