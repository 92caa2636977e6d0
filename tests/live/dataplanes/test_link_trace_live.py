"""A link between real hosts that follows a trace: it carries what the trace allows, and no more."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from engines.emulation.engine import MininetEngine
from fabric.plan import PAYLOAD_SHARE
from model.links import LinkTrace, packed
from model.spec import LinkSpec, RunSpec, TopologySpec, WorkloadSpec
from tests.support.machine_noise import exact, run_once

pytestmark = [pytest.mark.emulation, pytest.mark.physics]

ON_OFF = LinkTrace(np.repeat([1, 0], [50, 50]))
"""12 Mb/s for 50 ms, then nothing for 50 ms."""


def test_goodput_is_what_the_trace_allows(engine: MininetEngine, tmp_path: Path) -> None:
    wanted = RunSpec(
        LinkSpec(50.0, trace=packed(ON_OFF)),
        TopologySpec("dumbbell", {"n": 1}),
        workload=WorkloadSpec("against_tcp"),
        traffic="native",
        warmup_s=2.0,
        seconds=4.0,
    )
    result = run_once(engine, wanted, tmp_path)
    (flow,) = result.flows
    allowed_mbps = ON_OFF.mean_mbps * PAYLOAD_SHARE
    assert 0.85 * allowed_mbps < flow.goodput_mbps < 1.03 * allowed_mbps
    after = result.provenance["counters"]["after"]
    with exact():
        assert after["injected"] == sum(after[fate] for fate in ("delivered", "dropped", "lost", "in_flight"))
