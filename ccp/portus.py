"""Agents of portus, the CCP authors' library, for real hosts: their messages, programs and processes
(docs/ccp.md).

All numbers are little-endian. A message begins with its kind (16 bits), its length with this head (16 bits)
and the flow (32 bits). Source: portus 0.8 and libccp 1.1, the serialization of their messages. The agent
answers when it can, so it controls real hosts only.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import ClassVar

from ccp.algorithm import Algorithm, Flow, Report
from ccp.language import (
    CONTROL,
    CWND,
    LOCAL,
    MAX_INSTRUCTIONS,
    PRIMITIVE,
    RATE,
    REPORT,
    TEMPORARY,
    Instruction,
    Op,
    Operand,
    Program,
)
from ccp.programs import EMPTY, MAX_PROGRAMS, Programs
from common.errors import RunError, UsageError

MAX_BYTES = 32_768
_HEAD = struct.Struct("<HHI")
_CREATE = struct.Struct("<6I64s")
_COUNTED = struct.Struct("<II")
_INSTALL = struct.Struct("<III")
_NUMBER = struct.Struct("<I")
_EVENT = struct.Struct("<4I")
_INSTRUCTION = struct.Struct("<BBIBIBI")
_FIELD = struct.Struct("<BIQ")
IMMEDIATE, IMPLICIT = 1, 2
VOLATILE_REPORT, VOLATILE_CONTROL = 5, 8
_FIRST_IMPLICIT = 32
"""Our register of the event's flag, the first of libccp's implicit ones."""
FIRST: Mapping[int, int] = {
    0: CONTROL, IMPLICIT: _FIRST_IMPLICIT, 3: LOCAL, 4: PRIMITIVE, VOLATILE_REPORT: REPORT, 6: REPORT,
    7: TEMPORARY, VOLATILE_CONTROL: CONTROL,
}  # fmt: skip
"""Our first register of each of libccp's types."""
_ROOM: Mapping[int, int] = {
    0: 16,
    IMPLICIT: 6,
    3: 8,
    4: 15,
    VOLATILE_REPORT: 16,
    6: 16,
    7: 16,
    VOLATILE_CONTROL: 16,
}


class MessageKind(IntEnum):
    CREATE, MEASURE, INSTALL, UPDATE_FIELD, CHANGE_PROGRAM, READY = range(6)


@dataclass(frozen=True)
class Register:
    """A register by libccp's type and number, or with the type IMMEDIATE a number of 32 bits."""

    kind: int
    number: int

    @property
    def ours(self) -> int:
        """Return the number of our register. Raises UsageError if there is none."""
        if self.number >= _ROOM.get(self.kind, 0):
            raise UsageError(
                f"an agent of portus uses register {self.number} of type {self.kind}, which is not here"
            )
        return FIRST[self.kind] + self.number


@dataclass(frozen=True)
class PortusInstruction:
    op: int
    to: Register
    left: Register
    right: Register


@dataclass(frozen=True)
class InstallMessage:
    """A program with the number by which the agent names it. Each event has the places of the instructions
    of its condition, and of those that run if it holds."""

    number: int
    events: tuple[tuple[range, range], ...]
    instructions: tuple[PortusInstruction, ...]


@dataclass(frozen=True)
class UpdateMessage:
    """Values that a flow's registers get; `program` is the number of the program to change to, or None."""

    flow: int
    values: tuple[tuple[Register, int], ...]
    program: int | None = None

    @property
    def cwnd_bytes(self) -> int | None:
        return self._implicit(CWND)

    @property
    def rate_bytes_per_s(self) -> int | None:
        return self._implicit(RATE)

    @property
    def controls(self) -> dict[int, int]:
        """Values of the program's controls by number."""
        return {r.number: value for r, value in self.values if r.kind in {0, VOLATILE_CONTROL}}

    def _implicit(self, ours: int) -> int | None:
        found = [
            value for register, value in self.values if register == Register(IMPLICIT, ours - _FIRST_IMPLICIT)
        ]
        return found[-1] if found else None


