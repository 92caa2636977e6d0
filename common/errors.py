"""Every error refabric raises on purpose, and the exit code each one ends the command with.

A message says what was attempted, what happened, and what to do about it. Anything that is
not a `RefabricError` is a bug and may show a traceback.
"""

from __future__ import annotations


class RefabricError(Exception):
    """Base of the tree; `exit_code` is what the command line ends with."""

    exit_code = 1


def by_name() -> dict[str, type[RefabricError]]:
    """Every class of the tree, so that an error can cross a pipe and be raised again as itself."""
    found: dict[str, type[RefabricError]] = {}
    waiting = [RefabricError]
    while waiting:
        error = waiting.pop()
        found[error.__name__] = error
        waiting += error.__subclasses__()
    return found


class UsageError(RefabricError):
    """The request itself is wrong: nothing was started."""

    exit_code = 2


class HostUnfitError(RefabricError):
    """This machine, kernel or user cannot do it: nothing was started."""

    exit_code = 3


class BusyError(HostUnfitError):
    """Another emulation holds the machine; the message names its pid."""


class RunError(RefabricError):
    """A point could not be finished; finished points are kept."""


class StalledFlowError(RunError):
    """A connection is up but delivers nothing: the kernel's doing, and gone on another try."""


class CommandError(RunError):
    """A program we started failed: argv, exit code and last stderr lines are in the message."""


class DeadlineError(RunError):
    """Something did not happen in time; the message says what was waited for and how long."""


class StoreError(RefabricError):
    """A results folder or file cannot be read or written; the message names it."""
