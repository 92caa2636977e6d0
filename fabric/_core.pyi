from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fabric.plan import NetworkPlan
from fabric.readings import (
    AgentCommandTuple,
    AgentEventTuple,
    AgentReadings,
    Counters,
    DatagramReadings,
    Departure,
    FlowReadings,
    ImsCounts,
    ImsServer,
    NoiseReadings,
    SimulatedCounters,
    Snapshot,
    SubflowReadings,
    TrafficReadings,
)

FiveTupleNumbers = tuple[int, int, int, int, int]
SubflowTuple = tuple[int, int, int, int]
"""Source NIC, destination NIC, hash of the 5-tuple, hash of its reverse."""

COMPILER: str
SOURCES: str
"""SHA-256 of the sources of the core."""
LATENESS_EDGES_NS: npt.NDArray[np.uint64]
SOCKET_RECORD: np.dtype[np.void]

def flow_hash(src: int, dst: int, proto: int, sport: int, dport: int, /) -> int: ...
def mix(hash: int, seed: int) -> int: ...
def switch_seed(seed: int, node: int) -> int: ...
def rank_of_stamp(stamp: int) -> int: ...
def disciplines() -> list[str]: ...
def admission_settings() -> list[tuple[str, bool]]: ...

class Calendar:
    def __init__(self, width_log2: int, slots_log2: int) -> None: ...
    def push(self, due: int, what: int) -> None: ...
    def next_due(self) -> int: ...
    def __len__(self) -> int: ...
    def pop_until(self, limit: int) -> list[tuple[int, int]]: ...

class VirtualFabric:
    def __init__(self, plan: NetworkPlan | Any) -> None: ...
    def inject(
        self,
        when_ps: int,
        nic: int,
        size_bytes: int,
        flow: FiveTupleNumbers,
        ecn: int = 0,
        dscp: int = 0,
        rank: int = 0xFFFFFFFF,
    ) -> int: ...
    def run_until(self, limit_ps: int) -> list[Departure]: ...
    def set_port_up(self, port: int, up: bool, when_ps: int) -> None: ...
    def set_port_rate(self, port: int, rate_bps: int, when_ps: int) -> None: ...
    def set_path(self, flow: FiveTupleNumbers, ports: Sequence[int]) -> None:
        """Send packets of this flow through these ports from now on, whatever routing chooses. Raises
        ValueError for a path that does not join the flow's two NICs."""

    def clear_path(self, flow: FiveTupleNumbers) -> None: ...
    def next_due_ps(self) -> int: ...
    def counters(self) -> Counters: ...

class Flow:
    def __init__(
        self,
        *,
        subflows: Sequence[SubflowTuple],
        cc: str,
        size_bytes: int = 0,
        start_ps: int = 0,
        after: int | None = None,
        dscp: int = 0,
    ) -> None:
        """A size of 0 is unlimited. With `after`, the number of an earlier flow, the start counts from that
        flow's completion. Raises ValueError for a congestion control that the simulator does not have."""

class Datagrams:
    """Packets of full size at a constant rate, headers included; 0 packets are unlimited."""

    packets: int
    def __init__(
        self, *, rate_bps: int, path: SubflowTuple, packets: int = 0, start_ps: int = 0, dscp: int = 0
    ) -> None: ...

class Noise:
    """Stalls of the machine: the mean time between their beginnings, their shortest and longest length,
    whether the hosts' timers stall too, and whether the network stands still meanwhile."""
    def __init__(
        self, *, every_ps: int, least_ps: int, most_ps: int, seed: int, stalls_timers: bool, elastic: bool
    ) -> None: ...

class Agent:
    """The agent of flows under one. Programs are structs ccp_program; flows begin with the first. With a
    `report_us` of 0, there is a report in each round trip."""
    def __init__(
        self,
        *,
        programs: Sequence[bytes],
        delay_ps: int,
        jitter_ps: int,
        report_us: int,
        seed: int,
        answer: Callable[[list[AgentEventTuple]], list[AgentCommandTuple]],
    ) -> None: ...

