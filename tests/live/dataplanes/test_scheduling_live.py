"""Between real hosts: packets take the hashed path, the one an application sets, and the hashed one again, on
the fabric and on Open vSwitch; and the controller repairs what is cut or forgotten."""

from __future__ import annotations

import os
from typing import Any

import pytest

from engines.emulation.sandbox.isolation import spawn_inside
from tests.support.scenarios.scheduling import expected

pytestmark = pytest.mark.emulation


def run(case: str, request: object) -> list[Any]:
    reports: list[Any] = []
    target = f"tests.support.scenarios.scheduling:{case}"
    assert spawn_inside(target, request, deadline_s=120, on_report=reports.append) == 0
    return reports


@pytest.mark.parametrize(
    ("dataplane", "mode"), [("fabric", "reactive"), ("ovs", "reactive"), ("ovs", "hybrid")]
)
def test_a_set_path_is_taken_and_given_back(dataplane: str, mode: str) -> None:
    assert run("steered", {"dataplane": dataplane, "mode": mode}) == expected()


def test_a_set_path_is_taken_under_proactive_tables() -> None:
    usual, chosen, again = run("steered", {"dataplane": "ovs", "mode": "proactive"})
    there = {tuple(hop) for hop in expected()[1]} & {tuple(hop) for hop in chosen}
    assert len(there) >= 4 and usual == again != chosen


@pytest.mark.skipif(not os.environ.get("POX_DIR"), reason="POX_DIR names no checkout of POX")
@pytest.mark.parametrize("mode", ["reactive", "hybrid"])
def test_flows_take_the_hashed_path_under_pox_too(mode: str) -> None:
    assert run("under_pox", mode) == expected()[:1]


@pytest.mark.parametrize("mode", ["reactive", "proactive", "hybrid"])
def test_the_controller_repairs_what_is_cut_and_what_a_switch_forgot(mode: str) -> None:
    seen: dict[str, Any] = {}
    for report in run("mended", mode):
        seen |= report
    there_and_back = 8  # hops between switches, across the core
    assert len(seen["whole"]) == len(seen["cut"]) == there_and_back
    assert [hop for hop in seen["cut"] if set(hop) == set(seen["link"])] == []
    assert seen["back"]
    assert seen["counts"]["astray"] == 0
    if mode != "proactive":
        assert seen["whole"] == expected()[0]
        assert [hop for hop in seen["whole"] if set(hop) == set(seen["link"])]
        assert 1 <= seen["counts"]["unknown"] <= 2, (
            "an unknown address: one packet came in, or two before the rule"
        )
