"""Results on their way from the inner to the outer process arrive as they were."""

from __future__ import annotations

import json

import numpy as np

from engines.kernel_hosts.wire import MOST_ROWS, Received, messages
from model.reasons import LATE, RTT, Fault, Reason
from model.result import RunResult, Status, Table
from tests.support.reasons import of_text


def test_a_result_arrives_as_it_was() -> None:
    late = Reason(LATE, "late", Fault.OTHERS, (("late_p99_us", 3000.0),), (RTT,))
    links = Table({"t_s": np.array([0.5, 1.0]), "port": np.array([1, 2])})
    empty = Table.from_rows(("t_s", "flow"), ())
    sent = RunResult(
        Status.SUSPECT,
        (of_text("CPU: busy"), late),
        samples={"links": links, "goodput": empty},
        metrics={"cpu_busy_pct": 70.0},
        provenance={"kernel": "6.18"},
        cautions=(late,),
    )
    received = Received()
    for message in messages(sent, sent.samples.items()):
        assert received.result is None
        received.take(json.loads(json.dumps(message)))
    assert received.result == sent


def test_the_parts_of_a_table_follow_each_other() -> None:
    parts = [Table({"port": np.arange(begin, begin + 3)}) for begin in (0, 3)]
    received = Received()
    for message in messages(RunResult(Status.OK), [("links", part) for part in parts]):
        received.take(message)
    assert received.result is not None
    assert received.result.samples == {"links": Table({"port": np.arange(6)})}


def test_no_message_is_large() -> None:
    rows = 10 * MOST_ROWS + 1
    large = Table({"t_s": np.linspace(0.0, 1.0, rows), "port": np.arange(rows)})
    received, lengths = Received(), []
    for message in messages(RunResult(Status.OK), [("queues", large)]):
        lengths.append(len(json.dumps(message)))
        received.take(message)
    assert max(lengths) < 2 * 8 * 2 * MOST_ROWS < sum(lengths) / 5
    assert received.result is not None
    assert received.result.samples == {"queues": large}
