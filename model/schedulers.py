"""Central schedulers of flows as a point runs them: what can be asked for, what drives them, their cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from common.errors import UsageError
from controllers import schedulers
from controllers.hashing import FiveTuple
from controllers.routing import per_packet
from controllers.scheduler import Application, FlowCount, Network, PortCount
from model.spec import NO_SCHEDULER, RunSpec, SchedulerSpec, sub_seed
from topos.topology import Topology

NAMES = (NO_SCHEDULER, *schedulers.SCHEDULERS)
IDEAL = "ideal"
LEAST_MS, MOST_MS = 1.0, 60_000.0
USUAL_MS = 100.0


def scheduled(spec: RunSpec) -> bool:
    return spec.scheduler.name != NO_SCHEDULER


def scheduler_words(chosen: SchedulerSpec) -> str:
    """As one types it: `first_fit:100`, `annealing:ideal`; empty where there is none."""
    if chosen.name == NO_SCHEDULER:
        return ""
    return f"{chosen.name}:{IDEAL if chosen.ideal else f'{chosen.interval_ms:g}'}"


def scheduler_title(chosen: SchedulerSpec) -> str:
    """For tables: `first fit every 100 ms`, `ideal annealing`; empty where there is none."""
    if chosen.name == NO_SCHEDULER:
        return ""
    title = schedulers.SCHEDULERS[chosen.name].title
    return f"ideal {title}" if chosen.ideal else f"{title} every {chosen.interval_ms:g} ms"


def parse_scheduler(text: str) -> SchedulerSpec:
    """`none`, `first_fit` (every 100 ms), `first_fit:10`, `annealing:ideal`. Raises UsageError."""
    name, colon, interval = (part.strip() for part in text.partition(":"))
    if name not in NAMES:
        raise UsageError(f"--scheduler {text}: unknown; choose from: {', '.join(NAMES)}")
    if name == NO_SCHEDULER and colon:
        raise UsageError(f"--scheduler {text}: none has no interval")
    if name == NO_SCHEDULER or interval == IDEAL:
        return SchedulerSpec(name)
    try:
        interval_ms = float(interval) if colon else USUAL_MS
    except ValueError:
        interval_ms = 0.0
    if not LEAST_MS <= interval_ms <= MOST_MS:
        raise UsageError(
            f"--scheduler {text}: write NAME:MS with {LEAST_MS:g} to {MOST_MS:g} ms between two looks at the "
            f"network, or NAME:{IDEAL}"
        )
    return SchedulerSpec(name, interval_ms)


def check_scheduler(spec: RunSpec, topology: Topology) -> None:
    """Raises UsageError for a scheduler there is not, or one that the network has no use for."""
    if not scheduled(spec):
        return
    words = scheduler_words(spec.scheduler)
    if spec.scheduler.name not in NAMES:
        raise UsageError(f"scheduler '{spec.scheduler.name}': choose one of {', '.join(NAMES)}")
    if spec.events:
        raise UsageError(f"--scheduler {words}: it is not told of links that fail: leave out --event")
    if per_packet(spec.routing):
        raise UsageError(
            f"--scheduler {words} with routing '{spec.routing}': there every packet chooses a path of its "
            "own; choose --routing hashed"
        )
    application_of(spec, topology)


def application_of(spec: RunSpec, topology: Topology) -> Application:
    """Raises UsageError for a network it cannot schedule."""
    seed, chosen = sub_seed(spec.seed, "scheduler"), spec.scheduler
    return schedulers.make(chosen.name, topology, spec.link.rate_mbps, seed, ideal=chosen.ideal)


def ticking_s(spec: RunSpec) -> float:
    """CPU time that a simulated point's ticks take, about; an ideal scheduler's depend on the flows."""
    if not scheduled(spec) or spec.scheduler.ideal:
        return 0.0
    ticks = (spec.warmup_s + spec.seconds) * 1000 / spec.scheduler.interval_ms
    return ticks * schedulers.SCHEDULERS[spec.scheduler.name].tick_s


@dataclass
class Account:
    """Of an application's ticks: how many, how many paths they set, and the CPU time they took in all and at
    most."""

    ticks: int = 0
    moves: int = 0
    cpu_s: float = 0.0
    most_cpu_s: float = 0.0

    @property
    def counts(self) -> dict[str, float]:
        """Metrics that are the same on every machine."""
        return {"scheduler_ticks": self.ticks, "scheduler_moves": self.moves}

    @property
    def times(self) -> dict[str, float]:
        """CPU time of a tick on this one, in ms."""
        mean_s = self.cpu_s / self.ticks if self.ticks else 0.0
        return {"scheduler_cpu_ms_mean": 1000 * mean_s, "scheduler_cpu_ms_max": 1000 * self.most_cpu_s}


class Driver:
    """Lets an application tick, and keeps account of it."""

    def __init__(self, application: Application, network: Network) -> None:
        self.account = Account()
        self._application = application
        self._network = _Counted(network, self.account)

    def tick(self, now_s: float) -> None:
        began_s = time.thread_time()
        self._application.tick(self._network, now_s)
        cpu_s = time.thread_time() - began_s
        self.account.ticks += 1
        self.account.cpu_s += cpu_s
        self.account.most_cpu_s = max(self.account.most_cpu_s, cpu_s)


class _Counted:
    """A Network whose set paths are counted."""

    def __init__(self, network: Network, account: Account) -> None:
        self._network = network
        self._account = account
        self.flows: Callable[[], Sequence[FlowCount]] = network.flows
        self.ports: Callable[[], Sequence[PortCount]] = network.ports
        self.clear_path: Callable[[FiveTuple], None] = network.clear_path

    def set_path(self, flow: FiveTuple, path: Sequence[str]) -> None:
        self._network.set_path(flow, path)
        self._account.moves += 1
