"""What counts as left behind, among the warnings of the machine's kernel."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.leftovers import Snapshot, compare

UNDO = "[1.5] WARNING: CPU: 0 PID: {pid} at ./include/net/tcp.h:1434 tcp_undo_cwnd_reduction+0xbd/0xd0"
OTHER = "[1.6] WARNING: CPU: 1 PID: 1 at net/mptcp/protocol.c:100 mptcp_recvmsg+0x1/0x2"
OF_PROCESS_1 = UNDO.format(pid=1)

process_1 = pytest.mark.skipif(not Path("/proc/1/task/1").exists(), reason="process 1 is hidden")


def kernel(taint: int, *warnings: str) -> Snapshot:
    return {"kernel taint": (str(taint),), "kernel warnings": warnings}


@process_1
def test_a_window_that_the_kernel_made_up_in_process_1_is_not_left_behind() -> None:
    assert compare(kernel(0), kernel(512, OF_PROCESS_1)) == []
    assert compare(kernel(1), kernel(513, OF_PROCESS_1)) == []


@pytest.mark.parametrize(
    "after",
    [
        kernel(512),  # no warning explains the taint
        kernel(512, OTHER),
        kernel(512, UNDO.format(pid=os.getpid())),  # a program of ours gave such a window
        kernel(512, OF_PROCESS_1, OTHER),
        kernel(512 | 128, OF_PROCESS_1),  # an oops as well
    ],
)
def test_any_other_warning_of_the_kernel_is_left_behind(after: Snapshot) -> None:
    assert f"kernel taint: {after['kernel taint'][0]}" in compare(kernel(0), after)


def test_a_warning_on_a_kernel_that_had_warned_before_is_seen() -> None:
    assert compare(kernel(512, OF_PROCESS_1), kernel(512, OF_PROCESS_1, OTHER)) == [
        f"kernel warnings: {OTHER}"
    ]
