"""The experiments that a command can run. `experiments.registry` makes the catalogue and passes it on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.errors import UsageError
from harness.experiment import Experiment


@dataclass(frozen=True)
class Catalogue:
    """Experiments by name, in the order of `refabric list`."""

    experiments: Mapping[str, Experiment]

    def __iter__(self) -> Iterator[Experiment]:
        return iter(self.experiments.values())

    def find(self, name: str) -> Experiment:
        """Return the experiment called `name`. Raises UsageError that lists the known ones."""
        try:
            return self.experiments[name]
        except KeyError:
            known = ", ".join(self.experiments)
            raise UsageError(f"experiment {name}: unknown; choose from: {known}") from None
