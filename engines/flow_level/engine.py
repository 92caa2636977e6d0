"""Flow-level engines: run one RunSpec at a time, without packets or time.

Network, tables, hash and flows are the packet-level simulator's. A simulation that has sent nothing returns
every subflow's path, so flows share the same links in both.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import topos
from common.errors import UsageError
from engines.core_setup.checks import check_spec
from engines.core_setup.paths import check_paths
from engines.core_setup.setup import prepared
from engines.core_setup.stack import check_stack
from engines.engine import Observer, OnePointPerCpu
from engines.flow_level.checks import check_equilibrium, check_steady
from engines.flow_level.equilibrium import equilibrium
from engines.flow_level.max_min import max_min
from engines.flow_level.network import Floats, FluidNetwork
from engines.flow_level.summarise import ack_share, summarise
from engines.provenance import free_memory_mb, origin
from fabric._core import crossings
from model.congestion import BASELINE, COUPLED_DEFAULT
from model.flows import PlannedFlow, congestion_controls, drawn_flows, planned_flows
from model.machine.capacity import demand
from model.network_plan import port_rates_bps
from model.result import RunResult
from model.spec import RunSpec
from topos.topology import Topology

STARTING_S = 0.3
HOST_S, SUBFLOW_S = 1e-4, 7e-6
"""Time to build the network and to make the result, per host and per subflow, for plans. As the times of all
rounds below, measured on FatTrees of 8192 and 101 306 hosts."""
PROGRAM_MB, HOST_MB, SUBFLOW_MB = 40.0, 0.008, 0.0013
"""Memory of a process, measured on FatTrees of 16 to 101 306 hosts, plus one third."""


@dataclass(frozen=True)
class Model:
    """A flow-level model.

    `solve` returns the rates of all subflows and the number of rounds. `check` raises UsageError for a
    congestion control without a model. `crossing_s` is the CPU time of all rounds per port that a subflow
    crosses.
    """

    solve: Callable[[FluidNetwork], tuple[Floats, int]]
    check: Callable[[Collection[str]], None]
    crossing_s: float


def _answers_all(_ccs: Collection[str]) -> None:
    """Accept all flows: the model does not depend on their congestion control."""


EQUILIBRIUM = Model(equilibrium, check_equilibrium, 3e-6)
MAX_MIN = Model(max_min, _answers_all, 3e-7)


class FlowLevelEngine(OnePointPerCpu):
    """An Engine that computes rates by a model, on the simulator's paths."""

    def __init__(self, name: str, model: Model) -> None:
        self.name = name
        self._model = model

    def check(self, spec: RunSpec) -> None:
        """Raise UsageError for a spec that the model does not cover."""
        topology = topos.build(spec.topology.kind, spec.topology.params)
        check_spec(spec)
        flows = drawn_flows(spec, topology)
        ccs = congestion_controls(spec, flows)
        check_stack(spec, ccs if self._model is EQUILIBRIUM else ())
        check_steady(spec, flows)
        self._model.check(ccs)
        check_paths(spec, topology)
        needed_mb, free_mb = self.memory_mb(spec), free_memory_mb()
        if needed_mb > free_mb:
            raise UsageError(
                f"running {self.name} with {len(flows)} flows takes about {needed_mb:,.0f} MB of memory, but "
                f"only {free_mb:,.0f} MB are free: choose a smaller --k or fewer --subflows"
            )

    def memory_mb(self, spec: RunSpec) -> float:
        """Return an estimate from the numbers of hosts and subflows."""
        asked = demand(spec)
        return PROGRAM_MB + asked.hosts * HOST_MB + asked.flows * spec.transport.subflows * SUBFLOW_MB

    def coupled_cc(self) -> tuple[str, str]:
        """Return the default, which has a model."""
        return COUPLED_DEFAULT, ""

    def expected_s(self, spec: RunSpec) -> float:
        """Return an estimate from the numbers of hosts and subflows, and of the ports they cross."""
        asked = demand(spec)
        subflows = asked.flows * spec.transport.subflows
        own_s = SUBFLOW_S + asked.hops * self._model.crossing_s
        return STARTING_S + asked.hosts * HOST_S + subflows * own_s

    def run(self, spec: RunSpec, observer: Observer, raw: Path) -> RunResult:
        """See `Engine.run`; raises RunError if the solution does not converge."""
        del raw
        began = time.process_time()
        observer.phase("measure", 0.0)
        topology = topos.build(spec.topology.kind, spec.topology.params)
        flows = planned_flows(spec, topology)
        network = fluid_network(spec, topology, flows)
        rates, rounds = self._model.solve(network)
        return dataclasses.replace(
            summarise(spec, topology, flows, network, rates, rounds),
            reproducible=True,
            provenance={**origin(), "numpy": np.__version__, "engine": self.name},
            cost={"simulation_cpu_s": time.process_time() - began},
        )


def fluid_network(spec: RunSpec, topology: Topology, flows: Sequence[PlannedFlow]) -> FluidNetwork:
    """Return capacities in Mb/s, and the paths of the simulator's subflows and acknowledgements, which do
    not depend on congestion control."""
    simulation = prepared(spec, topology, [dataclasses.replace(flow, cc=BASELINE) for flow in flows])
    counts = [flow.subflows for flow in flows]
    connection = np.repeat(np.arange(len(flows), dtype=np.int64), counts)
    there, back = crossings(simulation)
    return FluidNetwork(
        capacity=port_rates_bps(topology, spec.link) / 1e6,
        there=there,
        back=back,
        ack_share=np.array([ack_share(spec.stack, flow) for flow in flows])[connection],
        connection=connection,
        cc=tuple(flow.cc for flow in flows for _ in range(flow.subflows)),
    )
