"""Checks of a spec about SIP calls, which both engines share. Pure."""

from __future__ import annotations

from common.errors import UsageError
from model.fields.limits import check_limits
from model.spec import AgentSpec, NoiseSpec, RunSpec, SchedulerSpec, StackSpec, TransportSpec
from topos.topology import Topology
from workloads import sip
from workloads.matrices import build
from workloads.sip import SipSettings

MIN_S = 5


def is_ims(spec: RunSpec) -> bool:
    return spec.workload.matrix == sip.MATRIX


def checked(spec: RunSpec, topology: Topology) -> SipSettings:
    """Return the settings of the point. Raises UsageError for what an IMS does not have."""
    check_limits(spec)
    settings = sip.settings(spec.workload.params)
    build(spec.workload.matrix, topology, spec.workload.params, 0)
    if spec.seconds < MIN_S or spec.seconds % 1 or spec.warmup_s % 1:
        raise UsageError(
            f"workload {sip.MATRIX}: calls are counted each second: give whole seconds with --warmup and "
            f"--seconds, at least {MIN_S} with --seconds"
        )
    given = [
        *(["--subflows"] if spec.transport.subflows != 1 else []),
        *(["--scheduler"] if spec.scheduler != SchedulerSpec() else []),
        *(["--stack"] if spec.stack != StackSpec() else []),
        *(["--stalls"] if spec.noise != NoiseSpec() else []),
        *(["--write or --sysctl"] if spec.transport != TransportSpec(cc=spec.transport.cc) else []),
        *(["--agent-delay"] if spec.agent != AgentSpec() else []),
        *(["--parts"] if spec.parts > 1 else []),
    ]
    if given:
        raise UsageError(f"{given[0]}: workload {sip.MATRIX} has no TCP flows: leave it out")
    return settings


def most_instances(topology: Topology) -> int:
    """Return how many instances of each function there are hosts for."""
    return (len(topology.hosts) - 2) // 2
