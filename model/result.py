"""RunResult: what one point measured, and whether the numbers are reliable.

`ok` is a reliable result. `suspect` is a number that says more about the machine (or about a missing
subflow) than about the transport. `failed` has no number. Every status but `ok` has at least one reason
(model/reasons.py). Rows of flows and ports may be held as columns (RowTable), so that a sweep of millions of
flows fits into memory. An Instant is the state of a point that runs.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, Generic, TypeVar, overload

import numpy as np
import numpy.typing as npt

from model.reasons import NO_DATA, Reason

Row = TypeVar("Row")
Numbers = npt.NDArray[Any]
NO_VALUE = float("nan")
"""Marks a number that was not measured; empty in CSV files."""
MAX_KEPT = 256
"""Rows of a table as short as this are kept once they are made."""
_AT_ONCE = 1024
_MAX_CODES = 256
_INTEGERS = (np.int8, np.int16, np.int32)
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
UDP = "udp"
"""Transport of a flow of constant rate."""


class Status(StrEnum):
    OK = "ok"
    SUSPECT = "suspect"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class FlowRow:
    """One flow (one line of flows.csv). The window is the measured one, without the warm-up."""

    flow: int
    """Its number in the workload, from 0."""
    src: str
    """The sending host's name."""
    dst: str
    """The receiving host's name."""
    src_ip: str
    """Address of the first subflow's sender."""
    dst_ip: str
    """Address of the first subflow's receiver."""
    sport: int
    """TCP port of the first subflow's sender."""
    dport: int
    """TCP port of the first subflow's receiver."""
    transport: str
    """`tcp`, `mptcp`, `udp` for a flow of constant rate, or another transport's name."""
    subflows_asked: int
    """Subflows that the point asks for."""
    subflows_joined: int
    """Subflows that were established by the end of the window, the first included."""
    cc: str
    """Congestion control that was in force."""
    goodput_mbps: float
    """Payload that the receiving application's socket got in the window, in Mb/s."""
    bytes_received: int
    """Payload of the window, in bytes."""
    retransmits: int
    """Segments that all its subflows retransmitted in the window."""
    up_s: float
    """Seconds from the start of traffic until the last subflow was established."""
    srtt_ms_mean: float = NO_VALUE
    """Mean of the sender's smoothed RTT, over all subflows and samples of the window."""
    srtt_ms_std: float = NO_VALUE
    """Its standard deviation."""
    ping_ms_mean: float = NO_VALUE
    """Mean RTT of the answered pings along the paths of its subflows."""
    ping_ms_std: float = NO_VALUE
    """Its standard deviation."""
    pings_sent: int = 0
    """Pings sent along those paths in the window."""
    pings_lost: int = 0
    """Those of them without an answer."""
    completed_s: float = NO_VALUE
    """Seconds from a sized flow's start until its last byte was received."""
    size_bytes: int = 0
    """Payload of the flow; 0 means that it sends until the run ends."""
    start_s: float = NO_VALUE
    """Start of the flow, in seconds from the start of the measured window (warm-up is negative). No value if
    the flow did not start, or if the engine does not record starts."""
    ideal_s: float = NO_VALUE
    """What `completed_s` would be if the flow were alone on its path and sent at line rate from the start."""
    rate_mbps: float = 0.0
    """Rate of a flow of constant rate, headers included; 0 for flows with a transport."""
    sent_pkts: int = 0
    """Packets that a flow of constant rate sent in the window."""
    lost_pkts: int = 0
    """Packets of such a flow that its host's queue or the network dropped in the window."""


def under_test(flows: Sequence[FlowRow]) -> Sequence[FlowRow]:
    """Return the flows whose transport the point studies: all flows but those of constant rate.

    If there are no others, return the flows of constant rate.
    """
    if UDP not in distinct(flows, "transport"):
        return flows
    return [flow for flow in flows if flow.transport != UDP] or flows


@dataclass(frozen=True, slots=True)
class PortRow:
    """One direction of one link (one line of ports.csv); counts are of the measured window."""

    port: int
    """Its number; links follow one another, each with both its directions."""
    node: str
    """The node that sends."""
    peer: str
    """The node at the other end."""
    layer: str
    """The layers of both ends, e.g. `edge-agg`."""
    tx_packets: int
    """Packets sent in the window."""
    tx_bytes: int
    """Bytes sent in the window, with Ethernet's headers."""
    drops: int
    """Packets dropped by the queue or because the link was cut."""
    max_queue_pkts: int
    """The longest queue that was seen, in packets."""
    utilisation_pct: float
    """Bytes sent over the port's capacity, in the whole window."""
    utilisation_median_pct: float = NO_VALUE
    """The same as the median over the seconds of the window."""
    lost: int = 0
    """Packets lost at random on the wire."""
    marked: int = 0
    """Packets marked Congestion Experienced."""
    early_drops: int = 0
    """Of the drops, those that the queue chose although it had room."""
    pause_frames: int = 0
    """Pause frames that stopped the port."""
    paused_s: float = 0.0
    """Seconds for which the port was stopped."""


