"""Reasons for suspicion: why a number may say more about the machine than about the transport. Pure.

A `Reason` is a record of its kind, its numbers, a text for the reader, the cause on the machine, and the
metrics it casts doubt on. A new kind is one entry in KINDS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

GOODPUT, SLOWEST, JAIN, RTT, COMPLETION = "goodput", "slowest flow", "fairness", "RTT", "completion times"
METRICS = (GOODPUT, SLOWEST, JAIN, RTT, COMPLETION)
"""Metrics that a reason can cast doubt on: `slowest flow` is its goodput, `fairness` is Jain's index."""


class Fault(StrEnum):
    """What delayed the machine, as far as it is known."""

    LOAD = "load"
    """This run needed more than the machine has."""
    OTHERS = "other processes"
    HYPERVISOR = "hypervisor"
    UNKNOWN = ""


@dataclass(frozen=True)
class ReasonKind:
    """A kind of reason: its title in the report, what it means for the numbers, and what to do.

    `machine` is True if the machine is the cause, so that the same command may succeed later.
    """

    title: str
    means: str
    todo: str
    machine: bool = False


_LESS = (
    "Use a lower `--rate`, a smaller k or fewer subflows, and run nothing else on the machine; "
    "`--rate auto` chooses a rate that this machine sustains."
)
_MACHINES = f"{_LESS} If the machine was busy only for a while, `--retry-suspect` repeats such points."
_MPTCP = "Run the point again; if it persists, `sudo .venv/bin/refabric doctor` tests MPTCP on this kernel."
_LONGER = "Measure longer (`--seconds`, `--warmup`), or at a higher `--rate`."

LATE, STRETCHED, LOST, SATURATED, MACHINE = "late", "stretched", "lost", "saturated", "machine"
SUBFLOWS, FALLBACK, STALLED, CONTROL = "subflows", "fallback", "stalled", "congestion control"
REPAIRS = "repairs"
AGENT = "agent"
UNSTEADY, DRIFT, SETTLING = "unsteady", "drift", "settling"
IMPOSSIBLE, STARVED, DEADLOCK = "impossible", "starved", "deadlock"
ERROR, BUG, ENDED, NO_DATA, UNSTATED = "error", "bug", "process ended", "no data", "unstated"
BASELINE, OTHER = "baseline", "other"
PROGRAMS = "programs"

