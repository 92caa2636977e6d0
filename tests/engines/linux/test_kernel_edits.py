"""Changes to the kernel's source: each is made once, or the build fails and says which."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from common.errors import RunError
from engines.linux.kernel import source
from engines.linux.kernel.edits import EDITS
from engines.linux.kernel.edits.edit import Edit, after, before
from model.congestion import CONGESTION_CONTROLS, kernel_name

TEXT = "config HZ\n\tint\n\tdefault 100\n"
FASTER = Edit("arch/um/Kconfig", "faster timers", "default 100", "default 250")


def test_an_edit_replaces_its_text() -> None:
    assert FASTER.applied(TEXT) == "config HZ\n\tint\n\tdefault 250\n"


def test_a_second_time_is_refused() -> None:
    with pytest.raises(RunError, match=r"arch/um/Kconfig .*faster timers.*has this change already"):
        FASTER.applied(FASTER.applied(TEXT))


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


def test_every_edit_says_why() -> None:
    assert all(len(edit.why) > 10 and edit.old for edit in EDITS)


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


def test_our_files_have_the_licence_of_linux() -> None:
    first = [path.read_text().splitlines()[0] for path in source.own_files() if path not in source.SHARED]
    assert len(first) > 5
    assert all("SPDX-License-Identifier: GPL-2.0" in line for line in first)


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
