"""The doctor's last line, and its check of SIP servers."""

from __future__ import annotations

import pytest

from engines.emulation.ims import support
from engines.emulation.sandbox.lock import Owner
from setup import doctor
from setup.doctor import verdict


def test_an_unfit_machine_is_shown_what_runs_on_it() -> None:
    assert verdict(True, "x86_64") == "this machine is fit"
    assert "--engine linux, real hosts in virtual time, needs none" in verdict(False, "x86_64")
    assert "--engine simulator needs none" in verdict(False, "aarch64")


def test_missing_sip_servers_do_not_make_a_machine_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "KAMAILIO", "/nowhere/kamailio")
    check = doctor._sip_servers()
    assert not check.ok and not check.needed
    assert "kamailio" in check.seen and "install" in check.fix


def test_a_machine_that_another_emulation_has_is_not_called_unfit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (
        "_root", "_kernel", "_congestion_control", "coupled", "_tools", "_sip_servers", "_disk", "virtual",
        "carried",
    ):  # fmt: skip
        monkeypatch.setattr(doctor, name, lambda: doctor.Check("one", True, "fine"))
    monkeypatch.setattr(doctor, "owner", lambda: Owner(7, "refabric run"))
    assert doctor.main() == 3
    output = capsys.readouterr().out
    assert "busy  real traffic: another emulation is running: pid 7 (refabric run)" in output
    assert output.rstrip().endswith(doctor.BUSY)
    assert "not fit" not in output and "FAIL" not in output
