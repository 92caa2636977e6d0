"""A network in the form of the core: flat arrays, indices instead of names, units of bits, bytes and ps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

PS_PER_US = 1_000_000
NO_ROW = 0xFFFFFFFF
FRAME_BITS = 1514 * 8
"""A full Ethernet frame as the core counts it: 1500 bytes of IP and 14 of header."""
PAYLOAD_SHARE = 1448 / 1514
"""TCP payload in a full frame: 1500 - 20 (IPv4) - 20 (TCP) - 12 (timestamps) of 1500 + 14 (Ethernet)."""


@dataclass(frozen=True)
class NetworkPlan:
    """P ports, N NICs, S nodes, A switches with hosts ("attachments"), G groups, M group members.

    Port i transmits towards node `far_node[i]`; ports 2i and 2i + 1 are the two directions of a link. `fib`
    has rows of A entries: a group number, or -1. Node n has row `fib_rows[n]`, or none if that is NO_ROW; if
    `fib_rows` is empty, every node has a row.
    Group g has the members `group_offsets[g]` up to `group_offsets[g + 1]`, each a port and the number
    of shortest paths from its far end to the destination's switch. A queue limit of 0 means none.

    Where lists of paths replace shortest ones, `list_paths` has A * A + 1 entries: paths from attachment a to
    b have the numbers from entry a * A + b up to the next entry. Path i has the weight `path_weight[i]` and
    passes the ports `path_port[list_ports[i]]` up to `list_ports[i + 1]`, from switch to switch.

    `loss` is the probability that a packet is lost on the wire behind a port, in [0, 1), drawn by each
    port's own generator (from `seed` and the port's number). `admission` has a column for each setting by a
    name of `fabric._core.admission_settings()`; one without a column is off. `discipline` is the number of a
    queue discipline in `fabric._core.queue_kinds()`. `queue_settings` has the settings of a discipline, by
    its name and theirs, that differ from the usual ones (`fabric._core.queue_kinds()`).

    `parameters` are numbers of the routing policy, by the names of controllers/routing.py.

    Packets leave a port that is `traced` at the delivery opportunities, which are in order in
    (0, opportunities_period_ps] and repeat; its rate is their mean. No port is traced where
    `traced` is empty.

    A simulation may carry out the network in partitions: `partition` is that of each node. If it is empty,
    there is one.
    """

    rate_bps: npt.NDArray[np.int64]
    delay_ps: npt.NDArray[np.int64]
    queue_pkts: npt.NDArray[np.uint32]
    queue_bytes: npt.NDArray[np.uint64]
    loss: npt.NDArray[np.float64]
    admission: Mapping[str, npt.NDArray[np.float64]]
    discipline: npt.NDArray[np.uint8]
    far_node: npt.NDArray[np.uint32]
    nic_ip: npt.NDArray[np.uint32]
    nic_attach_node: npt.NDArray[np.uint32]
    nic_attach: npt.NDArray[np.uint32]
    nic_uplink: npt.NDArray[np.uint32]
    nic_downlink: npt.NDArray[np.uint32]
    attachments: int
    fib: npt.NDArray[np.int32]
    group_offsets: npt.NDArray[np.uint32]
    member_port: npt.NDArray[np.uint32]
    member_paths: npt.NDArray[np.uint32]
    policy: str
    seed: int
    parameters: Mapping[str, float] = field(default_factory=dict)
    max_packets: int = 1 << 20
    queue_settings: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    traced: npt.NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, np.uint8))
    opportunities_ps: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    opportunities_period_ps: int = 1
    fib_rows: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    list_paths: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    list_ports: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    path_weight: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    path_port: npt.NDArray[np.uint32] = field(default_factory=lambda: np.zeros(0, np.uint32))
    partition: npt.NDArray[np.uint16] = field(default_factory=lambda: np.zeros(0, np.uint16))
