"""Reno in the datapath alone: its program sets the window on each acknowledgement and never reports."""

from __future__ import annotations

from ccp import Algorithm, Flow, Report


class FoldReno(Algorithm):
    program = """
ssthresh: report = infinity
hold_us: report = 0
before: report = 0

if Flow.was_timeout and before > 2896:
    ssthresh = max(before // 2, 2896)
if Ack.lost_pkts_sample > 0 and Ack.now > hold_us:
    Cwnd = max(Cwnd // 2, 2896)
    ssthresh = Cwnd
    hold_us = Ack.now + Flow.rtt_sample_us + Flow.rtt_sample_us // 2
if Ack.lost_pkts_sample == 0 and Cwnd < ssthresh:
    Cwnd = Cwnd + Ack.bytes_acked
if Ack.lost_pkts_sample == 0 and Cwnd > ssthresh:
    Cwnd = Cwnd + 1448 * Ack.bytes_acked // Cwnd
before = Cwnd
"""

    def on_report(self, flow: Flow, report: Report) -> None:
        """Never called."""
