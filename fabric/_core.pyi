from collections.abc import Sequence
from typing import Any, TypedDict

import numpy as np
import numpy.typing as npt

from fabric.plan import NetworkPlan

FiveTupleNumbers = tuple[int, int, int, int, int]

class PortCounters(TypedDict):
    tx_packets: npt.NDArray[np.uint64]
    tx_bytes: npt.NDArray[np.uint64]
    drops: npt.NDArray[np.uint64]
    max_queue_pkts: npt.NDArray[np.uint32]
    queued_pkts: npt.NDArray[np.uint32]
    injected: int
    delivered: int
    dropped: int
    hops: int
    in_flight: int

class Snapshot(PortCounters):
    now_s: float
    ring_drops: int
    send_refused: int
    not_ipv4: int
    no_such_host: int
    oversized: int
    no_memory: int
    cpu_s: float
    lateness: npt.NDArray[np.uint64]

LATENESS_EDGES_NS: npt.NDArray[np.uint64]

def flow_hash(src: int, dst: int, proto: int, sport: int, dport: int, /) -> int: ...
def mix(hash: int, seed: int) -> int: ...
def switch_seed(seed: int, node: int) -> int: ...

class Calendar:
    def __init__(self, width_log2: int, slots_log2: int) -> None: ...
    def push(self, due: int, what: int) -> None: ...
    def next_due(self) -> int: ...
    def __len__(self) -> int: ...
    def pop_until(self, limit: int) -> list[tuple[int, int]]: ...

class VirtualFabric:
    def __init__(self, plan: NetworkPlan | Any) -> None: ...
    def inject(self, when_ps: int, nic: int, size_bytes: int, flow: FiveTupleNumbers) -> int: ...
    def run_until(self, limit_ps: int) -> list[tuple[int, int, int, bool]]: ...
    def set_port_up(self, port: int, up: bool, when_ps: int) -> None: ...
    def next_due_ps(self) -> int: ...
    def counters(self) -> PortCounters: ...

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
    ) -> None: ...
    def start(self) -> None: ...
    def stop(self) -> None: ...
    def restart_max_queues(self) -> None: ...
    def set_port_up(self, port: int, up: bool) -> None: ...
    def snapshot(self) -> Snapshot: ...
    def take_samples(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]: ...
