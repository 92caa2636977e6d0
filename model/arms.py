"""The arms of pFabric's comparisons: each a sender, a queue and a way to choose paths. One record each. Pure.

Sources: Alizadeh et al., pFabric, SIGCOMM 2013, section 5.1, and copies of the authors' ns-2 scripts.
Links of 10 Gb/s and a round trip of 14.6 us hold 12 packets of 1500 bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from model.congestion import BASELINE
from model.spec import FIFO, LINUX, NEW, PERSISTENT, SENT, RunSpec, StackSpec
from model.transports import SCATTER, USUAL_ROUTING

BDP_PKTS = 12
MAX_WINDOW = 15
PFABRIC_QUEUE_BYTES = 36_864
TCP_QUEUE_BYTES = 230_400
DCTCP_MARKS_FROM = 15
"""Packets in a queue: 22.5 kB."""
PFABRIC_RTO_MS, TCP_RTO_MS = 0.045, 0.2
PROBE_AFTER = 5
NEVER_DUPLICATES = 10**9
"""A threshold that no number of duplicate ACKs reaches."""
_WIRE = {"payload_bytes": 1460, "header_bytes": 40, "ack_bytes": 40}
_COMMON = {**_WIRE, "initial_window": BDP_PKTS, "delayed_ack_ms": 0.0, "connections": PERSISTENT}
_TIMEOUTS_ALONE = {
    "dup_threshold": NEVER_DUPLICATES, "fixed_rto": True, "min_rto_ms": PFABRIC_RTO_MS,
    "probe_after": PROBE_AFTER,
}  # fmt: skip
_NS2 = {"processing_frames": 0.0}
"""The authors' simulator has hosts without randomness of their own."""
TCP_STACK: Mapping[str, Any] = {**_COMMON, **_NS2, "min_rto_ms": TCP_RTO_MS}
MINTCP_STACK: Mapping[str, Any] = {**_COMMON, **_NS2, **_TIMEOUTS_ALONE, "max_window": MAX_WINDOW}
LINERATE_STACK: Mapping[str, Any] = {**_COMMON, **_NS2, **_TIMEOUTS_ALONE, "max_window": BDP_PKTS}
PFABRIC, SCHEDULING, DROPPING = "pfabric", "pfabric_scheduling", "pfabric_dropping"
BANDS, BANDS_BYTES = "pfabric_bands", 1_500_000
"""What the CS244 2017 reproduction ran: 16 bands, and a thousand packets of 1500 bytes."""
KERNEL_RTO_MS = 30.0
"""A kernel adds it to the round trip of 14.6 ms. The sum is a thousand times the paper's 45 us."""
_KERNEL_QUEUE = 1000
_KERNEL_MINTCP = {
    "initial_window": BDP_PKTS, "min_rto_ms": KERNEL_RTO_MS, "delayed_ack_ms": 0.0, "max_window": MAX_WINDOW,
}  # fmt: skip
_SIMULATED_TCP = {name: value for name, value in vars(LINUX).items() if value != getattr(StackSpec(), name)}
_SIMULATED_MINTCP = {
    **_KERNEL_MINTCP, **_TIMEOUTS_ALONE, "payload_bytes": 1460, "header_bytes": 54, "ack_bytes": 54,
    "min_rto_ms": 1000 * PFABRIC_RTO_MS, "nic_waits": False,
}  # fmt: skip
_STAR_TCP = {**_WIRE}
_STAR_MINTCP = {**_COMMON, **_TIMEOUTS_ALONE, "min_rto_ms": 1.0, "max_window": MAX_WINDOW, "connections": NEW}
"""A timeout of three and a half round trips at 100 Mb/s."""


