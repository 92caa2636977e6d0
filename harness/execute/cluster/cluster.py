"""A Dask cluster as the machines of a sweep (docs/clusters.md).

Each worker thread runs one simulated point at a time. A worker that offers emulation runs one emulated point
at a time.
All checks of the cluster happen here, before a point starts.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import dask.config
from dask.utils import parse_timedelta
from distributed import Client

from common.errors import HostUnfitError, RefabricError, UsageError
from engines.emulation.sandbox.client import available
from engines.engine import Engine, Observer
from engines.registry import real_time
from harness.execute.cluster.capabilities import Capabilities, capabilities, check
from harness.execute.cluster.executor import (
    RESOURCE,
    DaskExecutor,
    call,
    identity,
    limit_losses,
    needs_machine,
    offers,
)
from harness.execute.cluster.worker import in_new_process
from harness.execute.executor import Executor
from harness.execute.point import one_line
from harness.execute.workers import MemoryNeeds
from harness.options.rates import RateChoice
from harness.plan import rate
from harness.points.labels import named
from harness.results.build import build
from harness.results.store import Store
from model.spec import RunSpec, TopologySpec

CONNECT_S = 10.0
"""How long a connection may take, unless Dask's own configuration allows less."""
_MB = 1e6


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
    try:
        client = Client(address, timeout=_connect_s(), set_as_default=False, name="refabric")
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


def _connect_s() -> float:
    return min(CONNECT_S, float(parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))))


def check_address(address: str, root: bool, insecure: bool) -> None:
    """Raise UsageError unless this is an address that a sweep of this user may connect to.

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
            f"--dask {address}: not an address of a scheduler; write it like tcp://10.0.0.1:8786"
        )
    if root and not insecure and parts.scheme == "tcp":
        raise UsageError(
            f"--dask {address}: with root's helper, a scheduler must use tls:// (docs/clusters.md has the "
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
class _Worker:
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
            return rate.known_rate(topology, names)
        rates = [worker.rate(topology) for worker in self._concerned(names)]
        known = [mbps for mbps in rates if mbps is not None]
        if len(known) < len(rates):
            return RateChoice(None, rate.TO_BE_MEASURED)
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
        raise HostUnfitError(
            f"worker {missing.address} has not measured which link rate its machine carries at "
            f"{named(topology)}: {_how_to_measure(topology)}"
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

    def _concerned(self, names: Collection[str]) -> list[_Worker]:
        """Return the workers whose kernel may run points of these engines."""
        offering = [worker for worker in self._workers if worker.offers]
        return offering if offering and real_time(names) else self._workers

    def _checked_workers(self) -> list[_Worker]:
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
        return [_worker(address, known[address], each) for address, each in found.items()]

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

    def _unfit_among(self, specs: Sequence[RunSpec], workers: Sequence[_Worker]) -> dict[str, HostUnfitError]:
        """Return the engines that one of these workers cannot run; each machine is checked once."""
        if not specs:
            return {}
        unfit: dict[str, HostUnfitError] = {}
        of_machine = {worker.capabilities.machine: worker.address for worker in workers}
        for address, found in self._run_on(list(of_machine.values()), check, self.engine, specs).items():
            for name, error in found.items():
                unfit.setdefault(name, HostUnfitError(f"worker {address}: {error}"))
        needs = MemoryNeeds(self.engine)
        for spec in specs:
            needs_mb = needs.mb(spec)
            small = next((w for w in workers if needs_mb > w.thread_mb), None)
            if small is not None:
                unfit.setdefault(spec.engine, HostUnfitError(_too_small(small, needs_mb)))
        return unfit

    def _why_unsuited(self, offering: Sequence[_Worker]) -> str:
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


def _worker(address: str, known: Mapping[str, Any], found: Capabilities) -> _Worker:
    limit_mb = known["memory_limit"] / _MB or float("inf")
    return _Worker(address, known["nthreads"], limit_mb, offers(known), found)


def _not_refabric(who: str, what: str, error: BaseException) -> str:
    cause = one_line(f"{type(error).__name__}: {error}")[:200]
    return (
        f"{who} cannot run refabric ({cause}): start it as `.venv/bin/dask {what}` in a checkout like this "
        "one, after setup/install.sh"
    )


def _how_to_measure(topology: TopologySpec) -> str:
    if topology != TopologySpec("fat_tree", {"k": topology.k}):
        return "give --rate"
    return f"run `sudo .venv/bin/refabric calibrate --k {topology.k}` there, or give --rate"


def _too_small(worker: _Worker, needs_mb: float) -> str:
    return (
        f"a point needs up to {needs_mb:.0f} MB, a thread of worker {worker.address} has "
        f"{worker.thread_mb:.0f} MB: start that worker with fewer --nthreads or a larger --memory-limit, or "
        "leave it out"
    )
