"""A kind of workload for tests: the first host sends datagrams to the last, which sends them back.

It is what docs/adding.md asks of a kind: this package and the line of MATRICES that `ECHO` is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engines.workload import WorkloadKind
from model.reasons import NO_DATA, Reason
from model.result import RunResult, Status, Table
from model.spec import RunSpec
from workloads.flow import Flow
from workloads.matrices import Matrix

NAME = "echo"
COLUMNS = {"echoes": {"t_s": "when it was sent", "echo_ms": "how long it took"}}


def echo(hosts: Sequence[str], seed: int, *, per_s: int = 20) -> tuple[Flow, ...]:
    """Return no flows: `per_s` datagrams a second. `seed` is not used."""
    del hosts, seed, per_s
    return ()


ECHO = Matrix(echo, "datagrams there and back", everywhere=False, kind=__name__)


def per_s(spec: RunSpec) -> int:
    return int({**ECHO.defaults, **spec.workload.params}["per_s"])


def result_of(echoes: Iterable[tuple[float, float]]) -> RunResult:
    """Return the result of datagrams that came back: when (s) and after how long (ms)."""
    rows = list(echoes)
    took_ms = [ms for _, ms in rows]
    return RunResult(
        status=Status.OK,
        samples={name: Table.from_rows(columns, rows) for name, columns in COLUMNS.items()},
        metrics={"echoes": len(rows), "echo_ms": sum(took_ms) / len(rows) if rows else 0.0},
    )


def verdict(result: RunResult, spec: RunSpec) -> RunResult:
    """Return the result, failed without an echo, suspect if fewer than half came back."""
    if not result.metrics["echoes"]:
        return result.without_data("no datagram came back")
    if result.metrics["echoes"] < per_s(spec) * spec.seconds / 2:
        return result.doubted((Reason(NO_DATA, "fewer than half of the datagrams came back"),))
    return result


KIND = WorkloadKind(
    engines={"simulator": f"{__name__}.simulated", "mininet": f"{__name__}.real"},
    verdict=verdict,
    tables=COLUMNS,
)
