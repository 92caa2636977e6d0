"""Engines by name. A factory imports its engine when it is called; listing names starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path

from common.errors import UsageError
from engines.engine import Engine, Observer
from model.result import RunResult
from model.spec import RunSpec


def _mininet() -> Engine:
    from engines.emulation.engine import MininetEngine  # noqa: PLC0415

    return MininetEngine()


def _linux() -> Engine:
    from engines.linux.engine import LinuxEngine  # noqa: PLC0415

    return LinuxEngine()


def _simulator() -> Engine:
    from engines.simulation.engine import SimulatorEngine  # noqa: PLC0415

    return SimulatorEngine()


def _flow_level() -> Engine:
    from engines.flow_level.engine import FlowLevelEngine  # noqa: PLC0415

    return FlowLevelEngine(FLOW_LEVEL)


def _max_min() -> Engine:
    from engines.flow_level.engine import FlowLevelEngine  # noqa: PLC0415

    return FlowLevelEngine(MAX_MIN)


def _srpt() -> Engine:
    from engines.flow_level.ideal import IdealEngine  # noqa: PLC0415

    return IdealEngine()


MININET = "mininet"
LINUX = "linux"
SIMULATOR = "simulator"
FLOW_LEVEL = "flow-level"
MAX_MIN = "max-min"
IDEAL = "ideal"
ENGINES: dict[str, Callable[[], Engine]] = {
    MININET: _mininet,
    LINUX: _linux,
    SIMULATOR: _simulator,
    FLOW_LEVEL: _flow_level,
    MAX_MIN: _max_min,
    IDEAL: _srpt,
}
ABOUT = {
    "mininet": "this machine's own TCP and MPTCP stack in real time; needs root",
    "linux": "real TCP and MPTCP in virtual time, reproducible; no root; first: refabric kernel build",
    "simulator": "simulated hosts in virtual time: any rate, reproducible on every machine; no root",
    "flow-level": "steady rates at congestion control's equilibrium: thousands of hosts in seconds; no root",
    "max-min": "steady rates, max-min fair among subflows; no root",
    "ideal": "sized flows under the ideal scheduler of pFabric, without packets; no root",
}
STEADY_STATE = frozenset({FLOW_LEVEL, MAX_MIN, IDEAL})
"""Engines without packets, and therefore without drops or retransmitted segments."""
SIMULATED_HOSTS = frozenset({SIMULATOR, *STEADY_STATE})
"""Engines whose hosts have no kernel and run no programs."""
LINUX_HOSTS = (MININET, LINUX)
"""Engines whose hosts are Linux's, in order of preference where one of them stands for both."""
VIRTUAL_TIME = frozenset({LINUX, *SIMULATED_HOSTS})
"""Engines that do not run in real time: the machine's speed does not limit or influence their results."""


def real_time(names: Collection[str]) -> bool:
    """Return whether the results of one of these engines depend on the machine's speed."""
    return MININET in names


WORDS = {
    LINUX: "real Linux hosts in virtual time, refabric",
    SIMULATOR: "simulated, refabric",
    FLOW_LEVEL: "flow-level equilibrium, refabric",
    MAX_MIN: "flow-level, max-min fair, refabric",
    IDEAL: "ideal scheduler, refabric",
}


def engine_words(name: str, dataplane: str) -> str:
    """Return text for captions: `simulated, refabric`, or `engine mininet, data plane fabric`."""
    return WORDS.get(name, f"engine {name}, data plane {dataplane}")


def make(*names: str) -> Engine:
    """Return a new engine; Engines for several names. Raises UsageError that lists the known names."""
    for name in names:
        if name not in ENGINES:
            raise UsageError(f"engine {name}: unknown; choose from: {', '.join(ENGINES)}")
    if len(names) == 1:
        return ENGINES[names[0]]()
    return Engines({name: ENGINES[name]() for name in names})


class Engines(dict[str, Engine]):
    """Engines by name, and an Engine themselves: each point runs on the one that its spec names."""

    @property
    def name(self) -> str:
        """Their names, joined with commas."""
        return ",".join(self)

    @property
    def parallel(self) -> int:
        """The number of parallel points that every engine supports."""
        return min(engine.parallel for engine in self.values())

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default coupled congestion control that all engines can run: points of different engines
        are compared, so they must run the same one."""
        answers = [engine.coupled_cc() for engine in self.values()]
        return next((answer for answer in answers if answer[1]), answers[0])

    def check(self, spec: RunSpec) -> None:
        self[spec.engine].check(spec)

    def memory_mb(self, spec: RunSpec) -> float:
        return self[spec.engine].memory_mb(spec)

    def cpus(self, spec: RunSpec) -> int:
        return self[spec.engine].cpus(spec)

    def expected_s(self, spec: RunSpec) -> float:
        return self[spec.engine].expected_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        return self[spec.engine].run(spec, observer, raw)

    def take_machine(self) -> None:
        """Take the machine if one of the engines needs it. Raises BusyError."""
        for engine in self.values():
            engine.take_machine()


def only(engine: Engine, names: Collection[str]) -> Engine:
    """Return the part of `engine` that runs points of the engines `names`."""
    if not isinstance(engine, Engines):
        return engine
    return Engines({name: each for name, each in engine.items() if name in names})


def waves(engine: Engine) -> tuple[Engine, ...]:
    """Return the engines in the order in which they run: those that run several points in parallel come
    first, then those that need the whole machine."""
    if not isinstance(engine, Engines):
        return (engine,)
    alone = {name for name, each in engine.items() if each.parallel == 1}
    parts = (only(engine, engine.keys() - alone), only(engine, alone))
    return tuple(part for part in parts if part)


def runs(engine: Engine, name: str) -> bool:
    """Return whether `engine` runs points of the engine `name`."""
    return name in engine if isinstance(engine, Engines) else True