def ready(datapath: int) -> bytes:
    """Return the message with which a datapath introduces itself."""
    return _message(MessageKind.READY, 0, _NUMBER.pack(datapath))


def create(flow: int, cwnd_bytes: int, mss: int, source: int, destination: int) -> bytes:
    """Return the message that a flow has begun; addresses are numbers of 32 bits, ports are left out."""
    return _message(MessageKind.CREATE, flow, _CREATE.pack(cwnd_bytes, mss, source, 0, destination, 0, b""))


def measure(flow: int, program: int, fields: Sequence[int]) -> bytes:
    """Return a report; without fields it says that the flow has ended."""
    return _message(
        MessageKind.MEASURE,
        flow,
        _COUNTED.pack(program, len(fields)) + struct.pack(f"<{len(fields)}Q", *fields),
    )


def _message(kind: MessageKind, flow: int, body: bytes) -> bytes:
    return _HEAD.pack(kind, _HEAD.size + len(body), flow) + body


def decoded(data: bytes) -> InstallMessage | UpdateMessage:
    """Return a message of an agent. Raises UsageError for one that is not understood."""
    try:
        kind, length, flow = _HEAD.unpack_from(data)
        if length != len(data):
            raise UsageError(f"an agent of portus sent {len(data)} bytes in a message of {length}")
        if kind == MessageKind.INSTALL:
            return _install(data)
        if kind == MessageKind.UPDATE_FIELD:
            (count,) = _NUMBER.unpack_from(data, _HEAD.size)
            return UpdateMessage(flow, _values(data, _HEAD.size + _NUMBER.size, count))
        if kind == MessageKind.CHANGE_PROGRAM:
            program, count = _COUNTED.unpack_from(data, _HEAD.size)
            return UpdateMessage(flow, _values(data, _HEAD.size + _COUNTED.size, count), program)
    except struct.error as error:
        raise UsageError(
            f"an agent of portus sent a message of {len(data)} bytes that ends early: {error}"
        ) from None
    raise UsageError(f"an agent of portus sent a message of kind {kind}, which no agent sends")


def _install(data: bytes) -> InstallMessage:
    at = _HEAD.size + _INSTALL.size
    number, events, instructions = _INSTALL.unpack_from(data, _HEAD.size)
    after = at + events * _EVENT.size
    if len(data) != after + instructions * _INSTRUCTION.size:
        raise UsageError(
            f"an agent of portus sent a program of another length than {instructions} instructions"
        )
    return InstallMessage(
        number,
        tuple(_event(*_EVENT.unpack_from(data, at + place * _EVENT.size)) for place in range(events)),
        tuple(
            _instruction(*_INSTRUCTION.unpack_from(data, after + place * _INSTRUCTION.size))
            for place in range(instructions)
        ),
    )


def _event(flag: int, flags: int, body: int, bodies: int) -> tuple[range, range]:
    return range(flag, flag + flags), range(body, body + bodies)


def _instruction(op: int, *operands: int) -> PortusInstruction:
    registers = [Register(*operands[place : place + 2]) for place in (0, 2, 4)]
    return PortusInstruction(op, *registers)


def _values(data: bytes, at: int, count: int) -> tuple[tuple[Register, int], ...]:
    found = []
    for place in range(count):
        kind, number, value = _FIELD.unpack_from(data, at + place * _FIELD.size)
        found.append((Register(kind, number), value))
    return tuple(found)


_NOTHING = Operand(0, immediate=True)
_LIBCCPS = frozenset(op for op in Op if op < Op.UNLESS)
_VOLATILE = (VOLATILE_REPORT, VOLATILE_CONTROL)
_INFINITE = (0x3FFFFFFF, 0xFFFFFFFF)
"""Initial values by which libccp and portus mean the largest number of 32 bits (libccp, reset_state)."""


