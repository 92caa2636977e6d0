"""HPCC (Li et al., SIGCOMM 2019): keeps what is in flight below what the busiest hop of the path can carry.

Every switch writes queue length, bytes sent, link rate and time into each packet, and the receiver returns
them to the sender (in-band network telemetry, INT). So the simulator alone has it. All of algorithm 1 is in
the program, which acts on every acknowledgement; the agent does nothing. A loss changes nothing either:
readings have shown the queue before. The paper's flows begin with a bandwidth-delay product, these with the
stack's initial window. The rate holds where the datapath keeps two packets and the window is smaller.
"""

from __future__ import annotations

from ccp import Algorithm, Flow, Report

ETA = 950_000
"""The target load of a hop, eta, in millionths (section 5.1)."""
MAX_STAGE = 5
"""Additive increases in a row, after which a multiplicative one is allowed: maxStage (section 5.1)."""
FLOWS = 100
"""N of W_AI = B T (1 - eta) / N: flows at once that leave room above the target load (section 3.3). It is 100
in the paper's setting, 80 bytes at 100 Gb/s and 13 us."""


class Hpcc(Algorithm):
    # U, u and eta are in millionths. `reference` is W^c, `stage` incStage; when `left` is acknowledged,
    # so is lastUpdateSeq.
    program = f"""
load: report = 1000000
reference: report = 0
stage: report = 0
left: report = 0
base_us: report = infinity

base_us = min(base_us, Flow.rtt_sample_us)
reference = reference if reference > 0 else Cwnd
updates = left == 0
left -= min(left, Ack.bytes_acked)
if Hop.interval_ns > 0:
    base_ns = 1000 * base_us
    carries = max(Hop.link_rate * base_us // 1000000, 1)
    u = 1000000 * Hop.queue_bytes // carries + 1000000 * Hop.rate // Hop.link_rate
    tau = min(Hop.interval_ns, base_ns)
    load = ((base_ns - tau) * load + tau * u) // base_ns
    scales = load > {ETA - 1} or stage > {MAX_STAGE - 1}
    increment = carries * {1_000_000 - ETA} // {FLOWS * 1_000_000}
    Cwnd = (reference * {ETA} // max(load, 1) if scales else reference) + increment
    stage = (0 if scales else stage + 1) if updates else stage
    reference = Cwnd if updates else reference
    left = Flow.bytes_in_flight if updates else left
    Rate = Cwnd * 1000000 // base_us
if Micros > Flow.report_us:
    Micros = 0
    report()
"""

    def on_report(self, flow: Flow, report: Report) -> None:
        pass