@dataclass(frozen=True, eq=False)
class Table:
    """Samples: named columns of equal length (integers, floats, text), stored as samples/<name>.csv.gz."""

    columns: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise ValueError("a table has columns of different lengths")

    @classmethod
    def from_rows(cls, names: Collection[str], rows: Iterable[Sequence[float | int | str]]) -> Table:
        """Return a table from its rows; without rows every column is an empty array of floats."""
        columns = list(zip(*rows, strict=True)) or [()] * len(names)
        return cls({name: np.array(column) for name, column in zip(names, columns, strict=True)})

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table) or list(self.columns) != list(other.columns):
            return False
        pairs = zip(self.columns.values(), other.columns.values(), strict=True)
        return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f" == b.dtype.kind) for a, b in pairs)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        return self.columns[name]

    def rows(self) -> list[tuple[float | int | str, ...]]:
        """Return all rows as Python values."""
        return list(zip(*(column.tolist() for column in self.columns.values()), strict=True))


_T, _FLOW, _PORT = "t_s", {"flow": "the flow's number"}, {"port": "the port's number"}
_SUBFLOW = {**_FLOW, "subflow": "the subflow's number; 0 is the first"}
_END = {_T: "end of the interval, in seconds from the start of the measured window (warm-up is negative)"}
_INSTANT = {_T: "time of the sample, in seconds from the start of the measured window (warm-up is negative)"}
SAMPLE_COLUMNS: Mapping[str, Mapping[str, str]] = {
    "goodput": {**_END, **_FLOW, "mbps": "goodput in the interval, Mb/s"},
    "cpu": {
        **_END,
        "busy_pct": "of all CPUs' time, in percent",
        "user_pct": "of it in programs",
        "system_pct": "of it in the kernel",
        "softirq_pct": "of it in the kernel's receive path",
        "steal_pct": "time that the hypervisor took",
    },
    "links": {**_END, **_PORT, "utilisation_pct": "bytes sent over capacity; rows with 0 are left out"},
    "ports": {
        **_END, **_PORT,
        "queued_pkts": "packets in its queue at the end",
        "drops": "packets dropped in the interval; rows with two zeros are left out",
    },
    "queues": {**_INSTANT, **_PORT, "pkts": "packets in its queue; rows with 0 are left out"},
    "queue_times": {_T: "every instant at which queues were sampled"},
    "sockets": {
        **_INSTANT, **_SUBFLOW,
        "cwnd_pkts": "congestion window, in segments",
        "srtt_ms": "smoothed RTT",
        "rttvar_ms": "mean deviation of the RTT",
        "retransmits": "segments retransmitted since the connection began",
        "bytes_acked": "bytes acknowledged since then",
        "unacked_pkts": "segments in flight",
        "notsent_bytes": "bytes in the send buffer that were not sent",
        "busy_ms": "since then, time with unsent or unacknowledged data",
        "rwnd_limited_ms": "of it, time in which the receiver's window was the limit",
    },
    "pings": {
        _T: "time of sending, as above", **_SUBFLOW,
        "rtt_ms": "round-trip time; none without an answer", "out_ms": "the way out alone",
    },
}  # fmt: skip
"""The tables of RunResult.samples, and the meaning of each column; kinds of workloads have more
(engines/workload.py)."""


