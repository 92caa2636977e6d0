"""A simulated machine that stalls: nothing is lost or reordered, and packets are as late as the law says."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from common.errors import UsageError
from engines.simulation.engine import late_us
from fabric._core import LATENESS_EDGES_NS, Datagrams, Noise, Simulation
from model.noise import QUIET, lateness_ms, stalls_of
from model.result import RunResult
from model.spec import ELASTIC, STRICT, LinkSpec, NoiseSpec, RunSpec, TopologySpec, TransportSpec
from tests.support.simulated_hosts import MS, PACKET_PS, S, conserved, network, stack, tcp
from tests.support.simulated_networks import result_of


def noise_of(
    every_ps: int = 50 * MS, least_ps: int = 2 * MS, most_ps: int = 8 * MS, seed: int = 1,
    *, timers: bool = False, elastic: bool = False,
) -> Noise:  # fmt: skip
    law = {"every_ps": every_ps, "least_ps": least_ps, "most_ps": most_ps, "seed": seed}
    return Noise(**law, stalls_timers=timers, elastic=elastic)


FABRIC = noise_of()
HOSTS = noise_of(timers=True)
FROZEN = noise_of(timers=True, elastic=True)
ALL = (FABRIC, HOSTS, FROZEN)


def one_flow(noise: Noise | None, *, pkts: int = 0, min_rto_ms: int = 200) -> Simulation:
    """A flow over links with ample queues and 5 ms of delay each: nothing is ever dropped."""
    plan = network(queue_pkts=1000, delay_ps=5 * MS)
    options = stack(min_rto_ps=min_rto_ms * MS, receive_buffer=64)
    return Simulation(plan, options, [tcp(pkts=pkts)], (), noise)


@pytest.mark.parametrize("noise", ALL)
def test_nothing_is_lost_reordered_or_sent_twice(noise: Noise) -> None:
    """Stalls shorter than the timeout keep packets back, in order: no duplicate acknowledgement follows."""
    simulation = one_flow(noise, pkts=5000)
    simulation.run_until(10 * S)
    assert simulation.flows()["completed_ps"][0] < 10 * S
    assert simulation.subflows()["retransmits"].sum() == 0
    assert simulation.subflows()["timeouts"].sum() == 0
    assert conserved(simulation)
    assert simulation.ports()["injected"] == 2 * 5000


@pytest.mark.parametrize("noise", ALL)
def test_a_window_longer_than_the_lateness_loses_no_goodput(noise: Noise) -> None:
    """64 packets are 77 ms of the link; stalls last 8 ms at most, and the bottleneck never runs dry."""
    simulation = one_flow(noise)
    simulation.run_until(2 * S)
    before = int(simulation.ports()["tx_packets"][0])
    simulation.run_until(6 * S)
    sent = int(simulation.ports()["tx_packets"][0]) - before
    assert sent == pytest.approx(4 * S / PACKET_PS, abs=64)


def test_deliveries_are_kept_back_to_the_end_of_a_stall() -> None:
    """At a constant rate, the packets that come in stalls are late, each by the rest of its stall."""
    source = Datagrams(rate_bps=5_000_000, path=(0, 1, 0, 0))
    simulation = Simulation(network(), stack(), [], [source], FABRIC)
    simulation.run_until(400 * S)
    reading, noise = simulation.noise(), NoiseSpec("fabric", 50, 2, 8)
    late, sent = reading["lateness"], int(simulation.datagrams()["received_pkts"][0])
    assert reading["stalled_ps"] / (400 * S) == pytest.approx(noise.share, rel=0.03)
    assert late.sum() / sent == pytest.approx(reading["stalled_ps"] / (400 * S), rel=0.02)
    for quantile in (0.95, 0.99, 0.999):
        assert late_us(late, sent, quantile) / 1000 == pytest.approx(lateness_ms(noise, quantile), rel=0.08)
    assert LATENESS_EDGES_NS[np.flatnonzero(late)[-1]] <= 8e6


def test_a_timer_fires_in_a_stall_of_the_fabric_and_after_one_of_the_hosts() -> None:
    """A host that runs times out after 300 ms without an acknowledgement; a host that is stalled itself finds
    the acknowledgements when it runs again."""
    long = (2 * S, 300 * MS, 300 * MS, 3)
    of_fabric, of_hosts = one_flow(noise_of(*long)), one_flow(noise_of(*long, timers=True))
    for simulation in (of_fabric, of_hosts):
        simulation.run_until(20 * S)
    assert of_fabric.noise()["stalled_ps"] == of_hosts.noise()["stalled_ps"] > 0
    assert of_fabric.subflows()["timeouts"].sum() > 0
    assert of_hosts.subflows()["timeouts"].sum() == 0


def test_clocks_of_hosts_go_on_while_the_network_stands_still() -> None:
    """Timeouts come in a stall longer than they are, and not in a shorter one; round trips take longer."""
    quiet = one_flow(None)
    short = one_flow(noise_of(500 * MS, 40 * MS, 40 * MS, 3, timers=True, elastic=True))
    long = one_flow(noise_of(2 * S, 300 * MS, 300 * MS, 3, timers=True, elastic=True))
    means = []
    for simulation in (quiet, short, long):
        rtts = []
        for t in range(1, 200):
            simulation.run_until(t * 100 * MS)
            rtts.append(int(simulation.subflows()["srtt_ps"][0]))
        means.append(np.mean(rtts))
    assert means[1] > means[0] * 1.02
    assert quiet.subflows()["timeouts"].sum() == short.subflows()["timeouts"].sum() == 0
    assert long.subflows()["timeouts"].sum() > 0


@pytest.mark.parametrize("noise", [None, *ALL])
def test_how_it_is_cut_into_slices_changes_nothing(noise: Noise | None) -> None:
    whole, sliced = one_flow(noise), one_flow(noise)
    whole.run_until(3 * S)
    for t in range(1, 3001):
        sliced.run_until(t * MS)
    assert whole.ports()["delivered"] == sliced.ports()["delivered"]
    assert whole.noise()["stalled_ps"] == sliced.noise()["stalled_ps"]
    assert (whole.noise()["lateness"] == sliced.noise()["lateness"]).all()
    assert whole.subflows()["srtt_ps"][0] == sliced.subflows()["srtt_ps"][0]


@pytest.mark.parametrize("law", [(10 * MS, 4 * MS, 8 * MS), (50 * MS, 0, MS), (S, 2 * MS, MS)])
def test_laws_that_cannot_be_are_refused(law: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="stall"):
        one_flow(noise_of(*law))


def point(noise: NoiseSpec, clock: str = ELASTIC, seed: int = 1) -> RunResult:
    spec = RunSpec(
        LinkSpec(10.0), TopologySpec("fat_tree", {"k": 4}), TransportSpec(2, "lia"), engine="simulator",
        warmup_s=1.0, seconds=4.0, seed=seed, noise=noise, clock=clock,
    )  # fmt: skip
    return result_of(spec)


def test_a_seed_decides_everything() -> None:
    noise = stalls_of("fabric", 4)
    assert point(noise).flows == point(noise).flows
    assert point(noise).metrics == point(noise).metrics
    assert point(noise).metrics["stalled_pct"] != point(noise, seed=2).metrics["stalled_pct"]


def test_metrics_say_how_late_deliveries_were() -> None:
    metrics = point(stalls_of("hosts", 4)).metrics
    assert metrics["late_p50_us"] == 0
    assert metrics["late_p99_us"] == pytest.approx(4000, rel=0.3)
    assert metrics["late_p99_us"] < metrics["late_p999_us"] <= 8600
    assert metrics["stalled_pct"] == pytest.approx(3.75, rel=0.4)
    assert not {"late_p99_us", "stalled_pct"} & point(QUIET).metrics.keys()


def test_stalls_of_all_cpus_are_those_of_hosts_unless_the_network_stands_still() -> None:
    of_hosts, of_all = point(stalls_of("hosts", 4)), point(stalls_of("all", 4), STRICT)
    assert of_hosts.flows == of_all.flows
    elastic = point(stalls_of("all", 4))
    assert elastic.flows != of_all.flows
    assert elastic.metrics["late_p999_us"] == 0
    assert elastic.metrics["stalled_pct"] > 0


def test_a_clock_or_a_place_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="--clock atomic: unknown"):
        point(QUIET, "atomic")
    with pytest.raises(UsageError, match="choose from: fabric, hosts, all"):
        point(dataclasses.replace(stalls_of("all", 4), where="moon"))
