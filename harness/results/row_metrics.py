"""The metrics that follow from a point's rows. They are computed once, when the point is stored."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from analysis import stats
from analysis.completion import completions, percentile
from engines.registry import STEADY_STATE
from model.result import UDP, FlowRow, PortRow, array, distinct, under_test
from model.spec import RunSpec


def row_metrics(spec: RunSpec, flows: Sequence[FlowRow], ports: Sequence[PortRow]) -> dict[str, float]:
    """Return the metrics of a point's flows and ports; those that it does not have are missing.

    Goodput and Jain's index are of the flows under test, retransmits and drops of all flows and ports;
    completions are of sized flows that started in the measured window (`fct_ms`, `slowdown`), and
    `flows_sized` counts all flows with a size. `constant` are flows of constant rate.
    """
    found: dict[str, float] = {}
    if goodputs_mbps := array(under_test(flows), "goodput_mbps").tolist():
        spread = stats.spread(goodputs_mbps)
        found |= {
            "goodput_mbps_mean": spread.mean,
            "goodput_mbps_min": spread.minimum,
            "goodput_mbps_median": spread.median,
            "goodput_mbps_max": spread.maximum,
            "jain": stats.jain(goodputs_mbps),
            **_completions(flows),
            **_constant_rate(flows),
        }
    if spec.engine not in STEADY_STATE:  # there are no packets
        found |= {"retransmits": int(array(flows, "retransmits").sum())} if flows else {}
        found |= {"drops": int(array(ports, "drops").sum())} if ports else {}
    return found


def _completions(flows: Sequence[FlowRow]) -> dict[str, float]:
    of = completions(flows)
    if not of.started:
        return {}
    found: dict[str, float] = {
        "flows_started": of.started,
        "flows_completed": len(of.completed),
        "flows_sized": int((array(flows, "size_bytes") != 0).sum()),
    }
    if took_ms := of.took_ms:
        mean = statistics.fmean(took_ms)
        found["fct_ms_mean"], found["fct_ms_median"] = mean, statistics.median(took_ms)
        found["fct_ms_p99"] = percentile(took_ms, 99)
        found["fct_variation_pct"] = 100 * statistics.pstdev(took_ms) / mean if mean else 0.0
    if slowdowns := of.slowdowns:
        found["slowdown_mean"], found["slowdown_p99"] = statistics.fmean(slowdowns), percentile(slowdowns, 99)
    return found


def _constant_rate(flows: Sequence[FlowRow]) -> dict[str, float]:
    if UDP not in distinct(flows, "transport"):
        return {}
    constant = [flow for flow in flows if flow.transport == UDP]
    return {
        "constant_flows": len(constant),
        "constant_rate_mbps_min": min(flow.rate_mbps for flow in constant),
        "constant_rate_mbps_max": max(flow.rate_mbps for flow in constant),
        "constant_sent_pkts": sum(flow.sent_pkts for flow in constant),
        "constant_lost_pkts": sum(flow.lost_pkts for flow in constant),
    }
