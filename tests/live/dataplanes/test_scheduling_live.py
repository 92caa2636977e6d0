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
    ("dataplane", "mode"),
    [("fabric", "reactive"), ("ovs", "reactive"), ("ovs", "hybrid"), ("ovs", "proactive")],
)
def test_a_set_path_is_taken_and_given_back_and_the_controller_repairs(dataplane: str, mode: str) -> None:
    """Repairs: a link that was cut, rules that a switch forgot."""
    seen: dict[str, Any] = {}
    for report in run("steered", {"dataplane": dataplane, "mode": mode}):
        seen |= report
    usual, chosen, again = seen["steered"]
    if mode == "proactive":
        there = {tuple(hop) for hop in expected()[1]} & {tuple(hop) for hop in chosen}
        assert len(there) >= 4 and usual == again != chosen
    else:
        assert seen["steered"] == expected()
    if dataplane == "fabric":
        return
    there_and_back = 8  # hops between switches, across the core
    assert len(usual) == len(seen["cut"]) == there_and_back
    assert [hop for hop in seen["cut"] if set(hop) == set(seen["link"])] == []
    assert seen["back"]
    assert seen["counts"]["astray"] == 0
    if mode != "proactive":
        assert [hop for hop in usual if set(hop) == set(seen["link"])]
        assert 1 <= seen["counts"]["unknown"] <= 2, (
            "an unknown address: one packet came in, or two before the rule"
        )


@pytest.mark.skipif(not os.environ.get("POX_DIR"), reason="POX_DIR names no checkout of POX")
@pytest.mark.parametrize("mode", ["reactive", "hybrid"])
def test_flows_take_the_hashed_path_under_pox_too(mode: str) -> None:
    assert run("under_pox", mode) == expected()[:1]
