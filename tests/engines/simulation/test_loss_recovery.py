"""Recovery from loss, the window's arithmetic and marks, packet by packet."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric._core import (
    Simulation,
    congestion_controls,
    dctcp_after_marks,
    dctcp_alpha,
    window_after_loss,
    window_increase,
)
from fabric.plan import NetworkPlan
from model.congestion import CONGESTION_CONTROLS, core_name
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec, TransportSpec
from tests.support import coupled_model as model
from tests.support.core_networks import with_setting
from tests.support.scenarios.divided_networks import made
from tests.support.simulated_hosts import (
    ACK_PS,
    MS,
    PACKET_PS,
    PAYLOAD,
    RATE_BPS,
    TWO_PATHS,
    S,
    conserved,
    lose_downlink,
    network,
    stack,
    tcp,
    with_rate,
)

KINDS = [
    {"sack": True},
    {"sack": False},
    {"sack": True, "recovery": "linux"},
    {"sack": False, "recovery": "linux"},
]


@pytest.mark.parametrize("kind", KINDS)
def test_each_lost_segment_is_retransmitted_once_without_a_timeout(kind: dict[str, bool]) -> None:
    simulation = Simulation(network(delay_ps=5 * MS), stack(**kind), [tcp(pkts=400)])
    lose_downlink(simulation, 1, 100 * MS)
    simulation.run_until(100 * S)
    ports, subflows, flows = simulation.ports(), simulation.subflows(), simulation.flows()
    assert 1 <= ports["dropped"] <= 6
    assert int(subflows["retransmits"][0]) == ports["dropped"]
    assert int(subflows["timeouts"][0]) == 0
    assert int(flows["delivered_bytes"][0]) == 400 * PAYLOAD
    ideal = 400 * PACKET_PS
    # NewReno retransmits one segment per round trip (RFC 6582).
    assert ideal < int(flows["completed_ps"][0]) < ideal + 600 * MS


def test_a_lost_retransmission_is_repeated_without_a_timeout() -> None:
    """One retransmission in fifty is lost; with a min RTO of ten seconds each timeout would show."""
    options = stack(min_rto_ps=10 * S, initial_rto_ps=10 * S)
    simulation = Simulation(network(delay_ps=MS, loss=0.02), options, [tcp()])
    simulation.run_until(40 * S)
    subflows = simulation.subflows()
    assert int(subflows["retransmits"][0]) > 500
    assert int(subflows["timeouts"][0]) == 0


@pytest.mark.parametrize("sack", [True, False])
def test_timeouts_are_twice_as_long_each_and_as_before_when_something_arrives(sack: bool) -> None:
    simulation = Simulation(network(), stack(sack=sack), [tcp()])
    simulation.run_until(500 * MS)
    simulation.set_port_up(3, False, 500 * MS)
    counts = []
    # The last acknowledgement comes within a window of 500 ms; timers expire 0.2, 0.6, 1.4 and 3.0 s later.
    for after_ms in (150, 500, 1200, 2700, 3900):
        simulation.run_until((500 + after_ms) * MS)
        counts.append(int(simulation.subflows()["timeouts"][0]))
    assert counts == sorted(counts)
    assert counts[0] == 0
    assert counts[-1] - counts[1] == 3
    simulation.set_port_up(3, True, 4400 * MS)
    simulation.run_until(15 * S)
    delivered = int(simulation.flows()["delivered_bytes"][0])
    settled = int(simulation.subflows()["timeouts"][0])
    simulation.set_port_up(3, False, 15 * S)
    simulation.run_until(15 * S + 900 * MS)
    assert int(simulation.subflows()["timeouts"][0]) - settled in {1, 2}
    assert delivered > 500 * PAYLOAD


def test_every_second_segment_is_acknowledged_and_a_single_one_after_the_delay() -> None:
    options = stack(delayed_ack_ps=40 * MS, initial_window=1.0)
    simulation = Simulation(network(), options, [tcp()])
    arrival = 2 * PACKET_PS
    simulation.run_until(arrival + 40 * MS + 2 * ACK_PS - 1)
    assert int(simulation.subflows()["acked_pkts"][0]) == 0
    simulation.run_until(arrival + 40 * MS + 2 * ACK_PS)
    assert int(simulation.subflows()["acked_pkts"][0]) == 1
    ten = Simulation(network(), stack(delayed_ack_ps=40 * MS), [tcp(pkts=10)])
    ten.run_until(S)
    assert ten.ports()["injected"] == 10 + 5


def test_out_of_order_segments_and_those_that_close_a_gap_are_acknowledged_at_once() -> None:
    options = stack(delayed_ack_ps=10 * S, initial_rto_ps=60 * S, min_rto_ps=60 * S)
    simulation = Simulation(network(delay_ps=5 * MS), options, [tcp(pkts=400)])
    lose_downlink(simulation, 1, 100 * MS)
    simulation.run_until(3 * S)
    assert int(simulation.flows()["delivered_bytes"][0]) == 400 * PAYLOAD


def test_a_window_that_is_not_used_does_not_grow() -> None:
    simulation = Simulation(network(delay_ps=20 * MS), stack(send_buffer=6), [tcp()])
    simulation.run_until(10 * S)
    assert float(simulation.subflows()["window_pkts"][0]) <= 12


def test_a_mark_and_a_loss_in_one_window_reduce_it_once() -> None:
    plan = with_setting(network(delay_ps=5 * MS), "ecn_pkts", 3, 1)
    simulation = Simulation(plan, stack(ecn=True, nic_queue_pkts=4), [tcp()])
    lose_downlink(simulation, 1, 2 * S)
    simulation.run_until(4 * S)
    subflows, ports = simulation.subflows(), simulation.ports()
    assert int(subflows["timeouts"][0]) == 0
    assert int(subflows["retransmits"][0]) == ports["dropped"]


def scattered(stack_spec: StackSpec, routing: str) -> float:
    """Mean goodput of TCP on FatTree k=4, percent of the link rate."""
    spec = RunSpec(
        LinkSpec(100.0, 10.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(1, "reno"),
        routing=routing, engine="simulator", stack=stack_spec,
    )  # fmt: skip
    simulation = made(spec)
    simulation.run_until(S)
    warm = simulation.flows()["delivered_bytes"].astype(float)
    simulation.run_until(2 * S)
    return float((simulation.flows()["delivered_bytes"] - warm).mean() * 8 / 1e6)


@pytest.mark.parametrize("sack", [True, False])
@pytest.mark.parametrize("recovery", ["rfc", "linux"])
def test_packets_that_overtake_each_other_are_not_taken_for_lost(sack: bool, recovery: str) -> None:
    """PacketScatter comes close to MPTCP (SIGCOMM 2011); TCP on one path stays below 65 %."""
    kind = StackSpec(sack=sack, recovery=recovery, min_rto_ms=10.0, delayed_ack_ms=0.0, ssthresh=25)
    assert scattered(kind, "scatter") > 80
    assert scattered(kind, "hashed") < 65


@dataclass(frozen=True)
class Case:
    """Flows over a network that drops and loses."""

    sizes: list[int]
    subflows: int
    loss: float
    queue: int
    seed: int
    cc: str
    options: dict[str, Any]


kinds = st.sampled_from(KINDS)
options_of_hosts = st.fixed_dictionaries(
    {
        "scheduler": st.sampled_from(["min_rtt", "burst", "round_robin"]),
        "delayed_ack_ps": st.sampled_from([0, 40 * MS]),
        "send_buffer": st.sampled_from([0, 3, 20]),
        "receive_buffer": st.sampled_from([0, 3, 10]),
        "subflow_buffer": st.sampled_from([0, 5]),
        "reinject": st.booleans(),
        "handshake": st.booleans(),
        "acks": st.sampled_from(["routed", "at_once"]),
        "nic_queue_pkts": st.just(5),
        "max_rto_ps": st.just(2 * S),
    }
)
cases = st.builds(
    Case,
    sizes=st.lists(st.integers(1, 150), min_size=1, max_size=4),
    subflows=st.integers(1, 2),
    loss=st.sampled_from([0.0, 0.01, 0.1, 0.3]),
    queue=st.integers(1, 12),
    seed=st.integers(0, 1000),
    cc=st.sampled_from(["reno", "lia", "olia", "coupled", "dctcp"]),
    options=st.builds(lambda kind, rest: {**kind, **rest}, kinds, options_of_hosts),
)


@settings(max_examples=100, deadline=None)
@given(case=cases)
def test_every_flow_is_delivered_whole_and_nothing_is_left_behind(case: Case) -> None:
    plan = network(4, delay_ps=MS, queue_pkts=case.queue, loss=case.loss)
    paths = TWO_PATHS[: case.subflows]
    flows = [tcp(paths, pkts=size, start_ps=i * MS, cc=case.cc) for i, size in enumerate(case.sizes)]
    simulation = Simulation(dataclasses.replace(plan, seed=case.seed), stack(**case.options), flows)
    simulation.run_until(3000 * S)
    assert simulation.flows()["delivered_bytes"].tolist() == [size * PAYLOAD for size in case.sizes]
    assert conserved(simulation)
    assert simulation.descriptors_in_use() == 0


Formula = Callable[[Sequence[model.Path], int], float]
INCREASES: dict[str, Formula] = {
    "reno": model.reno,
    "dctcp": model.reno,
    "ewtcp": model.ewtcp,
    "coupled": model.coupled,
    "lia": model.lia,
    "olia": model.olia,
    "balia": model.balia,
    "mintcp": model.reno,
}
AFTER_LOSS: dict[str, Formula] = {
    "reno": model.half,
    "dctcp": model.half,
    "ewtcp": model.half,
    "coupled": model.coupled_after_loss,
    "lia": model.half,
    "olia": model.half,
    "balia": model.balia_after_loss,
    "mintcp": model.half,
    "cubic": lambda paths, i: max(2.0, 0.7 * paths[i].window),
}
BY_TIME = {"cubic"}
"""Controls whose increase depends on time (congestion/test_cubic.py)."""
CONSTANT = {"ccp", "linerate"}
"""Controls whose window neither grows nor shrinks."""
windows = st.floats(1, 1e5) | st.sampled_from([1.0, 2.0, 10.0])
rtts = st.floats(1e-5, 10) | st.sampled_from([0.001, 0.1])
packets = st.integers(0, 10**6).map(float)
path_states = st.tuples(windows, rtts, packets, packets)
PathState = tuple[float, float, float, float]
"""As fabric._core has it."""
connections = st.sampled_from([1, 2, 8, 32]).flatmap(lambda n: st.lists(path_states, min_size=n, max_size=n))


def as_model(paths: Sequence[PathState]) -> list[model.Path]:
    return [model.Path(window, rtt_s, max(since, between)) for window, rtt_s, since, between in paths]


def test_both_know_the_same_names() -> None:
    simulated = {core_name(name) for name, cc in CONGESTION_CONTROLS.items() if cc.simulated}
    assert (
        set(congestion_controls())
        == set(INCREASES) | BY_TIME | CONSTANT
        == set(AFTER_LOSS) | CONSTANT
        == simulated
    )


@pytest.mark.parametrize("name", sorted(CONSTANT))
@given(window=windows, rtt=rtts)
def test_a_constant_window_stays(name: str, window: float, rtt: float) -> None:
    assert window_increase(name, [(window, rtt, 5.0, 9.0)], 0) == 0
    assert window_after_loss(name, [(window, rtt, 5.0, 9.0)], 0) == window


@pytest.mark.parametrize("name", INCREASES)
@settings(max_examples=40)
@given(paths=connections)
def test_increase_is_the_papers(name: str, paths: list[PathState]) -> None:
    for i in {0, len(paths) // 2, len(paths) - 1}:
        expected = INCREASES[name](as_model(paths), i)
        assert window_increase(name, paths, i) == pytest.approx(expected, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("name", AFTER_LOSS)
@settings(max_examples=40)
@given(paths=connections)
def test_what_a_loss_leaves_is_the_papers(name: str, paths: list[PathState]) -> None:
    for i in {0, len(paths) - 1}:
        expected = AFTER_LOSS[name](as_model(paths), i)
        assert window_after_loss(name, paths, i) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", sorted(set(INCREASES) - {"ewtcp"}))
@given(window=windows, rtt=rtts)
def test_one_subflow_is_reno(name: str, window: float, rtt: float) -> None:
    assert window_increase(name, [(window, rtt, 5.0, 9.0)], 0) == pytest.approx(1 / window)
    assert window_after_loss(name, [(window, rtt, 5.0, 9.0)], 0) == pytest.approx(max(2, window / 2))


@pytest.mark.parametrize("name", INCREASES)
def test_before_the_first_round_trip_a_window_grows_as_renos(name: str) -> None:
    paths = [(10.0, 0.0, 3.0, 0.0), (7.0, 0.1, 3.0, 0.0)]
    for i in (0, 1):
        grown = window_increase(name, paths, i)
        assert math.isfinite(grown)
        assert 0 < grown <= 1 / paths[i][0] * 1.000001
    if name in {"lia", "olia", "balia"}:
        assert window_increase(name, paths, 0) == 1 / 10
        assert window_increase(name, paths, 1) == pytest.approx(1 / 7)


def test_olia_takes_from_the_large_what_it_gives_the_good() -> None:
    good, large = (5.0, 0.1, 4000.0, 0.0), (20.0, 0.1, 100.0, 0.0)
    alone = [(5.0, 0.1, 50.0, 0.0), large]
    moved = [
        (window_increase("olia", [good, large], i) - window_increase("olia", alone, i)) * (5, 20)[i]
        for i in range(2)
    ]
    assert moved == pytest.approx([0.5, -0.5])
    far = (20.0, 1.0, 100.0, 0.0)
    assert window_increase("olia", [good, far], 1) < 0


@given(st.floats(0, 1), st.floats(0, 1), st.floats(1, 1e5))
def test_dctcp_is_the_rfcs(alpha: float, share: float, window: float) -> None:
    assert dctcp_alpha(alpha, share) == pytest.approx(alpha * 15 / 16 + share / 16, abs=1e-12)
    assert dctcp_after_marks(window, alpha) == pytest.approx(model.dctcp_after_marks(window, alpha))


def test_an_unknown_name_or_path_is_refused() -> None:
    with pytest.raises(ValueError, match="no congestion control 'bbr'"):
        window_increase("bbr", [(1.0, 1.0, 0.0, 0.0)], 0)
    with pytest.raises(IndexError, match="no path of that number"):
        window_after_loss("reno", [], 0)


THRESHOLD = 10


def marking() -> NetworkPlan:
    """Two senders with fast uplinks; the link to the third host marks from ten packets on."""
    plan = with_rate(network(3, delay_ps=MS), {0: 10 * RATE_BPS, 1: 10 * RATE_BPS})
    return with_setting(plan, "ecn_pkts", 5, THRESHOLD)


@pytest.mark.parametrize("delayed", [0, 40 * MS])
@pytest.mark.parametrize("cc", ["reno", "dctcp"])
def test_marks_keep_the_queue_short_and_the_link_full_without_a_loss(cc: str, delayed: int) -> None:
    options = stack(ecn=True, delayed_ack_ps=delayed, ssthresh=10.0)
    simulation = Simulation(marking(), options, [tcp([(0, 2)], cc=cc), tcp([(1, 2)], cc=cc)])
    simulation.run_until(5 * S)
    before = simulation.flows()["delivered_bytes"].astype(float)
    simulation.run_until(25 * S)
    ports, subflows = simulation.ports(), simulation.subflows()
    assert ports["dropped"] == 0
    assert subflows["retransmits"].tolist() == [0, 0]
    assert int(ports["max_queue_pkts"][5]) < 4 * THRESHOLD
    shares = (simulation.flows()["delivered_bytes"] - before) / PAYLOAD / (20 * S / PACKET_PS)
    assert shares.sum() == pytest.approx(1, abs=0.02)
    assert shares.min() > 0.35


def test_dctcp_marks_more_and_reduces_less_than_reno() -> None:
    """Its sawtooth is flatter: more packets are marked, and its window seldom falls far."""
    marks, lowest = {}, {}
    for cc in ("reno", "dctcp"):
        simulation = Simulation(marking(), stack(ecn=True, ssthresh=10.0), [tcp([(0, 2)], cc=cc)])
        windows = []
        for now in range(5 * S, 15 * S, 10 * MS):
            simulation.run_until(now)
            windows.append(float(simulation.subflows()["window_pkts"][0]))
        marks[cc] = int(simulation.ports()["marks"][5])
        lowest[cc] = min(windows) / max(windows)
    assert marks["dctcp"] > 2 * marks["reno"]
    assert lowest["reno"] < 0.6
    assert lowest["dctcp"] > 0.7
