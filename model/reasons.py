"""Reasons for suspicion: why a number may say more about the machine than about the transport. Pure.

A `Reason` is a record: its kind, the numbers it rests on, words for the reader, whose fault it was, and which
metrics it doubts. A new kind is one entry in KINDS.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

GOODPUT, SLOWEST, JAIN, RTT, COMPLETION = "goodput", "slowest flow", "fairness", "RTT", "completion times"
METRICS = (GOODPUT, SLOWEST, JAIN, RTT, COMPLETION)
"""What a reason can doubt. `slowest flow` is its goodput; `fairness` is Jain's index."""


class Fault(StrEnum):
    """What kept the machine from being on time, as far as it is known."""

    LOAD = "load"
    """This run asked for more than the machine has."""
    OTHERS = "other processes"
    HYPERVISOR = "hypervisor"
    UNKNOWN = ""


@dataclass(frozen=True)
class Kind:
    """A kind of reason: a title for the report, what it means for the numbers, what to do about it.
    `machine` says whether the machine is to blame, so that the same command may do better later."""

    title: str
    means: str
    todo: str
    machine: bool = False


_LESS = (
    "Give a lower `--rate`, a smaller k or fewer subflows, and leave the machine to the run alone; "
    "`--rate auto` chooses a rate this machine carries."
)
_MACHINES = f"{_LESS} Where it was busy for a while only, `--retry-suspect` runs such points once more."
_MPTCP = "Run the point again; if it stays, `sudo .venv/bin/refabric doctor` tests MPTCP on this kernel."
_LONGER = "Measure longer (`--seconds`, `--warmup`), or at a higher `--rate`."

LATE, STRETCHED, LOST, SATURATED, MACHINE = "late", "stretched", "lost", "saturated", "machine"
SUBFLOWS, FALLBACK, STALLED, CONTROL = "subflows", "fallback", "stalled", "congestion control"
REPAIRS = "repairs"
UNSTEADY, DRIFT, BASELINE, OTHER = "unsteady", "drift", "baseline", "other"

KINDS: Mapping[str, Kind] = {
    LATE: Kind(
        "Frames were delivered late",
        "Frames reached their hosts so late, in proportion to the time they spend in queues and on links, "
        "that the metrics named may be off by more than their tolerance (docs/noise.md).",
        _MACHINES,
        machine=True,
    ),
    STRETCHED: Kind(
        "The fabric's clock stood still too long",
        "The machine stood still, and the fabric's clock with it. Goodput is per second of that clock; the "
        "kernels' timers went on, and beyond the measured limit that shows in the metrics named.",
        _MACHINES,
        machine=True,
    ),
    LOST: Kind(
        "Frames were lost outside the network's queues",
        "The machine dropped frames where the network asked for has no queue. TCP took that for congestion, "
        "so goodput is too low.",
        _MACHINES,
        machine=True,
    ),
    SATURATED: Kind(
        "The CPU was saturated",
        "No CPU time was left, so the stacks waited for the machine and not for the network. The number says "
        "how fast this machine is.",
        _MACHINES,
        machine=True,
    ),
    MACHINE: Kind(
        "The machine could not keep up",
        "The number says more about the CPU than about the transport.",
        _MACHINES,
        machine=True,
    ),
    SUBFLOWS: Kind(
        "Subflows were missing",
        "Some flows had fewer subflows than asked for, so the number belongs to a transport between two of "
        "the chart's.",
        _MPTCP,
    ),
    FALLBACK: Kind(
        "MPTCP fell back to TCP", "Some flows were plain TCP, which counts against MPTCP.", _MPTCP
    ),
    STALLED: Kind(
        "Flows stood still",
        "Some flows delivered nothing while they were measured. They pull the mean down, and their share of "
        "the network went to others.",
        _LESS,
    ),
    CONTROL: Kind(
        "Another congestion control was in force",
        "Not all flows ran what was asked for.",
        "Choose one this kernel has with --cc; `sysctl net.ipv4.tcp_available_congestion_control` lists "
        "them.",
    ),
    REPAIRS: Kind(
        "The kernel left out window reductions",
        "The kernel runs no BPF program while a certain program of another process does. Windows that were "
        "not reduced were put right a round trip later, and queues are longer until then "
        "(docs/congestion.md).",
        "End other programs that trace the kernel with BPF, then run the point again.",
    ),
    UNSTEADY: Kind(
        "Delivered is not what was carried",
        "MPTCP delivers in order, so data of before the window counted in it, or data of the window still "
        "waited at its end. The goodput is that much too high or too low.",
        _LONGER,
    ),
    DRIFT: Kind(
        "The two halves of the window differ",
        "Goodput in the first half of the window differs from the second half by more than the tolerance: "
        "the flows had not settled.",
        _LONGER,
    ),
    BASELINE: Kind(
        "The baseline is suspect",
        "The uncongested flow that 100 % stands for was measured on a machine that could not keep up. "
        "Goodput in Mb/s stands; the percentages may be too high.",
        _MACHINES,
        machine=True,
    ),
    OTHER: Kind("Another reason", "The engine's own words stand with each point.", "Run it again."),
}


