"""Engines by name. A factory imports its engine when it is called; listing names starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection

from common.errors import UsageError
from engines.dispatch import Dispatch
from engines.engine import Engine


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
    from engines.flow_level.engine import EQUILIBRIUM, FlowLevelEngine  # noqa: PLC0415

    return FlowLevelEngine(FLOW_LEVEL, EQUILIBRIUM)


def _max_min() -> Engine:
    from engines.flow_level.engine import MAX_MIN as MODEL  # noqa: PLC0415
    from engines.flow_level.engine import FlowLevelEngine  # noqa: PLC0415

    return FlowLevelEngine(MAX_MIN, MODEL)


def _srpt() -> Engine:
    from engines.flow_level.ideal import IdealEngine  # noqa: PLC0415

    return IdealEngine()


def _fake() -> Engine:
    from engines.fake import FakeEngine  # noqa: PLC0415

    return FakeEngine()


MININET = "mininet"
LINUX = "linux"
SIMULATOR = "simulator"
FLOW_LEVEL = "flow-level"
MAX_MIN = "max-min"
IDEAL = "ideal"
MADE_UP = "fake"
ENGINES: dict[str, Callable[[], Engine]] = {
    MININET: _mininet,
    LINUX: _linux,
    SIMULATOR: _simulator,
    FLOW_LEVEL: _flow_level,
    MAX_MIN: _max_min,
    IDEAL: _srpt,
    MADE_UP: _fake,
}
ABOUT = {
    "mininet": "this machine's own TCP and MPTCP stack in real time; needs root",
    "linux": "real TCP and MPTCP in virtual time, reproducible; no root; first: refabric kernel build",
    "simulator": "simulated hosts in virtual time: any rate, reproducible on every machine; no root",
    "flow-level": "steady rates at congestion control's equilibrium: thousands of hosts in seconds; no root",
    "max-min": "steady rates, max-min fair among subflows; no root",
    "ideal": "sized flows under the ideal scheduler of pFabric, without packets; no root",
    "fake": "invented numbers, for tests of refabric itself",
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
    return not VIRTUAL_TIME.union({MADE_UP}).issuperset(names)


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
    """Return a new engine; for several names, a Dispatch. Raises UsageError that lists the known names."""
    for name in names:
        if name not in ENGINES:
            raise UsageError(f"engine {name}: unknown; choose from: {', '.join(ENGINES)}")
    if len(names) == 1:
        return ENGINES[names[0]]()
    return Dispatch({name: ENGINES[name]() for name in names})
