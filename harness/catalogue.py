"""The experiments that a command can run. `experiments.registry` makes the catalogue and passes it on."""

from __future__ import annotations

import dataclasses
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.errors import RefabricError, UsageError
from common.files import text_of
from common.text import did_you_mean
from harness.experiment import Experiment
from harness.metrics.metrics import Metric
from harness.metrics.published import Published
from harness.own_experiment import Addition, described, with_additions
from plots.registry import Chart

FILE_SUFFIX = ".py"
MAX_FILE_BYTES = 1 << 20


@dataclass(frozen=True)
class Catalogue:
    """Experiments by name, in the order of `refabric list`."""

    experiments: Mapping[str, Experiment]

    def __iter__(self) -> Iterator[Experiment]:
        return iter(self.experiments.values())

    def find(self, name: str, added: Sequence[str] = ()) -> Experiment:
        """Return the experiment called `name`, or that of a user's file (`./mine.py`), with the metrics,
        charts and statements of the files `added`.

        Raises UsageError that names the closest matches, and for a file whose experiment would share the
        folder of a registered one.
        """
        return extended(self._find(name), added)

    def _find(self, name: str) -> Experiment:
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


def extended(experiment: Experiment, files: Sequence[str]) -> Experiment:
    """Return the experiment with the metrics, charts and statements of these files. Raises UsageError."""
    for file in files:
        experiment = with_additions(experiment, additions(file), file)
    return experiment


def load_file(name: str) -> Experiment:
    """Run a user's file; return the Experiment that it defines at its top level. Several become the figures
    of one, which has the name of the file. Raises UsageError."""
    path = Path(name)
    found = [each for each in _defined(name, "experiment") if isinstance(each, Experiment)]
    if not found:
        raise UsageError(
            f"experiment {path}: it defines no experiment; write EXPERIMENT = experiment(...), or begin with "
            "`refabric new experiment mine.py`"
        )
    figures = tuple(dataclasses.replace(of, file=str(path)) for each in found for of in each.figures)
    names = [figure.name for figure in figures]
    if len(found) == 1:
        return dataclasses.replace(found[0], figures=figures)
    for each in names:
        if names.count(each) > 1 or each == path.stem:
            raise UsageError(
                f"experiment {path}: {each} names two experiments, or the file too; choose another name"
            )
    return Experiment(path.stem, "; ".join(each.title for each in found), path.stem, figures)


def additions(name: str) -> list[Addition]:
    """Run a user's file; return the metrics, charts and statements that it defines at its top level, alone or
    in lists. Raises UsageError."""
    if not name.endswith(FILE_SUFFIX):
        raise UsageError(f"--metric {name}: name a Python file, e.g. ./mine.py (docs/guide/own.md)")
    found = [each for each in _defined(name, "--metric") if isinstance(each, Metric | Chart | Published)]
    if not found:
        raise UsageError(
            f"--metric {name}: it defines no metric, chart or statement; write e.g. "
            "GAP = metric('gap', 'Mb/s', 'what it is', function)"
        )
    return found


def _defined(name: str, what: str) -> list[object]:
    """Run a user's file; return the values at its top level and those in lists, each once.

    Only this file is run. Its folder is not put on the import path, so it cannot import files beside it, and
    nothing is imported from the current folder.
    """
    path = Path(name)
    module = types.ModuleType(f"refabric_experiment_{path.stem}")
    module.__file__ = str(path)
    text = text_of(f"{what} {path}", path, MAX_FILE_BYTES)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        exec(compile(text, str(path), "exec"), module.__dict__)
    except RefabricError:
        raise
    except Exception as error:
        raise UsageError(f"{what} {described(error, str(path))}") from error
    lists = (value if isinstance(value, list | tuple) else [value] for value in vars(module).values())
    return list({id(value): value for values in lists for value in values}.values())
