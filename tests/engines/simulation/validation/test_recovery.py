"""Cost of losses: how many packets are retransmitted, and in what bursts."""

from __future__ import annotations

import dataclasses

import pytest

from model.spec import LinkSpec, TopologySpec
from tests.support import simulated_networks as lab


@pytest.mark.parametrize("sack", [True, False])
def test_many_flows_at_a_small_queue_send_little_in_vain(sack: bool) -> None:
    """Acknowledgements that close long gaps must not open windows by all they cover: without SACK each
    timeout would end in a burst that overflows the queue, and in the next timeout."""
    topology = TopologySpec("dumbbell", {"n": 16, "lanes": 1})
    link = LinkSpec(100.0, 10.0, queue_pkts=100, random_pkts=3)
    spec = lab.spec_of(topology, link, dataclasses.replace(lab.PLAIN, sack=sack, ssthresh=100))
    network = lab.build(spec)
    flows = [lab.flow(network, i, (f"l0h{i}", f"r0h{i}"), start_ps=i * lab.MS) for i in range(16)]
    simulation = lab.simulate(spec, flows)
    simulation.run_until(20 * lab.S)
    ports, subflows = simulation.ports(), simulation.subflows()
    sent_again, dropped = int(subflows["retransmits"].sum()), ports["dropped"]
    assert dropped < 0.03 * ports["injected"]
    assert sent_again < (1.1 if sack else 2.0) * dropped
    delivered = float(simulation.flows()["delivered_bytes"].sum())
    assert delivered > 0.97 * 20 * 100e6 / 8 * lab.PLAIN.payload_bytes / lab.PACKET_BYTES
