"""Instants of a simulation for followers of the run. Reading them changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engines.core_setup.stack import PS_PER_MS, PS_PER_S
from engines.engine import Observer, follower
from engines.simulation.readings import Simulated
from engines.simulation.sample_tables import owners, payload_bytes
from model.flows import PlannedFlow
from model.instant import Instant, Windows
from model.responsive import opens_subflows
from model.spec import RunSpec


def following(
    simulation: Simulated, spec: RunSpec, flows: Sequence[PlannedFlow], observer: Observer
) -> Callable[[int], None]:
    """Return a function that shows the simulation at a time in ps; without followers it reads nothing."""
    show = follower(observer)
    if show is None:
        return lambda _t_ps: None
    flow, subflow = owners(flows)
    payload = payload_bytes(spec, flow)

    def look(t_ps: int) -> None:
        ports, read = simulation.ports(), simulation.subflows()
        listed = read["established"] == 1 if opens_subflows(spec) else slice(None)
        show(
            Instant(
                round(t_ps / PS_PER_S - spec.warmup_s, 9),
                ports["tx_bytes"].astype(np.int64),
                ports["drops"].astype(np.int64),
                ports["queued_pkts"].astype(np.int64),
                simulation.flows()["delivered_bytes"].astype(np.int64),
                Windows(
                    flow[listed],
                    subflow[listed],
                    read["window_pkts"][listed].astype(np.float64),
                    read["srtt_ps"][listed].astype(np.float64) / PS_PER_MS,
                    (read["acked_pkts"].astype(np.int64) * payload)[listed],
                ),
            )
        )

    return look
