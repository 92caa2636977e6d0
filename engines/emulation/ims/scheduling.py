"""How the kernel schedules the programs of a real IMS: real-time priority, or a reservation of CPU time.

A reservation is SCHED_DEADLINE (sched(7)): `RUNTIME_US` of CPU time in each `PERIOD_US`, before threads of
any priority. Only a worker that has forked can have one, and only if the kernel admits it: not in a set of
CPUs (EPERM), and not beyond 95 % of all CPUs together (EBUSY).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Iterable

from common.errors import HostUnfitError

PRIORITY = 1
"""Of SCHED_RR (sched(7))."""
RUNTIME_US, PERIOD_US = 1250, 5000
"""A quarter of a CPU: more than a message's CPU time per message's time, and six of them are admitted on two
CPUs."""
_DEADLINE = 6
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""struct sched_attr, first version: size, policy, flags, nice, priority, runtime, deadline, period (ns)."""
_SET = {"x86_64": 314, "aarch64": 274}
"""Number of the system call sched_setattr."""
ROUND_ROBIN_WORDS = f"SCHED_RR {PRIORITY}"
DEADLINE_WORDS = f"SCHED_DEADLINE {RUNTIME_US} us in {PERIOD_US} us"


def prefer(pids: Iterable[int]) -> None:
    """Give processes real-time priority over other programs, below the fabric's core.

    They sleep or wait most of the time. Raises HostUnfitError where the kernel refuses.
    """
    for pid in pids:
        try:
            os.sched_setscheduler(pid, os.SCHED_RR, os.sched_param(PRIORITY))
        except ProcessLookupError:
            continue  # it has ended; its parent reports that
        except OSError as error:
            raise HostUnfitError(
                f"giving SIP servers real-time priority: {error.strerror}; run as root"
            ) from error


def reserve(pids: Iterable[int], runtime_us: int = RUNTIME_US, period_us: int = PERIOD_US) -> str:
    """Reserve CPU time for processes, or keep their real-time priority where the kernel refuses.

    Returns what was chosen, with the reason for a refusal. A process that has ended is left out.
    """
    for pid in pids:
        refused = _set_deadline(pid, runtime_us, period_us)
        if refused:
            return f"{ROUND_ROBIN_WORDS}: no reservation: {refused}"
    return DEADLINE_WORDS


def _set_deadline(pid: int, runtime_us: int, period_us: int) -> str:
    """Return why the kernel refused, or an empty text."""
    number = _SET.get(platform.machine())
    if number is None:
        return f"unknown system call on {platform.machine()}"
    period_ns = 1000 * period_us
    given = _ATTRIBUTES.pack(_ATTRIBUTES.size, _DEADLINE, 0, 0, 0, 1000 * runtime_us, period_ns, period_ns)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(number), ctypes.c_int(pid), given, ctypes.c_uint(0)) == 0:
        return ""
    try:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    except ProcessLookupError:
        return ""
    except PermissionError:
        return "the kernel permits none (EPERM), as for programs that may not use all CPUs (taskset)"
    except OSError as error:
        return f"{error.strerror} ({error.errno}): at most 95 % of the CPUs can be reserved"
