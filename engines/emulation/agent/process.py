"""The agent's process: a child of the run's process, which ends with it."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection

from ccp.agent import Agent
from ccp.loading import load
from common.errors import RefabricError, RunError
from engines.emulation.agent.channel import Channel

BEAT_S = 0.025
"""The datapath considers an agent dead after 200 ms without a heartbeat."""
READY_S, STOP_S = 20.0, 5.0
READY = "ready"
_PR_SET_PDEATHSIG = 1


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


class AgentProcess:
    """A running agent for the algorithm `cc`, whose text is `text` if it is a user's file."""

    def __init__(self, cc: str, text: str, channel: Channel) -> None:
        """Start it and wait until it works. Raises RunError if it does not within READY_S."""
        context = multiprocessing.get_context("fork")
        self._pipe, theirs = context.Pipe()
        parent = os.getpid()
        arguments = (cc, text, channel, theirs, parent)
        self._process = context.Process(target=_run, args=arguments, name="agent", daemon=True)
        self._process.start()
        theirs.close()
        said = self._received() if self._pipe.poll(READY_S) else None
        if said != READY:
            self._end()
            why = said if isinstance(said, str) else f"it did not answer in {READY_S:g} s; run it again"
            raise RunError(f"starting the agent of {cc}: {why}")

    @property
    def pid(self) -> int:
        """The process; tests of faults stop it."""
        assert self._process.pid is not None
        return self._process.pid

    def stop(self) -> Outcome:
        """End the agent and return what it did."""
        outcome: object = None
        try:
            self._pipe.send("stop")
            outcome = self._received() if self._pipe.poll(STOP_S) else None
        except OSError:
            outcome = None
        self._end()
        return outcome if isinstance(outcome, Outcome) else Outcome(alive=False)

    def _received(self) -> object:
        try:
            return self._pipe.recv()
        except (EOFError, OSError):
            return None

    def _end(self) -> None:
        if self._process.is_alive():
            self._process.kill()  # also ends one that is stopped
        self._process.join(STOP_S)
        self._pipe.close()


def _run(cc: str, text: str, channel: Channel, pipe: Connection, parent: int) -> None:
    """The child: handle events until `stop` comes or the parent is gone."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    loaded = load(cc, text)
    try:
        programs = loaded.algorithm.start() or loaded.programs
    except RefabricError as error:
        pipe.send(str(error))
        return
    agent = Agent(loaded.algorithm, programs)
    channel.open(programs, agent.handle)
    channel.beat()
    pipe.send(READY)
    began_cpu_s, began_s = time.process_time(), time.monotonic()
    while not pipe.poll():
        _serve(channel, agent)
        channel.beat()
    loaded.algorithm.stop()
    cpu_s, ran_s = time.process_time() - began_cpu_s, time.monotonic() - began_s
    failed, delays_us = agent.failed_flows, channel.delays_us()
    pipe.send(Outcome(True, agent.reports, failed, agent.traceback, cpu_s, ran_s, delays_us))
    channel.close()


def _serve(channel: Channel, agent: Agent) -> None:
    """Answer events until it is time for a beat."""
    until_s = time.monotonic() + BEAT_S
    while time.monotonic() < until_s:
        channel.wait()
        for command in agent.poll():
            channel.give(command)
