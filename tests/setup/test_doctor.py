"""The doctor's last line, and its check of SIP servers."""

from __future__ import annotations

import dataclasses

import pytest

from common.errors import BusyError
from engines.emulation.engine import MininetEngine
from engines.ims import real
from setup import doctor
from setup.doctor import verdict
from tests.support.stored_points import flow_row, result_of


def test_an_unfit_machine_is_shown_what_runs_on_it() -> None:
    assert verdict(True, "x86_64") == "this machine is fit"
    assert "--engine linux, real hosts in virtual time, needs none" in verdict(False, "x86_64")
    assert "--engine simulator needs none" in verdict(False, "aarch64")


def test_missing_sip_servers_do_not_make_a_machine_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real, "KAMAILIO", "/nowhere/kamailio")
    check = doctor._sip_servers()
    assert not check.ok and not check.needed
    assert "kamailio" in check.seen and "install" in check.fix


@pytest.mark.parametrize(
    ("short_s", "stamped", "ok"), [(0.31, 900, True), (0.6, 900, False), (0.31, 0, False)]
)
def test_ranks_are_fine_only_if_a_short_flow_overtakes(short_s: float, stamped: int, ok: bool) -> None:
    """The long flow has no end, so its size is 0."""
    long = dataclasses.replace(flow_row(0, 10.0), size_bytes=0, cc="mintcp")
    short = dataclasses.replace(flow_row(1, 1.0), size_bytes=750_000, completed_s=short_s, cc="")
    provenance = {"stamp": {"stamped": stamped}}
    result = dataclasses.replace(result_of([1.0]), flows=(short, long), provenance=provenance)
    check = doctor.judge_ranks("ranks", result, "no ranks")
    assert check.ok is ok and f"{short_s / 0.3:.2f} times" in check.seen


def test_a_machine_that_another_emulation_has_is_not_called_unfit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "_root", "_kernel", "_congestion_control", "coupled", "_tools", "_sip_servers", "_disk", "virtual",
        "carried",
    ):  # fmt: skip
        monkeypatch.setattr(doctor, name, lambda: doctor.Check("one", True, "fine"))

    def taken(_engine: MininetEngine) -> None:
        raise BusyError("another emulation is running: pid 7 (refabric run)")

    monkeypatch.setattr(MininetEngine, "take_machine", taken)
    assert doctor.main() == 3
    output = capsys.readouterr().out
    assert "busy  real traffic: another emulation is running: pid 7 (refabric run)" in output
    assert output.rstrip().endswith(doctor.BUSY)
    assert "not fit" not in output and "FAIL" not in output
