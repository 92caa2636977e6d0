"""validation: the simulator against theory where a chart says more than a test does (docs/validation.md)."""

from __future__ import annotations

import dataclasses

from engines.registry import SIMULATOR
from experiments.coupled import FAIRNESS
from experiments.experiment import Experiment

NAME = "validation"
_SHARES = FAIRNESS.figures[0]

EXPERIMENT = Experiment(
    name=NAME,
    title="The simulator against theory: shares of a link under random loss",
    folder=NAME,
    figures=(
        dataclasses.replace(
            _SHARES,
            name=f"{NAME}-shares",
            title="Simulated: share of a link beside one TCP, under random loss",
            defaults=dataclasses.replace(_SHARES.defaults, engines=(SIMULATOR,)),
        ),
    ),
)
