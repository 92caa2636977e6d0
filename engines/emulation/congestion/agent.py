"""The datapath under an agent during a run: its program in the kernel, its agent, and what both did.

The agent's process is a child of the run's process, which ends with it. The child alone executes an
algorithm, which may be a user's file. Before that it gives up what it has of root's: all descriptors but
those of its channel, then the ids and capabilities (common/privileges.py). Parent and child exchange JSON
over a pair of sockets that keep the bounds of messages, so the parent reads a whole message or none.

The child's way to the datapath is a Channel. MapChannel uses the datapath's BPF maps (layouts:
bpf/ccp.bpf.c). FileChannel uses the datapath that is built into the guests' kernel, through files in
/proc/refabric/ccp (engines/linux/kernel/congestion/ccp_agent.c). An agent's work takes no virtual time there:
the kernel carries out a command at the time of its event plus the delay that the run asks for, as the
simulator does.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import gc
import ipaddress
import json
import mmap
import os
import random
import select
import signal
import socket
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from ctypes import c_int, c_size_t, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, TypeVar

import msgspec

from ccp.agent import MAX_TRACEBACK, Agent, Event, FlowClosed, FlowCreated, FlowReport
from ccp.algorithm import Command
from ccp.loading import load
from ccp.names import is_agents
from ccp.programs import Programs
from common.errors import HostUnfitError, RefabricError, RunError, UsageError
from common.privileges import User
from common.text import one_line, printable
from engines.core_setup import raised
from engines.emulation.congestion.libbpf import BpfObject, library, timed
from engines.emulation.congestion.registration import FOLDER as PROC
from engines.emulation.congestion.registration import (
    BuiltIn,
    CongestionCounts,
    Registered,
    admit,
    registered,
    registered_object,
)
from engines.emulation.kernel.namespaces import HostRef
from engines.kernel_hosts import MINTCP
from model.congestion import CONGESTION_CONTROLS, DATAPATH
from model.reasons import AGENT, Reason
from model.result import RunResult
from model.spec import VIRTUAL, AgentSpec, RunSpec, sub_seed

MAX_FALLBACK_SHARE = 0.01
"""Share of a run's acknowledgements without an answer: the mean changes by no more than that."""
MAX_LATE_NS = 20_000
"""How late a command may be in virtual time. Each reading of the clock takes 256 ns, and events of a batch
are read one after another."""


ON_ACK = "every_ack"
"""The datapath's program that runs on each acknowledgement."""


class Activity(NamedTuple):
    """What datapaths did since they were loaded, in the order of `struct activity`. The last two are of a
    datapath in virtual time alone, in the order of its file."""

    folded: int = 0
    reports: int = 0
    unreported: int = 0
    commands: int = 0
    errors: int = 0
    fallbacks: int = 0
    late_commands: int = 0
    most_late_ns: int = 0


OF_BPF = Activity._fields.index("late_commands")
"""How many of them a datapath in BPF counts."""


@dataclass(frozen=True)
class AgentAccount:
    """What datapaths and agent did in a run, for its result."""

    activity: Activity
    outcome: AgentOutcome
    timed_acks: int = 0
    timed_ns: int = 0
    """Time in the datapath's program for acknowledgements, by the kernel's statistics."""
    built_in: bool = False
    """Whether the datapath was in virtual time; CPU time and delays are meaningless there."""

    @property
    def metrics(self) -> Mapping[str, float]:
        if self.built_in:
            return {**self._done, "agent_most_late_us": self.activity.most_late_ns / 1000}
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
        if self.activity.most_late_ns > MAX_LATE_NS:
            late_us = self.activity.most_late_ns / 1000
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


