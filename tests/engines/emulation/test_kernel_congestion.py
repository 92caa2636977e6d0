"""Why BPF congestion control does not work, and what then refuses; counters of built-in controls."""

from __future__ import annotations

import platform
from pathlib import Path

import pytest

from common.errors import HostUnfitError
from engines.emulation import engine, machine
from engines.emulation.congestion.ranks import HIDE_SACKS, STAMP
from engines.emulation.congestion.registration import OBJECTS, BuiltIn, CongestionCounts, counted
from model.congestion import CONGESTION_CONTROLS, DATAPATH

TEXT = "rf_lia 1200 7\nrf_olia 0 0\nrf_dctcp 30 2\n"


def test_counters_are_read_by_name() -> None:
    assert counted(TEXT, {"rf_lia", "rf_dctcp"}) == [CongestionCounts(1200, 7), CongestionCounts(30, 2)]
    assert counted(TEXT, {"rf_balia"}) == []


def test_a_kernel_without_an_algorithm_is_named_with_what_it_has() -> None:
    with pytest.raises(HostUnfitError, match=r"rf_olia is not built into this kernel \(it has: .*reno"):
        BuiltIn(["olia"])
    assert BuiltIn([]).counts() == CongestionCounts()


SOURCES = OBJECTS.parent / "bpf"
STATUS = "Name:\tpython3\nCapInh:\t0\nCapEff:\t{:016x}\nSeccomp:\t0\n"


def test_every_algorithm_of_the_registry_has_one_source_and_each_source_is_one() -> None:
    sources = {path.name.removesuffix(".bpf.c") for path in SOURCES.glob("*.bpf.c")}
    ours = {name for name, cc in CONGESTION_CONTROLS.items() if cc.bpf}
    assert sources == ours | {DATAPATH, STAMP, HIDE_SACKS}
    for name in ours:
        assert f'.name = "rf_{name}"' in (SOURCES / f"{name}.bpf.c").read_text()


def test_no_btf(tmp_path: Path) -> None:
    found = machine.files_missing(tmp_path / "vmlinux")
    assert found and not found.ok
    assert "BTF" in found.reason
    assert "CONFIG_DEBUG_INFO_BTF" in found.advice


def test_not_compiled_with_and_without_clang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    btf = tmp_path / "vmlinux"
    btf.touch()
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/clang")
    with_clang = machine.files_missing(btf, "nothing")
    monkeypatch.setattr("shutil.which", lambda _: None)
    without = machine.files_missing(btf, "nothing")
    assert with_clang and "not compiled" in with_clang.reason
    assert without and "clang" in without.reason
    assert all("setup/install.sh" in found.advice for found in (with_clang, without))


@pytest.mark.parametrize(
    ("release", "old"),
    [
        ("5.15.0-91-generic", True), ("6.1.0-18-amd64", True), ("6.3.13", True), ("6.4.0", False),
        ("6.8.0-31-generic", False), ("6.18.44", False), ("7.0.1-custom", False),
    ],
)  # fmt: skip
def test_kernels_before_6_4_are_too_old(release: str, old: bool) -> None:
    found = machine.too_old(release)
    assert (found is not None) == old
    assert found is None or (release in found.reason and "6.4" in found.reason)


def test_lockdown_and_a_jit_that_is_off() -> None:
    assert machine.locked_down("[none] integrity confidentiality\n") is None
    assert machine.locked_down("none [integrity] confidentiality\n") is None
    found = machine.locked_down("none integrity [confidentiality]\n")
    assert found and "locked down" in found.reason
    assert machine.jit_off("1") is None
    found = machine.jit_off("0")
    assert found and "bpf_jit_enable=1" in found.advice


def test_capabilities_of_a_default_container_and_of_sys_admin() -> None:
    """SYS_ADMIN stands for BPF and PERFMON, but not for NET_ADMIN."""
    found = machine.capabilities_missing(STATUS.format(0xA80425FB))
    assert found and "CAP_NET_ADMIN, CAP_PERFMON, CAP_BPF" in found.reason and "--cap-add=BPF" in found.advice
    assert machine.capabilities_missing(STATUS.format(1 << 21 | 1 << 12)) is None
    found = machine.capabilities_missing(STATUS.format(1 << 21))
    assert found and "CAP_NET_ADMIN" in found.reason and "CAP_BPF" not in found.reason


def test_root_of_a_user_namespace_differs_from_a_filtered_and_a_real_one() -> None:
    whole = "         0          0 4294967295\n"
    mapped = machine.forbidden(STATUS.format(2**41 - 1), "         0       1000          1\n")
    filtered = machine.forbidden(STATUS.format(2**41 - 1).replace("Seccomp:\t0", "Seccomp:\t2"), whole)
    assert mapped and "user namespace" in mapped.reason
    assert filtered and "seccomp" in filtered.reason
    assert machine.forbidden(STATUS.format(2**41 - 1), whole) is None


def test_the_error_names_what_is_missing_and_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    missing = machine.Support(False, "this kernel has no BTF", "boot another kernel")
    monkeypatch.setattr(machine, "too_old", lambda **_: None)
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
