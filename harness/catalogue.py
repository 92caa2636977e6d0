"""The experiments that a command can run. `experiments.registry` makes the catalogue and passes it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.errors import UsageError
from common.suggest import did_you_mean
from harness.experiment import Experiment
from harness.own import experiment_file


@dataclass(frozen=True)
class Catalogue:
    """Experiments by name, in the order of `refabric list`."""

    experiments: Mapping[str, Experiment]

    def __iter__(self) -> Iterator[Experiment]:
        return iter(self.experiments.values())

    def find(self, name: str) -> Experiment:
        """Return the experiment called `name`, or that of a user's file. Raises UsageError that names the
        closest matches."""
        if experiment_file.is_file(name):
            return self._own(name)
        try:
            return self.experiments[name]
        except KeyError:
            meant = did_you_mean(name, self.experiments)
            raise UsageError(
                f"experiment {name}: unknown; {meant}`refabric list` shows all experiments"
            ) from None

    def _own(self, name: str) -> Experiment:
        """Return the experiment of a file. Raises UsageError, also if it would share a registered folder."""
        own = experiment_file.load(name)
        if any(own.folder in (each.folder, each.name) for each in self):
            raise UsageError(f"experiment {name}: refabric has one called {own.name}; choose another name")
        return own
