"""The guests' kernel: each change to its source is made once, and where built kernels are kept."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from common.errors import RunError
from engines.linux.kernel import source, store
from engines.linux.kernel.source import EDITS, Edit, after, before
from model.congestion import CONGESTION_CONTROLS, kernel_name

TEXT = "config HZ\n\tint\n\tdefault 100\n"
FASTER = Edit("arch/um/Kconfig", "faster timers", "default 100", "default 250")


def test_an_edit_replaces_its_text_once() -> None:
    changed = FASTER.applied(TEXT)
    assert changed == "config HZ\n\tint\n\tdefault 250\n"
    with pytest.raises(RunError, match=r"arch/um/Kconfig .*faster timers.*has this change already"):
        FASTER.applied(changed)


@pytest.mark.parametrize(("text", "times"), [("config HZ\n", 0), (TEXT + TEXT, 2)])
def test_a_text_that_is_not_there_once_is_refused(text: str, times: int) -> None:
    with pytest.raises(RunError, match=rf"`default 100` and what follows it occurs {times} times, not once"):
        FASTER.applied(text)


def test_text_is_added_on_either_side() -> None:
    assert after("f", "why", "b", "c").applied("abd") == "abcd"
    assert before("f", "why", "d", "c").applied("abd") == "abcd"


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.path)
def test_each_edit_of_ours_is_made_once(edit: Edit) -> None:
    changed = edit.applied(edit.old)
    assert changed == edit.new != edit.old
    with pytest.raises(RunError, match=r"already|0 times"):
        edit.applied(changed)


def _tree(folder: Path) -> Path:
    """Write the texts that our edits look for into the files they name; return the folder."""
    for edit in EDITS:
        path = folder / edit.path
        path.parent.mkdir(parents=True, exist_ok=True)
        text = path.read_text() if path.exists() else ""
        if edit.old not in text:
            path.write_text(text + edit.old)
    return folder


def test_a_source_is_changed_and_gets_our_files(tmp_path: Path) -> None:
    tree = _tree(tmp_path)
    source.change(tree)
    assert "default 250" in (tree / "arch/um/Kconfig").read_text()
    assert {"Makefile", "lia.c", "arithmetic.h"} <= {path.name for path in (tree / source.FOLDER).iterdir()}
    for path in source.SHARED:
        assert (tree / source.FOLDER / path.name).read_bytes() == path.read_bytes()


def test_our_files_have_the_licence_of_linux() -> None:
    first = [path.read_text().splitlines()[0] for path in source.own_files() if path not in source.SHARED]
    assert len(first) > 5
    assert all("SPDX-License-Identifier: GPL-2.0" in line for line in first)


def test_the_cached_kernel_of_ci_is_of_the_same_files() -> None:
    root = Path(__file__).resolve().parents[3]
    workflow = (root / ".github/workflows/ci.yml").read_text()
    (key,) = re.findall(r"key: kernel-.*hashFiles\((.*?)\)", workflow)
    patterns = re.findall(r"'([^']+)'", key)
    hashed = {path for pattern in patterns for path in root.glob(pattern.replace("**", "**/*"))}
    assert {*source.own_files(), source.FRAGMENT} <= hashed


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    tree = _tree(tmp_path)
    (tree / "init/main.c").unlink()
    with pytest.raises(RunError, match=r"changing init/main\.c .*there is no such file"):
        source.change(tree)


def test_options_that_did_not_take_effect_are_named() -> None:
    fragment = source.FRAGMENT.read_text()
    assert source.not_in_force(fragment) == []
    without = fragment.replace("CONFIG_VETH=y", "# CONFIG_VETH is not set").replace("CONFIG_MPTCP=y\n", "")
    assert source.not_in_force(without) == ["CONFIG_MPTCP", "CONFIG_VETH"]


def test_every_source_of_ours_is_compiled_in() -> None:
    (line,) = (
        line for line in (source.CONGESTION / "Makefile").read_text().splitlines() if line.startswith("obj-y")
    )
    objects = {f"{path.stem}.o" for path in source.CONGESTION.glob("*.c")}
    assert set(line.partition(":=")[2].split()) == objects != set()


def test_every_control_that_bpf_loads_is_compiled_in() -> None:
    text = "".join(path.read_text() for path in source.own_files())
    ours = {name for name in source.congestion_controls() if name not in source.OF_LINUX}
    by_bpf = {kernel_name(name) for name, control in CONGESTION_CONTROLS.items() if control.bpf}
    assert "rf_lia" in by_bpf
    assert by_bpf < ours, "and the datapath of agents"
    assert [name for name in sorted(ours) if f'"{name}"' not in text] == []


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def _built(
    package: str = source.VERSION, inputs: str = "", built_at: str = "2026-01-01T00:00:00+00:00"
) -> Path:
    folder = store.folder() / f"{package}-{inputs or source.inputs()}"
    folder.mkdir(parents=True)
    (folder / "linux").touch(mode=0o755)
    record = {
        "version": "6.12.117", "package": package, "inputs": inputs or source.inputs(), "built_at": built_at,
        "congestion_controls": ["reno", "rf_lia"], "compiler": "gcc", "build_s": 1.0, "sha256": "0",
    }  # fmt: skip
    (folder / "build.json").write_text(json.dumps(record))
    return folder


def test_the_kernel_of_this_clone_is_found(tmp_path: Path) -> None:
    assert store.stored() == () and store.current() is None
    folder = _built()
    found = store.current()
    assert found is not None
    assert found.path == folder / "linux"
    assert found.path.is_relative_to(tmp_path / "refabric/kernels")
    assert found.congestion_controls == ("reno", "rf_lia")
    assert found.to_json()["current"] is True


def test_a_kernel_of_other_inputs_is_shown_but_not_used() -> None:
    _built(inputs="abc")
    assert [kernel.is_current for kernel in store.stored()] == [False]
    assert store.current() is None


def test_the_tested_package_goes_before_a_newer_build() -> None:
    _built(package="6.12.200-1", built_at="2026-06-01T00:00:00+00:00")
    _built()
    assert [kernel.package for kernel in store.stored()] == ["6.12.200-1", source.VERSION]
    current = store.current()
    assert current is not None
    assert current.package == source.VERSION


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": "6"}'])
def test_a_damaged_record_is_no_kernel(text: str) -> None:
    (_built() / "build.json").write_text(text)
    assert store.stored() == ()


def test_a_folder_without_its_program_is_no_kernel() -> None:
    (_built() / "linux").unlink()
    assert store.current() is None


def test_a_relative_cache_folder_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert store.folder() == Path.home() / ".cache/refabric/kernels"


def test_inputs_are_a_hash_of_every_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = source.inputs()
    changed = tmp_path / "fragment.config"
    changed.write_text(source.FRAGMENT.read_text() + "CONFIG_DUMMY=n\n")
    monkeypatch.setattr(source, "FRAGMENT", changed)
    source.inputs.cache_clear()
    assert source.inputs() != before
    monkeypatch.undo()
    source.inputs.cache_clear()
    assert source.inputs() == before
