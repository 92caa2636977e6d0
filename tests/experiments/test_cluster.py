"""Sweeps on a Dask cluster of separate processes: the same results as on one machine, whoever is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from engines.result import Status
from experiments.store import ORIGIN, load
from tests.experiments.cluster_lab import DEADLINE_S, ROOT, Lab, cluster
from tests.experiments.store_lab import leftovers

pytest.importorskip("distributed", reason="this .venv is older than requirements.txt: run setup/install.sh")

POST = "cs244-one-to-one"
SIMULATE = ("--engine", "simulator", "--k", "4", "--rate", "20", "--warmup", "0.2")
FAKE = ("--engine", "fake", "--k", "4", "--subflows", "1,2", "--warmup", "0.2", "--seconds", "0.5")
LONG = ("--subflows", "1,2", "--seconds", "3000")


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A cluster that no test changes: two workers of one thread each, neither of them for emulation."""
    with cluster(tmp_path_factory.mktemp("two"), ("--nthreads", "1"), ("--nthreads", "1")) as lab:
        yield lab


def command(results: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "experiments.cli", "run", POST, "--results", str(results), *options]


def run(results: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(results, *options),
        capture_output=True, text=True, check=False, timeout=2 * DEADLINE_S, cwd=ROOT,
    )  # fmt: skip


def files_of(results: Path) -> dict[str, bytes]:
    """Everything in the points' folders but where they were made."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in sorted(results.rglob("simulator-*/**/*"))
        if path.is_file() and path.name != ORIGIN
    }


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """The one line that a refusal is."""
    assert done.returncode in {2, 3}, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr


def test_the_same_bytes_as_on_this_machine_and_who_made_them(two: Lab, tmp_path: Path) -> None:
    options = (*SIMULATE, "--subflows", "1,2,8", "--seconds", "0.5", "--qmon")
    far = run(tmp_path / "far", *options, "--dask", two.address)
    assert far.returncode == 0, far.stdout + far.stderr + two.logs()
    assert run(tmp_path / "near", *options).returncode == 0
    assert len(files_of(tmp_path / "far")) >= 4 * 8
    assert files_of(tmp_path / "far") == files_of(tmp_path / "near")
    assert far.stdout.count(" on tcp://127.0.0.1:") == 4, "each start says where"
    assert leftovers(tmp_path / "far" / POST) == []
    assert two.left() == []
    points = load(tmp_path / "far" / POST)
    assert {point.provenance["cpus"] for point in points} == {len(os.sched_getaffinity(0))}
    assert all(point.provenance["revision"] and point.elapsed_s > 0 for point in points)
    again = run(tmp_path / "far", *options, "--dask", two.address)
    assert "4 points, all finished already" in again.stdout


def test_a_killed_worker_has_its_point_redone_elsewhere(tmp_path: Path) -> None:
    """Of two workers one is killed while it runs a point, and a third comes; each point is there once."""
    options = (*SIMULATE, "--subflows", "1-6", "--seconds", "40")
    with cluster(tmp_path, ("--nthreads", "1", "--name", "doomed"), ("--nthreads", "1")) as lab:
        process = subprocess.Popen(
            command(tmp_path / "results", *options, "--dask", lab.address),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        )  # fmt: skip
        assert process.stdout is not None
        said = watch(process, "[3/")
        lab.processes[1].kill()
        lab.start_worker("--nthreads", "1")
        said += process.stdout.read()
        assert process.wait(timeout=DEADLINE_S) == 0, said + lab.logs()
        assert " was lost" in said
        points = load(tmp_path / "results" / POST)
        assert [point.status for point in points] == [Status.OK] * 7
        assert leftovers(tmp_path / "results" / POST) == []
        assert lab.left() == [] or all("doomed" not in str(path) for path in lab.left())


def watch(process: subprocess.Popen[str], until: str) -> str:
    """What the process says up to a line that begins so; it is ended after the deadline."""
    assert process.stdout is not None
    late = threading.Timer(DEADLINE_S, process.kill)
    late.start()
    said = ""
    try:
        for line in process.stdout:
            said += line
            if line.startswith(until):
                return said
    finally:
        late.cancel()
    raise AssertionError(f"no line '{until}': {said}")


@pytest.mark.parametrize("lost", ["the user's patience", "the scheduler"])
def test_a_sweep_that_ends_early_leaves_nothing_on_the_workers(tmp_path: Path, lost: str) -> None:
    # What is started in the background ignores SIGINT, and whatever it starts in turn.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with cluster(tmp_path, ("--nthreads", "2")) as lab:
        process = subprocess.Popen(
            command(tmp_path / "results", *SIMULATE, *LONG, "--dask", lab.address),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT,
        )  # fmt: skip
        assert process.stdout is not None
        watch(process, "[2/")
        until(lambda: len(lab.left()) >= 1)
        if lost == "the scheduler":
            lab.processes[0].kill()
        else:
            process.send_signal(signal.SIGINT)
        said = process.stdout.read()
        assert process.wait(timeout=DEADLINE_S) == (1 if lost == "the scheduler" else 130), said
        assert "Traceback" not in said
        wanted = "is gone: finished points are kept" if lost == "the scheduler" else "interrupted: "
        assert wanted in said
        assert leftovers(tmp_path / "results" / POST) == []
        until(lambda: lab.left() == [])


def until(true: Callable[[], bool]) -> None:
    """Wait for it."""
    deadline = time.monotonic() + DEADLINE_S
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_what_is_no_cluster_is_refused_at_once(tmp_path: Path) -> None:
    began = time.monotonic()
    nobody = refused(run(tmp_path, *SIMULATE, "--dask", "tcp://127.0.0.1:9"))
    assert "no Dask scheduler answers at tcp://127.0.0.1:9" in nobody
    assert "10.0.0.1:8786" in refused(run(tmp_path, *SIMULATE, "--dask", "127.0.0.1"))
    with cluster(tmp_path) as lab:
        alone = refused(run(tmp_path, *SIMULATE, "--dask", lab.address))
    assert f"has no workers: start one on each machine with `.venv/bin/dask worker {lab.address}`" in alone
    assert time.monotonic() - began < 2 * DEADLINE_S
    assert not (tmp_path / POST).exists()


def test_emulation_needs_a_machine_that_offers_it(two: Lab, tmp_path: Path) -> None:
    """The fake engine, too, asks for machines of its own."""
    text = refused(run(tmp_path, *FAKE, "--dask", two.address))
    assert f"no worker of {two.address} offers emulation" in text
    assert "--resources emulation=1" in text


@pytest.mark.parametrize(
    ("offer", "beside", "why"),
    [
        (("--nthreads", "2", "--resources", "emulation=1"), None, "with 2 threads"),
        (("--nthreads", "1", "--resources", "emulation=1"), ("--nthreads", "1"), "shares its machine"),
        (("--nthreads", "1", "--resources", "emulation=1"), None, ""),
    ],
)  # fmt: skip
def test_an_emulated_point_has_its_machine_for_itself(
    tmp_path: Path, offer: tuple[str, ...], beside: tuple[str, ...] | None, why: str
) -> None:
    with cluster(tmp_path, offer, *([beside] if beside else [])) as lab:
        done = run(tmp_path / "results", *FAKE, "--dask", lab.address)
        if why:
            assert why in refused(done)
            return
    assert done.returncode == 0, done.stderr + lab.logs()
    assert len(load(tmp_path / "results" / POST)) == 3
