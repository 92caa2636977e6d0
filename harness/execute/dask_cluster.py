"""A Dask cluster as the machines of a sweep (docs/clusters.md).

Each worker thread runs one simulated point at a time. A worker that offers emulation runs one emulated point
at a time. `Cluster` checks all of this before a point starts, `DaskExecutor` then runs the points.
"""

from __future__ import annotations

import contextlib
import logging
import math
import queue
import secrets
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import dask.config
from dask.utils import parse_timedelta
from distributed import Client, Future, KilledWorker, Scheduler
from distributed.client import FutureCancelledError
from distributed.comm.core import CommClosedError

from common.errors import HostUnfitError, RefabricError, RunError, UsageError
from engines.emulation.sandbox.client import available
from engines.engine import Engine, Observer
from engines.registry import only, real_time
from harness.execute.dask_worker import (
    REPLY_S,
    Capabilities,
    Reply,
    capabilities,
    check,
    in_new_process,
    run_on_worker,
)
from harness.execute.executors import Event, Executor, TaskNote, TaskStart, memory_needs
from harness.execute.point import Task, TaskEnd, fail, one_line
from harness.labels import named
from harness.options.rates import RateChoice
from harness.plan.machines import TO_BE_MEASURED, known_rate
from harness.results.build import Build, build
from harness.results.store import Store
from model.reasons import BUG, ENDED, Reason
from model.spec import RunSpec, TopologySpec

CONNECT_S = 10.0
"""How long a connection may take, unless Dask's own configuration allows less."""
_MB = 1e6
RESOURCE = "emulation"
"""The Dask resource of a worker (`--resources emulation=1`) whose machine may run points in real time."""
TICK_S = 1.0
CHECK_EVERY_S = 2.0
MAX_IDLE_S = 60.0
"""How long points wait for a worker to come back."""
MAX_LOST_WORKERS = 3
"""A point fails after this many workers were lost while they ran it."""


@contextlib.contextmanager
def connected(address: str, engine: Engine, insecure: bool = False) -> Iterator[Cluster]:
    """Connect to the cluster with this scheduler address and check that it can run points of the engine.

    Raises UsageError for an invalid address, and for one that root must not trust unless `insecure`;
    HostUnfitError if no scheduler replies or the workers differ.
    """
    check_address(address, available(), insecure)
    _check_certificate(address)
    # Errors are reported here, also those of the client's callbacks, which run in tornado's loop.
    for logger in ("distributed", "distributed.client", "tornado.application"):
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    connect_s = min(CONNECT_S, parse_timedelta(dask.config.get("distributed.comm.timeouts.connect")))
    try:
        client = Client(address, timeout=connect_s, set_as_default=False, name="refabric")
    except (OSError, TimeoutError, ValueError) as error:
        raise HostUnfitError(
            f"connecting to {address}: no Dask scheduler replied ({one_line(str(error))[:200]}); start one "
            "there with `.venv/bin/dask scheduler --host ADDRESS`, or correct --dask"
        ) from error
    try:
        yield Cluster(client, address, engine)
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=CONNECT_S)


def check_address(address: str, root: bool, insecure: bool, option: str = "--dask") -> None:
    """Raise UsageError unless this is an address that a sweep of this user may connect to; `option` has it.

    A scheduler can run any code in the process that connects to it. Without TLS, so can anybody who can
    reach or imitate the scheduler, on this machine, too. A process that is `root`, or has root's helper,
    therefore needs TLS, unless `insecure`.
    """
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port
    except ValueError:
        good = False
    if not good:
        raise UsageError(
            f"{option} {address}: not an address of a scheduler; write it like tcp://10.0.0.1:8786"
        )
    if root and not insecure and parts.scheme == "tcp":
        raise UsageError(
            f"{option} {address}: with root's helper, a scheduler must use tls:// (docs/clusters.md has the "
            "commands); run it without sudo, or add --insecure if nobody else can reach that address"
        )