def installed(
    spec: RunSpec, ccs: Iterable[str], user: User | None, stack: ExitStack
) -> tuple[Registered | BuiltIn | Agents, Agents | None]:
    """Give the kernel refabric's congestion controls among `ccs` until `stack` ends; with their agent, if
    the spec's flows are under one.

    Raises HostUnfitError if the kernel refuses or lacks one, and as `started`.
    """
    if needed(spec):
        agent = started(spec, user)
        stack.callback(agent.close)
        return agent, agent
    ours = {cc for cc in ccs if cc in CONGESTION_CONTROLS and CONGESTION_CONTROLS[cc].bpf}
    settings = {MINTCP: spec.stack.max_window} if MINTCP in ours else {}
    if spec.clock == VIRTUAL:
        return BuiltIn(ours, settings), None
    return stack.enter_context(registered(ours, settings)), None


class BuiltInDatapath:
    """The datapath of the guests' kernel, and its agent, whose delay is virtual and exact."""

    def __init__(self, spec: RunSpec, user: User | None = None) -> None:
        """Raise HostUnfitError if this kernel has none, otherwise as AgentProcess does."""
        self._congestion = BuiltIn([DATAPATH])
        channel = FileChannel(spec.agent, sub_seed(spec.seed, "agent"))
        self._agent = AgentProcess(spec.transport.cc, spec.transport.algorithm_text, channel, user)
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
        return AgentAccount(done, self._outcome, built_in=True)

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
            channel = MapChannel(self._object, spec.agent.report_us)
            channel.beat()
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
        activity = Activity(*self._object.counters(OF_BPF, b"activities"))
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
        algorithm, programs = load(cc, text)
        programs = algorithm.start() or programs
        agent = Agent(algorithm, programs)
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
    algorithm.stop()
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


FIELDS = 16
"""Values in a report; as many controls."""
NS_PER_US = 1000
BITS = 8
EVENT = struct.Struct(f"<4I4s4s2Q{FIELDS}Q")
"""struct ccp_event (engines/emulation/congestion/bpf/ccp_flow.h)."""
_CREATED, _MEASURED = 0, 1
_BEAT = struct.Struct("<2Q")
Answer = Callable[[Event], Iterable[Command]]


class Channel(Protocol):
    """The way from the datapath to its agent and back. Used in the agent's process alone."""

    @property
    def descriptors(self) -> Iterable[int]:
        """What the agent's process needs of the run's open files."""

    def open(self, programs: Programs, answer: Answer) -> None:
        """Give the datapath its programs; from now on, events are kept until `wait` reads them."""

    def wait(self) -> None:
        """Pass pending events to `answer`, and its commands to the datapath. Returns after a few ms at the
        latest if there are none. Raises what `answer` raises."""

    def beat(self) -> None:
        """Send the datapath a heartbeat."""

    def give(self, command: Command) -> None:
        """Pass on a command that answers no event."""

    def delays_us(self) -> tuple[float, float, float]:
        """Return the times from events to their commands: median, 95th and 99th percentile."""

    def close(self) -> None: ...


def decoded(data: bytes) -> tuple[Event, int]:
    """Decode the bytes of an EVENT: return the event and its time in ns."""
    kind, flow, mss, program, source, destination, at_ns, window, *fields = EVENT.unpack(data)
    at_us = at_ns // NS_PER_US
    if kind == _CREATED:
        ends = (str(ipaddress.IPv4Address(end)) for end in (source, destination))
        return FlowCreated(flow, at_us, mss, window, *ends), at_ns
    return (
        FlowReport(flow, at_us, fields, program, window) if kind == _MEASURED else FlowClosed(flow)
    ), at_ns


def beat_of(report_us: int) -> bytes:
    """Return a heartbeat of this instant, with the time between reports (0: one round trip)."""
    return _BEAT.pack(time.monotonic_ns(), report_us)


POLL_MS = 1
"""Longest wait of a report that is not urgent; waking a process adds 30 to 40 us to the ACK."""
KEPT_DELAYS = 100_000
_COMMAND = struct.Struct(f"<2Q2I4I{FIELDS}I{FIELDS}Q")
"""struct command."""
_SAMPLE = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t)


def update(fd: int, key: int, value: bytes) -> None:
    """Set an element of a map. Raises LibbpfError."""
    element = c_uint32(key)
    library().number(
        "writing a map of the datapath", "bpf_map_update_elem", fd, ctypes.byref(element), value, 0
    )


