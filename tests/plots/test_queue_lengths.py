"""The chart of one queue under several transports."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from model.result import Table
from plots.charts import queue_lengths
from plots.data import Point
from plots.registry import CHARTS
from tests.support.chart_points import changed, flow_row, point, port_row
from tests.support.svg_text import words_of


def on_star(cc: str, ecn_pkts: int, pkts: int) -> Point:
    """Return a point with two flows of 2 Mb/s; port 3 queues `pkts`, except at one instant in ten."""
    ports = (
        port_row(0, "h0", "s", "host-edge"),
        dataclasses.replace(port_row(1, "s", "h0", "edge-host"), tx_bytes=10),
        port_row(3, "s", "h1", "edge-host"),
    )
    times = np.arange(-10, 50) / 10
    rows = [(float(t), 3, pkts) for i, t in enumerate(times) if i % 10]
    hosts = [(float(t), 0, 999) for t in times]
    tables = {
        "queues": Table.from_rows(("t_s", "port", "pkts"), rows + hosts),
        "queue_times": Table({"t_s": times}),
    }
    return changed(
        point(1), topology="star", cc=cc, ecn_pkts=ecn_pkts, ports=ports, queue_pkts=460,
        flows=(flow_row(0), flow_row(1)), read_table=tables.get,
    )  # fmt: skip


ALL = [on_star("reno", 0, 380), on_star("reno", 20, 4), on_star("dctcp", 20, 17)]


def test_transports_that_differ_in_marking_share_a_chart(tmp_path: Path) -> None:
    (path,) = CHARTS["bottleneck"].draw(ALL, tmp_path)
    text = words_of(path)
    assert "380 packets with TCP, drop-tail; 4 packets with TCP, ECN; 17 packets with" in text
    assert "TCP DCTCP, ECN: 4.0 Mb/s" in text
    assert "s\N{RIGHTWARDS ARROW}h1" in text, "the port that sends most, and no host's own"


def test_only_the_measured_window_counts() -> None:
    of = queue_lengths.queue(ALL[0])
    assert of is not None
    assert (of.port.port, len(of.t_s), of.t_s[0]) == (3, 50, 0)
    assert sorted(set(of.pkts.tolist())) == [0, 380]
