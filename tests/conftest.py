"""Settings of every test. Commands draw no charts, which takes most of a short run's time, unless the fixture
`drawn` or chart_files.draw_all asks for them. They are SVG only: the other formats hold the same drawing.

Hypothesis has no time limits, since machines are shared and noisy. It draws the same examples in each run, so
that no change is refused for what it did not touch; `pytest --hypothesis-profile search` draws others.

Byte code is kept, though images of containers often forbid it (PYTHONDONTWRITEBYTECODE): two processes would
rewrite all assertions in each run, and hundreds would compile the same modules. Root writes none into the
folder of another user.

What collection makes stays until the end, so garbage is not looked for while it works nor in what it made,
and elsewhere more rarely than by default.

SIGINT has its usual effect: a shell ignores it in the background processes that it starts, and their children
inherit that.

Files with a test that builds something come first: they are the longest, and one that begins last leaves the
other cores idle. pytest-xdist would begin with the files that have the most tests. With `--numprocesses auto`
there is one process more than CPUs, because tests of clusters, signals and deadlines wait.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from engines.engine import OnePointPerCpu
from tests.support import chart_files, fake_engine

_NOISY = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
assert fake_engine  # registers the engine of most tests
settings.register_profile("same", _NOISY, derandomize=True)
settings.register_profile("search", _NOISY, derandomize=False)
settings.load_profile("same")
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as the command does (refabric/command.py)
if Path(__file__).stat().st_uid == os.geteuid():
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return len(os.sched_getaffinity(0)) + 1


def pytest_configure(config: pytest.Config) -> None:
    config.option.loadscopereorder = False


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    building = {item.path for item in items if item.get_closest_marker("builds")}
    items.sort(key=lambda item: item.path not in building)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 20)
        gc.enable()


@pytest.fixture(scope="session", autouse=True)
def no_waiting_for_disks() -> Iterator[None]:
    """Let fsync only check its file in this process: no test takes the power away."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_charts() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        chart_files.write_formats(patch, "svg")
        chart_files.draw_nothing(patch)
        yield


@pytest.fixture(scope="module")
def in_this_process() -> Iterator[None]:
    """Simulate points one after the other in this process: for tests of what they show. A worker process
    takes longer to start than a small point to run. tests/harness/execute compares both, byte by byte."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OnePointPerCpu, "parallel", 1)
        yield


@pytest.fixture
def every_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write charts in every format."""
    chart_files.write_formats(monkeypatch, "svg", "pdf", "png")


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands draw charts."""
    chart_files.draw_all(monkeypatch)


@pytest.fixture
def sketched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands write an empty picture for each chart."""
    chart_files.sketch(monkeypatch)
