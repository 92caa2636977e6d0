"""The file of calibrated link rates.

It has one entry per topology, machine, kernel and bound of the search. A search with a bound does not
replace a search without one.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from common import files, stored_json
from common.privileges import check_private
from engines.provenance import machine
from model.machine.capacity import Measured
from model.machine.idle_noise import MachineNoise
from model.spec import TopologySpec

_VERSION = 3
MAX_BYTES = 1 << 24


@dataclass(frozen=True)
class Entry:
    """One calibration: the rate, the loads of its trials, the time and the noise.

    `highest_mbps` is the bound of the search; infinite without a bound.
    """

    topology: TopologySpec
    rate_mbps: float
    measured_s: float
    """Seconds since the Unix epoch."""
    noise: MachineNoise
    trials: tuple[Measured, ...]
    highest_mbps: float = math.inf

    def rate_up_to(self, highest_mbps: float) -> float | None:
        """Return the rate that a search bounded by `highest_mbps` would choose; None if it is unknown."""
        if self.rate_mbps >= self.highest_mbps and highest_mbps > self.highest_mbps:
            return None
        return min(self.rate_mbps, highest_mbps)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "rate_mbps": self.rate_mbps,
            "topology": [self.topology.kind, dict(self.topology.params)],
            "measured_s": self.measured_s,
            "noise": self.noise.to_json(),
            "trials": [asdict(trial) for trial in self.trials],
            "highest_mbps": self.highest_mbps if math.isfinite(self.highest_mbps) else None,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Entry:
        """Read a stored entry. Raises KeyError, TypeError or ValueError for a damaged one."""
        kind, params = data["topology"]
        trials = [Measured(float(t["hops_per_s"]), float(t["busy_pct"])) for t in data["trials"]]
        highest = data["highest_mbps"]
        entry = cls(
            TopologySpec(kind, params),
            float(data["rate_mbps"]),
            float(data["measured_s"]),
            MachineNoise.from_json(data["noise"]),
            tuple(trials),
            math.inf if highest is None else float(highest),
        )
        numbers = [entry.rate_mbps, entry.measured_s, entry.highest_mbps]
        numbers += [number for trial in trials for number in (trial.hops_per_s, trial.busy_pct)]
        if not trials or not all(number > 0 for number in numbers):
            raise ValueError("reading a calibration: it lacks trials, or a number is not above 0")
        return entry


def entries() -> list[Entry]:
    """Return the valid entries that were measured on this machine and kernel."""
    found = []
    for key, data in _read().items():
        try:
            entry = Entry.from_json(data)
            if key == _key(entry):
                found.append(entry)
        except (AttributeError, KeyError, TypeError, ValueError, OverflowError):
            continue  # Damaged or from an earlier version: calibrate again.
    return found


def remember(entry: Entry) -> None:
    """Add the entry, or replace the one of the same topology and bound. Two runs at once lose none.

    Raises StoreError, and UsageError if root may not work there.
    """
    file = path()
    check_private(f"calibrated rates in {file}", file)
    with files.storing(f"creating {file.parent}"):
        file.parent.mkdir(parents=True, exist_ok=True)
    files.update_file(file, lambda: json.dumps({**_read(), _key(entry): entry.to_json()}, indent=1).encode())


def path() -> Path:
    """Return the path of the file, which may not exist."""
    chosen = os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME", "/"), ".cache")
    return Path(chosen, "refabric", "calibration.json")


def _key(entry: Entry) -> str:
    # Omit memory: the kernel's MemTotal varies slightly from boot to boot.
    here = {name: value for name, value in machine().items() if name not in {"python", "memory_mb"}}
    bound = [entry.highest_mbps] if math.isfinite(entry.highest_mbps) else []
    topology = entry.topology
    text = json.dumps([_VERSION, here, topology.kind, dict(topology.params), *bound], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read() -> Mapping[str, Any]:
    try:
        data = stored_json.loads(files.read_bytes(path(), MAX_BYTES))
    except (OSError, ValueError):
        return {}  # Absent, unreadable or damaged: calibrate again.
    return data if isinstance(data, dict) else {}
