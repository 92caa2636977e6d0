"""How idle subflows were, on tables made by hand."""

from __future__ import annotations

import pytest

from analysis.idleness import COLUMNS, idleness
from model.result import Table

SOCKETS = ("t_s", "flow", "subflow", "cwnd_pkts", "unacked_pkts", "notsent_bytes", "busy_ms", "bytes_acked")
FULL, OPEN = (10, 10), (10, 3)
"""Congestion window and packets under way."""


def table(*rows: tuple[float, int, int, tuple[int, int], int, float, int]) -> Table:
    """From (t_s, flow, subflow, window, notsent_bytes, busy_ms, bytes_acked)."""
    return Table.from_rows(SOCKETS, [(t, f, s, *window, *rest) for t, f, s, window, *rest in rows])


def only(sockets: Table, flow: int, subflow: int) -> dict[str, float]:
    (row,) = [
        dict(zip(COLUMNS, row, strict=True)) for row in idleness(sockets).rows() if row[:2] == (flow, subflow)
    ]
    return {name: float(value) for name, value in row.items()}


def test_a_fast_subflow_that_runs_dry_beside_a_slow_one() -> None:
    """Starved from 1 to 3 s, and idle from 2 to 3 s; the slow subflow always holds data."""
    fast = [
        (0.0, 0, 0, FULL, 5000, 100.0, 0),
        (1.0, 0, 0, OPEN, 0, 1100.0, 500_000),
        (2.0, 0, 0, OPEN, 0, 2100.0, 1_000_000),
        (3.0, 0, 0, FULL, 5000, 2100.0, 1_000_000),
        (4.0, 0, 0, FULL, 5000, 3100.0, 1_500_000),
    ]
    slow = [(float(t), 0, 1, FULL, 60_000, 1000.0 * t, 50_000 * t) for t in range(5)]
    sockets = table(*fast, *slow)
    seen = only(sockets, 0, 0)
    assert seen["seconds"] == 4
    assert seen["idle_pct"] == pytest.approx(25)
    assert seen["starved_pct"] == pytest.approx(50)
    assert seen["starved_max_s"] == 1.0
    assert seen["mbps"] == pytest.approx(3.0)
    assert seen["idle_mbps"] == pytest.approx(1.0), "three seconds carried 12 Mb, the fourth would have 4"
    held = only(sockets, 0, 1)
    assert (held["idle_pct"], held["starved_pct"], held["starved_max_s"]) == (0, 0, 0)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((OPEN, 0), (OPEN, 0)),  # the application has no more
        ((FULL, 0), (FULL, 9000)),  # its window is full: it could not have sent
        ((OPEN, 1), (OPEN, 9000)),  # about to send
    ],
)
def test_states_that_are_not_starved(
    first: tuple[tuple[int, int], int], second: tuple[tuple[int, int], int]
) -> None:
    rows = [
        (float(t), 0, n, *state, 1000.0 * t, 0) for t in range(3) for n, state in enumerate((first, second))
    ]
    assert set(idleness(table(*rows))["starved_pct"].tolist()) == {0.0}


def test_another_connections_data_starves_no_subflow() -> None:
    rows = [(float(t), flow, 0, OPEN, 9000 * flow, 1000.0 * t, 0) for t in range(3) for flow in range(2)]
    assert idleness(table(*rows))["starved_pct"].tolist() == [0.0, 0.0]


def test_the_warm_up_and_what_was_seen_once_are_left_out() -> None:
    rows = [(t, 0, 0, OPEN, 0, 0.0 if t < 0 else 1000 * t, 0) for t in (-2.0, -1.0, 0.0, 1.0)]
    once = (1.0, 0, 1, OPEN, 0, 0.0, 0)
    seen = idleness(table(*rows, once))
    assert seen["subflow"].tolist() == [0]
    assert (seen["seconds"].tolist(), seen["idle_pct"].tolist()) == ([1.0], [0.0])


def test_a_subflow_that_is_never_busy_is_idle_at_rate_0() -> None:
    seen = only(table((0.0, 0, 0, OPEN, 0, 7.0, 0), (2.0, 0, 0, OPEN, 0, 7.0, 0)), 0, 0)
    assert (seen["idle_pct"], seen["mbps"], seen["idle_mbps"]) == (100.0, 0.0, 0.0)


def test_no_samples_no_rows() -> None:
    assert len(idleness(Table.from_rows(SOCKETS, []))) == 0
    assert len(idleness(table((-1.0, 0, 0, OPEN, 0, 0.0, 0)))) == 0
