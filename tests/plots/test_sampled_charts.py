"""Charts of samples and of single studies: drawn from whatever there is, with notes on gaps."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from analysis.quantities import LINKS_BUSY_PCT
from analysis.sequential import MIN_PAIRS, pair_transfers
from model.result import NO_VALUE, FlowRow, Status, Table
from model.spec import LinkEvent
from model.tuning import KERNELS_OWN, UNTOUCHED, WMEM
from plots.charts import cpu, queue_lengths, windows_and_rtt
from plots.charts.link_failure import over_time, stalled_pct, while_down_pct
from plots.data import Inputs
from plots.registry import CHARTS
from tests.support.chart_points import Point, changed, flow_row, level, point, port_row, sampled
from tests.support.svg_text import words_of

OF_SAMPLES = ("link_utilisation", "rtt", "queues", "queue_cdf", "cwnd", "cpu")
MAX_BYTES = 300_000
SUSPECT, FAILED = Status.SUSPECT, Status.FAILED
EMPTY = {
    "queues": ("t_s", "port", "pkts"),
    "queue_times": ("t_s",),
    "sockets": ("t_s", "flow", "subflow", "cwnd_pkts"),
    "cpu": ("t_s", "user_pct", "system_pct", "softirq_pct", "steal_pct"),
}


def with_table(of: Point, name: str, table: Table | None) -> Point:
    return changed(of, tables=lambda asked: table if asked == name else of.read_table(asked))


def emptied(of: Point) -> Point:
    """Return the point with every table, but without rows."""
    return changed(of, tables=lambda name: Table.from_rows(EMPTY[name], ()))


def one_flow(of: Point) -> Point:
    return changed(of, flows=of.flows[:1])


CASES: dict[str, list[Point]] = {
    "all there": [sampled(1), sampled(2), sampled(8)],
    "every status": [sampled(1), sampled(2, status=FAILED), sampled(4, status=SUSPECT)],
    "seeds": [sampled(n, seed) for n in (1, 8) for seed in range(1, 7)],
    "unbounded": [sampled(1, queue_pkts=0), sampled(8, queue_pkts=0)],
    "one flow": [one_flow(sampled(1)), one_flow(sampled(8))],
    "no queue times": [sampled(1, without=("queue_times",))],
    "only metrics": [sampled(1, without=("cpu", "queues", "sockets", "pings"))],
    "only mptcp": [sampled(8)],
}


@pytest.mark.parametrize("name", OF_SAMPLES)
@pytest.mark.parametrize("case", CASES)
def test_whatever_there_is_gives_a_readable_chart(case: str, name: str, tmp_path: Path) -> None:
    paths = CHARTS[name].draw(Inputs(CASES[case], tmp_path, expected=(1, 2, 8)))
    unsampled = case == "only metrics" and name in ("queues", "queue_cdf", "cwnd")
    assert len(paths) == (not unsampled)
    for path in paths:
        assert "k=4, 16 hosts" in words_of(path)
        assert path.stat().st_size < MAX_BYTES


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_nothing_to_show_is_no_chart_and_no_error(name: str, tmp_path: Path) -> None:
    for points in ([point(1, status=FAILED)], [point(1)], [emptied(point(1)), emptied(point(8))]):
        assert CHARTS[name].draw(Inputs(points, tmp_path)) == []
    drawn = CHARTS[name].draw(Inputs([emptied(sampled(1)), emptied(sampled(8))], tmp_path))
    assert len(drawn) == (name in ("link_utilisation", "rtt", "cpu")), "these need no table"


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_a_table_is_read_at_most_once(name: str, tmp_path: Path) -> None:
    reads: Counter[tuple[int, str]] = Counter()

    def counted(of: Point) -> Point:
        def read(table: str) -> Table | None:
            reads[of.subflows, table] += 1
            return of.read_table(table)

        return changed(of, tables=read)

    CHARTS[name].draw(Inputs([counted(sampled(n)) for n in (1, 2, 4, 8)], tmp_path))
    assert max(reads.values(), default=1) == 1
    assert sum(reads.values()) <= 10


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_gaps_and_doubts_are_shown(name: str, tmp_path: Path) -> None:
    points = [sampled(1), sampled(2, status=FAILED), sampled(8, status=SUSPECT)]
    text = words_of(CHARTS[name].draw(Inputs(points, tmp_path, expected=(1, 2, 4, 8)))[0])
    for words in ("failed: MPTCP 2", "missing: MPTCP 4", "reason of suspect"):
        assert words in text, words


def test_a_machine_overloaded_on_purpose_is_named_and_its_points_count(tmp_path: Path) -> None:
    points = [changed(sampled(n), as_intended=True) for n in (1, 8)]
    text = words_of(CHARTS["cpu"].draw(Inputs([*points, sampled(2)], tmp_path))[0])
    assert "2 of 3 points lack CPU time, as intended." in text
    assert "suspect" not in text.lower()


@pytest.mark.parametrize("name", ("queues", "queue_cdf", "cwnd"))
def test_a_transport_without_samples_makes_room_for_one_with(name: str, tmp_path: Path) -> None:
    points = [sampled(1), sampled(2), sampled(8, without=("queues", "sockets"))]
    text = words_of(CHARTS[name].draw(Inputs(points, tmp_path))[0])
    assert "MPTCP 2" in text and "not sampled: MPTCP 8" in text


def big(queue_pkts: int) -> Point:
    """k=8 at 10 Hz for 60 s, half of the queues busy: 768 ports, 230 000 rows."""
    rng = np.random.default_rng(1)
    of = sampled(8, k=8, queue_pkts=queue_pkts)
    times = np.arange(-200, 400) / 10
    instants, ports = (grid.ravel() for grid in np.meshgrid(range(600), range(0, 768, 2), indexing="ij"))
    lengths = 1 + rng.integers(0, 100, len(instants)) + (0 if queue_pkts else instants // 2)
    tables = {
        "queues": Table({"t_s": times[instants], "port": ports, "pkts": lengths}),
        "queue_times": Table({"t_s": times}),
    }
    return changed(of, tables=tables.get)


@pytest.mark.parametrize("queue_pkts", (100, 0))
@pytest.mark.parametrize("name", ("queues", "queue_cdf"))
def test_real_sizes_stay_small_files(name: str, queue_pkts: int, tmp_path: Path) -> None:
    (path,) = CHARTS[name].draw(Inputs([big(queue_pkts)], tmp_path))
    assert path.stat().st_size < MAX_BYTES
    assert "640 switch queues" in words_of(path)


def test_many_flows_stay_small_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    flows = tuple(
        dataclasses.replace(
            flow_row(n),
            goodput_mbps=float(rng.uniform(0, 5)),
            srtt_ms_mean=float(ms),
            srtt_ms_std=1.0,
            ping_ms_mean=float(ms),
        )
        for n, ms in enumerate(rng.uniform(1, 5000, 16_256))
    )
    every = changed(point(8), flows=flows)
    for name in ("rtt", "rank"):
        (path,) = CHARTS[name].draw(Inputs([every], tmp_path))
        assert path.stat().st_size < MAX_BYTES


def test_queue_lengths_are_zero_where_the_table_has_none() -> None:
    ports = (port_row(3, "a", "b", "edge-agg"), port_row(1, "h", "a", "host-edge"))
    tables = {
        "queues": Table.from_rows(
            ("t_s", "port", "pkts"), [(-0.5, 3, 7), (0.0, 1, 2), (0.5, 2, 8), (1.0, 3, 9)]
        ),
        "queue_times": Table.from_rows(("t_s",), [(-0.5,), (0.0,), (0.5,), (1.0,)]),
    }
    lengths = queue_lengths.read(changed(point(1), ports=ports, tables=tables.get))
    assert lengths is not None
    assert [port.port for port in lengths.ports] == [1, 3]
    assert lengths.pkts.tolist() == [[0, 7], [2, 0], [0, 0], [0, 9]]
    assert lengths.window.tolist() == [[2, 0], [0, 0], [0, 9]]
    assert lengths.of_switches.window.tolist() == [[0], [0], [9]]


def test_an_empty_network_has_empty_queues(tmp_path: Path) -> None:
    of = sampled(1, k=4)
    idle = Table.from_rows(EMPTY["queues"], ())
    lengths = queue_lengths.read(with_table(of, "queues", idle))
    assert lengths is not None and lengths.pkts.shape == (30, 96) and not lengths.pkts.any()
    (path,) = CHARTS["queues"].draw(Inputs([with_table(of, "queues", idle)], tmp_path))
    assert "mean 0.0 packets" in words_of(path)


def test_quantiles_of_a_distribution() -> None:
    pkts = np.repeat(np.arange(4, dtype=np.int32), [90, 5, 4, 1])[:, None]
    of = queue_lengths.Lengths(point(1), (), np.arange(100.0), pkts)
    assert [queue_lengths.quantile(of, share) for share in (50, 90, 95, 99, 100)] == [0, 0, 1, 2, 3]


def test_links_of_hosts_are_not_counted_among_those_that_routing_chooses(tmp_path: Path) -> None:
    ports = (
        *(port_row(n, f"h{n}", "e", "host-edge", 90.0) for n in range(4)),
        *(
            port_row(4 + n, "e", f"a{n}", "edge-agg", utilisation)
            for n, utilisation in enumerate((0, 30, 60, 80))
        ),
    )
    of = changed(point(8), ports=ports)
    busy = level("fat_tree", "one_to_one", LINKS_BUSY_PCT, 8, ">", 95, 8, "CS244'13", "text")
    text = words_of(CHARTS["link_utilisation"].draw(Inputs([of], tmp_path, levels=[busy]))[0])
    assert "With 8 subflows 50 % of links are above half load" in text
    assert "4 links between switches" in text and "CS244'13 (k=8): > 95 % of links above 50 %" in text
    star = changed(of, topology="star", ports=ports[:4])
    assert "4 links, least" in words_of(CHARTS["link_utilisation"].draw(Inputs([star], tmp_path))[0])


def rtts(*means: tuple[float, float]) -> Point:
    """A point whose flows have these means by the kernel and by pings."""
    flows = (
        dataclasses.replace(
            flow_row(n), srtt_ms_mean=srtt, srtt_ms_std=5.0, ping_ms_mean=ping, ping_ms_std=9.0,
            pings_sent=10, pings_lost=10 if np.isnan(ping) else 1,
        )
        for n, (srtt, ping) in enumerate(means)
    )  # fmt: skip
    return changed(point(1), flows=tuple(flows))


def test_round_trip_times_tell_loss_and_scale(tmp_path: Path) -> None:
    text = words_of(CHARTS["rtt"].draw(Inputs([rtts((100, 90), (200, 210))], tmp_path))[0])
    assert "150 ms with TCP" in text and "10.0 % of 20 pings lost" in text
    text = words_of(CHARTS["rtt"].draw(Inputs([rtts((1, NO_VALUE), (5000, 4000))], tmp_path))[0])
    assert "none came back" in text and "RTT (s)" in text
    text = words_of(CHARTS["rtt"].draw(Inputs([rtts((NO_VALUE, 90), (NO_VALUE, 30))], tmp_path))[0])
    assert "60 ms" in text and "kernel" not in text


def test_windows_are_of_the_fastest_median_and_slowest_flow() -> None:
    flows = [dataclasses.replace(flow_row(n), goodput_mbps=float(10 - n)) for n in range(5)]
    assert {kind: flow.flow for kind, flow in windows_and_rtt.chosen_flows(flows).items()} == {
        "fastest": 0, "median": 2, "slowest": 4
    }  # fmt: skip
    assert list(windows_and_rtt.chosen_flows(flows[:2])) == ["fastest", "slowest"]
    assert list(windows_and_rtt.chosen_flows(flows[:1])) == ["fastest"]
    assert windows_and_rtt.chosen_flows([]) == {}


def test_cpu_is_one_chart_for_all_sizes(tmp_path: Path) -> None:
    points = [sampled(1), sampled(8), sampled(1, k=8), sampled(8, status=FAILED, k=8)]
    paths = CHARTS["cpu"].draw(Inputs(points, tmp_path, expected=(1, 8)))
    assert [path.name for path in paths] == ["cpu.svg"]
    assert "k=8: failed: MPTCP 8" in words_of(paths[0])


def test_cpu_means_are_of_the_measured_window() -> None:
    rows = [(-1.0, 90, 0, 0, 0), (0.0, 90, 0, 0, 0), (1.0, 10, 1, 2, 0), (2.0, 30, 3, 4, 0)]
    of = with_table(sampled(1), "cpu", Table.from_rows(EMPTY["cpu"], rows))
    use = cpu.use(of, "k=4")
    assert use is not None
    assert use.means == {"user": 20.0, "system": 2.0, "softirq": 3.0, "steal": 0.0}


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
        flows=(flow_row(0), flow_row(1)), tables=tables.get,
    )  # fmt: skip


ALL = [on_star("reno", 0, 380), on_star("reno", 20, 4), on_star("dctcp", 20, 17)]


def test_transports_that_differ_in_marking_share_a_chart(tmp_path: Path) -> None:
    (path,) = CHARTS["bottleneck"].draw(Inputs(ALL, tmp_path))
    text = words_of(path)
    assert "380 packets with TCP, drop-tail; 4 packets with TCP, ECN; 17 packets with" in text
    assert "TCP DCTCP, ECN: 4.0 Mb/s" in text
    assert "s\N{RIGHTWARDS ARROW}h1" in text, "the port that sends most, and no host's own"


def test_a_queue_with_a_discipline_is_not_called_drop_tail(tmp_path: Path) -> None:
    codel = dataclasses.replace(ALL[0], spec=ALL[0].spec.changed({"link.discipline": "codel"}))
    (path,) = CHARTS["bottleneck"].draw(Inputs([codel], tmp_path))
    assert "TCP, codel queues" in words_of(path) and "drop-tail" not in words_of(path)


def test_only_the_measured_window_counts() -> None:
    of = queue_lengths.queue(ALL[0])
    assert of is not None
    assert ([port.port for port in of.ports], len(of.t_s), of.t_s[0]) == ([3], 50, 0)
    assert sorted(set(of.pkts.ravel().tolist())) == [0, 380]


BEST = "tcp_wmem 4M"


TUNINGS: dict[str, dict[str, object]] = {
    UNTOUCHED: {"sysctls": dict(KERNELS_OWN)},
    "writes of 4K": {"write_bytes": 4096},
    BEST: {"sysctls": {WMEM: "4194304"}},
}


def tuned(name: str, idle_pct: float, seed: int = 1) -> Point:
    made = sampled(8, seed)
    metrics = {**made.metrics, "subflow_idle_pct": idle_pct}
    return changed(made, metrics=metrics, **TUNINGS[name])


def test_tunings_share_a_chart_and_the_title_compares_the_best(tmp_path: Path) -> None:
    points = [tuned(UNTOUCHED, 3.0), tuned("writes of 4K", 9.0), tuned(BEST, 0.5), tuned(BEST, 0.7, 2)]
    (path,) = CHARTS["subflow_idle"].draw(Inputs([*points, sampled(1)], tmp_path))
    text = words_of(path)
    assert "tcp_wmem 4M: subflows idle 0.6 %" in text
    assert "kernel's own: subflows idle 3.0 %" in text


def test_without_samples_there_is_still_the_exact_share(tmp_path: Path) -> None:
    bare = changed(tuned(BEST, 2.0), tables=lambda _name: None)
    (path,) = CHARTS["subflow_idle"].draw(Inputs([bare], tmp_path))
    assert "idle 2.0 %" in words_of(path)


EVENTS = (LinkEvent(12.0, "p0a0", "c0"), LinkEvent(14.0, "p0a0", "c0", 1.0))
"""Links are down from 2 to 4 s after the warm-up of 10 s."""


def failing(subflows: int, kept: float, seed: int = 1) -> Point:
    """Two flows of 10 Mb/s together, of which the second stands still while links are down."""
    rows = [
        (t_s, flow, (kept / 10 if flow == 0 else 0.0) if t_s in {3.0, 4.0} else 5.0)
        for t_s in (1.0, 2.0, 3.0, 4.0, 5.0)
        for flow in (0, 1)
    ]
    table = Table.from_rows(("t_s", "flow", "mbps"), rows)
    return changed(point(subflows, seed), cc="lia", rate_mbps=10.0, events=EVENTS, tables=lambda _: table)


def test_the_failure_is_drawn_over_time_and_by_rank(tmp_path: Path) -> None:
    made = [failing(1, 40), failing(8, 75)]
    (path,) = CHARTS["failure"].draw(Inputs(made, tmp_path))
    assert "50 % of the TCP flows stand still, 50 % of MPTCP 8's" in words_of(path)
    assert over_time(made[1:])[1] == [[100, 100, 75, 75, 100]]
    assert [sorted(flows) for flows in while_down_pct(made[:1])] == [pytest.approx([0, 40])]
    assert stalled_pct([failing(8, 70), failing(8, 0, seed=2)]) == pytest.approx(75)


def turn(src: str, dst: str, *seconds: float) -> list[FlowRow]:
    """One transfer of 10 Mbit by each transport."""
    rows = zip((1, 2, 4), seconds, strict=True)
    return [
        dataclasses.replace(
            flow_row(),
            src=src,
            dst=dst,
            size_bytes=1_250_000,
            subflows_asked=n,
            start_s=1.0,
            completed_s=took,
        )
        for n, took in rows
    ]


FLOWS = (
    *turn("r0h0", "r1h0", 2.0, 1.0, 0.5),
    *turn("r0h0", "r0h1", 0.5, 0.5, 0.5),
    *turn("r0h0", "r3h0", 0.5, 0.5, float("nan")),
    dataclasses.replace(flow_row(), src="r0t0", dst="r1t0", size_bytes=5, completed_s=9.0),
)


def test_only_complete_transfers_of_the_window_count() -> None:
    first, second = pair_transfers(FLOWS)
    assert (first.paths, second.paths) == (6, 1)
    assert first.mbps == pytest.approx({1: 5, 2: 10, 4: 20})
    early = tuple(dataclasses.replace(flow, start_s=-1.0) for flow in FLOWS)
    assert pair_transfers(early) == [], "begun in the warm-up"


def test_the_title_tells_what_is_gained_where(tmp_path: Path) -> None:
    of = changed(point(1), topology="cloud", k=40, flows=MIN_PAIRS * FLOWS)
    words, few = (
        words_of(CHARTS["sequential_transfers"].draw(Inputs([one], tmp_path))[0])
        for one in (of, changed(of, flows=FLOWS))
    )
    assert "between racks 4.00 times TCP, inside one 1.00 times TCP" in words
    assert "4.00 times" not in few, "too few pairs for a mean"
