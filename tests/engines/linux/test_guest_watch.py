"""Reading a guest's console and reports, and detecting that it hangs. Clocks are plain numbers."""

from __future__ import annotations

import pytest

from common.errors import DeadlineError
from engines.linux.watch import LAST_LINES, Console, Reports, VirtualClock

PANIC = b"""\
Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000100
CPU: 0 UID: 0 PID: 1 Comm: init Not tainted 6.12.117 #1
 [<600250c3>] ? show_stack+0x0/0x1a3
"""
KILLED = b"Out of memory: Killed process 88 (python) total-vm:812344kB, anon-rss:701232kB\n"
NOT_MAPPED = b"""\
[  200.080000] syscall_stub_dump_error : stub syscall type 1 failed, return value = 0xfffffffffffffff4
[  200.080000] UML ran out of memory on the host side! This can happen due to a memory limitation or \
vm.max_map_count has been reached.
"""


def console(*pieces: bytes) -> Console:
    found = Console()
    for piece in pieces:
        found.take(piece)
    return found


def test_a_panic_is_named_with_its_last_lines() -> None:
    found = console(PANIC[:25], PANIC[25:])
    assert found.cause(512) == "its kernel panicked: Attempted to kill init! exitcode=0x00000100"
    assert found.last_lines().endswith("Not tainted 6.12.117 #1")


def test_running_out_of_memory_is_named_with_the_memory_it_had() -> None:
    assert console(KILLED).cause(512) == "it ran out of its 512 MB of memory"
    assert console(KILLED, PANIC).cause(512) == "it ran out of its 512 MB of memory"


def test_a_machine_that_maps_no_more_memory_is_not_a_guest_without_memory() -> None:
    found = console(NOT_MAPPED)
    assert "vm.max_map_count" in found.cause(512)
    assert "512" not in found.cause(512)
    assert console(NOT_MAPPED, KILLED).cause(512) == "it ran out of its 512 MB of memory"


def test_another_end_is_no_panic() -> None:
    assert console(b"hello\n").cause(512) == "it ended without a result"
    assert Console().last_lines() == ""


def test_only_the_last_lines_are_kept_and_empty_ones_are_not() -> None:
    found = console(b"".join(b"line %d\n\n" % i for i in range(3 * LAST_LINES)))
    assert list(found.tail) == [f"line {i}" for i in range(2 * LAST_LINES, 3 * LAST_LINES)]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_reports_arrive_whole_however_they_are_cut(size: int) -> None:
    text = b'{"now": 1.5}\n{"report": {"phase": "measure", "seconds": 3}}\n{"halted": 0}\n'
    reports = Reports()
    found = [
        message for start in range(0, len(text), size) for message in reports.take(text[start : start + size])
    ]
    assert found == [{"now": 1.5}, {"report": {"phase": "measure", "seconds": 3}}, {"halted": 0}]


def clock() -> VirtualClock:
    return VirtualClock(began_s=1000.0, patience_s=60.0, limit_s=30.0)


def test_a_guest_that_never_reports_its_clock_hangs() -> None:
    here = clock()
    here.check(1060.0)
    with pytest.raises(DeadlineError, match="its clock has shown 0 s for 61 s of real time"):
        here.check(1061.0)


def test_a_slow_guest_does_not_hang_while_its_clock_goes_on() -> None:
    here = clock()
    for step in range(1, 20):
        here.read(float(step), 1000.0 + 50 * step)
        here.check(1000.0 + 50 * step + 49)
    assert here.now_s == 19.0


def test_a_clock_that_shows_the_same_time_again_and_again_stands_still() -> None:
    here = clock()
    for step in range(1, 7):
        here.read(5.0, 1000.0 + 10 * step)
    here.check(1070.0)
    with pytest.raises(DeadlineError, match="hangs: its clock has shown 5 s"):
        here.check(1071.0)


def test_a_program_that_goes_on_for_too_long_in_its_own_time_is_ended() -> None:
    here = clock()
    here.read(4.0, 1001.0)
    here.read(34.0, 1002.0)
    here.check(1002.0)
    here.read(35.0, 1003.0)
    with pytest.raises(DeadlineError, match="did not end within 30 s of the guest's time"):
        here.check(1003.0)