@dataclass(frozen=True)
class RunResult:
    """Rows, samples and metrics of one point.

    `metrics` holds per-point numbers: cpu_busy_pct, cpu_busy_max_pct, late_p99_us, drops, pushed_out (of the
    drops, those that made room for other packets), early_drops (of the drops, those from queues with room),
    pause_frames (where queues are lossless),
    retransmits, astray (frames lost outside queues), packet_hops, setup_s, startup_s and others.
    `subflow_idle_pct` is the mean share of the window in which a subflow had nothing unsent and nothing
    unacknowledged.
    analysis/plausibility.py defines `delivered_over_carried_pct`.

    `samples` always has `goodput`, `cpu` and `links`; engines with queues add `ports`, and SamplingSpec the
    others of SAMPLE_COLUMNS on request.
    """

    status: Status
    """`ok`, `suspect` or `failed`."""
    reasons: tuple[Reason, ...] = ()
    """Why it is not ok."""
    flows: Sequence[FlowRow] = ()
    """flows.csv."""
    ports: Sequence[PortRow] = ()
    """ports.csv."""
    samples: Mapping[str, Table] = field(default_factory=dict)
    """Tables over time, samples/NAME.csv.gz."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Numbers of the whole point by name."""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """Versions, the machine, and how the point was run."""
    reproducible: bool = False
    """Whether the same spec gives the same result on any machine, except for `provenance` and `cost`."""
    cost: Mapping[str, float] = field(default_factory=dict)
    """Machine-dependent numbers of a reproducible result: CPU time, memory."""
    cautions: tuple[Reason, ...] = ()
    """Reasons that cast doubt on some metrics only: goodput is reliable, RTT may not be."""

    def doubted(self, reasons: Sequence[Reason]) -> RunResult:
        """Return the result with further reasons for doubt; without any, as it is."""
        if not reasons:
            return self
        status = Status.FAILED if self.status is Status.FAILED else Status.SUSPECT
        return dataclasses.replace(self, status=status, reasons=(*self.reasons, *reasons))

    def without_data(self, what: str) -> RunResult:
        """Return the result, failed because it has no number; `what` says why."""
        reasons = (*self.reasons, Reason(NO_DATA, what))
        return dataclasses.replace(self, status=Status.FAILED, reasons=reasons)


@dataclass(frozen=True, eq=False)
class Column:
    """The values of one field: `numbers`, or if there are `choices`, the place of each value in them."""

    numbers: Numbers
    choices: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, values: Sequence[Any] | Numbers) -> Column:
        """Return the column of these values, at least one: all integers, all floats or all texts."""
        if isinstance(values[0], str):
            places = {value: place for place, value in enumerate(dict.fromkeys(values))}
            codes = np.fromiter(map(places.__getitem__, values), np.int64, len(values))
            return cls.coded(codes, tuple(places))
        numbers = np.array(values)
        return cls(_narrow(numbers) if numbers.dtype.kind == "i" else numbers)

    @classmethod
    def constant_of(cls, value: Any) -> Column:
        """Return the column of rows that all have this value."""
        return cls(np.zeros(0, np.uint8), (value,))

    @classmethod
    def coded(cls, codes: Numbers, choices: Sequence[str]) -> Column:
        """Return the column whose values are `choices` at the places `codes`."""
        if len(choices) == 1:
            return cls.constant_of(choices[0])
        return cls(codes.astype(np.uint8) if len(choices) <= _MAX_CODES else _narrow(codes), tuple(choices))

    @property
    def constant(self) -> bool:
        """Whether all rows have one value; then `numbers` is empty."""
        return self.choices is not None and len(self.choices) == 1

    def array(self, rows: int) -> Numbers:
        """Return all values: integers of 64 bits, floats, or texts as an array of objects."""
        if self.choices is None:
            return self.numbers.astype(np.int64) if self.numbers.dtype.kind == "i" else self.numbers
        choices = np.array(self.choices, dtype=object if isinstance(self.choices[0], str) else None)
        return np.full(rows, choices[0], choices.dtype) if self.constant else choices[self.numbers]

    def distinct(self) -> set[Any]:
        """Return the values that any row has."""
        if self.choices is None or self.constant:
            return set(self.choices or self.numbers.tolist())
        return {self.choices[code] for code in np.unique(self.numbers).tolist()}

    def values(self, start: int, stop: int) -> list[Any]:
        """Return the Python values of the rows from `start` to `stop`."""
        if self.choices is not None:
            if self.constant:
                only = self.choices[0]
                return [NO_VALUE if only != only else only] * (stop - start)  # noqa: PLR0124
            return [self.choices[code] for code in self.numbers[start:stop].tolist()]
        part = self.numbers[start:stop]
        found: list[Any] = part.tolist()
        if part.dtype.kind == "f" and np.isnan(part).any():
            return [NO_VALUE if math.isnan(value) else value for value in found]
        return found

    def take(self, chosen: Numbers) -> Column:
        """Return the column of the rows at these places."""
        return self if self.constant else Column(self.numbers[chosen], self.choices)


