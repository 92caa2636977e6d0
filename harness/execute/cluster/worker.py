"""What a Dask worker does for a sweep (cluster.py): tells what it is, checks points, carries them out.

Each point is a process of its own, as it is on one machine: a worker may have any number of threads, which
only wait for theirs; a point that nobody wants any more is ended; nothing a point does is left in the worker.
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
from engines.engine import Engine
from harness.execute.attempts import Attempt
from harness.execute.build import Build, build
from harness.execute.executor import Finished, Noted
from harness.execute.point import Done, Order
from harness.execute.workers import Processes
from harness.results.store import Store, pack

ANSWER_S = 60.0
"""A check of the largest points takes some seconds."""
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from harness.execute.cluster.capabilities import answer; answer()"
)


async def afresh(function: Callable[..., Any], *args: Any) -> Any:
    """What `function` returns or raises in a new process, which has nothing of the worker's state and keeps
    none of the machine's locks. Raises RunError where it does not answer."""
    process = await asyncio.create_subprocess_exec(
        *programs.python(), _PROGRAM, json.dumps(programs.import_path()), env=programs.environment(),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        out, err = await asyncio.wait_for(process.communicate(pickle.dumps((function, args))), ANSWER_S)
    except TimeoutError as error:
        process.kill()
        await process.wait()
        raise RunError(
            f"asking the worker for its {function.__name__}: no answer in {ANSWER_S:g} s"
        ) from error
    if process.returncode != 0:
        last = err.decode(errors="replace").strip().splitlines()[-1:]
        raise RunError(f"asking the worker for its {function.__name__}: {''.join(last) or 'it died'}")
    answered = pickle.loads(out)
    if isinstance(answered, RefabricError):
        raise answered
    return answered


@dataclass(frozen=True)
class Reply:
    """What came of an order: as `Done`, with the files of the point's folder in its stead."""

    packed: Mapping[str, bytes] | None
    attempt: Attempt


def carry(order: Order, engine: Engine, expected: Build, topic: str) -> Reply:
    """Carry out the order in a temporary folder; what happens meanwhile is logged under `topic`.

    Raises HostUnfitError and StoreError, which end the sweep, with the worker's address.
    """
    worker = get_worker()
    key = str(worker.get_current_task())

    def tell(what: str, text: str = "") -> None:
        worker.log_event(topic, {"key": key, "what": what, "text": text, "worker": worker.address})

    tell("begun")
    try:
        if unlike := expected.unlike(build()):
            raise HostUnfitError(f"it runs another refabric by now: {unlike}")
        with tempfile.TemporaryDirectory(prefix="refabric-", dir=worker.local_directory) as folder:
            done = _carry_out(order, engine, Path(folder), lambda: _wanted(worker, key), tell)
            packed = None if done.point is None else pack(done.point.path)
    except RefabricError as error:
        raise type(error)(f"worker {worker.address}: {error}") from error
    return Reply(packed, done.attempt)


def _carry_out(
    order: Order, engine: Engine, folder: Path, wanted: Callable[[], bool], tell: Callable[[str, str], None]
) -> Done:
    with Processes(1, engine, Store.open(folder, "points")) as crew:
        for told in crew.run([order], wanted):
            if isinstance(told, Noted):
                tell("note", told.text)
            elif isinstance(told, Finished):
                return told.done
    raise Reschedule


def _wanted(worker: Worker, key: str) -> bool:
    """Whether the sweep still waits for it and the worker stays."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled" and worker.status.name in {"running", "paused"}
