"""Dispatch: several engines behind one Engine; each point runs on the engine that its spec names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from engines.engine import Engine, NeedsMachine, Observer
from model.result import RunResult
from model.spec import RunSpec


class Dispatch:
    """The Engine protocol over several engines; its name joins their names with commas."""

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self._engines = dict(engines)
        self.name = ",".join(self._engines)

    def check(self, spec: RunSpec) -> None:
        """Call `check` of the point's engine."""
        self._of(spec).check(spec)

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default coupled congestion control that all engines can run.

        Points of different engines are compared, so they must run the same one.
        """
        answers = [engine.coupled_cc() for engine in self._engines.values()]
        return next((answer for answer in answers if answer[1]), answers[0])

    @property
    def parallel(self) -> int:
        """The number of parallel points that every engine supports."""
        return min(engine.parallel for engine in self._engines.values())

    def only(self, names: Collection[str]) -> Dispatch:
        """See the function `only`."""
        return Dispatch({name: engine for name, engine in self._engines.items() if name in names})

    def waves(self) -> tuple[Dispatch, ...]:
        """See the function `waves`."""
        alone = {name for name, engine in self._engines.items() if engine.parallel == 1}
        waves = (self.only(self._engines.keys() - alone), self.only(alone))
        return tuple(wave for wave in waves if wave._engines)

    def __contains__(self, name: str) -> bool:
        return name in self._engines

    def memory_mb(self, spec: RunSpec) -> float:
        """Call `memory_mb` of the point's engine."""
        return self._of(spec).memory_mb(spec)

    def cpus(self, spec: RunSpec) -> int:
        """Call `cpus` of the point's engine."""
        return self._of(spec).cpus(spec)

    def expected_s(self, spec: RunSpec) -> float:
        """Call `expected_s` of the point's engine."""
        return self._of(spec).expected_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """Call `run` of the point's engine."""
        return self._of(spec).run(spec, observer, raw)

    def take_machine(self) -> None:
        """Take the machine if one of the engines needs it. Raises BusyError."""
        for engine in self._engines.values():
            if isinstance(engine, NeedsMachine):
                engine.take_machine()

    def _of(self, spec: RunSpec) -> Engine:
        return self._engines[spec.engine]


def only(engine: Engine, names: Collection[str]) -> Engine:
    """Return the part of `engine` that runs points of the engines `names`."""
    return engine.only(names) if isinstance(engine, Dispatch) else engine


def waves(engine: Engine) -> tuple[Engine, ...]:
    """Return the engines in the order in which they run.

    Engines that run several points in parallel come first, then engines that need the whole machine.
    """
    return engine.waves() if isinstance(engine, Dispatch) else (engine,)


def runs(engine: Engine, name: str) -> bool:
    """Return whether `engine` runs points of the engine `name`."""
    return name in engine if isinstance(engine, Dispatch) else True
