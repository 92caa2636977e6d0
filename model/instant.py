"""The state of a running point at one instant, for live pages (harness/watch/)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


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
