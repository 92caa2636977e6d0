"""The chart of one queue under several transports."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from model.result import Status, Table
from plots.charts import queue_lengths
from plots.data import Inputs, Point
from tests.support.chart_points import changed, flow_row, point, port_row
from tests.support.svg_text import words_of


def on_star(cc: str, ecn_pkts: int, pkts: int, seed: int = 1, status: Status = Status.OK) -> Point:
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
        point(1, seed, status), topology="star", cc=cc, ecn_pkts=ecn_pkts, ports=ports, queue_pkts=460,
        flows=(flow_row(0), flow_row(1)), read_table=tables.get,
    )  # fmt: skip


ALL = [on_star("reno", 0, 380), on_star("reno", 20, 4), on_star("dctcp", 20, 17)]


def test_transports_that_differ_in_marking_share_a_chart(tmp_path: Path) -> None:
    (path,) = queue_lengths.draw_bottleneck(Inputs(ALL, tmp_path))
    text = words_of(path)
    assert "Median queue: 380 packets with TCP, drop-tail; 4 packets with TCP, ECN; 17 packets with" in text
    assert "TCP DCTCP, ECN: 4.0 Mb/s" in text
    assert "s\N{RIGHTWARDS ARROW}h1" in text, "the port that sends most, and no host's own"
    assert "from 20 packets on" in text.replace("\n", " ") and "reno+dctcp" in text
    assert path.stat().st_size < 100_000


def test_only_the_measured_window_counts() -> None:
    of = queue_lengths.queue(ALL[0])
    assert of is not None
    assert (of.port.port, len(of.t_s), of.t_s[0]) == (3, 50, 0)
    assert sorted(set(of.pkts.tolist())) == [0, 380]


def test_gaps_and_doubts_are_shown(tmp_path: Path) -> None:
    points = [ALL[0], on_star("reno", 20, 4, status=Status.SUSPECT), on_star("dctcp", 20, 17)]
    points[2] = changed(points[2], read_table=lambda _: None)
    text = words_of(queue_lengths.draw_bottleneck(Inputs(points, tmp_path))[0])
    assert "not sampled: TCP DCTCP, ECN" in text
    assert "TCP, ECN (suspect)" in text and "reason of suspect" in text


def test_a_good_seed_goes_before_a_suspect_one(tmp_path: Path) -> None:
    text = words_of(
        queue_lengths.draw_bottleneck(
            Inputs([on_star("reno", 0, 9, 1, Status.SUSPECT), on_star("reno", 0, 7, 2)], tmp_path)
        )[0]
    )
    assert "Median queue: 7 packets with TCP, drop-tail" in text and "suspect" not in text


def test_another_network_has_another_chart(tmp_path: Path) -> None:
    wider = changed(ALL[2], rate_mbps=100.0)
    assert len(queue_lengths.draw_bottleneck(Inputs([*ALL, wider], tmp_path))) == 2
