"""CUBIC in the simulator (RFC 9438): its period, its reduction, its shape, and Reno's rate on short paths."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccp import Flow, Report
from ccp.loading import load
from fabric._core import CubicState
from fabric.plan import PAYLOAD_SHARE
from model.result import RunResult
from model.spec import LinkSpec, RunSpec, SamplingSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.simulated_networks import result_of

RATE_MBPS, RTT_MS, QUEUE_PKTS = 96.0, 40.0, 320
C, BETA = 0.4, 0.7
MSS = 1448
Windows = tuple[npt.NDArray[np.float64], RunResult]


def run(cc: str, rtt_ms: float = RTT_MS, loss: float = 0.0, seconds: float = 60.0) -> RunResult:
    spec = RunSpec(
        LinkSpec(RATE_MBPS, 1000 * rtt_ms / 6, queue_pkts=QUEUE_PKTS, loss=loss, clock_ppm=0),
        TopologySpec("dumbbell", {"n": 1, "access": 4}), TransportSpec(1, cc), WorkloadSpec("against_tcp"),
        engine="simulator", warmup_s=20.0, seconds=seconds, sampling=SamplingSpec(sockets_ms=100),
        stack=StackSpec(processing_frames=0.0),
    )  # fmt: skip
    return result_of(spec)


@pytest.fixture(scope="module")
def windows() -> Windows:
    """The window in packets every 0.1 s."""
    result = run("cubic")
    sockets = result.samples["sockets"]
    return sockets["cwnd_pkts"][sockets["t_s"] > 0].astype(float), result


def test_a_flow_fills_its_link(windows: Windows) -> None:
    assert windows[1].flows[0].goodput_mbps == pytest.approx(RATE_MBPS * PAYLOAD_SHARE, rel=0.01)


def test_the_period_is_twice_k_at_most_and_the_reduction_is_beta(windows: Windows) -> None:
    """The window returns to its old maximum after K = cbrt(0.3 w_max / C), where the queue is full again."""
    cwnd, _ = windows
    falls = np.flatnonzero(cwnd[1:] < 0.8 * cwnd[:-1])
    assert len(falls) >= 4
    w_max = float(np.median(cwnd[falls]))
    k_s = ((1 - BETA) * w_max / C) ** (1 / 3)
    assert 0.1 * np.median(np.diff(falls)) == pytest.approx(k_s, rel=0.25)
    assert np.median(cwnd[falls + 2] / cwnd[falls]) == pytest.approx(BETA, abs=0.04)


def test_growth_slows_towards_the_old_maximum(windows: Windows) -> None:
    cwnd, _ = windows
    falls = np.flatnonzero(cwnd[1:] < 0.8 * cwnd[:-1])
    period = cwnd[falls[1] + 2 : falls[2]]
    quarter = len(period) // 4
    first, third = period[quarter] - period[0], period[3 * quarter] - period[2 * quarter]
    assert first > 4 * third > 0


def test_on_a_short_path_it_is_no_slower_than_reno() -> None:
    """With 0.1 % loss and 5 ms Reno's estimate decides (section 4.3)."""
    mbps = {cc: run(cc, 5.0, 0.001, 40.0).flows[0].goodput_mbps for cc in ("reno", "cubic")}
    assert 0.85 * mbps["reno"] < mbps["cubic"] < 1.4 * mbps["reno"]


def test_on_a_long_path_it_carries_more_than_reno() -> None:
    mbps = {cc: run(cc, 100.0, 0.00003, 200.0).flows[0].goodput_mbps for cc in ("reno", "cubic")}
    assert mbps["cubic"] > 1.5 * mbps["reno"]


def test_the_agents_cubic_has_the_same_goodput_and_mean_window(windows: Windows) -> None:
    agents = run("ccp:cubic")
    sockets = agents.samples["sockets"]
    mean = float(sockets["cwnd_pkts"][sockets["t_s"] > 0].mean())
    assert agents.flows[0].goodput_mbps == pytest.approx(windows[1].flows[0].goodput_mbps, rel=0.02)
    assert mean == pytest.approx(float(windows[0].mean()), rel=0.1)


