"""HPCC (Li et al., SIGCOMM 2019): its law by hand, what switches measure for it, and its queues."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ccp.algorithms import hpcc
from ccp.loading import load
from common.errors import UsageError
from engines.kernel_hosts import check_spec
from engines.simulation.engine import SimulatorEngine
from harness.options import parsers
from model.result import RunResult, Status
from model.spec import LinkSpec, RunSpec, SamplingSpec, StackSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.agents.ccp_model import Native, primitives
from tests.support.simulated_networks import result_of

HPCC = "ccp:hpcc"
GBPS = 125_000_000
"""Bytes per second."""
US = 1000
HEADER, PAYLOAD = 66, 1448
EACH = StackSpec(delayed_ack_ms=0.0)
"""Every packet is acknowledged; usually every second is."""


class Sender:
    """A flow with a window of 10 000 bytes and a lowest round-trip time of 100 us on links of 1 Gb/s: B T is
    12 500 bytes, W_AI 12 500 * 0.05 / 100 = 6.25 bytes, rounded down."""

    def __init__(self) -> None:
        self.flow = Native(load(HPCC)[1].programs[0], window=10_000)
        self.acknowledge(0, interval_us=0)

    def acknowledge(
        self,
        acked: int,
        *,
        rate: float = 1.0,
        queue: int = 0,
        interval_us: float = 100,
        in_flight: int = 3000,
        rtt_us: int = 100,
    ) -> tuple[int, int]:
        """Take an acknowledgement with such readings; `rate` is a share. Return the window and the rate."""
        measured = primitives(
            bytes_acked=acked, bytes_in_flight=in_flight, rtt_sample_us=rtt_us, report_us=10**9,
            rate=round(rate * GBPS), link_rate=GBPS, queue_bytes=queue, interval_ns=round(interval_us * US),
        )  # fmt: skip
        assert self.flow.acknowledge(measured, 0) is None
        assert self.flow.errors == 0
        return self.flow.window, self.flow.rate


def test_the_law_by_hand() -> None:
    """Algorithm 1: lines 1 to 9 are the load, 10 to 20 the window, 21 to 27 what an acknowledgement does."""
    sender = Sender()
    assert sender.flow.window == 10_000, "without readings it stays"
    # u = 2500 / 12 500 + 0.5 = 0.7, below eta: W = W^c + W_AI, and R = W / T.
    assert sender.acknowledge(0, rate=0.5, queue=2500) == (10_006, 100_060_000)
    # u = 2 for half a round-trip time: U = 0.5 * 0.7 + 0.5 * 2 = 1.35. W^c is still 10 006.
    assert 10_006 * 95 // 135 + 6 == 7047
    assert sender.acknowledge(1000, queue=12_500, interval_us=50) == (7047, 70_470_000)
    assert sender.acknowledge(1000, queue=4375) == (7047, 70_470_000), "W^c, not W, is reduced again"
    assert sender.acknowledge(1000, queue=4375) == (7047, 70_470_000), "all is acknowledged, and nothing more"
    # The first that was sent after the last update: W^c becomes W.
    assert sender.acknowledge(1000, queue=4375) == (7047, 70_470_000)
    assert sender.acknowledge(0, queue=4375)[0] == 7047 * 95 // 135 + 6


def test_after_five_increases_the_window_is_scaled() -> None:
    """incStage: in five round trips W^c grows by W_AI, in the sixth it goes to the target at once."""
    sender = Sender()
    windows = [sender.acknowledge(3000, rate=0.5)[0] for _ in range(2 * hpcc.MAX_STAGE + 2)]
    grown = [10_000 + 6 * (i + 1) for i in range(hpcc.MAX_STAGE)]
    # Every second acknowledgement is the first of what was sent after an update.
    assert windows[0::2][: hpcc.MAX_STAGE] == grown
    assert windows[2 * hpcc.MAX_STAGE] == 10_030 * 95 // 50 + 6


def test_a_longer_time_between_readings_counts_as_one_round_trip() -> None:
    sender = Sender()
    sender.acknowledge(0, rate=1.9, interval_us=1000)
    assert sender.flow.registers[0] == 1_900_000
    sender.acknowledge(0, rate=0.9, interval_us=25)
    assert sender.flow.registers[0] == (75 * 1_900_000 + 25 * 900_000) // 100


def test_a_window_below_two_packets_is_paced() -> None:
    sender = Sender()
    for _ in range(20):
        window, rate = sender.acknowledge(3000, queue=12_500)
    assert window == 2000, "the datapath's least, of packets of 1000 bytes"
    assert rate < 1_000_000, "a packet in ten round-trip times, or less"


def network(cc: str, hosts: int, **changes: Any) -> RunSpec:
    """`hosts` on either side of a bottleneck of 1 Gb/s with a round trip of 0.93 ms: 77 packets."""
    spec = RunSpec(
        LinkSpec(1000.0, delay_us=150.0, queue_pkts=1000),
        TopologySpec("dumbbell", {"n": hosts, "access": 10}), TransportSpec(1, cc), WorkloadSpec("stride"),
        engine="simulator", warmup_s=1.0, seconds=0.3, sampling=SamplingSpec(sockets_ms=10),
    )  # fmt: skip
    return dataclasses.replace(spec, **changes)


def longest_queue(result: RunResult) -> int:
    return max(port.max_queue_pkts for port in result.ports if not port.layer.startswith("host-"))


@pytest.mark.parametrize("hosts", [1, 2, 4, 8])
def test_flows_share_the_target_load_and_leave_no_queue(hosts: int) -> None:
    """95 % of the link, windows being whole packets; and each flow may have two packets in the queue, as
    windows and readings change once per round trip (figure 11 of the paper: queues near zero)."""
    result = result_of(network(HPCC, hosts))
    assert result.status is Status.OK
    goodput = [flow.goodput_mbps for flow in result.flows if flow.src.startswith("l")]
    target = 0.95 * 1000 * PAYLOAD / (PAYLOAD + HEADER)
    assert 0.95 * target < sum(goodput) <= 1.005 * target
    assert min(goodput) > 0.7 * sum(goodput) / hosts
    assert longest_queue(result) <= 3 + 2 * hosts
    assert result.metrics["drops"] == result.metrics["agent_errors"] == 0
    if hosts == 8:
        assert longest_queue(result_of(network("reno", hosts))) > 500


def test_the_busiest_of_several_hops_counts() -> None:
    """Ten senders to one host: the last hop is full, those before it are not."""
    incast = WorkloadSpec("incast", {"packets": 10_000})
    spec = network(HPCC, 1, topology=TopologySpec("fat_tree", {"k": 4}), workload=incast, warmup_s=0.2)
    result = result_of(spec)
    assert 0.9 * 1000 < sum(flow.goodput_mbps for flow in result.flows) * 1514 / 1448 < 960
    assert result.metrics["drops"] == 0


def test_every_acknowledgement_may_bring_readings() -> None:
    result = result_of(network(HPCC, 2, stack=EACH))
    assert sum(flow.goodput_mbps for flow in result.flows if flow.src.startswith("l")) > 830
    assert longest_queue(result) < 12


HOPS = '''
from ccp import Algorithm, Flow, Report


class Hops(Algorithm):
    program = """