def _check_certificate(address: str) -> None:
    """Raise UsageError if the address needs a certificate and Dask's configuration has none."""
    needed = ("distributed.comm.tls.client.cert", "distributed.comm.tls.ca-file")
    if urlsplit(address).scheme == "tls" and not all(dask.config.get(name, None) for name in needed):
        raise UsageError(
            f"--dask {address}: Dask has no certificate on this machine; write distributed.comm.tls into "
            "/etc/dask/refabric.yaml (docs/clusters.md has the commands)"
        )


@dataclass(frozen=True)
class Worker:
    """A worker: the scheduler's record of it and its capabilities."""

    address: str
    threads: int
    memory_mb: float
    offers: bool
    capabilities: Capabilities

    @property
    def thread_mb(self) -> float:
        return self.memory_mb / self.threads

    def rate(self, topology: TopologySpec) -> float | None:
        """Return the link rate in Mb/s that its machine measured there, None if it never did."""
        return next((mbps for known, mbps in self.capabilities.rates if known == topology), None)


class Cluster:
    """Machines: the workers of a Dask cluster. Raises HostUnfitError if there is none or they differ."""

    def __init__(self, client: Client, address: str, engine: Engine) -> None:
        self.engine = engine
        self._client, self._address, self._build = client, address, build()
        self._workers = self._checked_workers()

    def at_once(self, spec: RunSpec) -> int:
        """Return the number of workers that offer emulation if the spec needs a machine, else of threads."""
        if needs_machine(self.engine, spec):
            return max(1, sum(worker.offers for worker in self._workers))
        return sum(worker.threads for worker in self._workers)

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """Return the congestion control that all machines that may run these engines have."""
        found = [worker.capabilities.coupled_cc[name] for worker in self._concerned(names) for name in names]
        return next((each for each in found if each[1]), found[0])

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """Return, in real time, the minimum of the rates that the machines measured by calibration."""
        if not real_time(names):
            return known_rate(topology, names)
        rates = [worker.rate(topology) for worker in self._concerned(names)]
        known = [mbps for mbps in rates if mbps is not None]
        if len(known) < len(rates):
            return RateChoice(None, TO_BE_MEASURED)
        return RateChoice(
            min(*known, highest_mbps), f"auto, the minimum of what {len(known)} machines measured"
        )

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """Return `known_rate`. Raises HostUnfitError that names a machine without a measurement."""
        del observer
        choice = self.known_rate(topology, names, highest_mbps)
        if choice.rate_mbps is not None:
            return choice
        missing = next(worker for worker in self._concerned(names) if worker.rate(topology) is None)
        how = "give --rate"
        if topology == TopologySpec("fat_tree", {"k": topology.k}):
            how = f"run `sudo .venv/bin/refabric calibrate --k {topology.k}` there, or give --rate"
        raise HostUnfitError(
            f"worker {missing.address} has not measured which link rate its machine carries at "
            f"{named(topology)}: {how}"
        )

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """Check the points with their engines on every machine that may run them."""
        kinds: dict[bool, list[RunSpec]] = {True: [], False: []}
        for spec in specs:
            kinds[needs_machine(self.engine, spec)].append(spec)
        found = self._unfit_among(kinds[False], self._workers)
        if not kinds[True]:
            return found
        offering = [worker for worker in self._workers if worker.offers]
        why = self._why_unsuited(offering)
        if why:
            return found | {spec.engine: HostUnfitError(why) for spec in kinds[True]}
        return found | self._unfit_among(kinds[True], offering)

    def executor(self, where: Store, observer: Observer) -> Executor:
        """Return the executor of the cluster's workers."""
        threads = sum(worker.threads for worker in self._workers)
        observer.note(f"points run on {self._address} (workers: {len(self._workers)}, threads: {threads})")
        return DaskExecutor(self._client, self._address, self.engine, where, self._build)

    def _concerned(self, names: Collection[str]) -> list[Worker]:
        """Return the workers whose kernel may run points of these engines."""
        offering = [worker for worker in self._workers if worker.offers]
        return offering if offering and real_time(names) else self._workers

    def _checked_workers(self) -> list[Worker]:
        known = identity(self._client, self._address)["workers"]
        if not known:
            raise HostUnfitError(
                f"the Dask scheduler at {self._address} has no workers: start one on each machine with "
                f"`.venv/bin/refabric worker {self._address} --host ADDRESS`"
            )
        self._compare_scheduler()
        found = self._run_on(list(known), capabilities, self.engine)
        for address, each in found.items():
            if difference := self._build.difference(each.build):
                raise HostUnfitError(
                    f"worker {address} runs another build of refabric: {difference}. Bring its checkout to "
                    "the state of this one, run setup/install.sh there, and start it again"
                )
        workers = []
        for address, each in found.items():
            record = known[address]
            limit_mb = record["memory_limit"] / _MB or math.inf
            workers.append(Worker(address, record["nthreads"], limit_mb, offers(record), each))
        return workers

    def _compare_scheduler(self) -> None:
        try:
            there = call(self._client, self._client.run_on_scheduler, build)
        except Exception as error:
            raise HostUnfitError(
                _not_refabric(f"the scheduler at {self._address}", "scheduler", error)
            ) from error
        call(self._client, self._client.run_on_scheduler, limit_losses)
        if difference := self._build.difference(there):
            raise HostUnfitError(
                f"the scheduler at {self._address} runs another build of refabric: {difference}. Start "
                "it from a checkout like this one"
            )

    def _run_on(self, workers: Sequence[str], function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """Return what `function` returns on each worker, by address. Raises HostUnfitError, UsageError."""
        found = call(
            self._client,
            self._client.run,
            in_new_process,
            function,
            *args,
            workers=list(workers),
            on_error="return",
        )
        for address, result in found.items():
            if isinstance(result, UsageError):
                raise result
            if isinstance(result, RefabricError):
                raise HostUnfitError(f"worker {address}: {result}") from result
            if isinstance(result, BaseException):
                raise HostUnfitError(_not_refabric(f"worker {address}", "worker", result)) from result
        return dict(found)

    def _unfit_among(self, specs: Sequence[RunSpec], workers: Sequence[Worker]) -> dict[str, HostUnfitError]:
        """Return the engines that one of these workers cannot run; each machine is checked once."""
        if not specs:
            return {}
        unfit: dict[str, HostUnfitError] = {}
        of_machine = {worker.capabilities.machine: worker.address for worker in workers}
        for address, found in self._run_on(list(of_machine.values()), check, self.engine, specs).items():
            for name, error in found.items():
                unfit.setdefault(name, HostUnfitError(f"worker {address}: {error}"))
        memory_mb = memory_needs(self.engine)
        for spec in specs:
            needs_mb = memory_mb(spec)
            small = next((w for w in workers if needs_mb > w.thread_mb), None)
            if small is not None:
                why = (
                    f"a point needs up to {needs_mb:.0f} MB, a thread of worker {small.address} has "
                    f"{small.thread_mb:.0f} MB: start that worker with fewer --nthreads or a larger "
                    "--memory-limit, or leave it out"
                )
                unfit.setdefault(spec.engine, HostUnfitError(why))
        return unfit

    def _why_unsuited(self, offering: Sequence[Worker]) -> str:
        """Return why these workers cannot run points in real time; empty if they can."""
        how = f"`sudo .venv/bin/refabric worker {self._address} --host ADDRESS --real-hosts`"
        if not offering:
            return (
                f"no worker of {self._address} offers {RESOURCE}: start one on each suitable machine "
                f"with {how}"
            )
        several = next((worker for worker in offering if worker.threads > 1), None)
        if several is not None:
            return (
                f"worker {several.address} offers {RESOURCE} with {several.threads} threads, so that other "
                f"points would run beside an emulated one: start it with {how}"
            )
        for worker in offering:
            here = worker.capabilities.machine
            others = [w for w in self._workers if w is not worker and w.capabilities.machine == here]
            if others:
                return (
                    f"worker {worker.address} offers {RESOURCE} and shares its machine with worker "
                    f"{others[0].address}, which would disturb its points: stop one of them"
                )
        return ""


def _not_refabric(who: str, what: str, error: BaseException) -> str:
    cause = one_line(f"{type(error).__name__}: {error}")[:200]
    return (
        f"{who} cannot run refabric ({cause}): start it as `.venv/bin/dask {what}` in a checkout like this "
        "one, after setup/install.sh"
    )


def needs_machine(engine: Engine, spec: RunSpec) -> bool:
    """Return whether the point needs a machine to itself."""
    return only(engine, {spec.engine}).parallel == 1


def offers(known: Mapping[str, Any]) -> bool:
    """Return whether a worker offers its machine for points in real time, by the scheduler's record of it."""
    return bool(known["resources"].get(RESOURCE, 0) >= 1)


def identity(client: Client, address: str) -> dict[str, Any]:
    """Return the scheduler's record of itself and its workers. Raises RunError if it is gone."""
    try:
        if client.scheduler is None:
            raise gone(address)
        return dict(call(client, client.scheduler.identity, n_workers=-1))
    except (OSError, TimeoutError) as error:
        raise gone(address) from error


def call(client: Client, method: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Call an asynchronous method of the client or its scheduler in the client's event loop."""

    async def awaited() -> Any:
        return await method(*args, **options)

    return client.sync(awaited, callback_timeout=REPLY_S + 10.0)


def limit_losses(dask_scheduler: Scheduler) -> None:
    """Make the scheduler give up a point after `MAX_LOST_WORKERS`; by default it allows one more."""
    dask_scheduler.allowed_failures = MAX_LOST_WORKERS - 1


def gone(address: str) -> RunError:
    """Return the error for a scheduler that does not reply any more."""
    return RunError(
        f"the Dask scheduler at {address} is gone: finished points are kept; start it and its workers, then "
        "run the same command again"
    )


@dataclass
class _RemoteTask:
    """A submitted point; `workers` are the addresses of those that started it, in order."""

    task: Task
    alone: bool
    future: Future[Reply]
    since: float
    workers: list[str] = field(default_factory=list)


class DaskExecutor:
    """The Executor of a Dask cluster: submits points, receives their events and fetches their files.

    Dask chooses the worker and runs the points of a lost worker again on another one. At most as many points
    are submitted as the workers can run at once. So a lost worker repeats few points, and Dask counts the
    loss against few points that were only waiting there.
    """

    def __init__(self, client: Client, address: str, engine: Engine, where: Store, build: Build) -> None:
        self._client, self._address, self._engine, self._store = client, address, engine, where
        self._build = build
        self._topic = f"refabric-{secrets.token_hex(4)}"
        self._messages: queue.SimpleQueue[Mapping[str, str]] = queue.SimpleQueue()
        self._points: dict[str, _RemoteTask] = {}
        self._submitted = 0
        self._threads, self._offers = self._room()
        self._checked = self._had_workers = time.monotonic()

    def __enter__(self) -> Self:
        self._client.subscribe_topic(self._topic, self._logged)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError, TimeoutError, ValueError):  # the scheduler may be gone
            self._client.cancel([point.future for point in self._points.values()])
            self._client.unsubscribe_topic(self._topic)
        self._points.clear()
        self._store.clean_up()

    def run(self, tasks: Iterable[Task]) -> Iterator[Event]:
        """Run the tasks as `Executor.run` does."""
        waiting: dict[bool, deque[Task]] = {True: deque(), False: deque()}
        for task in tasks:
            waiting[needs_machine(self._engine, task.spec)].append(task)
        while self._points or any(waiting.values()):
            for alone, those in waiting.items():
                while those and self._busy(alone) < (self._offers if alone else self._threads):
                    self._submit(those.popleft(), alone)
            with contextlib.suppress(queue.Empty):
                yield from self._receive(self._messages.get(timeout=TICK_S))
            self._check_workers([alone for alone, those in waiting.items() if those])

    def _logged(self, event: tuple[float, Mapping[str, str]]) -> None:
        self._messages.put(event[1])

    def _busy(self, alone: bool) -> int:
        return sum(point.alone for point in self._points.values()) if alone else len(self._points)

    def _submit(self, task: Task, alone: bool) -> None:
        self._submitted += 1
        key = f"{self._topic}-{self._submitted}"
        future = self._client.submit(
            run_on_worker, task, self._engine, self._build, self._topic,
            key=key, pure=False, resources={RESOURCE: 1} if alone else None,
        )  # fmt: skip
        self._points[key] = _RemoteTask(task, alone, future, time.monotonic())
        self._listen(key, future)

    def _listen(self, key: str, future: Future[Reply]) -> None:
        future.add_done_callback(lambda _: self._messages.put({"key": key, "what": "done"}))

    def _receive(self, message: Mapping[str, str]) -> Iterator[Event]:
        point = self._points.get(message["key"])
        if point is None:
            return  # the point has ended
        if message["what"] == "done":
            end = self._end(point, message["key"])
            if end is not None:
                del self._points[message["key"]]
                if not point.workers:
                    yield TaskStart(point.task)
                yield end
            return
        worker = message["worker"]
        if message["what"] == "note":
            yield TaskNote(point.task, f"{message['text']} (on {worker})")
            return
        before, point.workers = point.workers, [*point.workers, worker]
        if not before:
            yield TaskStart(point.task, worker)
        else:
            yield TaskNote(point.task, f"started again on {worker}: {before[-1]} was lost")

    def _end(self, point: _RemoteTask, key: str) -> TaskEnd | None:
        """Return the end of a task; None if its files were lost with their worker and the point runs again.

        Raises RunError if the scheduler is gone, and the errors of a worker that end a sweep.
        """
        if point.future.status == "cancelled":  # by the scheduler: self._points has none that we cancelled
            raise gone(self._address)
        if point.future.status != "error":
            try:
                packed, attempt = point.future.result(timeout=REPLY_S)
            except TimeoutError:
                self._listen(key, point.future)
                return None
            except (CommClosedError, FutureCancelledError) as error:
                raise gone(self._address) from error
            if packed is None:
                return TaskEnd(point.task, None, attempt)
            with self._store.writing(point.task.spec) as writer:
                return TaskEnd(point.task, writer.adopt(packed), attempt)
        raised = point.future.exception(timeout=REPLY_S)
        if isinstance(raised, KilledWorker):
            last = raised.last_worker.address
            reason = Reason(ENDED, f"{MAX_LOST_WORKERS} workers were lost while running it, last {last}")
        elif isinstance(raised, RefabricError):
            raise raised
        else:
            where = ", ".join(point.workers[-1:]) or "a worker"
            reason = Reason(BUG, one_line(f"a bug on {where}: {type(raised).__name__}: {raised}"))
        return fail(point.task, reason, self._store, time.monotonic() - point.since)

    def _room(self) -> tuple[int, int]:
        """Return the number of threads, and of workers that offer emulation. Raises RunError."""
        workers = identity(self._client, self._address)["workers"].values()
        threads = sum(worker["nthreads"] for worker in workers)
        return threads, sum(map(offers, workers))

    def _check_workers(self, waiting: Sequence[bool]) -> None:
        """Update the workers every CHECK_EVERY_S. Raises RunError if points lack one for MAX_IDLE_S."""
        now = time.monotonic()
        if now - self._checked < CHECK_EVERY_S:
            return
        self._checked = now
        if self._client.status != "running":
            raise gone(self._address)
        self._threads, self._offers = self._room()
        kinds = {*waiting, *(point.alone for point in self._points.values())}
        if self._threads and (self._offers or True not in kinds):
            self._had_workers = now
        elif now - self._had_workers > MAX_IDLE_S:
            what = f"that offers {RESOURCE} " if self._threads else ""
            raise RunError(
                f"{self._address} has had no worker {what}for {MAX_IDLE_S:.0f} s: finished points are kept; "
                "start workers again, then run the same command again"
            )
