"""A program and a constant for algorithms that reduce once per round trip with losses or marks."""

from __future__ import annotations

PER_ROUND_TRIP = """
acked: volatile = 0
lost: volatile = 0
marked: volatile = 0
timeout: volatile = 0
rtt_us: report = 0
inflight: volatile = 0

acked += Ack.bytes_acked
lost += Ack.lost_pkts_sample
marked += Ack.ecn_packets
timeout = max(timeout, Flow.was_timeout)
inflight = max(inflight, Flow.bytes_in_flight + Ack.bytes_acked)
if Flow.rtt_sample_us < 4294967295:
    rtt_us = Flow.rtt_sample_us
if Ack.lost_pkts_sample > 0 or Ack.ecn_packets > 0 or Flow.was_timeout:
    Micros = 0
    report()
if Micros > Flow.report_us:
    Micros = 0
    report()
"""
HOLD = 1.5
"""Round trips after a reduction in which losses and marks still belong to it: of packets sent before it."""
