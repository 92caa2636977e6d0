"""Tasks distributed over forked processes."""

from __future__ import annotations

import functools
import multiprocessing
import os
import sys

import pytest

from common.errors import RunError, StoreError
from common.processes import side_by_side


@pytest.fixture(autouse=True)
def two_cpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1})


def squared(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def refuse(words: str) -> tuple[int, int]:
    raise StoreError(words)


def say(words: str) -> None:
    print(words, file=sys.stderr)


def test_results_come_in_the_order_of_the_tasks_from_other_processes() -> None:
    done = side_by_side([functools.partial(squared, number) for number in range(50)])
    assert [square for square, _ in done] == [number * number for number in range(50)]
    assert os.getpid() not in {pid for _, pid in done}
    assert not multiprocessing.active_children()


def test_a_task_needs_no_pickling_and_one_alone_no_process() -> None:
    here = os.getpid()
    assert side_by_side([lambda: os.getpid() != here, lambda: True]) == [True, True]
    assert side_by_side([os.getpid]) == [here]
    assert side_by_side([]) == []


def test_the_first_refusal_is_raised_when_the_others_are_done() -> None:
    tasks = [functools.partial(squared, 1), *(functools.partial(refuse, f"disk {n}") for n in range(3))]
    with pytest.raises(StoreError, match="disk 0"):
        side_by_side(tasks)
    assert not multiprocessing.active_children()


def test_a_process_that_dies_is_no_result() -> None:
    with pytest.raises(RunError, match="running 3 tasks in parallel: 1 was lost"):
        side_by_side([lambda: 1, lambda: os._exit(3), lambda: 2])


def test_a_fault_of_a_task_is_raised_with_its_traceback() -> None:
    with pytest.raises(RuntimeError, match=r"(?s)one of 3 tasks.*in squared.*TypeError"):
        side_by_side([lambda: 1, functools.partial(squared, None), lambda: 2])  # type: ignore[arg-type]
    assert not multiprocessing.active_children()


def test_repeated_warnings_are_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    side_by_side([functools.partial(say, words) for words in ("torn", "torn", "bent")])
    assert capsys.readouterr().err == "torn\nbent\n"
