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

pytestmark = pytest.mark.emulation

SAMPLE_MS = 10


def test_packets_leave_a_host_one_by_one(tmp_path: Path) -> None:
    """The fabric's port behind the NIC is as fast, so it holds what the NIC lets go at once: two frames are
    HTB's burst. TCP left to itself hands down many segments as one packet, and they pile up here."""
    wanted = RunSpec(
        LinkSpec(2.0, host_queue=QDISC),
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
    assert np.sum(queues["pkts"][queues["port"] == port]) / looks < 5
    assert flow.goodput_mbps > 1.5
