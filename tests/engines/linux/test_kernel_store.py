"""Where built kernels are kept, and which of them is used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engines.linux.kernel import source, store


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


def test_there_is_none_at_first() -> None:
    assert store.stored() == ()
    assert store.current() is None


def test_the_kernel_of_this_clone_is_found(tmp_path: Path) -> None:
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
