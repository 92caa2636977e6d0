"""Laws of windows and losses, and their terms measured in samples made by hand."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from analysis import laws
from analysis.plausibility import balances, unaccounted, undelivered_bytes
from model.result import FlowRow, PortRow, Table

PACKET_MS = 1.0


def test_both_models_are_one_where_losses_are_rare() -> None:
    assert [laws.mathis_pkts(p) for p in (1.5e-4, 1.5e-2)] == pytest.approx([100, 10])
    assert laws.padhye_pkts(1e-5, 3.0) == pytest.approx(laws.mathis_pkts(1e-5), rel=0.01)
    falls_short = [laws.padhye_pkts(p, 3.0) / laws.mathis_pkts(p) for p in (1e-3, 1e-2, 1e-1)]
    assert falls_short == sorted(falls_short, reverse=True)
    assert falls_short[-1] < 0.6


def test_a_link_carries_whole_frames_one_after_the_other() -> None:
    assert laws.fill_bytes(1.0, 12112e-6) == pytest.approx(1448)
    assert laws.packet_ms(10.0) == pytest.approx(1.2112)


def sockets(windows: list[float], step_s: float = 0.01, rtt_ms: float = 10.0) -> Table:
    rows = [(n * step_s, 0, 0, pkts, rtt_ms) for n, pkts in enumerate(windows)]
    return Table.from_rows(("t_s", "flow", "subflow", "cwnd_pkts", "srtt_ms"), rows)


def test_sawteeth_are_cut_at_their_falls() -> None:
    tooth = [float(n) for n in range(50, 101)]
    found = laws.sawteeth(sockets([*tooth, *tooth, *tooth, 50.0]))
    assert [saw.top_pkts for saw in found] == [100.0, 100.0]
    assert [saw.rounds for saw in found] == pytest.approx([51, 51])
    assert [saw.mean_pct for saw in found] == pytest.approx([75, 75])


def test_a_fall_by_steps_is_one_fall_and_no_fall_no_sawtooth() -> None:
    tooth = [*map(float, range(50, 101)), 85.0, 70.0, 58.0]
    assert len(laws.sawteeth(sockets(tooth * 3))) == 2
    assert laws.sawteeth(sockets([10.0] * 50)) == laws.sawteeth(sockets([])) == []


def port(
    number: int, node: str, peer: str, layer: str, packets: int, drops: int = 0, lost: int = 0
) -> PortRow:
    return PortRow(number, node, peer, layer, packets, 1514 * packets, drops, 0, packets / 10, lost=lost)


def chain(sent: int, dropped: int, lost: int, received: int) -> list[PortRow]:
    """Return the ports of host, switch, switch, host in a row; nothing flows back."""
    return [
        port(0, "h0", "s0", "host-edge", sent),
        port(1, "s0", "h0", "edge-host", 0),
        port(2, "s0", "s1", "edge-edge", sent - dropped, drops=dropped, lost=lost),
        port(3, "s1", "s0", "edge-edge", 0),
        port(4, "s1", "h1", "edge-host", received),
        port(5, "h1", "s1", "host-edge", 0),
    ]


def test_what_came_was_sent_or_dropped() -> None:
    ports = chain(100, 10, 5, 85)
    assert [(b.node, b.arrived, b.sent, b.dropped) for b in balances(ports)] == [
        ("s0", 100, 90, 10),
        ("s1", 85, 85, 0),
    ]
    assert unaccounted(ports) == 0


@pytest.mark.parametrize("received", [84, 86])
def test_a_packet_too_few_or_too_many_is_found(received: int) -> None:
    assert unaccounted(chain(100, 10, 5, received)) == 1


def test_bytes_not_delivered_do_not_cancel() -> None:
    one = FlowRow(0, "", "", "", "", 1, 2, "tcp", 1, 1, "reno", 1.0, 900, 0, 0.0, size_bytes=1000)
    other = dataclasses.replace(one, bytes_received=1100)
    assert undelivered_bytes([one, other]) == 200
    assert undelivered_bytes([dataclasses.replace(one, size_bytes=0)]) == 0


def test_losses_are_counted_where_data_goes() -> None:
    ports = chain(100, 0, 5, 95)
    ports[3] = dataclasses.replace(ports[3], tx_packets=50, tx_bytes=50 * 66, lost=20)
    assert laws.lost_share(ports) == pytest.approx(0.05)
    assert laws.lost_share([]) == 0.0


def test_waits_follow_the_queues_on_the_way() -> None:
    """The first and the last link are ten times as fast: a packet there counts a tenth."""
    ports = [
        dataclasses.replace(row, utilisation_pct=row.utilisation_pct / (10 if row.port in {0, 4} else 1))
        for row in chain(100, 0, 0, 100)
    ]
    way = laws.way_out(ports)
    assert way == pytest.approx({0: 0.1, 2: 1.0, 4: 0.1})
    instants = [0.1 * n for n in range(10)]
    times = Table.from_rows(("t_s",), [(t,) for t in instants])
    queues = Table.from_rows(
        ("t_s", "port", "pkts"), [(t, p, n + 1) for n, t in enumerate(instants) for p in (0, 2)]
    )
    out = [5 + PACKET_MS * 1.1 * (n + 0.5) for n in range(10)]
    pings = Table.from_rows(
        ("t_s", "flow", "subflow", "rtt_ms", "out_ms"),
        [(t, 0, 0, 9.0, ms) for t, ms in zip(instants, out, strict=True)],
    )
    found = laws.waits(pings, queues, times, way)
    assert found is not None
    assert found.queued == pytest.approx(1.1 * np.arange(1, 11))
    assert found.line == pytest.approx((PACKET_MS, 5.0))
    assert laws.waits(pings, Table.from_rows(("t_s", "port", "pkts"), []), times, way) is None
