"""What the engine `linux` refuses before it starts anything."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ccp.names import OwnAlgorithm
from common.errors import HostUnfitError, UsageError
from engines.linux import engine, guest
from engines.linux.engine import (
    LinuxEngine,
    check_congestion_controls,
    check_guest,
    check_objects,
)
from engines.linux.guest import check_machine
from engines.linux.kernel.store import Kernel
from model.congestion import COUPLED_DEFAULT
from model.spec import LinkSpec, NoiseSpec, RunSpec, TopologySpec, TransportSpec

SPEC = RunSpec(LinkSpec(10), topology=TopologySpec("fat_tree", {"k": 4}), engine="linux", traffic="native")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"dataplane": "ovs"}, "--dataplane ovs"),
        ({"noise": NoiseSpec("all", 10.0, 1.0, 2.0)}, "--stalls"),
        ({"clock": "strict"}, "--clock strict"),
    ],
)
def test_what_has_no_meaning_in_a_guest_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_guest(dataclasses.replace(SPEC, **changes))
    check_guest(SPEC)


def test_ranks_without_their_program_are_refused_with_what_helps(tmp_path: Path) -> None:
    ranked = dataclasses.replace(
        SPEC, link=LinkSpec(10, discipline="pfabric"), transport=TransportSpec(1, "mintcp")
    )
    with pytest.raises(HostUnfitError, match=r"stamp is not compiled; run: setup/install\.sh"):
        check_objects(ranked, tmp_path)
    check_objects(SPEC, tmp_path)
    for name in ("stamp", "hide_sacks"):
        (tmp_path / f"{name}.o").touch()
    check_objects(ranked, tmp_path)


def test_agents_that_answer_in_real_time_are_refused() -> None:
    own = "class Mine(PortusAlgorithm):\n    command = ('/bin/true',)\n"
    text = f"from ccp.portus import PortusAlgorithm\n\n\n{own}"
    spec = dataclasses.replace(SPEC, transport=TransportSpec(1, OwnAlgorithm("mine.py", text)))
    with pytest.raises(UsageError, match="answers in real time, which the engine linux does not have"):
        LinuxEngine().check(spec)


def test_an_unfit_machine_or_kernel_is_refused_by_name() -> None:
    with pytest.raises(HostUnfitError, match="runs on x86_64, this machine is aarch64; choose --engine sim"):
        check_machine("aarch64")
    check_machine("x86_64")
    with pytest.raises(HostUnfitError, match=r"lia is not in the guests' kernel \(it has: reno, cubic\)"):
        check_congestion_controls(["reno", "lia"], ["reno", "cubic"])
    check_congestion_controls(["reno", "lia"], ["reno", "rf_lia"])


def test_without_a_kernel_one_line_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "current", lambda: None)
    with pytest.raises(HostUnfitError, match="no kernel is built yet; run: refabric kernel build"):
        LinuxEngine().check(SPEC)
    assert LinuxEngine().coupled_cc() == (COUPLED_DEFAULT, "")


def test_bad_input_is_refused_before_a_kernel_is_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "current", lambda: None)
    huge = dataclasses.replace(
        SPEC, topology=TopologySpec("fat_tree", {"k": 48}), transport=TransportSpec(32, "lia")
    )
    with pytest.raises(UsageError, match="the point's guest needs about"):
        LinuxEngine().check(huge)


def test_two_guests_do_not_share_a_cpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1})
    name = f"test-{tmp_path.name}"
    with (
        guest.claimed_cpu(name) as first,
        guest.claimed_cpu(name) as second,
        guest.claimed_cpu(name) as third,
    ):
        assert (first, second, third) == (0, 1, None)
    with guest.claimed_cpu(name) as again:
        assert again == 0


def test_a_guest_with_more_to_do_is_expected_to_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel.__new__(Kernel)
    monkeypatch.setattr(engine, "current", lambda: kernel)
    fast = dataclasses.replace(SPEC, link=LinkSpec(100))
    assert LinuxEngine().expected_s(fast) > 5 * LinuxEngine().expected_s(SPEC)
