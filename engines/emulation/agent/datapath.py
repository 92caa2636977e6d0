"""The datapath under an agent during a run: its program in the kernel, its agent, and what both did."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ccp.names import is_agents
from common.privileges import User
from engines.core_setup.agent import raised
from engines.emulation.agent.built_in import BuiltInActivity, Delays, FileChannel, activity
from engines.emulation.agent.maps import Descriptors, MapChannel, Shared
from engines.emulation.agent.process import AgentProcess, Outcome
from engines.emulation.congestion.built_in import BuiltIn
from engines.emulation.congestion.libbpf import Object, timed
from engines.emulation.congestion.registration import Counts, admit, registered_object
from engines.emulation.kernel.netns import HostRef
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
class Account:
    """What datapaths and agent did in a run, for its result."""

    activity: Activity
    outcome: Outcome
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

    def counts(self) -> Counts: ...

    def stop(self) -> Account: ...

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
        self._outcome: Outcome | None = None

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Do nothing: a guest has no other sockets than the run's."""

    def counts(self) -> Counts:
        """Return ACKs and reductions since boot."""
        return self._congestion.counts()

    def stop(self) -> Account:
        """End the agent and return what was done."""
        done = activity()
        self.close()
        assert self._outcome is not None
        return Account(Activity(*done[: len(Activity._fields)]), self._outcome, built_in=done)

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
        self._object: Object = registered_object(DATAPATH)
        self._timing = -1
        try:
            self._timing = timed()
            fd = self._object.map_fd
            shared = Shared(fd(b"control"), spec.agent.report_us)
            shared.beat()
            maps = Descriptors(*map(fd, (b"events", b"commands", b"programs")))
            self.agent = AgentProcess(cc, text, MapChannel(maps, shared), user)
        except BaseException:
            self._unload()
            raise
        self._outcome: Outcome | None = None

    def admit(self, hosts: Iterable[HostRef]) -> None:
        """Take sockets of these hosts that connect from now on. Raises RunError."""
        admit([self._object], hosts)

    def counts(self) -> Counts:
        """Return ACKs and reductions; the datapath sets every window itself, so there are no repairs."""
        return Counts(*self._object.counters(3))

    def stop(self) -> Account:
        """End the agent and return what was done."""
        if self._outcome is None:
            self._outcome = self.agent.stop()
        activity = Activity(*self._object.counters(len(Activity._fields), b"activities"))
        return Account(activity, self._outcome, *self._object.runs(ON_ACK))

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


def with_agent(result: RunResult, account: Account) -> RunResult:
    """Return the result of a run with what its agent did, suspect if it did not control all flows."""
    return dataclasses.replace(
        result.doubted(account.reasons),
        metrics={**result.metrics, **account.metrics},
        provenance={**result.provenance, **account.provenance},
    )