@dataclass(frozen=True)
class Arm:
    """Settings of hosts, queues and routing, with the name and the appearance of the curve.

    `cc` is a name of model/congestion.py, `stack` has fields of a StackSpec. `nic_queue_pkts` is what a
    host's own queue takes; further packets wait in their senders. `engine` is empty for the simulator.
    """

    label: str
    colour: str
    marker: str
    cc: str
    stack: Mapping[str, Any] = field(default_factory=dict)
    discipline: str = PFABRIC
    queue_bytes: int = PFABRIC_QUEUE_BYTES
    ecn_pkts: int = 0
    routing: str = SCATTER
    nic_queue_pkts: int = 1
    engine: str = ""
    paced_rto: bool = False
    """Whether the minimum RTO scales with the round trip of the network. The arm's value is for 14.6 ms."""

    @property
    def sender(self) -> str:
        """The label without the kind of hosts."""
        return self.label.partition(", Linux")[0].partition(", simulated")[0]

    @functools.cached_property
    def stack_spec(self) -> StackSpec:
        return StackSpec(**self.stack)

    @property
    def settings(self) -> dict[str, Any]:
        """The values of the spec's fields that define this arm, by path."""
        return {
            "transport.cc": self.cc,
            "transport.subflows": 1,
            "link.discipline": self.discipline,
            "link.queue_bytes": self.queue_bytes,
            "link.ecn_pkts": self.ecn_pkts,
            "link.nic_queue_pkts": self.nic_queue_pkts,
            "routing": self.routing,
            "stack": self.stack_spec,
        }


