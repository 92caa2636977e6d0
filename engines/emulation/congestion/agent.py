"""The datapath under an agent during a run: its program in the kernel, its agent, and what both did.

The agent's process is a child of the run's process, which ends with it. The child alone executes an
algorithm, which may be a user's file. Before that it gives up what it has of root's: all descriptors but
those of its channel, then the ids and capabilities (common/privileges.py). Parent and child exchange JSON
over a pair of sockets that keep the bounds of messages, so the parent reads a whole message or none.
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
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, TypeVar

import msgspec

from ccp.agent import MAX_TRACEBACK, Agent
from ccp.loading import load
from ccp.names import is_agents
from common.errors import RefabricError, RunError, UsageError
from common.privileges import User
from common.text import one_line, printable
from engines.core_setup import raised
from engines.emulation.congestion.channels import (
    BuiltInActivity,
    Channel,
    ControlPage,
    Delays,
    FileChannel,
    MapChannel,
    activity,
)
from engines.emulation.congestion.libbpf import BpfObject, timed
from engines.emulation.congestion.registration import BuiltIn, CongestionCounts, admit, registered_object
from engines.emulation.kernel.namespaces import HostRef
from model.congestion import DATAPATH
from model.reasons import AGENT, Reason
from model.result import RunResult
from model.spec import VIRTUAL, RunSpec, sub_seed

MAX_FALLBACK_SHARE = 0.01
"""Share of a run's acknowledgements without an answer: the mean changes by no more than that."""
MAX_LATE_NS = 20_000
"""How late a command may be in virtual time. Each reading of the clock takes 256 ns, and events of a batch
are read one after another."""


ON_ACK = "every_ack"
"""The datapath's program that runs on each acknowledgement."""


class Activity(NamedTuple):
    """What datapaths did since they were loaded, in the order of `struct activity`."""

    folded: int = 0
    reports: int = 0
    unreported: int = 0
    commands: int = 0
    errors: int = 0
    fallbacks: int = 0


@dataclass(frozen=True)
class AgentAccount:
    """What datapaths and agent did in a run, for its result."""

    activity: Activity
    outcome: AgentOutcome
    timed_acks: int = 0
    timed_ns: int = 0
    """Time in the datapath's program for acknowledgements, by the kernel's statistics."""
    built_in: BuiltInActivity | None = None
    """What a datapath in virtual time did; CPU time and delays are meaningless there."""

    @property
    def metrics(self) -> Mapping[str, float]:
        if self.built_in:
            return {**self._done, "agent_most_late_us": self.built_in.most_late_ns / 1000}
        median_us, p95_us, p99_us = self.outcome.delays_us
        return {
            **self._done,
            "agent_cpu_s": self.outcome.cpu_s,
            "agent_cpu_pct": 100 * self.outcome.cpu_s / self.outcome.ran_s if self.outcome.ran_s else 0.0,
            "datapath_ns_per_ack": self.timed_ns / self.timed_acks if self.timed_acks else 0.0,
            "agent_delay_median_us": median_us,
            "agent_delay_p95_us": p95_us,
            "agent_delay_p99_us": p99_us,
        }

    @property
    def _done(self) -> dict[str, float]:
        return {
            "agent_acks": self.activity.folded,
            "agent_reports": self.activity.reports,
            "agent_unreported": self.activity.unreported,
            "agent_commands": self.activity.commands,
            "agent_errors": self.activity.errors,
            "agent_fallback_acks": self.activity.fallbacks,
            "agent_failed_flows": self.outcome.failed_flows,
        }

    @property
    def provenance(self) -> Mapping[str, str]:
        return {"agent_traceback": self.outcome.traceback} if self.outcome.traceback else {}

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return why the agent did not control all flows all the time."""
        found: list[Reason] = []
        failed, folded = self.outcome.failed_flows, self.activity.folded
        if failed:
            found.append(raised(failed, self.outcome.traceback))
        if not self.outcome.alive:
            found.append(Reason(AGENT, "agent: its process had ended or did not answer at the end"))
        share = self.activity.fallbacks / folded if folded else 0.0
        if share > MAX_FALLBACK_SHARE:
            text = f"agent: without an agent for {100 * share:.1f} % of all ACKs, which Reno answered"
            found.append(Reason(AGENT, text, numbers=(("fallback_acks", float(self.activity.fallbacks)),)))
        if self.built_in and self.built_in.most_late_ns > MAX_LATE_NS:
            late_us = self.built_in.most_late_ns / 1000
            text = f"agent: a command took effect {late_us:.0f} us after its time"
            found.append(Reason(AGENT, text, numbers=(("most_late_us", late_us),)))
        return tuple(found)


class Agents(Protocol):
    """The datapath of a run with its agent, whichever kernel it is in."""

    def admit(self, hosts: Iterable[HostRef]) -> None: ...

    def counts(self) -> CongestionCounts: ...

    def stop(self) -> AgentAccount: ...

    def close(self) -> None: ...


def started(spec: RunSpec, user: User | None = None) -> Agents:
    """Start the agent of a point as `user` (None: as this process), who alone executes the algorithm.

    Raises HostUnfitError, UsageError and RunError as AgentDatapath does.
    """
    return BuiltInDatapath(spec, user) if spec.clock == VIRTUAL else AgentDatapath(spec, user)


class BuiltInDatapath:
    """The datapath of the guests' kernel, and its agent, whose delay is virtual and exact."""

    def __init__(self, spec: RunSpec, user: User | None = None) -> None:
        """Raise HostUnfitError if this kernel has none, otherwise as AgentProcess does."""
        cc, of = spec.transport.cc, spec.agent
        self._congestion = BuiltIn([DATAPATH])
        delays = Delays(of.delay_us, of.jitter_us, sub_seed(spec.seed, "agent"))
        channel = FileChannel(delays, of.report_us)
        self._agent = AgentProcess(cc, spec.transport.algorithm_text, channel, user)
        self._outcome: AgentOutcome | None = None

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Do nothing: a guest has no other sockets than the run's."""

    def counts(self) -> CongestionCounts:
        """Return ACKs and reductions since boot."""
        return self._congestion.counts()

    def stop(self) -> AgentAccount:
        """End the agent and return what was done."""
        done = activity()
        self.close()
        assert self._outcome is not None
        return AgentAccount(Activity(*done[: len(Activity._fields)]), self._outcome, built_in=done)

    def close(self) -> None:
        """End the agent."""
        if self._outcome is None:
            self._outcome = self._agent.stop()


