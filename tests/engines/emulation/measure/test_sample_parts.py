"""Sample tables come in parts that follow each other, and need little memory at a time."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any, cast

import numpy as np
import pytest

from engines.emulation.kernel.proc import CpuSample, CpuUse
from engines.emulation.measure import summarise
from engines.emulation.measure.observing import Readings, Sample
from engines.emulation.measure.socket_table import SubflowReadings
from engines.emulation.measure.summarise import sample_parts
from engines.engine import Silent
from engines.wire import ResultReader, messages
from model.result import RunResult, Status, Table

MB = 1e6
RATES = np.array([10_000_000, 10_000_000])


def sample(t_s: float) -> Sample:
    idle = CpuSample(t_s, CpuUse(0.0, 0.0, 0.0, 0.0, 0.0), {})
    return Sample(t_s, [int(t_s)], idle, np.full(2, t_s), np.zeros(2, np.uint64), t_s - 1.0)


def look(t_s: float, subflows: int) -> SubflowReadings:
    kept = ("t_s", "took_s", "mptcp", "cc_names")
    names = (name for name in SubflowReadings.__dataclass_fields__ if name not in kept)
    columns: dict[str, Any] = {name: np.full(subflows, round(t_s), np.int64) for name in names}
    columns["subflow"] = np.arange(subflows)
    return SubflowReadings(t_s, 0.0, mptcp=np.ones(subflows, np.bool_), cc_names=("reno",), **columns)


def readings(lengths: np.ndarray[Any, Any], looks: int = 0) -> Readings:
    """Readings of 4 s, with rows of queue lengths in equal steps; the window opens after 1 s."""
    times = np.linspace(0.0, 3.0, len(lengths), endpoint=False)
    return Readings(
        samples=[sample(1.0 + t) for t in range(4)],
        opened_at=1,
        sockets=[look(2.0 + i, 3) for i in range(looks)],
        totals=cast(Any, None),
        queues=(times, lengths),
        pings=None,
        up_s=(),
        started_s=(),
        completed_s=(),
        retransmitted=(),
        opened_subflows=(),
        acked_bytes=np.zeros(1, np.int64),
        stalled=(),
        waiting=(),
    )


def together(parts: list[tuple[str, Table]]) -> dict[str, Table]:
    received = ResultReader(Silent())
    for message in messages(RunResult(Status.OK), parts):
        received.take(message)
    return dict(received.result("test").samples)


def test_parts_are_the_whole_tables_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths = np.random.default_rng(1).integers(0, 3, (30, 2)).astype(np.uint32)
    whole = list(sample_parts(readings(lengths, looks=5), RATES))
    monkeypatch.setattr(summarise, "PART_ROWS", 7)
    parts = list(sample_parts(readings(lengths, looks=5), RATES))
    names = [name for name, _ in whole]
    assert names == ["goodput", "cpu", "links", "queues", "queue_times", "sockets"]
    counted = {name: sum(name == part for part, _ in parts) for name in names}
    assert counted == {**dict.fromkeys(names, 1), "queues": 10, "sockets": 3}
    assert together(parts) == dict(whole)


def test_queue_lengths_keep_their_times_and_ports() -> None:
    lengths = np.array([[0, 2], [0, 0], [7, 0]], np.uint32)
    tables = dict(sample_parts(readings(lengths), RATES))
    assert tables["queues"] == Table(
        {"t_s": np.array([-1.0, 1.0]), "port": np.array([1, 0]), "pkts": np.array([2, 7])}
    )
    assert tables["queue_times"] == Table({"t_s": np.array([-1.0, 0.0, 1.0])})


def test_without_queue_samples_the_table_is_empty() -> None:
    tables = dict(sample_parts(readings(np.empty((0, 2), np.uint32)), RATES))
    assert len(tables["queues"]) == len(tables["queue_times"]) == 0


def test_sending_all_samples_needs_little_memory() -> None:
    """A guest's program with k=8 and 100 s of queue lengths had more pieces of memory than Linux maps."""
    filled = readings(np.ones((4000, 500), np.uint32))
    tracemalloc.start()
    sent = 0
    for message in messages(RunResult(Status.OK), sample_parts(filled, RATES)):
        sent += len(json.dumps(message))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sent > 60 * MB
    assert peak < 30 * MB
