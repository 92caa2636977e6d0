"""What the kill matrix goes through: commands, kinds of processes, phases and signals. Data only."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

CONTROLLER, WATCH = "outside controller", "watch"
MINE, PORTUS, HUB = "{home}/mine.py", "{home}/portus.py", "{root}/tests/live/dataplanes/hub.py"
"""Files of a user: algorithms that the matrix writes, and a controller."""


@dataclass(frozen=True)
class Run:
    """A command: `refabric run EXPERIMENT OPTIONS`, and how many points it stores.

    `stored` is the folder of its results, `beside` the programs that the user has started before it. Without
    `repeats` its points may have other names the next time: their rate is measured.
    """

    experiment: str
    options: tuple[str, ...]
    points: int
    stored: str
    beside: tuple[str, ...] = ()
    times: tuple[str, ...] = ("--warmup", "0.5", "--seconds", "1")
    repeats: bool = True


def _cs244(options: str, points: int = 2, beside: tuple[str, ...] = (), more: tuple[str, ...] = ()) -> Run:
    return Run("cs244-one-to-one", (*options.split(), *more), points, "cs244-one-to-one", beside)


def _ccp(algorithm: str) -> Run:
    options = ("--engine", "mininet", "--retry-suspect", "0", "--cc", algorithm)
    return Run("ccp-window", options, 1, "ccp")


_EMULATED = "--engine mininet --k 4 --subflows 1 --retry-suspect 0 --qmon"
_SIMULATED = "--engine simulator --k 4 --subflows 1,2,8 --rate 20"
_STAR = "--engine mininet --topology star,3 --subflows 1 --retry-suspect 0 --rate 1 --dataplane ovs"
_SIP = "sip:40:registrations=20:scale=20:arrivals=constant:policy=queue"
RUNS: dict[str, Run] = {
    "fabric": _cs244(f"{_EMULATED} --rate 2 --traffic iperf3"),
    "native": _cs244(f"{_EMULATED} --rate 2 --traffic native"),
    "ovs": _cs244(f"{_EMULATED} --rate 2 --dataplane ovs --traffic iperf3"),
    "calibrating": dataclasses.replace(_cs244(f"{_EMULATED} --rate auto"), repeats=False),
    "simulated": _cs244(_SIMULATED, 4),
    "cluster": _cs244(_SIMULATED, 4),
    "ims": Run(
        "ims-ladder",
        ("--engine", "mininet", "--retry-suspect", "0", "--seeds", "1", "--workload", _SIP),
        1, "ims", times=("--warmup", "0", "--seconds", "5"),
    ),
    "agent": _ccp("ccp:reno"),
    "mine": _ccp(MINE),
    "portus": _ccp(PORTUS),
    "cmd": _cs244(f"{_STAR} --controller", 2, more=(f"cmd:{{python}} {HUB} 6653",)),
    "remote": _cs244(f"{_STAR} --controller remote:{{port}}", 2, (CONTROLLER,)),
    "watched": _cs244(f"{_EMULATED} --rate 2", 2, (WATCH,)),
}  # fmt: skip
WORDS = {
    "host": "sleep infinity",
    "traffic": "iperf3",
    "controller": "controllers.openflow",
    "ovs-vswitchd": "ovs-vswitchd",
    "ovsdb-server": "ovsdb-server",
    "cluster worker": "dask worker",
    "SIP server": "kamailio",
    "SIP worker": "kamailio",
    "users": "/usr/bin/sipp",
    "HSS": "redis-server",
    "portus agent": "fake_agent.py",
    "own controller": "hub.py",
    "relay": "ovs.relay",
}
"""Words in the command line of each kind of process. A host is the process that holds its namespaces: its
shell starts only when somebody types. The core's threads and the controller of an IMS are the inner
process's. The first process of a SIP server starts the others; `SIP worker` is the one that started last."""
CHAIN = ("parent", "helper", "unshare", "init", "inner")
LIVELY = ("start", "network", "traffic", "collecting")
UP = LIVELY[1:]
BESIDE = (CONTROLLER, WATCH)
MISSED = (
    "traffic", "controller", "ovs-vswitchd", "ovsdb-server", "SIP server", "SIP worker", "users", "HSS",
    "agent", "portus agent", "own controller", "relay", CONTROLLER,
)  # fmt: skip
"""Programs whose end a point has to mention. Without its agent a flow goes on under Reno."""
WHEN = {
    "start": ("start", 0.5),
    "network": ("network", 0.5),
    "traffic": ("measure", 0.7),
    "collecting": ("collect", 0.3),
    "publishing": ("point", 0.4),
    "drawing": ("point", 2.0),
}
"""The progress event that begins a phase, and how long after it a signal may come, in seconds. Charts are
drawn after the last point. Points measure for a second, and may not notice what happens at its end."""


@dataclass(frozen=True)
class Cell:
    run: str
    role: str
    phase: str
    signal: str

    def __str__(self) -> str:
        return f"{self.run}: {self.signal} to {self.role} at {self.phase}"


Pair = tuple[str, str, str]


def _each(run: str, roles: Sequence[str], phases: Sequence[str]) -> list[Pair]:
    return [(run, role, phase) for role in roles for phase in phases]


def cells() -> list[Cell]:
    """Return all cells: a process must exist in its phase."""
    pairs = [
        *_each("fabric", CHAIN, LIVELY),
        *_each("fabric", ("host", "traffic"), ("traffic", "collecting")),
        *_each("native", ("parent", "inner", "host"), ("traffic",)),
        *_each("ovs", ("parent",), ("traffic",)),
        *_each("ovs", ("controller", "ovs-vswitchd", "ovsdb-server"), UP),
        *_each("ovs", ("inner",), UP),
        *_each("calibrating", CHAIN, ("calibration",)),
        *_each("simulated", ("worker", "parent"), ("start",)),
        *_each("cluster", ("cluster worker", "parent"), ("start",)),
        *((run, "parent", "publishing") for run in ("fabric", "simulated", "cluster")),
        *_each("ims", CHAIN, ("start", "network", "traffic")),  # it collects while it measures
        *_each("ims", ("SIP server", "SIP worker", "HSS"), ("network", "traffic")),
        *_each("ims", ("users",), ("traffic",)),
        *_each("agent", ("inner",), UP),
        *_each("agent", ("agent",), UP),
        *_each("mine", ("agent",), UP),
        *_each("portus", ("agent", "portus agent"), UP),
        *_each("cmd", ("own controller", "ovs-vswitchd"), UP),
        *_each("remote", (CONTROLLER, "parent"), LIVELY),
        *_each("remote", ("relay",), UP),
        *_each("simulated", ("worker", "parent"), ("drawing",)),
        *_each("watched", (WATCH,), (*LIVELY, "publishing", "drawing")),
        *_each("watched", ("parent",), ("traffic", "drawing")),
        *((run, "parent", "publishing") for run in ("ims", "agent", "cmd", "remote", "watched")),
    ]  # fmt: skip
    return [Cell(*pair, name) for pair in pairs for name in ("SIGKILL", "SIGSTOP")]
