"""The files of a stored point: run.json as JSON, and the attempts in it, which are all runs of the point."""

from __future__ import annotations

import dataclasses
import datetime
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from common import files, stored_json
from common.text import three_digits
from engines.emulation.dataplanes.dataplane import DATAPLANES
from engines.registry import ENGINES
from harness.baseline import is_baseline
from harness.options.parsers import one_of
from harness.results.tables import UnreadableError
from model.flows import drawn_flows
from model.links import link_trace
from model.reasons import Reason, texts
from model.result import RunResult, Status, under_test
from model.spec import RunSpec
from topos import from_file

SCHEMA = 5
FORMAT = "refabric-run"
RUN, FLOWS, PORTS = "run.json", "flows.csv", "ports.csv"
PROVENANCE = "origin.json"
"""What differs between machines, if all other files have the same bytes on every machine."""
SAMPLES, RAW = "samples", "raw"
MAX_BYTES = 1 << 26
"""Largest JSON file of the store."""
ANOTHER_REVISION = "it was written by another revision of refabric, or edited"


def read_run(path: Path) -> dict[str, Any]:
    """Read a run.json or origin.json of this version. Raises UnreadableError."""
    try:
        data = stored_json.loads(files.read_bytes(path, MAX_BYTES))
    except OSError as error:
        raise UnreadableError.of(path, error) from error
    except ValueError as error:
        raise UnreadableError(path, f"it is truncated or not JSON ({error})") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UnreadableError(path, "it was not written by refabric")
    if data.get("schema") != SCHEMA:
        raise UnreadableError(
            path,
            f"its format is number {data.get('schema')}, this refabric reads {SCHEMA}",
        )
    return data


@dataclass(frozen=True)
class Attempt:
    """The outcome of one run of a point.

    `goodput_mbps` is the mean over its flows, None without flows. `started_at` is a UTC time (ISO 8601),
    empty if it was not recorded. An attempt that is ok has a reason only if it is a baseline that differs
    from its computed value.
    """

    status: Status
    reasons: tuple[Reason, ...]
    goodput_mbps: float | None
    elapsed_s: float
    started_at: str = ""

    @classmethod
    def of(cls, result: RunResult, elapsed_s: float, started_at: str) -> Attempt:
        """Return the attempt that led to `result`."""
        goodputs = [flow.goodput_mbps for flow in under_test(result.flows)]
        mean = statistics.fmean(goodputs) if goodputs else math.nan
        known = result.status is not Status.FAILED and math.isfinite(mean)
        return cls(result.status, result.reasons, mean if known else None, round(elapsed_s, 3), started_at)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON types; `from_json` is the inverse."""
        return {
            "status": self.status.value,
            "reasons": [reason.to_json() for reason in self.reasons],
            "goodput_mbps": self.goodput_mbps,
            "elapsed_s": self.elapsed_s,
            "started_at": self.started_at,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Attempt:
        """Return the attempt that `to_json` wrote. Raises ValueError for other data."""
        found = msgspec.convert({**data, "reasons": []}, cls)
        reasons = msgspec.convert(data.get("reasons"), list[Any])
        return dataclasses.replace(found, reasons=tuple(map(Reason.from_json, reasons)))


def counting_attempt(attempts: Sequence[Attempt]) -> int:
    """Return the number, from 1, of the attempt that counts: the first that is ok and has no reason, else the
    first that is ok, else the first."""
    good = [(bool(each.reasons), n) for n, each in enumerate(attempts, 1) if each.status is Status.OK]
    return min(good, default=(True, 1))[1]


def attempt_words(attempts: Sequence[Attempt]) -> str:
    """Return `attempt 2 of 2`; empty if the point was run once."""
    return f"attempt {counting_attempt(attempts)} of {len(attempts)}" if len(attempts) > 1 else ""


def brief_attempts(attempts: Sequence[Attempt]) -> str:
    """Return status and goodput of each attempt: `1: suspect, 8.09 Mb/s; 2: ok, 8.1 Mb/s`."""
    return "; ".join(f"{number}: {_status(each)}" for number, each in enumerate(attempts, 1))


def list_attempts(attempts: Sequence[Attempt]) -> str:
    """Return every attempt with its time and reasons and mark the one that counts; empty if the point was run
    once."""
    if len(attempts) < 2:
        return ""
    counts = counting_attempt(attempts)
    return " | ".join(_described(number, each, number == counts) for number, each in enumerate(attempts, 1))


def _described(number: int, attempt: Attempt, counts: bool) -> str:
    when = f" at {attempt.started_at}" if attempt.started_at else ""
    why = f" ({texts(attempt.reasons)})" if attempt.reasons else ""
    return f"attempt {number}{when}{' (counts)' if counts else ''}: {_status(attempt)}{why}"


def _status(attempt: Attempt) -> str:
    goodput = "" if attempt.goodput_mbps is None else f", {three_digits(attempt.goodput_mbps)} Mb/s"
    return f"{attempt.status}{goodput}"


def utc_now() -> str:
    """Return the current UTC time in ISO 8601, for `Attempt.started_at`."""
    return utc_ago(0.0)


def utc_ago(seconds: float) -> str:
    """Return the UTC time `seconds` before now, in ISO 8601."""
    then = datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def sample_path(point: Path, name: str) -> Path:
    """Return the path of the point's samples called `name`."""
    return point / SAMPLES / f"{name}.csv.gz"


def check_known(spec: RunSpec) -> None:
    """Raise UsageError for what `spec` names above model/, or holds as text, and this checkout lacks."""
    if spec.topology.kind == from_file.KIND or is_baseline(spec):  # others are right if their numbers are
        network = spec.network()
        if is_baseline(spec):
            drawn_flows(spec, network)
    one_of("engine", spec.engine, ENGINES)
    one_of("data plane", spec.dataplane, DATAPLANES)
    if spec.link.trace:
        link_trace(spec.link.trace)
