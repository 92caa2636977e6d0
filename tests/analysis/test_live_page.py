"""A live page: networks drawn in layers, and steps of running and of stored points."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

import numpy as np
import pytest

import topos
from analysis.live_page import MAX_NODES, Drawing, View, between, draw, encode, short_floats, stored
from model.result import SAMPLE_COLUMNS, Instant, Table, Windows
from topos.topology import Topology

SMALL = ["ft,4", "ft,8", "dhft,4", "ls,4", "star,6", "db,3", "vl2,4", "bcube,4", "two,4"]


def drawn(text: str) -> tuple[Topology, Drawing]:
    topology = topos.build(*topos.parse(text))
    return topology, draw(topology)


@pytest.mark.parametrize("text", SMALL)
def test_every_node_has_a_place_of_its_own(text: str) -> None:
    topology, drawing = drawn(text)
    assert drawing.whole
    places = {(round(spot.x, 6), round(spot.y, 6)) for spot in drawing.spots}
    assert len(places) == len(topology.nodes)
    assert all(0 <= spot.x <= 1 and 0 <= spot.y <= 1 for spot in drawing.spots)
    assert np.array_equal(drawing.half_of, np.arange(2 * len(topology.links)))


def test_a_large_network_is_drawn_by_pod() -> None:
    topology, drawing = drawn("ft,16")
    assert len(topology.nodes) > MAX_NODES and not drawing.whole
    assert len(drawing.spots) == 3 * 16 + 1 and len(drawing.lines) == 3 * 16
    assert sum(spot.nodes for spot in drawing.spots) == len(topology.nodes)
    assert len(drawing.half_of) == 2 * len(topology.links)
    for link, cable in enumerate(topology.links):
        up, down = drawing.half_of[2 * link : 2 * link + 2]
        assert up // 2 == down // 2 and up != down
        low, high = drawing.lines[up // 2]
        ends = (drawing.spot_of[cable.a], drawing.spot_of[cable.b])
        assert ends == ((low, high) if up % 2 == 0 else (high, low))


def test_many_pods_share_places() -> None:
    _, drawing = drawn("ls,200")
    assert len(drawing.pods) <= 64 and drawing.pods[0].name == "pods 0 to 3"


SHOWN = View(np.arange(4), 4, np.full(4, 8_000_000), 2, np.array([0, 2, 3]))
"""Two lines of 8 Mb/s; flow 0 has two subflows, flow 1 has one."""


def instant(t_s: float, sent: int, drops: int, acked: int, delivered: int = 0) -> Instant:
    windows = Windows(
        np.array([0, 0, 1, 9]),
        np.array([0, 1, 0, 0]),
        np.array([10.0, 20.0, 30.0, 1.0]),
        np.array([1.0, 2.0, 3.0, 1.0]),
        np.array([acked, 2 * acked, 0, 7]),
    )
    ports = np.array([sent, 0, 0, 2 * sent])
    queued = np.array([5, 0, 0, 1])
    return Instant(t_s, ports, np.array([0, drops, 0, 0]), queued, np.array([delivered, -1, 5]), windows)


def test_numbers_keep_three_digits() -> None:
    values = np.array([0.0, 1.0, 99.7, 1e-5, 123456.0, np.nan])
    upper = np.frombuffer(base64.b64decode(short_floats(values)), "<u2").astype(np.uint32) << 16
    read = upper.view(np.float32)
    assert np.allclose(read[:-1], values[:-1], rtol=2**-8) and np.isnan(read[-1])


def test_a_step_is_the_difference_of_two_instants() -> None:
    step = between(instant(1.0, 0, 3, 0), instant(3.0, 1_000_000, 7, 250_000, 500_000), SHOWN)
    assert step.used_pct.tolist() == [50.0, 0.0, 0.0, 100.0]
    assert step.drops.tolist() == [0, 4, 0, 0] and step.queued_pkts.tolist() == [5, 0, 0, 1]
    assert step.goodput_mbps[0] == 2.0 and np.isnan(step.goodput_mbps[1])
    assert step.cwnd_pkts.tolist() == [10.0, 20.0, 30.0]
    assert step.rate_mbps.tolist() == [1.0, 2.0, 0.0]


def test_instants_survive_the_way_out_of_the_namespaces() -> None:
    sent = instant(1.5, 7, 8, 9)
    assert sent.windows is not None
    got = Instant.from_json(json.loads(json.dumps(sent.to_json())))
    assert got.windows is not None and got.t_s == 1.5
    assert np.array_equal(got.sent_bytes, sent.sent_bytes)
    assert np.array_equal(got.windows.cwnd_pkts, sent.windows.cwnd_pkts)


def tables(times: list[float]) -> dict[str, Table]:
    sockets = [(t, 0, 1, 10.0 + t, 1.0, 0.1, 0, round(125_000 * t), 1, 0, 0.0, 0.0) for t in times if t >= 1]
    rows: dict[str, Sequence[Sequence[float]]] = {
        "links": [(t, 0, 40.0) for t in times],
        "goodput": [(t, 0, 2.0 * t) for t in times],
        "ports": [(t, 1, 3, 2) for t in times],
        "sockets": sockets,
    }
    return {name: Table.from_rows(SAMPLE_COLUMNS[name], these) for name, these in rows.items()}


def test_a_stored_point_has_a_step_for_each_second() -> None:
    steps = stored(tables([1.0, 2.0, 3.0]), SHOWN, 100)
    assert [step.t_s for step in steps] == [1.0, 2.0, 3.0]
    assert all(step.used_pct.tolist() == [40.0, 0.0, 0.0, 0.0] for step in steps)
    assert all(step.drops.tolist() == [0, 2, 0, 0] for step in steps)
    assert [step.goodput_mbps[0] for step in steps] == [2.0, 4.0, 6.0]
    assert [step.cwnd_pkts[1] for step in steps] == [11.0, 12.0, 13.0]
    assert np.isnan(steps[0].rate_mbps[1]) and steps[2].rate_mbps[1] == 1.0
    assert np.isnan(steps[0].cwnd_pkts[0])


def test_too_many_steps_are_joined() -> None:
    steps = stored(tables([1.0, 2.0, 3.0, 4.0, 5.0]), SHOWN, 3)
    assert [step.t_s for step in steps] == [2.0, 4.0, 5.0]
    assert [step.goodput_mbps[0] for step in steps] == [3.0, 7.0, 10.0]
    assert [step.drops[1] for step in steps] == [4, 4, 2]
    assert [step.queued_pkts[1] for step in steps] == [3, 3, 3]
    assert [step.used_pct[0] for step in steps] == [40.0, 40.0, 40.0]


def test_without_queue_samples_queues_are_unknown() -> None:
    older = {name: table for name, table in tables([1.0]).items() if name != "ports"}
    assert np.isnan(stored(older, SHOWN, 9)[0].queued_pkts).all()


def test_rows_of_unknown_ports_and_flows_are_left_out() -> None:
    odd = tables([1.0])
    odd["links"] = Table.from_rows(SAMPLE_COLUMNS["links"], [(1.0, 0, 10.0), (1.0, 99, 80.0), (1.0, -1, 5.0)])
    odd["goodput"] = Table.from_rows(SAMPLE_COLUMNS["goodput"], [(1.0, 7, 3.0), (1.0, -2, 3.0)])
    step = stored(odd, SHOWN, 9)[0]
    assert step.used_pct.tolist() == [10.0, 0.0, 0.0, 0.0] and step.goodput_mbps.tolist() == [0.0, 0.0]


def test_an_encoded_step_is_as_long_as_promised() -> None:
    step = stored(tables([1.0]), SHOWN, 9)[0]
    text = json.dumps(encode(step))
    assert len(text) <= SHOWN.step_bytes + 20 * len(encode(step)["d"])
    assert encode(step)["d"] == [[1, 2]]


@pytest.mark.parametrize("flow", [-1, 2, 50])
def test_subflows_of_flows_that_are_not_shown_have_no_place(flow: int) -> None:
    at, seen = SHOWN.positions(np.array([flow, 0]), np.array([0, 5]))
    assert not len(at) and not seen.any()
