"""The doctor's last line."""

from __future__ import annotations

from setup.doctor import verdict


def test_an_unfit_machine_is_told_what_needs_no_fit_one() -> None:
    assert verdict(True, "x86_64") == "this machine is fit"
    assert "--engine linux, real hosts in virtual time, needs none" in verdict(False, "x86_64")
    assert "--engine simulator needs none" in verdict(False, "aarch64")
