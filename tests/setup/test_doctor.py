"""The doctor's last line, and its check of SIP servers."""

from __future__ import annotations

import pytest

from engines.emulation.ims import support
from setup import doctor
from setup.doctor import verdict


def test_an_unfit_machine_is_told_what_needs_no_fit_one() -> None:
    assert verdict(True, "x86_64") == "this machine is fit"
    assert "--engine linux, real hosts in virtual time, needs none" in verdict(False, "x86_64")
    assert "--engine simulator needs none" in verdict(False, "aarch64")


def test_missing_sip_servers_do_not_make_a_machine_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(support, "KAMAILIO", "/nowhere/kamailio")
    check = doctor._sip_servers()
    assert not check.ok and not check.needed
    assert "kamailio" in check.seen and "install" in check.fix
