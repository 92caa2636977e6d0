"""The part of a sweep that runs on a Dask worker: report capabilities, check points, run points.

Each point runs in a process of its own, as on a single machine. The worker's threads only wait for these
processes. So a cancelled point can be ended, and no state of a point stays in the worker.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import processes
from common.errors import HostUnfitError, RefabricError, RunError
from engines.emulation.sandbox import client
from engines.engine import Engine
from engines.registry import only, real_time
from harness.execute.executors import Processes, TaskNote
from harness.execute.point import Task, TaskEnd
from harness.plan.machines import ThisMachine
from harness.results.build import Build, build
from harness.results.run_json import Attempt
from harness.results.store import Store, pack
from model.spec import RunSpec, TopologySpec

BOOT = Path("/proc/sys/kernel/random/boot_id")
REPLY_S = 60.0
"""Deadline for a reply. A check of the largest points takes some seconds."""
_PROGRAM = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from harness.execute.dask_worker import main; gc.freeze(); gc.enable(); main()"
)


async def in_new_process(function: Callable[..., Any], *args: Any) -> Any:
    """Return or raise what `function` does in a new process, which shares no state with the worker and leaves
    no lock on the machine. Raises RunError if the process dies or does not reply."""
    with client.passed_on(needed=True) as (handles, variables):
        process = await asyncio.create_subprocess_exec(
            *processes.python(), _PROGRAM, json.dumps(processes.import_path()),
            env=processes.environment(variables), pass_fds=handles,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(pickle.dumps((function, args))), REPLY_S)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise RunError(
            f"running {function.__name__} on the worker: no reply within {REPLY_S:g} s; see the worker's log"
        ) from error
    if process.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise RunError(
            f"running {function.__name__} on the worker: {''.join(last) or 'it died'}; see the worker's log"
        )
    result = pickle.loads(out)
    if isinstance(result, RefabricError):
        raise result
    return result


Reply = tuple[Mapping[str, bytes] | None, Attempt]
"""The attempt at a task, and the files of the point's folder, or None if an earlier result stays."""


def run_on_worker(task: Task, engine: Engine, expected: Build, topic: str) -> Reply:
    """Run the task in a temporary folder; publish events under `topic`.

    Raises HostUnfitError and StoreError, which end the sweep, with the worker's address.
    """
    from distributed import Reschedule, get_worker  # noqa: PLC0415 -- checks run without it

    worker = get_worker()
    key = str(worker.get_current_task())

    def publish(what: str, text: str = "") -> None:
        worker.log_event(topic, {"key": key, "what": what, "text": text, "worker": worker.address})

    def wanted() -> bool:
        """Return whether the sweep still waits for the task and the worker is not shutting down."""
        known = worker.state.tasks.get(key)
        running = worker.status.name in {"running", "paused"}
        return known is not None and known.state != "cancelled" and running

    publish("started")
    try:
        if difference := expected.difference(build()):
            raise HostUnfitError(f"it now runs another build of refabric: {difference}")
        with (
            tempfile.TemporaryDirectory(prefix="refabric-", dir=worker.local_directory) as folder,
            Processes(1, engine, Store.open(Path(folder), "points")) as executor,
        ):
            for event in executor.run([task], wanted):
                if isinstance(event, TaskNote):
                    publish("note", event.text)
                elif isinstance(event, TaskEnd):
                    return None if event.point is None else pack(event.point.path), event.attempt
    except RefabricError as error:
        raise type(error)(f"worker {worker.address}: {error}") from error
    raise Reschedule


@dataclass(frozen=True)
class Capabilities:
    """Capabilities of a worker's machine.

    `machine` identifies the running kernel: workers of one machine have the same. `coupled_cc` is by engine.
    `rates` are the link rates (Mb/s) that the machine is known to carry in real time, by topology.
    """

    build: Build
    machine: str
    coupled_cc: Mapping[str, tuple[str, str]]
    rates: tuple[tuple[TopologySpec, float], ...]


def capabilities(engine: Engine) -> Capabilities:
    """Return the capabilities of this machine."""
    names = engine.name.split(",")
    coupled_cc = {name: only(engine, {name}).coupled_cc() for name in names}
    rates: tuple[tuple[TopologySpec, float], ...] = ()
    if real_time(names):
        from engines.emulation import calibrate  # noqa: PLC0415

        rates = tuple(calibrate.rates())
    return Capabilities(build(), BOOT.read_text().strip(), coupled_cc, rates)


def check(engine: Engine, specs: Sequence[RunSpec]) -> dict[str, HostUnfitError]:
    """Return the engines that cannot run these points on this machine now. Raises UsageError."""
    return ThisMachine(engine).unfit(specs)


def main() -> None:
    """Read a function and its arguments from stdin (pickled), write its result or its error to stdout."""
    function, args = pickle.load(sys.stdin.buffer)
    try:
        result = function(*args)
    except RefabricError as error:
        result = error
    sys.stdout.buffer.write(pickle.dumps(result))
