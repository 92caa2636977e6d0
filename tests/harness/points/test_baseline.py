"""What a baseline must reach, by arithmetic, and where arithmetic cannot say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from engines.engine import Silent
from engines.registry import make
from harness.baseline import baseline_of, expected_mbps, is_as_expected
from model.spec import LinkSpec, RunSpec, StackSpec, TopologySpec
from tests.support.stored_points import spec_of

PAYLOAD = 1448 / 1514
SMALL_BUFFERS = {"net.ipv4.tcp_wmem": "4096 16384 16384"}


def changed(**changes: Any) -> RunSpec:
    return dataclasses.replace(spec_of(), **changes)


def test_headers_are_all_that_one_flow_leaves_of_a_link() -> None:
    assert expected_mbps(spec_of(8, rate_mbps=10.0)) == pytest.approx(10 * PAYLOAD)
    assert expected_mbps(spec_of(8, rate_mbps=10.0)) == expected_mbps(baseline_of(spec_of(rate_mbps=10.0)))
    htsim = changed(engine="simulator", stack=StackSpec(payload_bytes=1460, header_bytes=40))
    assert expected_mbps(htsim) == pytest.approx(5 * 1460 / 1500)


@pytest.mark.parametrize(
    "change",
    [
        {"link": LinkSpec(100.0, delay_us=10_000.0)},
        {"link": LinkSpec(5.0, queue_pkts=3)},
        {"warmup_s": 0.05},
        {"transport": dataclasses.replace(spec_of().transport, write_bytes=500)},
        {"transport": dataclasses.replace(spec_of().transport, sysctls=SMALL_BUFFERS)},
        {"engine": "simulator", "stack": StackSpec(send_buffer=4)},
        {"engine": "fake"},
    ],
)  # fmt: skip
def test_where_a_window_or_a_queue_may_bind_nothing_is_expected(change: dict[str, Any]) -> None:
    assert expected_mbps(changed(**change)) is None
    assert not is_as_expected(changed(**change), 5 * PAYLOAD)


def test_random_loss_and_marks_are_not_the_baselines() -> None:
    lossy = changed(link=LinkSpec(5.0, loss=0.01, random_pkts=3, ecn_pkts=20))
    assert baseline_of(lossy).link == LinkSpec(5.0)
    assert expected_mbps(lossy) == expected_mbps(changed(link=LinkSpec(5.0)))


def test_within_half_a_percent_it_is_right() -> None:
    for off, right in ((1.0, True), (0.996, True), (1.004, True), (0.994, False), (1.006, False)):
        assert is_as_expected(spec_of(), off * 5 * PAYLOAD) is right
    assert not is_as_expected(spec_of(), None)


@pytest.mark.parametrize(
    ("topology", "stack"),
    [
        (TopologySpec("fat_tree", {"k": 4}), StackSpec()),
        (TopologySpec("star", {"n": 4}), StackSpec()),
        (TopologySpec("leaf_spine", {"leaves": 2, "spines": 2, "hosts": 2}), StackSpec()),
        (TopologySpec("fat_tree", {"k": 4}), StackSpec(payload_bytes=1460, header_bytes=40)),
    ],
)
def test_the_simulator_measures_what_is_computed(
    topology: TopologySpec, stack: StackSpec, tmp_path: Path
) -> None:
    link = LinkSpec(100.0)
    simulated = changed(engine="simulator", topology=topology, stack=stack, link=link)
    spec = baseline_of(dataclasses.replace(simulated, warmup_s=1.0, seconds=2.0))
    result = make("simulator").run(spec, Silent(), tmp_path)
    assert is_as_expected(spec, result.flows[0].goodput_mbps), result.flows[0].goodput_mbps