@dataclass(frozen=True)
class Reason:
    """Why a point is suspect, or, as a caution, why some of its metrics do not stand.

    `numbers` are (name with unit, value) pairs; `doubts` are names of METRICS, empty for all of them.
    """

    kind: str
    text: str
    fault: Fault = Fault.UNKNOWN
    numbers: tuple[tuple[str, float], ...] = ()
    doubts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.text

    @property
    def about(self) -> Kind:
        return KINDS.get(self.kind, KINDS[OTHER])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; `from_json` is the inverse."""
        return {
            "kind": self.kind,
            "text": self.text,
            "fault": self.fault.value,
            "numbers": dict(self.numbers),
            "doubts": list(self.doubts),
        }

    @classmethod
    def from_json(cls, data: object) -> Reason:
        """A stored reason; text alone is from an older version. Raises ValueError for anything else."""
        if isinstance(data, str):
            return of_text(data)
        if not isinstance(data, Mapping) or not isinstance(data.get("text"), str):
            raise ValueError("a reason is neither a text nor a record with a text")
        numbers = {str(name): float(value) for name, value in dict(data.get("numbers") or {}).items()}
        doubts = tuple(str(name) for name in data.get("doubts") or ())
        return cls(
            str(data.get("kind", OTHER)),
            data["text"],
            Fault(data.get("fault", "")),
            tuple(numbers.items()),
            doubts,
        )


_STARTS = (
    ("CPU:", "late or more", LATE),
    ("CPU:", "no idle time", SATURATED),
    ("CPU:", "lost in", LOST),
    ("CPU:", "", MACHINE),
    ("subflows:", "", SUBFLOWS),
    ("fallback:", "", FALLBACK),
    ("flows:", "", STALLED),
    ("congestion control: the kernel left out", "", REPAIRS),
    ("congestion control:", "", CONTROL),
    ("its reference is suspect", "", BASELINE),
    ("its baseline is suspect", "", BASELINE),
)
"""How texts of earlier versions begin, what they contain, and their kind."""


def of_text(text: str) -> Reason:
    """The reason whose words these are; of an unknown kind, OTHER."""
    kind = next((kind for start, part, kind in _STARTS if text.startswith(start) and part in text), OTHER)
    return Reason(kind, text)


def texts(reasons: Iterable[Reason]) -> str:
    """All of them on one line."""
    return "; ".join(reason.text for reason in reasons)


def blames_machine(reasons: Iterable[Reason]) -> bool:
    """Whether the machine alone is to blame, so that another attempt may do better."""
    found = list(reasons)
    return bool(found) and all(reason.about.machine for reason in found)
