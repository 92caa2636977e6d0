"""responsive-mptcp: its points, the options of its scheduler, and simulated points on a small tree."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import pytest

from analysis.completion import mean_job_s
from common.errors import UsageError
from experiments.responsive_mptcp.figures import FIGURES, SCHEMES
from experiments.responsive_mptcp.statements import STACK, TABLE
from harness.labels import workload_label
from model.result import FlowRow, Status
from model.schedulers import check_scheduler, parse_scheduler, scheduler_words
from model.spec import LinkEvent, LinkSpec, RunSpec, SchedulerSpec, TopologySpec, TransportSpec, WorkloadSpec
from tests.support.figures import points_of, simulate
from topos import build

POINT = RunSpec(
    link=LinkSpec(100.0, delay_us=10.0),
    topology=TopologySpec("fat_tree", {"k": 4}),
    transport=TransportSpec(4, "lia"),
    workload=WorkloadSpec("one_to_one"),
    engine="simulator",
    warmup_s=0.3,
    seconds=0.3,
    stack=STACK,
    scheduler=SchedulerSpec("responsive", 10.0),
)


def test_every_scheme_of_the_table_runs_on_every_workload() -> None:
    for figure in FIGURES[:2]:
        specs = points_of(figure)
        workloads = {workload_label(spec) for spec in specs}
        assert len(specs) == len(TABLE) * 6 * len(workloads)
        assert all(any(scheme.has(spec) for spec in specs) for scheme in TABLE)
        assert all(any(scheme.has(spec) for scheme in TABLE) for spec in specs)
        assert {row.workload for row in figure.published} == workloads


def test_assumptions_change_one_thing_of_a_scheme() -> None:
    """Seven changes of all four schemes; four more of the two with monitors, two more of Hedera."""
    figure = next(each for each in FIGURES if each.name == "responsive-mptcp-assumptions")
    specs = points_of(figure, seeds=1)
    assert len(specs) == 4 * (1 + 7) + 2 * 4 + 2
    usual = [spec for spec in specs if any(scheme.has(spec) for scheme in SCHEMES) and spec.stack == STACK]
    assert len([spec for spec in usual if (spec.link.queue_pkts, spec.link.delay_us) == (100, 10)]) == 4
    assert all(spec.link.queue_pkts == spec.link.nic_queue_pkts for spec in specs)


def test_controller_opens_what_the_subflows_count_says(tmp_path: Path) -> None:
    result = simulate(POINT, tmp_path)
    assert result.status is Status.OK
    joined = [flow.subflows_joined for flow in result.flows]
    assert sum(joined) == len(joined) + result.metrics["subflows_opened"]
    assert min(joined) >= 1 and 2 <= max(joined) <= 4
    alone = simulate(dataclasses.replace(POINT, scheduler=SchedulerSpec("responsive", 10.0, 1.0)), tmp_path)
    assert {flow.subflows_joined for flow in alone.flows} == {1}
    assert alone.metrics["subflow_requests"] == 0


JOINED = WorkloadSpec("joined_permutation", {"after_ms": 300, "kb": 1500})
"""At half of the link's rate the second flows take 0.24 s."""


def test_falling_demands_close_subflows_and_rising_ones_open_them(tmp_path: Path) -> None:
    """Without the option nothing is closed. With it the first flows carry the same within 10 %."""
    spec = dataclasses.replace(POINT, workload=JOINED, seconds=0.6)
    closing = dataclasses.replace(spec, scheduler=dataclasses.replace(spec.scheduler, closes=True))
    kept, closed = simulate(spec, tmp_path), simulate(closing, tmp_path)
    assert kept.metrics["subflows_closed"] == 0
    gone, opened = (closed.metrics[f"subflows_{name}"] for name in ("closed", "opened"))
    assert 0 < gone <= opened
    long = [[flow for flow in result.flows if not flow.size_bytes] for result in (kept, closed)]
    fewer, more = (sum(flow.goodput_mbps for flow in flows) for flows in (long[1], long[0]))
    assert fewer == pytest.approx(more, rel=0.1)


def test_a_controller_that_knows_cut_links_moves_subflows(tmp_path: Path) -> None:
    """Both links of a core switch's pod are cut in the window. Whether that pays depends on the draw: over
    seeds 1 to 3 the sum of goodputs with and without knowledge was the same."""
    cuts = tuple(LinkEvent(0.3, f"p{pod}a0", "c0") for pod in range(4))
    spec = dataclasses.replace(POINT, events=cuts, seconds=0.6)
    informed = dataclasses.replace(spec, scheduler=dataclasses.replace(spec.scheduler, links_ms=1.0))
    blind, knowing = simulate(spec, tmp_path), simulate(informed, tmp_path)
    assert blind.metrics["subflows_moved"] == 0 < knowing.metrics["subflows_moved"]
    blind_mbps, knowing_mbps = (sum(row.goodput_mbps for row in result.flows) for result in (blind, knowing))
    assert knowing_mbps > 0.9 * blind_mbps


@pytest.mark.parametrize(
    ("transport", "closes", "complaint"),
    [
        (TransportSpec(4, "ccp:reno"), True, "omit close"),
        (TransportSpec(4, "lia", join_after_ms=5.0), False, "decides when subflows join"),
    ],
)
def test_what_agents_and_late_joins_rule_out_is_refused(
    transport: TransportSpec, closes: bool, complaint: str
) -> None:
    scheduler = dataclasses.replace(POINT.scheduler, closes=closes)
    with pytest.raises(UsageError, match=complaint):
        check_scheduler(
            dataclasses.replace(POINT, transport=transport, scheduler=scheduler), build("fat_tree", {"k": 4})
        )


def test_same_seed_gives_the_same_result(tmp_path: Path) -> None:
    lossy = dataclasses.replace(POINT, scheduler=dataclasses.replace(POINT.scheduler, message_loss=0.3))
    one, same = (simulate(lossy, tmp_path) for _ in range(2))
    assert one.flows == same.flows and one.metrics == same.metrics
    assert one.metrics["controller_messages_lost"] > 0


def test_options_are_read_as_they_are_written() -> None:
    for text in ("2", "8:gap=0.35", "4:checks=5:loss=0.1:printed", "4:links=1:close"):
        assert scheduler_words(parse_scheduler(f"responsive:{text}")) == f"responsive:{text}"
    assert parse_scheduler("responsive").interval_ms == 2.0


@pytest.mark.parametrize("text", ["ideal", "2:gap=2", "2:checks=1.5", "2:foo=1", "2:close=1", "2:gap"])
def test_wrong_options_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--scheduler"):
        parse_scheduler(f"responsive:{text}")


def test_a_job_ends_with_its_last_transfer() -> None:
    row = FlowRow(0, "a", "b", "", "", 1, 2, "tcp", 1, 1, "reno", 0.0, 0, 0, 0.0, size_bytes=1, start_s=0.0)
    rows = [dataclasses.replace(row, completed_s=s) for s in (1.0, 3.0, 2.0, 1.0)]
    assert mean_job_s(rows, 2) == 2.5
    assert mean_job_s([*rows[:3], dataclasses.replace(row, completed_s=math.nan)], 2) is None
    assert mean_job_s([], 2) is None
