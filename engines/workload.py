"""The seam between engines and what hosts do: a kind of workload is a package with one record, its `KIND`.

Flows between hosts are a kind (engines/flows.py), SIP calls another (engines/ims). MATRICES names
each workload's package (workloads/matrices.py). A record names its modules, so that a run imports those of
its engine only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from common.errors import UsageError
from engines.engine import Observer
from model.result import RunResult
from model.spec import RunSpec
from workloads import matrices


class OnEngine(Protocol):
    """A module that runs a kind on an engine. Its functions are what `Engine` says of the same names."""

    def check(self, spec: RunSpec) -> None: ...

    def memory_mb(self, spec: RunSpec) -> float: ...

    def expected_s(self, spec: RunSpec) -> float: ...

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult: ...


@dataclass(frozen=True)
class WorkloadKind:
    """What hosts do, for all that is outside of its package.

    `engines` has the modules that run it (OnEngine) by the name of the engine. `verdict` takes a result that
    has not failed and returns it, failed if it has no number, suspect if it is doubtful. `tables` are the
    columns of its samples beyond SAMPLE_COLUMNS, with their meaning. `refabric watch` draws a kind that is
    `drawn`.
    """

    engines: Mapping[str, str]
    verdict: Callable[[RunResult, RunSpec], RunResult]
    tables: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    drawn: bool = False


def kind_of(spec: RunSpec) -> WorkloadKind:
    """Return the kind of the point's workload. Raises UsageError for an unknown workload."""
    return cast(WorkloadKind, import_module(matrices.kind_of(spec.workload.matrix)).KIND)


def module_on(engine: str, spec: RunSpec) -> OnEngine:
    """Return the module that runs the point's workload on `engine`. Raises UsageError if there is none."""
    modules = kind_of(spec).engines
    if engine not in modules:
        raise UsageError(
            f"workload {spec.workload.matrix}: --engine {engine} cannot run it; choose --engine "
            f"{' or '.join(modules)}"
        )
    return cast(OnEngine, import_module(modules[engine]))


class ByWorkload:
    """An engine that runs a point as the kind of its workload says."""

    name: str

    def check(self, spec: RunSpec) -> None:
        module_on(self.name, spec).check(spec)

    def memory_mb(self, spec: RunSpec) -> float:
        return module_on(self.name, spec).memory_mb(spec)

    def expected_s(self, spec: RunSpec) -> float:
        return module_on(self.name, spec).expected_s(spec)

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        return module_on(self.name, spec).run(spec, observer, raw)
