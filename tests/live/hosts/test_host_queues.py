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
TRAIN, MAX_TRAINS = 3, 0.03
"""Packets more than in the sample before (the link sends 1.7 in that time), and the share of such samples."""


def test_packets_leave_a_host_one_by_one(tmp_path: Path) -> None:
    """The fabric's port is as fast as the NIC before it, so it holds the frames that the NIC sends at once:
    two are HTB's burst. Unlimited TCP hands down many segments as one packet, and they pile up here: the
    queue then grew by TRAIN or more in 14 % of the samples, and otherwise never. The queue's length says
    less: while the machine stalls, the fabric's clock may stop and the NIC's does not, and what the NIC sends
    meanwhile waits in this port from then on."""
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
    assert np.mean(of_port) > 0, "the queue was sampled"
    assert np.mean(np.diff(of_port.astype(np.int64)) >= TRAIN) < MAX_TRAINS
    assert flow.goodput_mbps > 1.5
