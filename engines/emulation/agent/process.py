"""The agent's process: a child of the run's process, which ends with it.

The child alone executes an algorithm, which may be a user's file. Before that it gives up what it has of
root's: all descriptors but those of its channel, then the ids and capabilities (common/privileges.py). Parent
and child exchange JSON over a pair of sockets that keep the bounds of messages, so the parent reads a whole
message or none.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeVar

from ccp.agent import MAX_TRACEBACK, Agent
from ccp.loading import load
from common.errors import RefabricError, RunError, UsageError
from common.printable import one_line, printable
from common.privileges import User
from common.records import record
from engines.emulation.agent.channel import Channel

BEAT_S = 0.025
"""The datapath considers an agent dead after 200 ms without a heartbeat."""
READY_S, STOP_S = 20.0, 5.0
MAX_MESSAGE = 1 << 16
_PR_SET_PDEATHSIG = 1
_STANDARD = 3
"""Descriptors of input, output and errors."""

Message = TypeVar("Message")


@dataclass(frozen=True)
class Ready:
    """The child's first message: it works, or why it does not. `misused`: the algorithm's file is wrong."""

    error: str = ""
    misused: bool = False


@dataclass(frozen=True)
class Outcome:
    """What an agent did in `ran_s` seconds until it was stopped. `alive`: it answered then.

    `delays_us` are the times from reports to their commands: median, 95th and 99th percentile.
    """

    alive: bool
    reports: int = 0
    failed_flows: int = 0
    traceback: str = ""
    cpu_s: float = 0.0
    ran_s: float = 0.0
    delays_us: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def __post_init__(self) -> None:
        if len(self.delays_us) != 3:
            raise ValueError("delays_us is not three numbers")


class AgentProcess:
    """A running agent for the algorithm `cc`, whose text is `text` if it is a user's file."""

    def __init__(self, cc: str, text: str, channel: Channel, user: User | None = None) -> None:
        """Start it as `user` (None: as this process) and wait until it works.

        Raises UsageError for an algorithm that cannot be loaded, RunError if it does not work in READY_S.
        """
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        parent = os.getpid()
        _flush()
        self._pid = os.fork()
        if self._pid == 0:
            _run(cc, text, channel, theirs, parent, user)
        theirs.close()
        said = self._received(Ready, READY_S)
        if said == Ready():
            return
        self._end()
        if said and said.misused:
            raise UsageError(one_line(said.error))
        why = one_line(said.error) if said else f"it ended, or did not answer in {READY_S:g} s"
        raise RunError(f"starting the agent of {cc}: {why}")

    @property
    def pid(self) -> int:
        """The process; tests of faults stop it."""
        return self._pid

    def stop(self) -> Outcome:
        """End the agent and return what it did."""
        with contextlib.suppress(OSError):  # it has ended
            self._socket.send(b"stop")
        outcome = self._received(Outcome, STOP_S)
        self._end()
        if outcome is None:
            return Outcome(alive=False)
        return dataclasses.replace(outcome, traceback=printable(outcome.traceback[-MAX_TRACEBACK:]))

    def _received(self, kind: type[Message], seconds: float) -> Message | None:
        """Return the child's next message; None if it ended, sent nothing for so long, or something else."""
        self._socket.settimeout(seconds)
        try:
            return record(kind, json.loads(self._socket.recv(MAX_MESSAGE)))
        except (OSError, ValueError, RecursionError):
            return None

    def _end(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)  # also ends one that is stopped
            os.waitpid(self._pid, 0)
            self._pid = 0
        self._socket.close()


def _run(
    cc: str, text: str, channel: Channel, parents: socket.socket, parent: int, user: User | None
) -> NoReturn:
    """The child: become the user, then serve until `stop` comes or the parent is gone."""
    status = 1
    try:
        _give_up(user, {parents.fileno(), *channel.descriptors}, parent)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        status = _serve(cc, text, channel, parents)
    except BaseException:
        traceback.print_exc()
    finally:
        _flush()
        os._exit(status)


def _give_up(user: User | None, kept: Iterable[int], parent: int) -> None:
    """Close all descriptors but `kept` and the standard ones, and become the user."""
    gc.freeze()  # The parent's objects must not be collected here: they would close numbers used anew.
    last = _STANDARD - 1
    for fd in sorted(kept):
        os.closerange(last + 1, fd)
        last = fd
    os.closerange(last + 1, 1 + max(int(entry.name) for entry in Path("/proc/self/fd").iterdir()))
    if user:
        user.become()
        os.environ.update(user.environment(os.environ))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a change of the user clears it
    if os.getppid() != parent:
        os._exit(1)


def _serve(cc: str, text: str, channel: Channel, parents: socket.socket) -> int:
    """Load the algorithm and answer events; return the exit status."""
    try:
        loaded = load(cc, text)
        programs = loaded.algorithm.start() or loaded.programs
        agent = Agent(loaded.algorithm, programs)
        channel.open(programs, agent.handle)
        channel.beat()
    except (RefabricError, OSError) as error:
        _send(parents, Ready(str(error)[:MAX_TRACEBACK] or repr(error), isinstance(error, UsageError)))
        return 1
    _send(parents, Ready())
    parents.setblocking(False)
    began_cpu_s, began_s = time.process_time(), time.monotonic()
    while not _is_over(parents):
        _answer(channel, agent)
        channel.beat()
    loaded.algorithm.stop()
    cpu_s, ran_s = time.process_time() - began_cpu_s, time.monotonic() - began_s
    failed, delays_us = agent.failed_flows, channel.delays_us()
    _flush()
    _send(parents, Outcome(True, agent.reports, failed, agent.traceback, cpu_s, ran_s, delays_us))
    channel.close()
    return 0


def _answer(channel: Channel, agent: Agent) -> None:
    """Answer events until it is time for a beat."""
    until_s = time.monotonic() + BEAT_S
    while time.monotonic() < until_s:
        channel.wait()
        for command in agent.poll():
            channel.give(command)


def _is_over(parents: socket.socket) -> bool:
    try:
        parents.recv(1)
    except BlockingIOError:
        return False
    return True


def _send(parents: socket.socket, message: Ready | Outcome) -> None:
    parents.send(json.dumps(dataclasses.asdict(message)).encode())


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
