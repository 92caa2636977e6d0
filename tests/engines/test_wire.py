"""What the program that runs the hosts reports reaches the observer, and its result arrives as it was."""

from __future__ import annotations

import json
from collections.abc import Iterable

import numpy as np
import pytest

from common.errors import RunError
from engines.engine import Silent
from engines.wire import MOST_ROWS, ResultReader, messages
from model.reasons import LATE, OTHER, RTT, Fault, Reason
from model.result import RunResult, Status, Table


class _Heard:
    def __init__(self) -> None:
        self.heard: list[object] = []

    def phase(self, name: str, seconds: float) -> None:
        self.heard.append((name, seconds))

    def note(self, text: str) -> None:
        self.heard.append(text)


def sent(result: RunResult, parts: Iterable[tuple[str, Table]]) -> tuple[RunResult, list[int]]:
    """Return the result as it arrives, and the lengths of its messages."""
    reader, lengths = ResultReader(Silent()), []
    for message in messages(result, parts):
        text = json.dumps(message)
        lengths.append(len(text))
        reader.take(json.loads(text))
    return reader.result("test"), lengths


def test_a_result_arrives_as_it_was() -> None:
    late = Reason(LATE, "late", Fault.OTHERS, (("late_p99_us", 3000.0),), (RTT,))
    links = Table({"t_s": np.array([0.5, 1.0]), "port": np.array([1, 2])})
    result = RunResult(
        Status.SUSPECT,
        (Reason(OTHER, "busy"), late),
        samples={"links": links, "goodput": Table.from_rows(("t_s", "flow"), ())},
        metrics={"cpu_busy_pct": 70.0},
        provenance={"kernel": "6.18"},
        cautions=(late,),
    )
    assert sent(result, result.samples.items())[0] == result


def test_the_parts_of_a_table_follow_each_other() -> None:
    parts = [("links", Table({"port": np.arange(begin, begin + 3)})) for begin in (0, 3)]
    assert sent(RunResult(Status.OK), parts)[0].samples == {"links": Table({"port": np.arange(6)})}


def test_no_message_is_large() -> None:
    rows = 10 * MOST_ROWS + 1
    large = Table({"t_s": np.linspace(0.0, 1.0, rows), "port": np.arange(rows)})
    result, lengths = sent(RunResult(Status.OK), [("queues", large)])
    assert max(lengths) < 2 * 8 * 2 * MOST_ROWS < sum(lengths) / 5
    assert result.samples == {"queues": large}


def test_phases_and_notes_reach_the_observer_and_an_end_without_a_result_is_an_error() -> None:
    observer = _Heard()
    reader = ResultReader(observer)
    reader.take({"phase": "measure", "seconds": 3.0})
    reader.take({"note": "a flow is slow"})
    assert observer.heard == [("measure", 3.0), "a flow is slow"]
    with pytest.raises(RunError, match="running the guest: it ended without a result; run the point again"):
        reader.result("guest")