@dataclass
class FlowCommands:
    """What was ever set for a flow, and how often each part was."""

    command: Command
    window: int = 0
    rate: int = 0
    program: int = 0
    any_control: int = 0
    controls: list[int] = field(default_factory=lambda: [0] * FIELDS)

    def add(self, command: Command) -> None:
        self.window += command.cwnd_bytes is not None
        self.rate += command.rate_bps is not None
        self.any_control += bool(command.controls)
        if command.program is not None:
            self.program += 1
            self.controls = [0] * FIELDS
        for number, _ in command.controls:
            self.controls[number] += 1
        self.command.update(command)

    def packed(self) -> bytes:
        of, controls = self.command, dict(self.command.controls)
        return _COMMAND.pack(
            *(of.cwnd_bytes or 0, (of.rate_bps or 0) // BITS, of.program or 0, of.fall_back),
            *(self.window, self.rate, self.program, self.any_control, *self.controls),
            *(controls.get(number, 0) for number in range(FIELDS)),
        )


class MapChannel:
    """A Channel to a datapath in BPF: a ring buffer of events, a map of commands, a table of programs.

    The map holds all that was ever set for a flow, so that none is lost between ACKs. The datapath carries
    out a command at the flow's next ACK or attempt to send. `struct control` is in memory that this process
    shares with the datapath and with its children.
    """

    def __init__(self, datapath: BpfObject, report_us: int) -> None:
        """Map `control`; set the time between reports (0: one round trip). Raises OSError."""
        fd = datapath.map_fd
        self.descriptors = fd(b"events"), fd(b"commands"), fd(b"programs")
        # Each assignment to one of these numbers is one store, so that the datapath reads none in part.
        self._numbers = (c_uint64 * 3).from_buffer(mmap.mmap(fd(b"control"), mmap.PAGESIZE))
        self._numbers[1] = report_us
        self._sent: dict[int, FlowCommands] = {}
        self._delays_ns: list[int] = []
        self._error: BaseException | None = None

    def open(self, programs: Programs, answer: Answer) -> None:
        """See Channel. Raises LibbpfError."""
        events, self._commands_fd, table = self.descriptors
        for number, program in enumerate(programs.programs):
            update(table, number, program.packed())
        self._answer = answer
        self._called = _SAMPLE(self._hear)  # libbpf calls it as long as this object lives
        self._ring = library().pointer(
            "opening the datapath's events", "ring_buffer__new", events, self._called, None, None
        )

    def wait(self) -> None:
        """See Channel."""
        library().call("ring_buffer__poll", self._ring, POLL_MS)
        library().call("ring_buffer__consume", self._ring)
        if self._error is not None:
            raise self._error

    def beat(self) -> None:
        """See Channel; the datapath also looks for commands."""
        self._numbers[0] = time.monotonic_ns()
        self._numbers[2] += 1

    def give(self, command: Command) -> None:
        """See Channel."""
        commands = self._sent.setdefault(command.flow, FlowCommands(Command(command.flow)))
        commands.add(command)
        update(self._commands_fd, command.flow, commands.packed())
        self._numbers[2] += 1  # the datapath looks for commands

    def delays_us(self) -> tuple[float, float, float]:
        """See Channel."""
        ordered = sorted(self._delays_ns)
        at = [ordered[int(len(ordered) * share)] / 1000 if ordered else 0.0 for share in (0.5, 0.95, 0.99)]
        return at[0], at[1], at[2]

    def close(self) -> None:
        """See Channel."""
        library().call("ring_buffer__free", self._ring)

    def _hear(self, _context: int, data: int, size: int) -> int:
        try:
            event, at_ns = decoded(ctypes.string_at(data, min(size, EVENT.size)))
            for command in self._answer(event):
                self.give(command)
            if isinstance(event, FlowClosed):
                self._sent.pop(event.flow, None)
            elif len(self._delays_ns) < KEPT_DELAYS:
                self._delays_ns.append(time.monotonic_ns() - at_ns)
        except BaseException as error:  # ctypes would print and forget it
            self._error = error
            return -1
        return 0


FOLDER = PROC / "ccp"
WAIT_MS = 25
"""Well below the 200 ms without a heartbeat after which the datapath considers the agent dead."""
SETS_WINDOW, SETS_RATE, FALLS_BACK, SETS_PROGRAM = 1, 2, 4, 8
MAX_EVENTS = 256
_FILE_COMMAND = struct.Struct(f"<Q2I2Q2I{FIELDS}Q")
"""struct refabric_command (engines/linux/kernel/congestion/ccp.h)."""


def activity() -> Activity:
    """Return what this kernel's datapath did since boot. Raises HostUnfitError if it has none."""
    try:
        text = (FOLDER / "activity").read_text()
    except OSError as error:
        raise HostUnfitError(
            f"reading the agent's datapath in {FOLDER}: {error.strerror}; run: refabric kernel build"
        ) from error
    return Activity(*map(int, text.split()))


class FileChannel:
    """A Channel to the datapath of this kernel. Commands take effect `delay_us` of the agent after their
    event and up to `jitter_us` more, in order."""

    def __init__(self, agent: AgentSpec, seed: int) -> None:
        self._delay_ns, self._jitter_ns = (
            round(agent.delay_us * NS_PER_US),
            round(agent.jitter_us * NS_PER_US),
        )
        self._random = random.Random(seed)
        self._latest_ns = 0
        self._report_us = agent.report_us
        self._fd = -1

    @property
    def descriptors(self) -> tuple[int, ...]:
        """See Channel; it opens its files itself."""
        return ()

    def open(self, programs: Programs, answer: Answer) -> None:
        """See Channel. Raises OSError, with EBUSY if there is another agent."""
        self._answer = answer
        _write(FOLDER / "programs", programs.packed())
        self._fd = os.open(FOLDER / "agent", os.O_RDWR)
        self._poller = select.poll()
        self._poller.register(self._fd, select.POLLIN)

    def wait(self) -> None:
        """See Channel."""
        if not self._poller.poll(WAIT_MS):
            return
        data = os.read(self._fd, MAX_EVENTS * EVENT.size)
        events = (data[start : start + EVENT.size] for start in range(0, len(data), EVENT.size))
        packed = [
            self._packed(command, due_ns)
            for event, at_ns in map(decoded, events)
            for due_ns in [self._due_ns(at_ns)]
            for command in self._answer(event)
        ]
        if packed:
            os.write(self._fd, b"".join(packed))

    def beat(self) -> None:
        """See Channel."""
        _write(FOLDER / "control", beat_of(self._report_us))

    def give(self, command: Command) -> None:
        """See Channel; the command takes effect as if it answered an event of this instant."""
        os.write(self._fd, self._packed(command, self._due_ns(time.monotonic_ns())))

    def delays_us(self) -> tuple[float, float, float]:
        """See Channel; the datapath measures them itself (Activity)."""
        return 0.0, 0.0, 0.0

    def close(self) -> None:
        """See Channel."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _due_ns(self, at_ns: int) -> int:
        """Return the time of the commands that answer an event; called once for each event, in order."""
        jitter_ns = self._random.randrange(self._jitter_ns) if self._jitter_ns else 0
        self._latest_ns = max(self._latest_ns, at_ns + self._delay_ns + jitter_ns)
        return self._latest_ns

    def _packed(self, command: Command, due_ns: int) -> bytes:
        parts = (
            SETS_WINDOW * (command.cwnd_bytes is not None)
            | SETS_RATE * (command.rate_bps is not None)
            | FALLS_BACK * command.fall_back
            | SETS_PROGRAM * (command.program is not None)
        )
        controls = dict(command.controls)
        bits = sum(1 << number for number in controls)
        values = [controls.get(number, 0) for number in range(FIELDS)]
        window, rate = command.cwnd_bytes or 0, (command.rate_bps or 0) // BITS
        return _FILE_COMMAND.pack(
            due_ns, command.flow, parts, window, rate, command.program or 0, bits, *values
        )


def _write(path: Path, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