def _narrow(numbers: Numbers) -> Numbers:
    """Return the integers in as few bytes as they fit into."""
    low, high = int(numbers.min()), int(numbers.max())
    fitting = (kind for kind in _INTEGERS if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return numbers.astype(next(fitting, np.int64))


class RowTable(Sequence[Row], Generic[Row]):
    """Rows of the dataclass `kind`; equal to any sequence of equal rows."""

    def __init__(self, kind: type[Row], rows: int, columns: Mapping[str, Column]) -> None:
        self.kind, self._rows, self._columns = kind, rows, columns

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns, in the order of the fields of a row."""
        return self._columns

    def __len__(self) -> int:
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._few) if self._rows <= MAX_KEPT else self._made()

    def _made(self) -> Iterator[Row]:
        for start in range(0, self._rows, _AT_ONCE):
            stop = min(start + _AT_ONCE, self._rows)
            yield from map(self.kind, *(column.values(start, stop) for column in self.columns.values()))

    @functools.cached_property
    def _few(self) -> tuple[Row, ...]:
        return tuple(self._made())

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        if isinstance(index, slice):
            return self.take(np.arange(self._rows)[index])
        place = range(self._rows)[index]
        if self._rows <= MAX_KEPT:
            return self._few[place]
        return self.kind(*(column.values(place, place + 1)[0] for column in self.columns.values()))

    def take(self, chosen: Numbers) -> RowTable[Row]:
        """Return the rows at these places, in their order."""
        columns = {name: column.take(chosen) for name, column in self.columns.items()}
        return RowTable(self.kind, len(chosen), columns)

    def array(self, name: str) -> Numbers:
        """Return the values of one field."""
        return self.columns[name].array(self._rows) if self._rows else np.zeros(0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out the rows that were made."""
        return RowTable, (self.kind, self._rows, self.columns)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return len(self) == len(other) and all(a == b for a, b in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<{self._rows} rows of {self.kind.__name__}>"


def array(rows: Iterable[Any], name: str) -> Numbers:
    """Return the values of one field of rows, held as a table or not."""
    if isinstance(rows, RowTable):
        return rows.array(name)
    return np.array([getattr(row, name) for row in rows])


def chosen(rows: Sequence[Row], places: Numbers) -> Sequence[Row]:
    """Return the rows at these places, in their order."""
    return rows.take(places) if isinstance(rows, RowTable) else tuple(rows[place] for place in places)


def distinct(rows: Iterable[Any], name: str) -> set[Any]:
    """Return the values that a field has in any row."""
    if isinstance(rows, RowTable) and len(rows):
        return rows.columns[name].distinct()
    return {getattr(row, name) for row in rows}


@dataclass(frozen=True, eq=False)
class Windows:
    """Subflows at their senders, one entry per subflow: the flow, the subflow's number in it, congestion
    window, smoothed RTT and payload bytes acknowledged since the subflow began."""

    flow: Ints
    subflow: Ints
    cwnd_pkts: Floats
    srtt_ms: Floats
    acked_bytes: Ints


@dataclass(frozen=True, eq=False)
class Instant:
    """Counters since the start of traffic, at `t_s` seconds from the start of the measured window.

    Of each port the bytes sent, the packets dropped, and the packets queued now; of each flow the payload
    bytes delivered, -1 if unknown. `windows` is None where subflows are not sampled.
    """

    t_s: float
    sent_bytes: Ints
    drops: Ints
    queued_pkts: Ints
    delivered_bytes: Ints
    windows: Windows | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types, with the columns as bytes: 48 kB for 1024 subflows on 768 ports. That is
        less than a pipe holds, so that the sender need not wait."""
        windows = None if self.windows is None else _packed(self.windows)
        return {"t_s": self.t_s, **_packed(self), "windows": windows}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Instant:
        """Return the instant that `to_json` wrote; its numbers have the precision of _SHORT."""
        windows = data["windows"]
        decoded = Windows(**_unpacked(windows, Windows)) if windows else None
        return cls(data["t_s"], **_unpacked(data, cls), windows=decoded)


_SHORT = {
    "flow": "<i4", "subflow": "<i2", "cwnd_pkts": "<f4", "srtt_ms": "<f4", "acked_bytes": "<i8",
    "sent_bytes": "<i8", "drops": "<i4", "queued_pkts": "<i4", "delivered_bytes": "<i8",
}  # fmt: skip
"""Types of the columns in JSON."""


def _packed(of: object) -> dict[str, str]:
    columns = {f.name: getattr(of, f.name) for f in fields(of) if f.name in _SHORT}  # type: ignore[arg-type]
    return {
        name: base64.b64encode(values.astype(_SHORT[name]).tobytes()).decode()
        for name, values in columns.items()
    }


def _unpacked(data: Mapping[str, str], kind: type) -> dict[str, npt.NDArray[Any]]:
    return {f.name: _column(f.name, data[f.name]) for f in fields(kind) if f.name in _SHORT}


def _column(name: str, text: str) -> npt.NDArray[Any]:
    short = np.frombuffer(base64.b64decode(text), _SHORT[name])
    return short.astype(np.float64 if short.dtype.kind == "f" else np.int64)
