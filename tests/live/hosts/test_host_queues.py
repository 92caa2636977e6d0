"""Hosts' own queues in their kernels: what leaves them is as even as from a real NIC."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engines.emulation.engine import MininetEngine
from engines.engine import Silent
from model.spec import (
    QDISC,
    LinkSpec,
    RunSpec,
    SamplingSpec,
    TopologySpec,
    WorkloadSpec,
)
from tests.support.machine_noise import repeated

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

RATE_MBPS, SAMPLE_MS = 2.0, 10
TRAIN, MOST_TRAINS = 3, 0.03
"""Packets more than at the look before (the link sends 1.7 in that time), and the share of such looks."""


def test_packets_leave_a_host_one_by_one(tmp_path: Path) -> None:
    """The fabric's port behind the NIC is as fast, so it holds what the NIC lets go at once: two frames are
    HTB's burst. TCP left to itself hands down many segments as one packet, and they pile up here: the queue
    grew by TRAIN or more between 14 % of the looks then, and never otherwise. Its length says less. While the
    machine stands still the fabric's clock may too, and the NIC's does not: what the NIC lets go meanwhile
    waits in this port from then on."""
    wanted = RunSpec(
        LinkSpec(RATE_MBPS, host_queue=QDISC),
        TopologySpec("star", {"n": 2}),
        workload=WorkloadSpec("reference"),
        warmup_s=2.0,
        seconds=4.0,
        sampling=SamplingSpec(queues_ms=SAMPLE_MS),
    )
    engine = MininetEngine()
    try:
        engine.check(wanted)
        result = repeated(lambda: engine.run(wanted, Silent(), tmp_path))
    finally:
        engine.close()
    (flow,) = result.flows
    (port,) = (port.port for port in result.ports if port.node == flow.src)
    queues, looks = result.samples["queues"], len(result.samples["queue_times"]["t_s"])
    assert looks > 100
    of_port = queues["pkts"][queues["port"] == port]
    assert np.mean(of_port) > 0, "the queue was looked at"
    assert np.mean(np.diff(of_port.astype(np.int64)) >= TRAIN) < MOST_TRAINS
    assert flow.goodput_mbps > 1.5
