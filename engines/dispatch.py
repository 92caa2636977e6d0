"""Several engines as one: each point goes to the engine its spec names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from engines.engine import Engine, Observer
from model.result import RunResult
from model.spec import RunSpec


class Dispatch:
    """The Engine protocol over several engines; its name is theirs, joined by commas."""

    def __init__(self, engines: Mapping[str, Engine]) -> None:
        self._engines = dict(engines)
        self.name = ",".join(self._engines)

    def check(self, spec: RunSpec) -> None:
        """As the point's own engine does."""
        self._of(spec).check(spec)

    def coupled_cc(self) -> tuple[str, str]:
        """What all of them can run: points of different engines are there to be compared."""
        told = [engine.coupled_cc() for engine in self._engines.values()]
        return next((answer for answer in told if answer[1]), told[0])

    @property
    def parallel(self) -> int:
        """What the most delicate of them bears."""
        return min(engine.parallel for engine in self._engines.values())

    def only(self, names: Collection[str]) -> Dispatch:
        """As the function."""
        return Dispatch({name: engine for name, engine in self._engines.items() if name in names})

    def waves(self) -> tuple[Dispatch, ...]:
        """As the function."""
        alone = {name for name, engine in self._engines.items() if engine.parallel == 1}
        waves = (self.only(self._engines.keys() - alone), self.only(alone))
        return tuple(wave for wave in waves if wave._engines)

    def __contains__(self, name: str) -> bool:
        return name in self._engines

    def memory_mb(self, spec: RunSpec) -> float:
        """As the point's own engine does."""
        return self._of(spec).memory_mb(spec)

    def expected_s(self, spec: RunSpec) -> float:
        """As the point's own engine does."""
        return self._of(spec).expected_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """As the point's own engine does."""
        return self._of(spec).run(spec, observer, raw)

    def _of(self, spec: RunSpec) -> Engine:
        return self._engines[spec.engine]


def only(engine: Engine, names: Collection[str]) -> Engine:
    """What runs points of the engines `names` alone."""
    return engine.only(names) if isinstance(engine, Dispatch) else engine


def waves(engine: Engine) -> tuple[Engine, ...]:
    """The engines in it in turns: first those that run points side by side, then those whose points want the
    machine to themselves."""
    return engine.waves() if isinstance(engine, Dispatch) else (engine,)


def runs(engine: Engine, name: str) -> bool:
    """Whether points of this name are its own."""
    return name in engine if isinstance(engine, Dispatch) else True
