"""A machine without BPF refuses agents in one line that names what runs instead."""

from __future__ import annotations

import platform

import pytest

from common.errors import HostUnfitError
from engines.emulation import engine, machine
from engines.emulation import machine as bpf


def test_the_error_names_what_is_missing_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = bpf.Support(False, "this kernel has no BTF", "boot another kernel")
    monkeypatch.setattr(bpf, "too_old", lambda **_: None)
    monkeypatch.setattr(machine, "found", lambda: machine.MachineSupport(missing, "", netem=False))
    with pytest.raises(HostUnfitError) as caught:
        engine._check_congestion_control("ccp:reno")
    said = str(caught.value)
    assert "ccp:reno: this kernel has no BTF; boot another kernel" in said
    assert "--engine simulator" in said
    assert "\n" not in said


def test_a_kernel_that_is_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "release", lambda: "6.1.0-18-amd64")
    with pytest.raises(HostUnfitError, match=r"6\.1.*--engine simulator"):
        engine._check_congestion_control("./mine.py")
