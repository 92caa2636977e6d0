"""Verdicts that this version is known to give: simulated results are the same on every machine.

`baselines/verdicts.json` holds one row for each published statement and setting that was simulated when the
file was written. A run with the same settings says which verdicts have changed since. After a change that is
meant to move one, write the file again: `docs/tools/verdicts_baseline.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from harness.claims.verdicts import Verdict, fields
from harness.experiment import Figure

FILE = Path(__file__).resolve().parents[2] / "baselines" / "verdicts.json"
_IDENTITY = ("quantity", "topology", "k", "shape", "workload", "subflows", "algorithm", "relation", "value")
SIGNIFICANT = 4


@dataclass(frozen=True)
class Remembered:
    """The verdict on one statement in one setting: its word, and the measured value in the metric's unit."""

    word: str
    measured: float
    unit: str


@dataclass(frozen=True)
class Compared:
    """How many verdicts are known in the settings of a run, and a sentence on each that has changed."""

    known: int = 0
    changed: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return one line, and one for each change; empty if nothing is known in these settings."""
        if not self.known:
            return ""
        if not self.changed:
            return f"All {self.known} verdicts are as in {FILE.parent.name}/{FILE.name}."
        head = f"{len(self.changed)} of {self.known} verdicts have changed"
        return "\n  ".join([f"{head} since {FILE.parent.name}/{FILE.name}:", *self.changed])


def rows(figure: Figure, found: Iterable[Verdict]) -> dict[str, Remembered]:
    """Return the verdicts that rest on a measurement, by figure, statement, setting and number of seeds."""
    return {
        _key(fields(figure, verdict), verdict.measured.n): Remembered(
            verdict.word, float(f"{verdict.measured.value:.{SIGNIFICANT}g}"), verdict.unit
        )
        for verdict in found
        if verdict.measured is not None
    }


def _key(row: Mapping[str, Any], seeds: int) -> str:
    return json.dumps([row["figure"], *(row[name] for name in _IDENTITY), row["setting"], seeds])


def read(file: Path = FILE) -> dict[str, Remembered]:
    """Return the stored verdicts by `key`; none where refabric was installed without the file."""
    if not file.is_file():
        return {}
    return {name: Remembered(**stored) for name, stored in json.loads(file.read_text()).items()}


def compared(known: Mapping[str, Remembered], found: Mapping[str, Remembered]) -> Compared:
    """Compare the verdicts of a run with the stored ones of the same statements and settings."""
    pairs = [(name, known[name], now) for name, now in found.items() if name in known]
    changed = (
        f"{_statement(name)}: {now.word} ({now.measured:g} {now.unit}), stored as {before.word} "
        f"({before.measured:g})"
        for name, before, now in pairs
        if now.word != before.word
    )
    return Compared(len(pairs), tuple(changed))


def write(found: Mapping[str, Remembered], file: Path = FILE) -> None:
    """Write the file, one line for each verdict."""
    lines = (f"{json.dumps(name)}: {json.dumps(asdict(found[name]))}" for name in sorted(found))
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _statement(name: str) -> str:
    """Return a statement in words: `figure, metric, network size, workload, subflows`."""
    figure, quantity, topology, k, _, workload, subflows, algorithm, relation, value, *_ = json.loads(name)
    who = algorithm or f"{subflows} subflows"
    return f"{figure}: {quantity} {relation} {value:g} ({topology} {k}, {workload}, {who})"
