"""A sweep's points on the workers of a Dask cluster (docs/clusters.md): simulated ones one a thread, emulated
ones one a machine, where a worker offers that.

Whatever is wrong with the cluster is found here, before a point starts.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from distributed import Client

from common.errors import HostUnfitError, RefabricError, UsageError
from engines.engine import Engine, Observer
from engines.registry import real_time
from harness.execute.build import build
from harness.execute.cluster.capabilities import Survey, check, survey
from harness.execute.cluster.executor import (
    RESOURCE,
    DaskCrew,
    answered,
    identity,
    limit_losses,
    offers,
    wants_machine,
)
from harness.execute.cluster.worker import afresh
from harness.execute.executor import Crew
from harness.execute.point import one_line
from harness.plan import rate
from harness.plan.rate import RateChoice, named
from harness.results.store import Store
from model.spec import RunSpec, TopologySpec

CONNECT_S = 10.0
_MB = 1e6


@contextlib.contextmanager
def connected(address: str, engine: Engine) -> Iterator[Cluster]:
    """The cluster whose scheduler has this address, fit to carry out points of the engine.

    Raises UsageError for what is no address, HostUnfitError where nobody answers or workers are not alike.
    """
    _check_address(address)
    for logger in ("distributed", "distributed.client"):  # what matters is told here
        logging.getLogger(logger).setLevel(logging.CRITICAL)
    try:
        client = Client(address, timeout=CONNECT_S, set_as_default=False, name="refabric")
    except (OSError, TimeoutError, ValueError) as error:
        raise HostUnfitError(
            f"no Dask scheduler answers at {address} ({one_line(str(error))[:200]}): start one there with "
            "`.venv/bin/dask scheduler`, or correct --dask"
        ) from error
    try:
        yield Cluster(client, address, engine)
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            client.close(timeout=CONNECT_S)


def _check_address(address: str) -> None:
    try:
        parts = urlsplit(address)
        good = parts.scheme in {"tcp", "tls"} and parts.hostname and parts.port
    except ValueError:
        good = False
    if not good:
        raise UsageError(f"--dask {address}: give a scheduler's address, such as tcp://10.0.0.1:8786")


@dataclass(frozen=True)
class _Worker:
    """One of the cluster's, as its scheduler knows it, and what it said itself."""

    address: str
    threads: int
    memory_mb: float
    offers: bool
    survey: Survey

    @property
    def thread_mb(self) -> float:
        return self.memory_mb / self.threads

    def rate(self, topology: TopologySpec) -> float | None:
        """What it measured that its machine carries there, in Mb/s."""
        return next((mbps for known, mbps in self.survey.rates if known == topology), None)