def translated(install: InstallMessage) -> Program:
    """Return the program. Raises UsageError for one that our datapath cannot run.

    libccp runs the instructions of an event's condition, then those of its body if the condition holds, and
    ends after the first event that does not fall through. Our datapath has one instruction for each of the
    two: UNLESS and STOP.
    """
    definitions = [each for each in install.instructions if each.op == Op.DEF]
    initial = [_definition(each) for each in definitions]
    reset = [_definition(each) for each in definitions if each.to.kind in _VOLATILE]
    main: list[Instruction] = []
    for condition, then in install.events:
        body = [*_chosen(install, then), Instruction(Op.STOP, 0, _NOTHING, _NOTHING)]
        skipped = Operand(len(body), immediate=True)
        main += [*_chosen(install, condition), Instruction(Op.UNLESS, 0, _NOTHING, skipped), *body]
    names = _names([each.to for each in definitions])
    program = Program(*names, tuple(initial), tuple(reset), tuple(main))
    if program.length > MAX_INSTRUCTIONS:
        raise UsageError(
            f"an agent of portus installs {program.length} instructions; at most {MAX_INSTRUCTIONS} fit"
        )
    return program


def _definition(instruction: PortusInstruction) -> Instruction:
    """Return the instruction that sets an initial value. Ours takes infinity for 64 bits, libccp for 32."""
    _, value = _operand(instruction.left), _operand(instruction.right)
    if value.immediate and value.value in _INFINITE:
        value = Operand(_INFINITE[-1], immediate=True)
    return Instruction(Op.BIND, instruction.to.ours, value, value)


