"""A run on real hosts as seen from outside its sandbox: start a function inside, and read its result."""

from __future__ import annotations

from pathlib import Path

from common.errors import RefabricError
from engines.emulation.dataplanes.ovs.controller import reachable
from engines.emulation.sandbox.inside import RAW
from engines.emulation.sandbox.isolation import spawn_inside
from engines.engine import Observer
from engines.wire import ResultReader
from model.result import RunResult
from model.spec import RunSpec

UNKEPT = Path("/tmp")
"""Value of `raw` if the output of tools is not needed: the run's private /tmp, which ends with it."""


def spawned(target: str, spec: RunSpec, observer: Observer, raw: Path, limit_s: float) -> RunResult:
    """Run the point by the function `target` of the root helper's TARGETS; return its result.

    Raises RefabricError, in which the folder of raw output has the name that the user knows.
    """
    reader = ResultReader(observer)
    try:
        with reachable(spec) as given:
            spawn_inside(
                target,
                {"spec": spec.to_json()},
                deadline_s=limit_s,
                on_report=reader.take,
                raw=None if raw == UNKEPT else raw,
                give=given,
            )
    except RefabricError as error:
        if str(RAW) not in str(error):
            raise
        raise type(error)(str(error).replace(str(RAW), str(raw.resolve()))) from error
    return reader.result("emulation")