KINDS: Mapping[str, ReasonKind] = {
    LATE: ReasonKind(
        "Frames were delivered late",
        "Frames reached their hosts late in proportion to the time they spend in queues and on links. "
        "The metrics named may be off by more than their tolerance (docs/fidelity.md).",
        _MACHINES,
        machine=True,
    ),
    STRETCHED: ReasonKind(
        "The fabric's clock was paused too long",
        "The machine stalled, and the fabric's clock was paused meanwhile. Goodput is per second of that "
        "clock, but the kernels' timers kept running. Beyond the measured limit this changes the metrics "
        "named.",
        _MACHINES,
        machine=True,
    ),
    LOST: ReasonKind(
        "Frames were lost outside the network's queues",
        "The machine dropped frames at a place where the network under test has no queue. TCP took this for "
        "congestion, so goodput is too low.",
        _MACHINES,
        machine=True,
    ),
    SATURATED: ReasonKind(
        "The CPU was saturated",
        "No CPU time was left, so the stacks waited for the machine instead of the network. The number "
        "measures the speed of this machine.",
        _MACHINES,
        machine=True,
    ),
    MACHINE: ReasonKind(
        "The machine could not keep up",
        "The number says more about the CPU than about the transport.",
        _MACHINES,
        machine=True,
    ),
    SUBFLOWS: ReasonKind(
        "Subflows were missing",
        "Some flows had fewer subflows than requested, so the number belongs to a transport between two of "
        "those in the chart.",
        _MPTCP,
    ),
    FALLBACK: ReasonKind("MPTCP fell back to TCP", "Some flows ran as plain TCP but count as MPTCP.", _MPTCP),
    STALLED: ReasonKind(
        "Flows delivered nothing",
        "Some flows delivered nothing in the measured window. They lower the mean, and other flows used "
        "their share of the network.",
        _LESS,
    ),
    CONTROL: ReasonKind(
        "Another congestion control was in force",
        "Some flows did not run the requested congestion control.",
        "Choose one this kernel has with --cc; `sysctl net.ipv4.tcp_available_congestion_control` lists "
        "them.",
    ),
    REPAIRS: ReasonKind(
        "The kernel skipped window reductions",
        "The kernel runs no BPF program while a certain program of another process runs. refabric corrected "
        "each skipped reduction a round trip later, so queues were longer until then "
        "(docs/congestion.md).",
        "End other programs that trace the kernel with BPF, then run the point again.",
    ),
    AGENT: ReasonKind(
        "The agent did not control all flows",
        "The agent of the congestion control raised an error, ended or answered too late. Datapaths without "
        "an agent fall back to Reno, so the number is partly that of Reno.",
        "Read the traceback in the point's provenance (agent_traceback), correct the algorithm "
        "(docs/ccp.md) and run the point again.",
    ),
    UNSTEADY: ReasonKind(
        "Delivered data differs from carried data",
        "MPTCP delivers in order. Data carried before the window was delivered in it, or data carried in the "
        "window was still waiting at its end. Goodput is too high or too low by that amount.",
        _LONGER,
    ),
    DRIFT: ReasonKind(
        "The two halves of the window differ",
        "Goodput in the first half of the window differs from the second half by more than the tolerance, "
        "so the flows were not in steady state.",
        _LONGER,
    ),
    SETTLING: ReasonKind(
        "The window began before subflows had settled",
        "The warm-up held too few round trips. Subflows' windows still grew, so goodput is too low.",
        "Use a longer `--warmup`.",
    ),
    IMPOSSIBLE: ReasonKind(
        "Goodput is higher than it can be",
        "Data that had arrived before the window, and waited for a gap, was delivered in it; or the baseline "
        "did not fill its links, so that 100 % is too little.",
        _LONGER,
    ),
    STARVED: ReasonKind(
        "Flows starved",
        "Some flows got almost nothing in the whole window, because other senders found every free place of "
        "a full queue. That can be real (TCP Outcast), or an effect of clocks that agree too well: the "
        "slowest flow and the fairness depend on which sender came first.",
        "Run more seeds (`--seeds`), or see whether `--random-drop 1` or a longer queue changes it.",
    ),
    DEADLOCK: ReasonKind(
        "The network came to a deadlock",
        "Ports that pause frames had stopped waited for one another in a cycle, so nothing that needs them "
        "was delivered any more. That is a property of routes with cycles in a lossless network, but the "
        "numbers depend on when it happened.",
        "Choose a routing without cycles of links (up, then down), or queues that drop (`--discipline`).",
    ),
    BASELINE: ReasonKind(
        "The baseline is suspect",
        "The uncongested flow that defines 100 % was measured on a machine that could not keep up. "
        "Goodput in Mb/s is valid; the percentages may be too high.",
        _MACHINES,
        machine=True,
    ),
    ERROR: ReasonKind(
        "The run ended with an error",
        "The point has no number. The text of the error is listed with the point.",
        "Do what the text says, then run the same command again.",
    ),
    BUG: ReasonKind(
        "refabric has a bug",
        "The point has no number. The traceback is in the point's folder (raw/traceback.txt).",
        "Report the traceback, please.",
    ),
    ENDED: ReasonKind(
        "The process of the point ended",
        "The process that ran the point ended before the point did, so the point has no number.",
        "Run the same command again.",
    ),
    NO_DATA: ReasonKind(
        "Flows or calls have no data",
        "A flow has no goodput, or no call was offered, so the point has no number.",
        "Run it again; if it persists, measure longer (`--seconds`).",
    ),
    PROGRAMS: ReasonKind(
        "Programs had not ended",
        "The point lasts until some of its programs have ended, and they had not. What they measured so far "
        "is shown.",
        "Measure longer (`--seconds`).",
    ),
    UNSTATED: ReasonKind(
        "The engine gave no reason", "The engine did not say what is wrong with the point.", "Run it again."
    ),
    OTHER: ReasonKind("Another reason", "The text of the engine is listed with each point.", "Run it again."),
}


@dataclass(frozen=True)
class Reason:
    """Why a point is suspect or, as a caution, why some of its metrics are not reliable.

    `numbers` are pairs of name with unit and value; `doubts` are names of METRICS, empty for all of them.
    """

    kind: str
    text: str
    fault: Fault = Fault.UNKNOWN
    numbers: tuple[tuple[str, float], ...] = ()
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def about(self) -> ReasonKind:
        return KINDS.get(self.kind, KINDS[OTHER])

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "kind": self.kind,
            "text": self.text,
            "fault": self.fault.value,
            "numbers": dict(self.numbers),
            "doubts": list(self.doubts),
        }

    @classmethod
    def from_json(cls, data: object) -> Reason:
        """Read a stored reason. Raises ValueError for anything else."""
        known = {"kind": OTHER, **msgspec.convert(data, dict[str, Any])}
        numbers = msgspec.convert(known.get("numbers", {}), dict[str, float | None])
        pairs = [pair for pair in numbers.items() if pair[1] is not None]
        return msgspec.convert({**known, "numbers": pairs}, cls)


def texts(reasons: Iterable[Reason]) -> str:
    """Return the texts of all reasons on one line."""
    return "; ".join(reason.text for reason in reasons)


def blames_machine(reasons: Iterable[Reason]) -> bool:
    """Return whether all reasons blame the machine, so that another attempt may succeed."""
    found = list(reasons)
    return bool(found) and all(reason.about.machine for reason in found)
