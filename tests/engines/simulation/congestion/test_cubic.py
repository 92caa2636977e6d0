"""CUBIC in the simulator (RFC 9438): its period, its reduction, its shape, and Reno's rate on short paths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from engines.engine import Silent
from engines.simulation.engine import SimulatorEngine
from fabric.plan import PAYLOAD_SHARE
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, SamplingSpec, TopologySpec, TransportSpec, WorkloadSpec

RATE_MBPS, RTT_MS, QUEUE_PKTS = 96.0, 40.0, 320
C, BETA = 0.4, 0.7


def run(cc: str, raw: Path, rtt_ms: float = RTT_MS, loss: float = 0.0, seconds: float = 60.0) -> RunResult:
    spec = RunSpec(
        LinkSpec(RATE_MBPS, 1000 * rtt_ms / 6, queue_pkts=QUEUE_PKTS, loss=loss),
        TopologySpec("dumbbell", {"n": 1, "access": 4}), TransportSpec(1, cc), WorkloadSpec("against_tcp"),
        engine="simulator", warmup_s=20.0, seconds=seconds, sampling=SamplingSpec(sockets_ms=100),
    )  # fmt: skip
    return SimulatorEngine().run(spec, Silent(), raw)


@pytest.fixture(scope="module")
def windows(tmp_path_factory: pytest.TempPathFactory) -> tuple[npt.NDArray[np.float64], RunResult]:
    """The window in packets every 0.1 s."""
    result = run("cubic", tmp_path_factory.mktemp("raw"))
    sockets = result.samples["sockets"]
    return sockets["cwnd_pkts"][sockets["t_s"] > 0].astype(float), result


def test_a_flow_fills_its_link(windows: tuple[npt.NDArray[np.float64], RunResult]) -> None:
    assert windows[1].flows[0].goodput_mbps == pytest.approx(RATE_MBPS * PAYLOAD_SHARE, rel=0.01)


def test_the_period_is_twice_k_at_most_and_the_reduction_is_beta(
    windows: tuple[npt.NDArray[np.float64], RunResult],
) -> None:
    """The window returns to its old maximum after K = cbrt(0.3 w_max / C), where the queue is full again."""
    cwnd, _ = windows
    falls = np.flatnonzero(cwnd[1:] < 0.8 * cwnd[:-1])
    assert len(falls) >= 4
    w_max = float(np.median(cwnd[falls]))
    k_s = ((1 - BETA) * w_max / C) ** (1 / 3)
    assert 0.1 * np.median(np.diff(falls)) == pytest.approx(k_s, rel=0.25)
    assert np.median(cwnd[falls + 2] / cwnd[falls]) == pytest.approx(BETA, abs=0.04)


def test_growth_slows_towards_the_old_maximum(windows: tuple[npt.NDArray[np.float64], RunResult]) -> None:
    cwnd, _ = windows
    falls = np.flatnonzero(cwnd[1:] < 0.8 * cwnd[:-1])
    period = cwnd[falls[1] + 2 : falls[2]]
    quarter = len(period) // 4
    first, third = period[quarter] - period[0], period[3 * quarter] - period[2 * quarter]
    assert first > 4 * third > 0


def test_on_a_short_path_it_is_no_slower_than_reno(tmp_path: Path) -> None:
    """With 0.1 % loss and 5 ms Reno's estimate decides (section 4.3)."""
    mbps = {cc: run(cc, tmp_path, 5.0, 0.001, 40.0).flows[0].goodput_mbps for cc in ("reno", "cubic")}
    assert 0.85 * mbps["reno"] < mbps["cubic"] < 1.4 * mbps["reno"]


def test_on_a_long_path_it_carries_more_than_reno(tmp_path: Path) -> None:
    mbps = {cc: run(cc, tmp_path, 100.0, 0.00003, 200.0).flows[0].goodput_mbps for cc in ("reno", "cubic")}
    assert mbps["cubic"] > 1.5 * mbps["reno"]


def test_the_agents_cubic_has_the_same_goodput_and_mean_window(
    windows: tuple[npt.NDArray[np.float64], RunResult], tmp_path: Path
) -> None:
    agents = run("ccp:cubic", tmp_path)
    sockets = agents.samples["sockets"]
    mean = float(sockets["cwnd_pkts"][sockets["t_s"] > 0].mean())
    assert agents.flows[0].goodput_mbps == pytest.approx(windows[1].flows[0].goodput_mbps, rel=0.02)
    assert mean == pytest.approx(float(windows[0].mean()), rel=0.1)