class Agents:
    """CUBIC in the agent, driven by reports as the datapath makes them."""

    def __init__(self, cwnd: float) -> None:
        self._algorithm, programs = load("ccp:cubic")
        self._flow = Flow(0, MSS, round(cwnd * MSS), ("a", "b"), 0, programs)
        self._algorithm.on_create(self._flow)

    @property
    def window(self) -> float:
        return float(self._flow.state.cwnd)

    @property
    def ssthresh(self) -> float:
        return float(self._flow.state.ssthresh)

    def report(self, now_s: float, rtt_s: float, acked: float = 0.0, **happened: int) -> None:
        values = {"acked": acked * MSS, "lost": 0, "marked": 0, "timeout": 0, **happened}
        rtt_us, inflight = round(rtt_s * 1e6), round(self.window * MSS)
        fields = {**values, "rtt_us": rtt_us, "inflight": inflight}
        self._algorithm.on_report(self._flow, Report.of(round(now_s * 1e6), fields))  # type: ignore[arg-type]


class Core:
    """CUBIC of the simulator; slow start is the sender's, and so is the reduction."""

    def __init__(self, cwnd: float) -> None:
        self._state, self.window, self.ssthresh = CubicState(), cwnd, float("inf")

    def report(self, now_s: float, rtt_s: float, acked: float = 0.0, **happened: int) -> None:
        if happened:
            self._state.reduced(self.window)
            self.ssthresh = self.window = max(2.0, BETA * self.window)
            if "timeout" in happened:
                self._state.timed_out()
                self.window = 1.0
        elif self.window < self.ssthresh:
            self.window = min(self.window + acked, self.ssthresh)
        else:
            self.window = self._state.grown(self.window, acked, now_s, rtt_s)


BOTH = pytest.mark.parametrize("kind", [Agents, Core])


@BOTH
def test_the_reno_estimate_grows_as_reno_only_above_the_window_before_the_loss(
    kind: type[Agents | Core],
) -> None:
    """Section 4.3: not from W_max on, which fast convergence has made smaller (4.7)."""
    rtt_s, now_s = 0.001, 10.0  # so short that Reno's estimate decides
    of = kind(200.0)
    of.report(now_s, rtt_s, lost=1)
    of.report(now_s + 1.0, rtt_s, lost=1)  # at 140 packets, below 200: W_max is 119
    now_s += 2.0
    growth: dict[float, float] = {}
    for _ in range(200):
        before = of.window
        of.report(now_s, rtt_s, acked=before)
        growth[before], now_s = of.window - before, now_s + rtt_s
    alpha = 3 * (1 - BETA) / (1 + BETA)
    below = [grown for window, grown in growth.items() if window < 139]
    above = [grown for window, grown in growth.items() if window > 141]
    assert below == pytest.approx([alpha] * len(below), abs=0.01)
    assert above == pytest.approx([1.0] * len(above), abs=0.01)
    assert min(len(below), len(above)) > 40


@BOTH
def test_after_a_timeout_growth_begins_with_k_of_zero(kind: type[Agents | Core]) -> None:
    """Section 4.8: from the window at the end of slow start, without a plateau at the old maximum."""
    rtt_s, now_s = 0.1, 10.0
    of = kind(200.0)
    of.report(now_s, rtt_s, timeout=1)
    while of.window < of.ssthresh:
        now_s += rtt_s
        of.report(now_s, rtt_s, acked=of.window)
    assert of.window == pytest.approx(BETA * 200)
    began_s = now_s
    for _ in range(100):
        now_s += rtt_s
        of.report(now_s, rtt_s, acked=of.window)
    assert of.window == pytest.approx(BETA * 200 + C * (now_s - began_s) ** 3, rel=0.05)


def test_further_timeouts_leave_the_threshold() -> None:
    """RFC 5681, section 3.1; an acknowledgement in between allows another reduction."""
    of = Agents(100.0)
    for second in (1, 2, 4):
        of.report(second, 0.1, timeout=1)
        assert of.window == 1.0
        assert of.ssthresh == pytest.approx(70.0)
    of.report(5.0, 0.1, acked=20.0)
    of.report(6.0, 0.1, timeout=1)
    assert of.ssthresh == pytest.approx(max(2.0, BETA * 21))


@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["ack", "ack", "ack", "lost", "timeout"]), st.floats(0.1, 1.0)),
        min_size=5,
        max_size=200,
    ),
    rtt_s=st.floats(0.001, 0.5),
)
def test_agent_and_simulator_grow_alike(steps: list[tuple[str, float]], rtt_s: float) -> None:
    agents, core, now_s = Agents(100.0), Core(100.0), 10.0
    agents.report(now_s, rtt_s, lost=1)
    core.report(now_s, rtt_s, lost=1)
    for what, share in steps:
        now_s += 2 * rtt_s
        happened = {} if what == "ack" else {what: 1}
        for of in (agents, core):
            of.report(now_s, rtt_s, acked=share * of.window, **happened)
        assert agents.window == pytest.approx(core.window, rel=1e-3, abs=1e-3)