class AgentDatapath:
    """The datapath registered with TCP, and its agent. It takes sockets of admitted hosts only.

    Closing it, or the end of the process, ends both.
    """

    def __init__(self, spec: RunSpec, user: User | None = None) -> None:
        """Raise HostUnfitError if the kernel refuses, otherwise as AgentProcess does."""
        cc, text = spec.transport.cc, spec.transport.algorithm_text
        self._object: BpfObject = registered_object(DATAPATH)
        self._timing = -1
        try:
            self._timing = timed()
            fd = self._object.map_fd
            control = ControlPage(fd(b"control"), spec.agent.report_us)
            control.beat()
            channel = MapChannel(fd(b"events"), fd(b"commands"), fd(b"programs"), control)
            self.agent = AgentProcess(cc, text, channel, user)
        except BaseException:
            self._unload()
            raise
        self._outcome: AgentOutcome | None = None

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Take sockets of these hosts that connect from now on. Raises RunError."""
        admit([self._object], hosts)

    def counts(self) -> CongestionCounts:
        """Return ACKs and reductions; the datapath sets every window itself, so there are no repairs."""
        return CongestionCounts(*self._object.counters(3))

    def stop(self) -> AgentAccount:
        """End the agent and return what was done."""
        if self._outcome is None:
            self._outcome = self.agent.stop()
        activity = Activity(*self._object.counters(len(Activity._fields), b"activities"))
        return AgentAccount(activity, self._outcome, *self._object.runs(ON_ACK))

    def close(self) -> None:
        """End the agent and unregister the datapath."""
        if self._outcome is None:
            self._outcome = self.agent.stop()
        self._unload()

    def _unload(self) -> None:
        if self._timing >= 0:
            os.close(self._timing)
            self._timing = -1
        self._object.close()


def needed(spec: RunSpec) -> bool:
    """Return whether flows of this point are under an agent."""
    return is_agents(spec.transport.cc)


def with_agent(result: RunResult, account: AgentAccount) -> RunResult:
    """Return the result of a run with what its agent did, suspect if it did not control all flows."""
    return dataclasses.replace(
        result.doubted(account.reasons),
        metrics={**result.metrics, **account.metrics},
        provenance={**result.provenance, **account.provenance},
    )


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
class AgentOutcome:
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

    def stop(self) -> AgentOutcome:
        """End the agent and return what it did."""
        with contextlib.suppress(OSError):  # it has ended
            self._socket.send(b"stop")
        outcome = self._received(AgentOutcome, STOP_S)
        self._end()
        if outcome is None:
            return AgentOutcome(alive=False)
        return dataclasses.replace(outcome, traceback=printable(outcome.traceback[-MAX_TRACEBACK:]))

    def _received(self, kind: type[Message], seconds: float) -> Message | None:
        """Return the child's next message; None if it ended, sent nothing for so long, or something else."""
        self._socket.settimeout(seconds)
        try:
            return msgspec.json.decode(self._socket.recv(MAX_MESSAGE), type=kind)
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
    _send(parents, AgentOutcome(True, agent.reports, failed, agent.traceback, cpu_s, ran_s, delays_us))
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


def _send(parents: socket.socket, message: Ready | AgentOutcome) -> None:
    parents.send(json.dumps(dataclasses.asdict(message)).encode())


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
