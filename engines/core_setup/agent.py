"""The agent of a simulated point: hands the core's events to an algorithm, and its commands back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ccp.agent import Agent, FlowClosed, FlowCreated
from ccp.algorithm import Command
from ccp.names import is_agents
from common.errors import UsageError
from engines.core_setup.stack import in_core_units
from fabric._core import Agent as CoreAgent
from fabric._core import AgentCommand, Simulation
from fabric.readings import AgentEventTuple
from model.flows import AddressPair, PlannedFlow, subflow_pairs
from model.reasons import AGENT, Reason
from model.spec import RunSpec, sub_seed
from topos.topology import Topology

if TYPE_CHECKING:
    from ccp.loading import Loaded

CREATED, MEASURED, CLOSED = 0, 1, 2
"""Kinds of events of the core."""
BITS = 8


def check_agent(spec: RunSpec) -> None:
    """Raise UsageError for an algorithm that hosts in virtual time cannot use."""
    cc = spec.transport.cc
    if is_agents(cc) and loaded(spec).algorithm.real_hosts_only:
        raise UsageError(
            f"--cc {cc}: its agent answers in real time, which the engine {spec.engine} does not have: "
            "choose --engine mininet"
        )


def loaded(spec: RunSpec) -> Loaded:
    """Return the algorithm of a point whose congestion control is an agent's. Raises UsageError."""
    from ccp.loading import load  # noqa: PLC0415 -- with its compilers, which few points need

    return load(spec.transport.cc, spec.transport.algorithm_text)


class SimulatedAgent:
    """The agent of a point's flows; it does nothing if the point has no flow under one."""

    def __init__(self, spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> None:
        """Load the algorithm. Raises UsageError for one that cannot be loaded."""
        self._spec = spec
        self._pairs: list[AddressPair] = []
        self._agent: Agent | None = None
        if not any(is_agents(flow.cc) for flow in flows):
            return
        chosen = loaded(spec)
        self._programs = chosen.programs
        self._agent = Agent(chosen.algorithm, chosen.programs)
        self._pairs = [pair for flow in flows if not flow.rate_mbps for pair in subflow_pairs(topology, flow)]

    @property
    def config(self) -> CoreAgent | None:
        """What the core needs; None without an agent."""
        if self._agent is None:
            return None
        return CoreAgent(
            programs=[program.packed() for program in self._programs.programs],
            **in_core_units(self._spec.agent),
            seed=sub_seed(self._spec.seed, "agent"),
            answer=self._answer,
        )

    def metrics(self, simulation: Simulation) -> Mapping[str, float]:
        """Return what datapaths and agent did in the whole run; empty without an agent."""
        if self._agent is None:
            return {}
        counted = simulation.agent()
        return {
            "agent_reports": counted["reports"],
            "agent_commands": counted["commands"],
            "agent_errors": counted["errors"],
            "agent_fallback_acks": counted["fallbacks"],
            "agent_acks": counted["acknowledgements"],
            "agent_failed_flows": self._agent.failed_flows,
        }

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Return why the agent did not control all flows."""
        if self._agent is None or not self._agent.failed_flows:
            return ()
        return (raised(self._agent.failed_flows, self._agent.traceback),)

    @property
    def provenance(self) -> Mapping[str, str]:
        """The traceback of the algorithm's first error."""
        if self._agent is None or not self._agent.traceback:
            return {}
        return {"agent_traceback": self._agent.traceback}

    def _answer(self, events: list[AgentEventTuple]) -> list[AgentCommand]:
        assert self._agent is not None
        measured, packed = self._agent.measured, []
        for position, event in enumerate(events):
            if event[0] == MEASURED:
                _, subflow, t_us, program, fields = event
                commands = measured(subflow, t_us, fields, program)
            else:
                commands = self._begun_or_ended(self._agent, event)
            for command in commands:
                packed.append(_packed(position, command))
        return packed

    def _begun_or_ended(self, agent: Agent, event: AgentEventTuple) -> list[Command]:
        kind, subflow, t_us, _, fields = event
        if kind == CLOSED:
            return agent.handle(FlowClosed(subflow))
        window, mss = fields
        ends = self._pairs[subflow]
        return agent.handle(FlowCreated(subflow, t_us, mss, window, ends.laddr, ends.raddr))


def _packed(position: int, command: Command) -> AgentCommand:
    rate = command.rate_bps
    return AgentCommand(
        event=position,
        subflow=command.flow,
        window_bytes=command.cwnd_bytes,
        rate_bytes_per_s=None if rate is None else rate // BITS,
        program=command.program,
        controls=command.controls,
        fall_back=command.fall_back,
    )


def raised(flows: int, traceback: str) -> Reason:
    """Return the reason for an algorithm that raised."""
    last = traceback.strip().splitlines()[-1] if traceback else ""
    text = f"agent: the algorithm raised on {flows} flows, which fell back to Reno: {last}"
    return Reason(AGENT, text, numbers=(("flows", float(flows)),))