rate: report = 0
link_rate: report = 0
queue: report = 0
interval: report = 0

rate = Hop.rate
link_rate = Hop.link_rate
queue = Hop.queue_bytes
interval = Hop.interval_ns
report()
"""

    def on_create(self, flow: Flow) -> None:
        flow.set(cwnd_bytes=30 * flow.mss)

    def on_report(self, flow: Flow, report: Report) -> None:
        if report.t_us > 500_000 and report.t_us < 501_000:
            raise ValueError(f"{report.rate} {report.link_rate} {report.queue} {report.interval}")
'''


def test_a_programs_readings_are_those_of_the_bottleneck(tmp_path: Path) -> None:
    """A window of 30 packets on a path that holds fewer: the rest waits at the bottleneck, which sends
    packet after packet."""
    path = tmp_path / "hops.py"
    path.write_text(HOPS)
    (own,) = parsers.ccs("--cc", str(path))
    link = LinkSpec(100.0, delay_us=100.0, queue_pkts=1000)
    result = result_of(
        network(own, 1, link=link, stack=EACH, workload=WorkloadSpec("reference"), seconds=0.1)
    )
    rate, link_rate, queue, interval = map(
        int, result.provenance["agent_traceback"].split("ValueError: ")[1].split()
    )
    packet = PAYLOAD + HEADER
    assert link_rate == pytest.approx(12_500_000, rel=1e-4), "clocks differ"
    assert rate == pytest.approx(link_rate, rel=1e-6)
    assert interval == pytest.approx(1e9 * packet / link_rate, rel=1e-4)
    # Six hops of 100 us; a packet takes 12.1 us on the access links, an acknowledgement 0.5 and 5.3 us.
    empty_us = 6 * 100 + 2 * 12.1 + 2 * 0.5 + 5.3
    held = empty_us * link_rate / 1e6 / packet
    assert queue / packet == pytest.approx(30 - 1 - held, abs=1.0)


def test_who_cannot_measure_it_says_so() -> None:
    spec = network(HPCC, 1)
    with pytest.raises(UsageError, match=r"--cc ccp:hpcc: it reads what switches write into packets \(Hop"):
        check_spec(spec, spec.network(), ())
    with pytest.raises(UsageError, match="acks=at_once: no packet brings back"):
        SimulatorEngine().check(dataclasses.replace(spec, stack=StackSpec(acks="at_once")))
