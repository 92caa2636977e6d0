"""Sweeps on a Dask cluster of separate processes: the same results as on one machine, lost workers
included."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from common.errors import HostUnfitError
from engines.engine import Engine
from engines.registry import make
from harness.baseline import is_baseline
from harness.execute import sweep
from harness.execute.executors import LocalExecutor
from harness.execute.sweep import SweepOutcome, SweepPosition
from harness.plan.jobs import jobs_of
from harness.plan.machines import ThisMachine
from harness.results.build import build
from harness.results.store import Store, load
from model.reasons import ENDED
from model.result import Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec
from tests.support.dask_cluster import DEADLINE_S, ENDLESS, ROOT, Deadly, Lab, cluster
from tests.support.fake_engine import FakeEngine
from tests.support.flaky_engine import Flaky
from tests.support.recorded_progress import Recorder
from tests.support.stored_points import leftovers, simulated_files
from tests.support.waiting import until

pytest.importorskip("distributed", reason="this .venv is older than requirements.txt: run setup/install.sh")

from harness.execute.dask_cluster import Cluster, connected

pytestmark = pytest.mark.builds

POST = "cs244-one-to-one"
SIMULATE = ("--engine", "simulator", "--k", "4", "--rate", "20", "--warmup", "0.2")
OFFER = ("--nthreads", "1", "--resources", "emulation=1")
ONE = ("--nthreads", "1")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster for all tests here: each says which workers it needs, and may kill any process.

    Those that need no worker come first and those that kill some come last, so that few start anew.
    """
    with cluster(tmp_path_factory.mktemp("lab")) as made:
        yield made


@pytest.fixture
def two(lab: Lab) -> Lab:
    """The cluster with two workers with one thread each, neither for emulation."""
    lab.have(ONE, ONE)
    return lab