class Simulation:
    def __init__(
        self,
        plan: NetworkPlan | Any,
        options: Any,
        flows: Sequence[Flow],
        datagrams: Sequence[Datagrams] = (),
        noise: Noise | None = None,
        agent: Agent | None = None,
        threads: int = 1,
    ) -> None: ...
    def agent(self) -> AgentReadings: ...
    def datagrams(self) -> DatagramReadings: ...
    def descriptors_in_use(self) -> int: ...
    def run_until(self, limit_ps: int) -> None: ...
    def set_port_up(self, port: int, up: bool, now_ps: int) -> None: ...
    def set_port_rate(self, port: int, rate_bps: int) -> None: ...
    def restart_max_queues(self) -> None: ...
    def hops(self) -> int: ...
    def ports(self) -> SimulatedCounters: ...
    def queues(self) -> npt.NDArray[np.uint32]: ...
    def path_delays(
        self, size_bytes: int, now_ps: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
    def flows(self) -> FlowReadings: ...
    def noise(self) -> NoiseReadings: ...
    def subflows(self) -> SubflowReadings: ...
    def path(self, subflow: int) -> list[int]: ...
    def back_path(self, subflow: int) -> list[int]: ...
    def path_count(self, subflow: int) -> tuple[int, int]: ...
    def set_path(self, subflow: int, there: Sequence[int], back: Sequence[int]) -> None: ...
    def set_path_ranks(self, subflow: int, there: int, back: int) -> None: ...
    def open_subflow(self, subflow: int) -> bool: ...
    def close_subflow(self, subflow: int) -> bool: ...

PathState = tuple[float, float, float, float]
"""Window in packets, RTT in seconds (0: unknown), packets since the last loss and between the last two."""

def schedulers() -> list[str]: ...
def congestion_controls() -> list[str]: ...
def window_increase(name: str, paths: Sequence[PathState], i: int) -> float: ...
def window_after_loss(name: str, paths: Sequence[PathState], i: int) -> float: ...

class CubicState:
    """CUBIC's state of one subflow. Windows in packets."""
    def __init__(self) -> None: ...
    def grown(self, window: float, fresh: float, now_s: float, rtt_s: float) -> float:
        """Return the window after `fresh` acknowledged packets in congestion avoidance."""
    def reduced(self, window: float) -> None: ...
    def timed_out(self) -> None: ...

def dctcp_alpha(alpha: float, share: float) -> float: ...
def dctcp_after_marks(window: float, alpha: float) -> float: ...
def srpt_ends(flows: Sequence[tuple[int, int, int, int]], hosts: int, limit_ps: int) -> npt.NDArray[np.int64]:
    """Return when each flow has sent everything under the ideal scheduler of fabric/flow_level/srpt.hpp, in
    ps; 2**63 - 1 for those that have not by `limit_ps`.

    A flow is its arrival and the time that it needs at full rate, both in ps, and the numbers of its source
    and destination. Raises ValueError for flows that are not in the order of arrivals, or without work."""

class Crossings:
    """The ports that every subflow crosses. Subflows are numbered from 0, in the order of `paths`.

    Methods raise ValueError if an array has not one value for each subflow, or none for a port that is
    crossed."""
    def __init__(self, paths: Sequence[Sequence[int]]) -> None:
        """Raise ValueError for a path without ports."""
    def __len__(self) -> int: ...
    def path(self, subflow: int) -> list[int]: ...
    def only(self, subflows: npt.NDArray[np.bool_]) -> Crossings:
        """Return the crossings of the chosen subflows, which are numbered anew."""
    def sums(self, of_port: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return for every subflow the sum over the ports that it crosses."""
    def least(self, of_port: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return for every subflow the minimum over the ports that it crosses."""
    def load(self, of_subflow: npt.NDArray[np.float64], ports: int) -> npt.NDArray[np.float64]:
        """Return for every port the sum over the subflows that cross it."""
    def least_at_ports(self, of_subflow: npt.NDArray[np.float64], ports: int) -> npt.NDArray[np.float64]:
        """Return for every port the minimum over the subflows that cross it; infinity without any."""

def crossings(simulation: Simulation) -> tuple[Crossings, Crossings]:
    """Return what the data of all subflows crosses, and what their acknowledgements cross."""

class RealtimeFabric:
    def __init__(
        self,
        plan: NetworkPlan | Any,
        ifindexes: Sequence[int],
        macs: Sequence[str],
        *,
        quantum_us: float = 100.0,
        cpu: int = -1,
        priority: int = 0,
        sample_ms: float = 0.0,
        tolerance_us: float = 0.0,
        hold_us: float = 1000.0,
        idle_hold_us: float = 0.0,
        probed_cpus: Sequence[int] = (),
        probe_priority: int = 0,
        probe_us: float = 1000.0,
        virtual_time: bool = False,
    ) -> None:
        """The fabric's clock pauses when its thread wakes up more than `tolerance_us` late, or when one of
        `probed_cpus` is overdue by more than `hold_us` or was not idle for `idle_hold_us` (0: no limit). With
        a tolerance of 0 it never pauses. In virtual time a sleep ends exactly when it is due, and the clock
        is not read again."""

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def restart_maxima(self) -> None:
        """Restart the maxima: the longest queues and the longest pause."""
    def set_port_up(self, port: int, up: bool) -> None: ...
    def set_port_rate(self, port: int, rate_bps: int) -> None: ...
    def set_path(self, flow: FiveTupleNumbers, ports: Sequence[int]) -> None:
        """Send frames of this flow through these ports from now on, whatever routing chooses. Raises
        ValueError for a path that does not join the flow's two NICs."""

    def clear_path(self, flow: FiveTupleNumbers) -> None: ...
    def sample_every(self, interval_ms: float) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def take_samples(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]: ...

class FabricClock:
    """Real time (ns) less the pauses in which the machine stood still (fabric/realtime/fabric_clock.hpp)."""

    def start(self, real_ns: int) -> None: ...
    def at(self, real_ns: int) -> int: ...
    def of_past(self, real_ns: int) -> int: ...
    def real_ns(self, fabric_ns: int) -> int: ...
    def pause(self, from_ns: int, to_ns: int) -> None: ...
    def lived(self, real_ns: int) -> None: ...
    def restart_longest(self) -> None: ...
    def pauses(self) -> tuple[int, int, int]:
        """Number of pauses, and their total and longest length in ns."""

class IdleProbe:
    """Threads that wake up every `period_us`, one per CPU, and record by how much each wake-up was late."""

    def __init__(self, cpus: Sequence[int], *, period_us: float = 1000.0, priority: int = 0) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def histogram(self, i: int) -> npt.NDArray[np.uint64]:
        """Wake-ups of the i-th CPU by lateness, over `LATENESS_EDGES_NS`."""

    def longest_ns(self, i: int) -> int: ...
    @property
    def is_real_time(self) -> bool:
        """Return whether every thread has the SCHED_FIFO priority that was requested."""

class StallMaker:
    """Threads at SCHED_FIFO priority 90, one pinned to each CPU, that spin at random: for `least_ms` to
    `most_ms`, beginning every `every_ms` on average, for `lasts_s` at most. All CPUs stall `together`, or
    each on its own. Raises ValueError for stalls of more than half of the time, RuntimeError from `start`
    without the right to real-time threads."""

    def __init__(
        self,
        cpus: Sequence[int],
        *,
        every_ms: float,
        least_ms: float,
        most_ms: float,
        seed: int,
        together: bool = True,
        lasts_s: float = 3600.0,
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    @property
    def stalls(self) -> int: ...
    @property
    def stalled_ns(self) -> int: ...

class SocketDump:
    def __init__(self, names: Sequence[str], sockets: Sequence[int], request: bytes) -> None: ...
    def read(self) -> npt.NDArray[np.void]: ...
    @property
    def cc_names(self) -> list[str]: ...

class Pinger:
    def __init__(
        self,
        sockets: Sequence[int],
        probes: Sequence[tuple[int, int, int]],
        *,
        interval_ms: float,
        lost_after_s: float,
        cpu: int = -1,
    ) -> None: ...
    def start(self) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...
    def stop(self) -> None: ...
    def take(self, all: bool = False) -> dict[str, npt.NDArray[np.float64]]: ...
    def cpu_s(self) -> float: ...

def parse_socket(message: bytes, /) -> tuple[npt.NDArray[np.void], list[str]]: ...

class TrafficFlow:
    """A flow between hosts, which are numbers; a size of 0 is unlimited. `cc` is the kernel's name of a
    congestion control, or empty for the namespace's own. It waits for the flow `after`."""
    def __init__(
        self,
        *,
        src_host: int,
        src_ip: int,
        src_port: int,
        dst_host: int,
        dst_ip: int,
        dst_port: int,
        size_bytes: int,
        start_s: float,
        cc: str = "",
        mptcp: bool = False,
        after: int | None = None,
        dscp: int = 0,
    ) -> None: ...

class FlowDriver:
    def __init__(
        self,
        flows: Sequence[TrafficFlow],
        pids: Sequence[int],
        *,
        cpu: int = -1,
        loops: int = 1,
        write_bytes: int = 0,
        read_bytes: int = 1,
        sizes_map: int = -1,
        rank_by_sent: bool = False,
    ) -> None: ...
    def open(self) -> None: ...
    def connect(self) -> None: ...
    def release(self) -> None: ...
    def stop(self) -> None: ...
    def readings(self) -> TrafficReadings: ...
    def describe_failure(self, flow: int) -> str: ...

class Ims:
    def __init__(
        self,
        *,
        pcscf_ps: int,
        scscf_ps: int,
        lookup_ps: int,
        workers: int,
        buffer: int,
        hop_ps: int,
        hold_ps: int,
        patience_ps: int,
        poisson: bool,
        seed: int,
    ) -> None: ...
    def add(self, role: str) -> int: ...
    def drain(self, server: int) -> None: ...
    def activate(self, server: int) -> None: ...
    def set_rates(self, calls_per_s: float, registrations_per_s: float) -> None: ...
    def advance(self, until_ps: int) -> None: ...
    def servers(self) -> list[ImsServer]: ...
    def counts(self) -> ImsCounts: ...
    def take_setups(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]: ...