REAL = "real hosts"
"""Stands for any engine with real hosts."""
IDEAL, LINERATE, MINTCP, DCTCP, TCP = "ideal", "linerate", "mintcp", "dctcp", "tcp"
ARMS: dict[str, Arm] = {
    IDEAL: Arm("Ideal", "#111111", "p", "srpt", MINTCP_STACK, engine="ideal"),
    LINERATE: Arm("LineRate + pFabric", "#CC3377", "^", "linerate", LINERATE_STACK),
    MINTCP: Arm("minTCP + pFabric", "#0072B2", "o", "mintcp", MINTCP_STACK),
    DCTCP: Arm(
        "DCTCP", "#882255", "H", "dctcp", TCP_STACK, FIFO, TCP_QUEUE_BYTES, DCTCP_MARKS_FROM,
        USUAL_ROUTING, 100,
    ),
    TCP: Arm(
        "TCP, drop-tail", "#D55E00", "s", BASELINE, TCP_STACK, FIFO, TCP_QUEUE_BYTES, 0, USUAL_ROUTING, 100
    ),
    "dropping": Arm("without priority scheduling", "#56B4E9", "v", "mintcp", MINTCP_STACK, DROPPING),
    "scheduling": Arm("without priority dropping", "#E69F00", "D", "mintcp", MINTCP_STACK, SCHEDULING),
    "fifo": Arm("without priorities", "#999933", "<", "mintcp", MINTCP_STACK, FIFO),
    "hashed": Arm("without spraying", "#009E73", "P", "mintcp", MINTCP_STACK, routing=USUAL_ROUTING),
    "large": Arm(
        "with 225 kB of buffer", "#44AA99", "d", "mintcp", MINTCP_STACK, queue_bytes=TCP_QUEUE_BYTES
    ),
    "tcp-hosts": Arm("with TCP senders", "#AA4499", "h", BASELINE, TCP_STACK),
    "sent": Arm("by bytes sent", "#332288", "X", "mintcp", {**MINTCP_STACK, "rank": SENT}),
    "linux-tcp": Arm(
        "TCP, Linux", "#D55E00", "s", BASELINE, {}, FIFO, TCP_QUEUE_BYTES, 0, USUAL_ROUTING, _KERNEL_QUEUE,
        REAL,
    ),
    "linux-mintcp": Arm(
        "minTCP + pFabric, Linux", "#0072B2", "o", "mintcp", _KERNEL_MINTCP, nic_queue_pkts=_KERNEL_QUEUE,
        engine=REAL, paced_rto=True,
    ),
    "linux-bands": Arm(
        "minTCP + 16 bands, Linux", "#009E73", "P", "mintcp", _KERNEL_MINTCP, BANDS, BANDS_BYTES,
        nic_queue_pkts=_KERNEL_QUEUE, engine=REAL, paced_rto=True,
    ),
    "twin-tcp": Arm(
        "TCP, simulated", "#E69F00", "D", BASELINE, _SIMULATED_TCP, FIFO, TCP_QUEUE_BYTES, 0, USUAL_ROUTING,
        _KERNEL_QUEUE,
    ),
    "twin-mintcp": Arm(
        "minTCP + pFabric, simulated", "#56B4E9", "v", "mintcp", _SIMULATED_MINTCP,
        nic_queue_pkts=_KERNEL_QUEUE, paced_rto=True,
    ),
    "twin-bands": Arm(
        "minTCP + 16 bands, simulated", "#44AA99", "d", "mintcp", _SIMULATED_MINTCP, BANDS, BANDS_BYTES,
        nic_queue_pkts=_KERNEL_QUEUE, paced_rto=True,
    ),
    "star-tcp": Arm(
        "TCP (CUBIC), drop-tail", "#D55E00", "s", "cubic", _STAR_TCP, FIFO, TCP_QUEUE_BYTES, 0, USUAL_ROUTING,
        100,
    ),
    "star-mintcp": Arm("minTCP + pFabric", "#0072B2", "o", "mintcp", _STAR_MINTCP),
    "star-exact": Arm(
        "exact order, 1.5 MB, drop-tail", "#E69F00", "D", "mintcp", _STAR_MINTCP, SCHEDULING, BANDS_BYTES
    ),
    "star-short-bands": Arm("16 bands, 36 kB, drop-tail", "#56B4E9", "v", "mintcp", _STAR_MINTCP, BANDS),
    "star-bands": Arm(
        "minTCP + 16 bands, drop-tail", "#009E73", "P", "mintcp", _STAR_MINTCP, BANDS, BANDS_BYTES
    ),
    "star-patient-bands": Arm(
        "16 bands, 1.5 MB, RTO 200 ms", "#44AA99", "d", "mintcp",
        {**_STAR_MINTCP, "min_rto_ms": LINUX.min_rto_ms}, BANDS, BANDS_BYTES,
    ),
    "new": Arm("new connections", "#6b6b6b", ">", "mintcp", {**MINTCP_STACK, "connections": NEW}),
}  # fmt: skip
"""In the order in which charts and tables show them: the papers' first, then pFabric with one change."""
COMPARED = (IDEAL, LINERATE, MINTCP, DCTCP, TCP)
PARTS = (MINTCP, "dropping", "scheduling", "fifo", "hashed", "large", "tcp-hosts", "sent", "new")
ON_LINUX = ("linux-tcp", "linux-mintcp", "linux-bands")
TWINS = ("twin-tcp", "twin-mintcp", "twin-bands")
"""Simulated at the rate and delays of the real hosts, each with the stack that is closest to the kernel's."""
ON_STAR = ("star-tcp", "star-mintcp", "star-bands")
STAR_PARTS = ("star-mintcp", "star-exact", "star-short-bands", "star-bands", "star-patient-bands")
"""What lies between pFabric's queue and that of the reproduction, one step at a time."""


def arm_of(spec: RunSpec) -> str:
    """Return the name of the arm that `spec` belongs to; empty if there is none."""
    return next((name for name, arm in ARMS.items() if _is(spec, arm)), "")


def words_of(spec: RunSpec) -> str:
    """Return the arm's label without the kind of its hosts; empty if `spec` belongs to none."""
    name = arm_of(spec)
    return ARMS[name].sender if name else ""


def _is(spec: RunSpec, arm: Arm) -> bool:
    link = spec.link
    here = (spec.transport.cc, link.discipline, link.queue_bytes, link.ecn_pkts, spec.routing)
    if here != (arm.cc, arm.discipline, arm.queue_bytes, arm.ecn_pkts, arm.routing):
        return False
    stack = arm.stack_spec
    here_stack = replace(spec.stack, min_rto_ms=stack.min_rto_ms) if arm.paced_rto else spec.stack
    return stack == here_stack
