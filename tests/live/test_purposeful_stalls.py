"""Stalls made on purpose between real hosts: on the CPUs asked for, and measured."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from common.errors import HostUnfitError, UsageError
from engines.emulation.noise import check_stalls, stalled_cpus, stalling
from engines.engine import Silent
from engines.registry import make
from model.spec import LinkSpec, NoiseSpec, RunSpec, TopologySpec

CPUS = os.sched_getaffinity(0)


def spec(noise: NoiseSpec) -> RunSpec:
    return RunSpec(
        LinkSpec(5.0), TopologySpec("fat_tree", {"k": 4}), warmup_s=1.0, seconds=3.0, noise=noise,
        traffic="native",
    )  # fmt: skip


@pytest.mark.skipif(len(CPUS) < 2, reason="fabric and hosts share the only CPU")
def test_the_fabric_has_one_cpu_and_the_hosts_the_others() -> None:
    core, hosts = stalled_cpus("fabric"), stalled_cpus("hosts")
    assert len(core) == 1
    assert sorted(core + hosts) == stalled_cpus("all") == sorted(CPUS)


def test_what_cannot_be_made_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="at most 50 %"):
        check_stalls(spec(NoiseSpec("all", 10, 8, 8)))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0})
    with pytest.raises(HostUnfitError, match="only CPU"):
        check_stalls(spec(NoiseSpec("fabric", 100, 2, 4)))
    check_stalls(spec(NoiseSpec("all", 100, 2, 4)))


def test_without_noise_nothing_is_done() -> None:
    with stalling(spec(NoiseSpec())) as done:
        pass
    assert done == {}


@pytest.mark.physics
@pytest.mark.emulation
def test_a_point_with_stalls_says_how_long_they_were(tmp_path: Path) -> None:
    """2 to 6 ms every 100 ms are 4 % of the time, and TCP goes on."""
    wanted, engine = spec(NoiseSpec("all", 100, 2, 6)), make("mininet")
    engine.check(wanted)
    result = engine.run(wanted, Silent(), tmp_path)
    assert 1 < result.metrics["stalled_pct"] < 10
    assert 10 < result.metrics["stalls"] < 90
    assert all(flow.bytes_received > 0 for flow in result.flows)