class Cluster:
    """The Site whose points are carried out by Dask workers. Raises HostUnfitError where there are none, or
    they are not alike."""

    def __init__(self, client: Client, address: str, engine: Engine) -> None:
        self.engine = engine
        self._client, self._address, self._build = client, address, build()
        self._workers = self._surveyed()

    def at_once(self, spec: RunSpec) -> int:
        """One a machine that is offered for it, or one a thread."""
        if wants_machine(self.engine, spec):
            return max(1, sum(worker.offers for worker in self._workers))
        return sum(worker.threads for worker in self._workers)

    def coupled_cc(self, names: tuple[str, ...]) -> tuple[str, str]:
        """What all machines can run that may have to."""
        told = [worker.survey.coupled_cc[name] for worker in self._concerned(names) for name in names]
        return next((answer for answer in told if answer[1]), told[0])

    def known_rate(
        self, topology: TopologySpec, names: tuple[str, ...], highest_mbps: float = math.inf
    ) -> RateChoice:
        """In real time the least of what machines carry by their own calibrations."""
        if not real_time(names):
            return rate.known_rate(topology, names)
        rates = [worker.rate(topology) for worker in self._concerned(names)]
        known = [mbps for mbps in rates if mbps is not None]
        if len(known) < len(rates):
            return RateChoice(None, rate.TO_BE_MEASURED)
        return RateChoice(
            min(*known, highest_mbps), f"auto, the least of what {len(known)} machines measured"
        )

    def rate(
        self,
        topology: TopologySpec,
        names: tuple[str, ...],
        observer: Observer,
        highest_mbps: float = math.inf,
    ) -> RateChoice:
        """As known. Raises HostUnfitError naming a machine that never measured it."""
        del observer
        choice = self.known_rate(topology, names, highest_mbps)
        if choice.rate_mbps is not None:
            return choice
        missing = next(worker for worker in self._concerned(names) if worker.rate(topology) is None)
        raise HostUnfitError(
            f"worker {missing.address} never measured which link rate its machine carries at "
            f"{named(topology)}: {_how_to_measure(topology)}"
        )

    def unfit(self, specs: Iterable[RunSpec]) -> dict[str, HostUnfitError]:
        """By the engines' checks on every machine that may have to run them."""
        kinds: dict[bool, list[RunSpec]] = {True: [], False: []}
        for spec in specs:
            kinds[wants_machine(self.engine, spec)].append(spec)
        found = self._unfit_among(kinds[False], self._workers)
        if not kinds[True]:
            return found
        offering = [worker for worker in self._workers if worker.offers]
        why = self._unsuited(offering)
        if why:
            return found | {spec.engine: HostUnfitError(why) for spec in kinds[True]}
        return found | self._unfit_among(kinds[True], offering)

    def crew(self, where: Store, observer: Observer) -> Crew:
        """As many as have room at a time."""
        threads = sum(worker.threads for worker in self._workers)
        observer.note(f"points go to {self._address} (workers: {len(self._workers)}, threads: {threads})")
        return DaskCrew(self._client, self._address, self.engine, where, self._build)

    def _concerned(self, names: Collection[str]) -> list[_Worker]:
        """Those whose kernel may have to run points of these engines."""
        offering = [worker for worker in self._workers if worker.offers]
        return offering if offering and real_time(names) else self._workers

    def _surveyed(self) -> list[_Worker]:
        known = identity(self._client, self._address)["workers"]
        if not known:
            raise HostUnfitError(
                f"the Dask scheduler at {self._address} has no workers: start one on each machine with "
                f"`.venv/bin/dask worker {self._address}`"
            )
        self._compare_scheduler()
        surveys = self._ask(list(known), survey, self.engine)
        for address, told in surveys.items():
            if unlike := self._build.unlike(told.build):
                raise HostUnfitError(
                    f"worker {address} runs another refabric: {unlike}. Bring its checkout to the state of "
                    "this one, run setup/install.sh there, and start it again"
                )
        return [_worker(address, known[address], surveys[address]) for address in surveys]

    def _compare_scheduler(self) -> None:
        try:
            there = answered(self._client, self._client.run_on_scheduler, build)
        except Exception as error:
            raise HostUnfitError(
                _stranger(f"the scheduler at {self._address}", "scheduler", error)
            ) from error
        answered(self._client, self._client.run_on_scheduler, limit_losses)
        if unlike := self._build.unlike(there):
            raise HostUnfitError(
                f"the scheduler at {self._address} runs another refabric: {unlike}. Start it from a checkout "
                "like this one"
            )

    def _ask(self, workers: Sequence[str], function: Callable[..., Any], *args: Any) -> dict[str, Any]:
        """What `function` returns on each of the workers. Raises HostUnfitError, UsageError."""
        told = answered(
            self._client, self._client.run, afresh, function, *args, workers=list(workers), on_error="return"
        )
        for address, answer in told.items():
            if isinstance(answer, UsageError):
                raise answer
            if isinstance(answer, RefabricError):
                raise HostUnfitError(f"worker {address}: {answer}") from answer
            if isinstance(answer, BaseException):
                raise HostUnfitError(_stranger(f"worker {address}", "worker", answer)) from answer
        return dict(told)

    def _unfit_among(self, specs: Sequence[RunSpec], workers: Sequence[_Worker]) -> dict[str, HostUnfitError]:
        """Engines that one of these workers cannot run, asked once a machine."""
        if not specs:
            return {}
        unfit: dict[str, HostUnfitError] = {}
        of_machine = {worker.survey.machine: worker.address for worker in workers}
        for address, told in self._ask(list(of_machine.values()), check, self.engine, specs).items():
            for name, error in told.items():
                unfit.setdefault(name, HostUnfitError(f"worker {address}: {error}"))
        for spec in specs:
            needs_mb = self.engine.memory_mb(spec)
            small = next((w for w in workers if needs_mb > w.thread_mb), None)
            if small is not None:
                unfit.setdefault(spec.engine, HostUnfitError(_too_small(small, needs_mb)))
        return unfit

    def _unsuited(self, offering: Sequence[_Worker]) -> str:
        """Why points in real time cannot be left to these workers; empty where they can."""
        how = f"`sudo .venv/bin/dask worker {self._address} --nthreads 1 --resources {RESOURCE}=1`"
        if not offering:
            return (
                f"no worker of {self._address} offers {RESOURCE}: start one on each machine fit for it, {how}"
            )
        several = next((worker for worker in offering if worker.threads > 1), None)
        if several is not None:
            return (
                f"worker {several.address} offers {RESOURCE} with {several.threads} threads, which would run "
                f"points beside an emulated one: start it with {how}"
            )
        for worker in offering:
            here = worker.survey.machine
            others = [w for w in self._workers if w is not worker and w.survey.machine == here]
            if others:
                return (
                    f"worker {worker.address} offers {RESOURCE} and shares its machine with worker "
                    f"{others[0].address}, which would disturb it: keep one of them"
                )
        return ""


def _worker(address: str, known: Mapping[str, Any], told: Survey) -> _Worker:
    limit_mb = known["memory_limit"] / _MB or float("inf")
    return _Worker(address, known["nthreads"], limit_mb, offers(known), told)


def _stranger(who: str, what: str, error: BaseException) -> str:
    told = one_line(f"{type(error).__name__}: {error}")[:200]
    return (
        f"{who} cannot run refabric ({told}): start it as `.venv/bin/dask {what}` in a checkout like this "
        "one, after setup/install.sh"
    )


def _how_to_measure(topology: TopologySpec) -> str:
    if topology != TopologySpec("fat_tree", {"k": topology.k}):
        return "give --rate"
    return f"run `sudo .venv/bin/refabric calibrate --k {topology.k}` there, or give --rate"


def _too_small(worker: _Worker, needs_mb: float) -> str:
    return (
        f"a point takes up to {needs_mb:.0f} MB, a thread of worker {worker.address} has "
        f"{worker.thread_mb:.0f} MB: start that worker with fewer --nthreads or a larger --memory-limit, or "
        "leave it out"
    )
