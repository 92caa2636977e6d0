"""Ctrl-C in a place where Python drops exceptions."""

from __future__ import annotations

import ctypes
import gc
import signal
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

import pytest

from common import processes

DEADLINE_S = 20.0


class _Slow:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


def in_del() -> None:
    _Slow()
    gc.collect()


def in_a_callback() -> None:
    ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))()


@pytest.mark.parametrize("interrupted", [in_del, in_a_callback])
def test_it_ends_the_block(interrupted: Callable[[], None]) -> None:
    went_on = False
    with pytest.raises(KeyboardInterrupt), processes.never_lost():
        interrupted()
        went_on = True
        time.sleep(DEADLINE_S)
    assert went_on


def test_a_sigterm_ends_it_where_sigint_is_ignored() -> None:
    def stop(_number: int, _frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, stop)
    try:
        with pytest.raises(KeyboardInterrupt), processes.never_lost():
            ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGTERM))()
            time.sleep(DEADLINE_S)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def test_other_dropped_errors_are_reported_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def hook(caught: sys.UnraisableHookArgs) -> None:
        seen.append(caught.exc_type)

    def wrong() -> NoReturn:
        raise ValueError

    monkeypatch.setattr(sys, "unraisablehook", hook)
    with processes.never_lost():
        ctypes.CFUNCTYPE(None)(wrong)()
    assert seen == [ValueError]
    assert sys.unraisablehook is hook