def specs(engine: str, *subflows: int) -> list[RunSpec]:
    return [
        RunSpec(
            LinkSpec(20.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(count, "lia"), engine=engine,
            warmup_s=0.2, seconds=5.0, sampling=SamplingSpec(queues_ms=50),
        )
        for count in subflows
    ]  # fmt: skip


def run(machines: Any, results: Path, points: Sequence[RunSpec], listener: Recorder) -> SweepOutcome:
    where = Store.open(results, POST)
    assert machines.unfit(points) == {}
    far = isinstance(machines, Cluster)
    executor = machines.executor if far else partial(LocalExecutor, machines.engine)
    return sweep.run(jobs_of(points, machines), executor, where, where.read(), listener)


def on(
    lab: Lab, engine: Engine, results: Path, points: Sequence[RunSpec], listener: Recorder
) -> SweepOutcome:
    with connected(lab.address, engine, insecure=True) as machines:
        return run(machines, results, points, listener)


def command(results: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "refabric.command", "run", POST, "--results", str(results), *options]


def refused(results: Path, *options: str, env: Mapping[str, str] | None = None) -> str:
    """Return the one line of stderr of a command that is refused."""
    done = subprocess.run(
        command(results, *options), capture_output=True, text=True, check=False, timeout=DEADLINE_S, cwd=ROOT,
        env={**os.environ, **(env or {})},
    )  # fmt: skip
    assert done.returncode in {2, 3}, done.stdout + done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_what_is_no_cluster_is_refused_at_once(lab: Lab, tmp_path: Path) -> None:
    brief = {"DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    no_scheduler = refused(tmp_path, *SIMULATE, "--dask", "tcp://127.0.0.1:9", "--insecure", env=brief)
    assert "connecting to tcp://127.0.0.1:9: no Dask scheduler replied" in no_scheduler
    assert "10.0.0.1:8786" in refused(tmp_path, *SIMULATE, "--dask", "127.0.0.1")
    lab.have()
    alone = refused(tmp_path, *SIMULATE, "--dask", lab.address, "--insecure")
    text = f"start one on each machine with `.venv/bin/refabric worker {lab.address} "
    assert f"has no workers: {text}" in alone
    assert not (tmp_path / POST).exists()


def test_a_suspect_point_is_retried_on_the_cluster(two: Lab, tmp_path: Path) -> None:
    (tmp_path / "counters").mkdir()
    engine = Flaky(parallel=2, counters=tmp_path / "counters")
    with connected(two.address, engine, insecure=True) as machines:
        jobs = jobs_of(specs("fake", 1, 8), ThisMachine(engine))
        where = Store.open(tmp_path, POST)
        outcome = sweep.run(jobs, machines.executor, where, where.read(), Recorder(), retries=1)
    assert outcome.exit_code == 0
    runs = [[attempt.status for attempt in judged.attempts] for judged in outcome.points]
    assert runs == [[Status.OK], [Status.OK], [Status.SUSPECT, Status.OK]]
    engine = dataclasses.replace(engine, noisy_runs=9)
    with connected(two.address, engine, insecure=True) as machines:
        outcome = sweep.run(jobs, machines.executor, where, where.read(), Recorder(), force=True, retries=1)
    assert [len(judged.attempts) for judged in outcome.points] == [1, 1, 2]
    assert [judged.metrics.get("run") for judged in outcome.points] == [None, None, 3]


def test_the_same_bytes_as_on_this_machine_with_their_provenance(two: Lab, tmp_path: Path) -> None:
    engine, points = make("simulator"), specs("simulator", 1, 2, 8)
    listener = Recorder()
    assert on(two, engine, tmp_path / "far", points, listener).exit_code == 0
    assert run(ThisMachine(engine), tmp_path / "near", points, Recorder()).exit_code == 0
    assert len(simulated_files(tmp_path / "far")) >= 4 * 7
    assert simulated_files(tmp_path / "far") == simulated_files(tmp_path / "near")
    assert all(worker.startswith("tcp://127.0.0.1:") for worker in listener.workers)
    assert leftovers(tmp_path / "far" / POST) == []
    assert two.left() == []
    made = load(tmp_path / "far" / POST)
    assert {point.provenance["cpus"] for point in made} == {len(os.sched_getaffinity(0))}
    assert all(point.provenance["revision"] and point.elapsed_s > 0 for point in made)
    again = Recorder()
    assert on(two, engine, tmp_path / "far", points, again).exit_code == 0
    assert again.workers == [], "all are finished"


def test_another_refabric_is_refused(two: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the sweep, and when a point starts on a worker that joined or was edited later."""
    edited = dataclasses.replace(build(), code="of an edited file", revision="0123456789ab+")
    engine = FakeEngine(parallel=2)
    with connected(two.address, engine, insecure=True) as machines:
        monkeypatch.setattr(machines, "_build", edited)
        with pytest.raises(HostUnfitError, match=r"the scheduler at .* 0123.* its Python files differ"):
            machines._compare_scheduler()
        with pytest.raises(HostUnfitError, match=r"worker tcp://127.* it now runs another build of refabric"):
            run(machines, tmp_path, specs("fake", 1), Recorder())
        monkeypatch.setattr(machines, "_compare_scheduler", lambda: None)
        with pytest.raises(HostUnfitError, match=r"worker tcp:.* build of refabric: .* Python files differ"):
            machines._checked_workers()
    assert load(tmp_path / POST) == []


def test_emulation_needs_a_machine_that_offers_it(two: Lab, tmp_path: Path) -> None:
    """A worker offers emulation only with --real-hosts."""
    text = refused(tmp_path, "--engine", "mininet", "--k", "4", "--dask", two.address, "--insecure")
    assert f"no worker of {two.address} offers emulation" in text
    assert "--real-hosts" in text


def test_a_point_must_fit_into_a_threads_memory(two: Lab) -> None:
    with connected(two.address, FakeEngine(parallel=2, each_mb=1e7), insecure=True) as machines:
        assert "a thread of worker tcp://" in str(machines.unfit(specs("fake", 1))["fake"])


def test_auto_is_what_every_machine_carries(two: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    small, large = (TopologySpec("fat_tree", {"k": k}) for k in (4, 6))
    with connected(two.address, FakeEngine(name="mininet", parallel=2), insecure=True) as machines:
        rates = (((small, 20.0), (large, 5.0)), ((small, 10.0),))
        known = [
            dataclasses.replace(worker, capabilities=dataclasses.replace(worker.capabilities, rates=measured))
            for worker, measured in zip(machines._workers, rates, strict=True)
        ]
        monkeypatch.setattr(machines, "_workers", known)
        choice = machines.known_rate(small, ("mininet",))
        assert (choice.rate_mbps, choice.how) == (10.0, "auto, the minimum of what 2 machines measured")
        assert machines.known_rate(large, ("mininet",)).rate_mbps is None
        with pytest.raises(
            HostUnfitError, match=rf"worker {known[1].address} has not measured .* calibrate --k 6"
        ):
            machines.rate(large, ("mininet",), Recorder())
        assert machines.rate(large, ("simulator",), Recorder()).rate_mbps == 100.0


def test_a_killed_worker_has_its_point_redone_elsewhere(two: Lab, tmp_path: Path) -> None:
    """Kill the worker that starts the third point and start another worker; each point is stored once."""

    def kill_one(place: SweepPosition) -> None:
        if place.index == 3:
            two.worker_at(place.worker).kill()
            two.start_worker(*ONE)

    listener = Recorder(kill_one)
    engine = FakeEngine(sleep_s=1.0, parallel=2)
    outcome = on(two, engine, tmp_path / "results", specs("fake", 1, 2, 3, 5), listener)
    assert [point.status for point in outcome.points] == [Status.OK] * 5, two.logs()
    assert [note.endswith(" was lost") for note in listener.notes if "started again" in note] == [True]
    assert len(listener.workers) == 5, "no point has two start events"
    assert len(load(tmp_path / "results" / POST)) == 5
    assert leftovers(tmp_path / "results" / POST) == []


def test_a_point_that_three_workers_were_lost_to_fails_and_the_others_do_not(
    lab: Lab, tmp_path: Path
) -> None:
    lab.have(ONE, ONE, ONE, ONE)
    points = specs("fake", 1, 4, 6)
    outcome = on(lab, Deadly(parallel=2, sleep_s=0.5), tmp_path / "results", points, Recorder())
    states = {p.spec.transport.subflows: p for p in outcome.points if not is_baseline(p.spec)}
    assert [states[n].status for n in (1, 4, 6)] == [Status.OK, Status.FAILED, Status.OK], lab.logs()
    assert states[4].reasons[0].kind == ENDED
    assert states[4].reasons[0].text.startswith("3 workers were lost while running it, last tcp://127.0.0.1:")
    assert outcome.exit_code == 1


def test_an_emulated_point_has_its_machine_for_itself(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, points = FakeEngine(), specs("fake", 1, 2)
    lab.have(OFFER)
    assert on(lab, engine, tmp_path / "results", points, Recorder()).exit_code == 0
    assert len(load(tmp_path / "results" / POST)) == 3
    with connected(lab.address, engine, insecure=True) as machines:
        (offering,) = machines._workers
        assert (offering.offers, offering.threads) == (True, 1)
        beside = dataclasses.replace(offering, address="tcp://10.0.0.1:1", offers=False)
        several = dataclasses.replace(offering, threads=2)
        for workers, why in (([offering, beside], "shares its machine"), ([several], "with 2 threads")):
            monkeypatch.setattr(machines, "_workers", workers)
            assert why in str(machines.unfit(points)["fake"])


def test_a_sweep_that_ends_early_leaves_nothing_on_the_workers(two: Lab, tmp_path: Path) -> None:
    """End it by Ctrl-C, by SIGKILL, or by killing the scheduler."""
    scheduler = two.scheduler
    assert scheduler is not None
    code, said = ended(two, tmp_path / "a", lambda sweeping: sweeping.send_signal(signal.SIGINT))
    assert code == 130, said
    assert "interrupted: " in said
    code, said = ended(two, tmp_path / "b", lambda sweeping: sweeping.kill())
    assert code == -signal.SIGKILL
    code, said = ended(two, tmp_path / "c", lambda _: scheduler.kill())
    assert code == 1, said
    assert "is gone: finished points are kept" in said
    assert leftovers(tmp_path / "a" / POST) == leftovers(tmp_path / "c" / POST) == []


def ended(lab: Lab, results: Path, end: Callable[[subprocess.Popen[str]], None]) -> tuple[int, str]:
    """Return exit code and last output of a sweep that `end` ends once it is running."""
    argv = ["run", POST, "--results", str(results), "--engine", "fake", "--k", "4", "--rate", "20"]
    sweeping = subprocess.Popen(
        [sys.executable, "-c", ENDLESS, *argv, "--subflows", "1,2", "--dask", lab.address, "--insecure"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
    )  # fmt: skip
    late = threading.Timer(2 * DEADLINE_S, sweeping.kill)
    late.start()
    assert sweeping.stdout is not None
    for line in sweeping.stdout:
        if line.startswith("[1/"):
            break
    until(lambda: lab.left() != [], DEADLINE_S, "a worker has begun a point")
    end(sweeping)
    said = sweeping.stdout.read()
    late.cancel()
    code = sweeping.wait(timeout=DEADLINE_S)
    until(lambda: lab.left() == [], DEADLINE_S, "workers have removed their folders")
    assert "Traceback" not in said
    return code, said
