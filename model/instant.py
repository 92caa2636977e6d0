"""What a running point shows of one instant, for pages that follow it (harness/watch/)."""

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
    """Subflows at their senders, one entry each: the flow, the number in it, congestion window, smoothed RTT
    and payload bytes acknowledged since the subflow began."""

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
        """Return plain JSON types, with the columns as bytes."""
        plain = _plain(self, ("sent_bytes", "drops", "queued_pkts", "delivered_bytes"))
        windows = None if self.windows is None else _plain(self.windows, [f.name for f in fields(Windows)])
        return {"t_s": self.t_s, **plain, "windows": windows}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Instant:
        """Return what `to_json` wrote."""
        windows = data["windows"]
        rest = {name: _column(value) for name, value in data.items() if name not in ("t_s", "windows")}
        decoded = Windows(**{name: _column(value) for name, value in windows.items()}) if windows else None
        return cls(data["t_s"], **rest, windows=decoded)


def _plain(of: object, names: Any) -> dict[str, list[str]]:
    return {name: _packed(getattr(of, name)) for name in names}


def _packed(column: npt.NDArray[Any]) -> list[str]:
    return [column.dtype.str, base64.b64encode(np.ascontiguousarray(column).tobytes()).decode()]


def _column(packed: Any) -> npt.NDArray[Any]:
    kind, data = packed
    return np.frombuffer(base64.b64decode(data), dtype=np.dtype(kind))
