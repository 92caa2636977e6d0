from __future__ import annotations

import os
import time

from engines.emulation.kernel.proc import UserTime, others_pct, read_user_time


def test_what_is_not_the_run_s_own_is_others() -> None:
    assert others_pct(UserTime(0, 0, 0), UserTime(50, 20, 200)) == 15.0
    assert others_pct(UserTime(0, 0, 0), UserTime(50, 60, 200)) == 0.0
    assert others_pct(UserTime(1, 1, 1), UserTime(1, 1, 1)) == 0.0


def test_own_work_is_seen() -> None:
    before, deadline = read_user_time(), time.monotonic() + 20
    worked_until = os.times().user + 0.3
    while os.times().user < worked_until:
        assert time.monotonic() < deadline, "this process had no CPU time"
        sum(range(50_000))
    after = read_user_time()
    assert (after.own - before.own) / os.sysconf("SC_CLK_TCK") > 0.2
    assert after.all > before.all
