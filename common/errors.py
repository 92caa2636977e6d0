"""The errors that refabric raises on purpose, and the exit code of each.

A message says what was attempted, what happened, and what to do about it. Anything that is
not a `RefabricError` is a bug and may show a traceback.
"""

from __future__ import annotations

from common.text import printable


class RefabricError(Exception):
    """Base class of all refabric errors; the command line exits with `exit_code`."""

    exit_code = 1

    def __str__(self) -> str:
        """Return the message. It may quote files and programs, whose control characters are escaped."""
        return printable(super().__str__())


def by_name() -> dict[str, type[RefabricError]]:
    """Return every error class by name, so that another process can raise a received error again."""
    found: dict[str, type[RefabricError]] = {}
    waiting = [RefabricError]
    while waiting:
        error = waiting.pop()
        found[error.__name__] = error
        waiting += error.__subclasses__()
    return found


class UsageError(RefabricError):
    """The request is invalid; nothing was started."""

    exit_code = 2


class HostUnfitError(RefabricError):
    """This machine, kernel or user cannot run the request; nothing was started."""

    exit_code = 3


class BusyError(HostUnfitError):
    """Another emulation is running on this machine; the message names its pid."""


class NoKernelError(HostUnfitError):
    """The kernel of the engine linux is not built; `refabric kernel build` builds it."""


class RunError(RefabricError):
    """A point could not be finished; results of finished points are kept."""


class StalledFlowError(RunError):
    """A connection is established but delivers nothing. The kernel causes this; a retry may succeed."""


class CommandError(RunError):
    """A child process failed; the message holds argv, exit code and the last lines of stderr."""


class DeadlineError(RunError):
    """Something did not happen before its deadline; the message names it and the time waited."""


class StoreError(RefabricError):
    """A results folder or file cannot be read or written; the message names it."""


class DiskFullError(StoreError):
    """The disk, or the user's quota, is full. Finished points are kept."""

    exit_code = 3
