"""Costs of an agent: tables and charts of made-up runs. Needs no root."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from benchmarks import agents, messages
from benchmarks.agent_charts import LABELS, draw_messages, draw_ratios
from benchmarks.agents import Cost, table


def cost(variant: str, gbps: float, cpu_pct: float = 100.0, others_pct: float = 0.0) -> Cost:
    return Cost(variant, 4, gbps, cpu_pct, others_pct, acks=10, ns_per_ack=1000.0)


def test_ratios_are_between_runs_of_one_repetition() -> None:
    costs = [cost("kernel", 10), cost("ack", 9), cost("kernel", 20), cost("ack", 22), cost("ack", 10)]
    kernel, ack = table([*costs, cost("kernel", 10)], by_cpu=False)
    assert kernel["ratio"] == 1.0
    assert (ack["ratio"], ack["ratio_range"], ack["acks"]) == (1.0, [0.9, 1.1], 30)


def test_cpu_time_is_compared_at_a_fixed_rate() -> None:
    costs = [cost("kernel", 1, cpu_pct=20), cost("ack", 1, cpu_pct=30)]
    assert table(costs, by_cpu=True)[1]["ratio"] == 1.5


def test_disturbed_repetitions_are_left_out_unless_all_are() -> None:
    quiet = [cost("kernel", 10), cost("ack", 8)]
    disturbed = [cost("kernel", 10), cost("ack", 1, others_pct=30)]
    (_, both), (_, alone) = table([*quiet, *disturbed], by_cpu=False), table(disturbed, by_cpu=False)
    assert (both["ratio"], both["runs"], both["status"]) == (0.8, 1, "ok")
    assert alone["status"] == "suspect"


def test_no_variant_is_always_first() -> None:
    assert [agents._turned("abc", by)[0] for by in range(4)] == ["a", "b", "c", "a"]


def test_percentiles_of_messages() -> None:
    trips = messages.summary("unix", [1000 * us for us in range(1, 101)], 102, 0.0)
    assert (trips.median_us, trips.p95_us, trips.p99_us, trips.lost) == (51, 96, 100, 2)
    assert trips.status == "ok"
    assert messages.summary("unix", [1000], 1, 6.0).status == "suspect"


def test_charts_are_drawn(tmp_path: Path) -> None:
    costs = [cost(variant, gbps) for variant, gbps in (("kernel", 10), ("ack", 9), ("10ms", 11))]
    draw_ratios(table(costs, by_cpu=False), tmp_path / "agents.png", by_cpu=False, words=["3 runs"])
    rows = [vars(messages.summary(name, [9000, 30_000], 2, 0.0)) for name in LABELS]
    draw_messages(rows, tmp_path / "messages.png", ["2 messages"])
    assert all((tmp_path / f"{name}.png").stat().st_size > 1000 for name in ("agents", "messages"))


@pytest.mark.parametrize(
    ("main", "arguments", "says"),
    [
        (agents.main, ["--flows", "0"], "numbers from 1 to 128"), (agents.main, ["--flows", "x"], "numbers"),
        (agents.main, ["--reports", "never"], "choose from"), (agents.main, ["--rate", "-1"], "at least 0"),
        (messages.main, ["--transports", "pigeon"], "choose from"), (messages.main, ["--messages", "0"], "1"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(main: click.Command, arguments: list[str], says: str) -> None:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 2
    assert says in result.output
