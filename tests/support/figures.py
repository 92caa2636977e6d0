"""Points of figures, simulated points and the command line, for tests of experiments."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from experiments.command import main
from experiments.registry import CATALOGUE
from harness.experiment import Figure
from harness.options.options import sweeps_of
from model.result import RunResult
from model.spec import RunSpec, Settings
from tests.support.options import options_typed


def figure_of(name: str) -> Figure:
    """Return the only figure of an experiment."""
    (figure,) = CATALOGUE.find(name).figures
    return figure


def points_of(figure: Figure, defaults: Settings | None = None, /, **given: Any) -> list[RunSpec]:
    """Return the points of a figure under these options, on links of 100 Mb/s where it has no rate."""
    found = []
    for options in sweeps_of(options_typed(**given), defaults or figure.defaults):
        rate_mbps = options.rate_mbps or 100.0
        found += figure.points(options, lambda _network, mbps=rate_mbps: mbps)  # type: ignore[misc]
    return found


def simulate(spec: RunSpec, raw: Path = Path()) -> RunResult:
    """Check the point and simulate it."""
    engine = SimulatorEngine()
    engine.check(spec)
    return engine.run(spec, Silent(), raw)


def refabric(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def events_of(done: Result, kind: str = "") -> list[dict[str, Any]]:
    """Return the lines of a command with --json: all, or those of one kind of event."""
    events = [json.loads(line) for line in done.stdout.splitlines()]
    return [event for event in events if kind in ("", event["event"])]
