"""The part of a sweep that runs on a Dask worker: report capabilities, check points, run points.

Each point runs in a process of its own, as on a single machine. The worker's threads only wait for these
processes. So a cancelled point can be ended, and no state of a point stays in the worker.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Reschedule, Worker, get_worker

from common import programs
from common.errors import HostUnfitError, RefabricError, RunError
from engines.emulation.sandbox import client
from engines.engine import Engine
from harness.execute.executor import Finished, Noted
from harness.execute.point import Done, Task
from harness.execute.workers import Processes
from harness.results.build import Build, build
from harness.results.run_json import Attempt
from harness.results.store import Store, pack

REPLY_S = 60.0
"""Deadline for a reply. A check of the largest points takes some seconds."""
_PROGRAM = (
    "import gc, json, sys; gc.disable(); sys.path[:] = json.loads(sys.argv[1]); "
    "from harness.execute.cluster.capabilities import main; gc.freeze(); gc.enable(); main()"
)


async def in_new_process(function: Callable[..., Any], *args: Any) -> Any:
    """Return or raise what `function` does in a new process, which shares no state with the worker and leaves
    no lock on the machine. Raises RunError if the process dies or does not reply."""
    with client.passed_on(needed=True) as (handles, variables):
        process = await asyncio.create_subprocess_exec(
            *programs.python(), _PROGRAM, json.dumps(programs.import_path()),
            env=programs.environment(variables), pass_fds=handles,
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


@dataclass(frozen=True)
class Reply:
    """The outcome of a task, as `Done`, with the files of the point's folder instead of the stored point."""

    packed: Mapping[str, bytes] | None
    attempt: Attempt


def run_on_worker(task: Task, engine: Engine, expected: Build, topic: str) -> Reply:
    """Run the task in a temporary folder; publish events under `topic`.

    Raises HostUnfitError and StoreError, which end the sweep, with the worker's address.
    """
    worker = get_worker()
    key = str(worker.get_current_task())

    def publish(what: str, text: str = "") -> None:
        worker.log_event(topic, {"key": key, "what": what, "text": text, "worker": worker.address})

    publish("started")
    try:
        if difference := expected.difference(build()):
            raise HostUnfitError(f"it now runs another build of refabric: {difference}")
        with tempfile.TemporaryDirectory(prefix="refabric-", dir=worker.local_directory) as folder:
            done = _run(task, engine, Path(folder), lambda: _wanted(worker, key), publish)
            packed = None if done.point is None else pack(done.point.path)
    except RefabricError as error:
        raise type(error)(f"worker {worker.address}: {error}") from error
    return Reply(packed, done.attempt)


def _run(
    task: Task, engine: Engine, folder: Path, wanted: Callable[[], bool], publish: Callable[[str, str], None]
) -> Done:
    with Processes(1, engine, Store.open(folder, "points")) as executor:
        for event in executor.run([task], wanted):
            if isinstance(event, Noted):
                publish("note", event.text)
            elif isinstance(event, Finished):
                return event.done
    raise Reschedule


def _wanted(worker: Worker, key: str) -> bool:
    """Return whether the sweep still waits for the task and the worker is not shutting down."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled" and worker.status.name in {"running", "paused"}