def _names(defined: list[Register]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names of the report's fields and of the controls: the agent knows them by number."""
    fields = [each.number for each in defined if each.ours < REPORT + 16]
    controls = [each.number for each in defined if each.ours >= REPORT + 16]
    return tuple(f"field{n}" for n in range(_room(fields))), tuple(
        f"control{n}" for n in range(_room(controls))
    )


def _room(numbers: list[int]) -> int:
    return max(numbers, default=-1) + 1


def _chosen(install: InstallMessage, places: range) -> list[Instruction]:
    if places.stop > len(install.instructions):
        raise UsageError(
            "an agent of portus installs an event with instructions that the program does not have"
        )
    return [_translated(install.instructions[place]) for place in places]


def _translated(instruction: PortusInstruction) -> Instruction:
    if instruction.op not in _LIBCCPS:
        raise UsageError(f"an agent of portus uses operation {instruction.op}, which libccp does not have")
    left, right = _operand(instruction.left), _operand(instruction.right)
    return Instruction(Op(instruction.op), instruction.to.ours, left, right)


def _operand(register: Register) -> Operand:
    if register.kind == IMMEDIATE:
        return Operand(register.number, immediate=True)
    return Operand(register.ours)


READY_S, QUIET_S, STOP_S = 15.0, 0.3, 3.0
DATAPATH = 7
"""Our number as a datapath; any number works."""
BITS = 8
NONE = "none"
"""The empty program with which flows begin."""


class PortusAlgorithm(Algorithm):
    """Hands reports to the agent and its answers to the datapath. Subclasses set `command`."""

    command: ClassVar[tuple[str, ...]] = ()
    """The agent's program, by its absolute path, and its arguments."""
    listens: ClassVar[str] = "/tmp/ccp/portus"
    """The unix socket on which the agent listens; portus's default."""
    real_hosts_only: ClassVar[bool] = True

    def __init__(self) -> None:
        self._flows: dict[int, Flow] = {}
        self._installed: dict[int, InstallMessage] = {}
        self.unsent = 0
        """Reports that the agent had no room for."""

    def start(self) -> Programs:
        """Start the agent; return the programs that it installs, after an empty one: a flow runs none before
        the agent says which, as in libccp. Raises RunError without any after READY_S.
        """
        ours = Path(self.listens).with_name("refabric")
        ours.parent.mkdir(parents=True, exist_ok=True)
        ours.unlink(missing_ok=True)
        _lead_back(ours.parent)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(ours))
        self._socket.settimeout(QUIET_S)
        try:
            self._agent = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", "--", *self.command], stdin=subprocess.DEVNULL
            )
        except OSError as error:
            raise RunError(f"starting {' '.join(self.command)}: {error.strerror}") from None
        self._wait_for_agent()
        self._socket.setblocking(False)
        names = tuple(_name(number) for number in self._installed)
        return Programs((NONE, *names), (EMPTY, *map(translated, self._installed.values())))

    def _wait_for_agent(self) -> None:
        """Take what the agent installs, until nothing more has come for QUIET_S."""
        deadline_s = time.monotonic() + READY_S
        while not Path(self.listens).exists():
            self._check()
            if time.monotonic() > deadline_s:
                raise RunError(f"{self.command[0]}: it does not listen on {self.listens}")
            time.sleep(0.05)
        self._socket.sendto(ready(DATAPATH), self.listens)
        while time.monotonic() < deadline_s:
            try:
                message = decoded(self._socket.recv(MAX_BYTES))
            except TimeoutError:
                self._check()
                if self._installed:
                    break
                continue
            if isinstance(message, InstallMessage):
                self._installed[message.number] = message
        if not 1 <= len(self._installed) < MAX_PROGRAMS:
            raise RunError(
                f"{self.command[0]}: it installs {len(self._installed)} programs in {READY_S:g} s; "
                f"the datapath takes 1 to {MAX_PROGRAMS - 1}"
            )

    def stop(self) -> None:
        """End the agent."""
        self._agent.terminate()
        try:
            self._agent.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._agent.kill()
            self._agent.wait()
        self._socket.close()

    def on_create(self, flow: Flow) -> None:
        self._flows[flow.number] = flow
        ends = [int(ipaddress.IPv4Address(end)) for end in (flow.source, flow.destination)]
        self._send(create(flow.number, flow.cwnd_bytes, flow.mss, ends[0], ends[1]))

    def on_report(self, flow: Flow, report: Report) -> None:
        if report.program != NONE:
            self._send(measure(flow.number, int(report.program), list(report.values.values())))

    def on_close(self, flow: Flow) -> None:
        self._flows.pop(flow.number, None)
        self._send(measure(flow.number, 0, ()))

    def poll(self) -> None:
        """Take the agent's answers. Raises RunError if it has ended."""
        self._check()
        while True:
            try:
                message = decoded(self._socket.recv(MAX_BYTES))
            except BlockingIOError:
                return
            if isinstance(message, UpdateMessage) and message.flow in self._flows:
                self._obey(self._flows[message.flow], message)

    def _obey(self, flow: Flow, message: UpdateMessage) -> None:
        window, rate = message.cwnd_bytes or None, message.rate_bytes_per_s or None  # libccp: 0 sets nothing
        rate_bps = None if rate is None else BITS * rate
        controls = {f"control{number}": value for number, value in message.controls.items()}
        if message.program is None:
            flow.set(cwnd_bytes=window, rate_bps=rate_bps, **controls)
        elif message.program in self._installed:
            flow.set_program(_name(message.program), cwnd_bytes=window, rate_bps=rate_bps, **controls)
        else:
            raise RunError(
                f"{Path(self.command[0]).name}: the agent changes to program {message.program}, which it did "
                f"not install; it installed: {', '.join(map(_name, self._installed))}"
            )

    def _send(self, message: bytes) -> None:
        try:
            self._socket.sendto(message, self.listens)
        except BlockingIOError:
            self.unsent += 1

    def _check(self) -> None:
        """Raise RunError if the agent has ended."""
        code = self._agent.poll()
        if code is not None:
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            raise RunError(f"{Path(self.command[0]).name}: the agent ended {how}")


def _lead_back(folder: Path) -> None:
    """Let FOLDER/FOLDER be FOLDER: portus up to 0.6 puts its folder before the address that it answers to."""
    again = folder / str(folder.absolute()).lstrip("/")
    again.parent.mkdir(parents=True, exist_ok=True)
    again.unlink(missing_ok=True)
    again.symlink_to(folder.absolute())


def _name(number: int) -> str:
    """Return our name of the program that the agent knows by this number."""
    return str(number)
