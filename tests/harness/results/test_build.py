"""The build that all machines of a cluster share: which packages it covers and what changes it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from engines.provenance import ROOT
from harness.results import build as builds
from harness.results.build import DECIDING, NOT_DECIDING, build


def test_every_package_is_listed_once() -> None:
    """A new package must be added to DECIDING, or to NOT_DECIDING if no result depends on it."""
    assert len({*DECIDING, *NOT_DECIDING}) == len(DECIDING) + len(NOT_DECIDING)
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert packages == {*DECIDING, *NOT_DECIDING}


@pytest.mark.parametrize("package", DECIDING)
def test_an_edit_in_a_deciding_package_makes_another_build(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builds, "ROOT", tmp_path)
    for name in (*DECIDING, *NOT_DECIDING):
        (tmp_path / name / "inner").mkdir(parents=True)
        (tmp_path / name / "inner" / "module.py").write_text("A = 1\n")
    before = build()
    (tmp_path / NOT_DECIDING[0] / "inner" / "module.py").write_text("A = 2\n")
    assert before.difference(build()) == ""
    (tmp_path / package / "inner" / "module.py").write_text("A = 2\n")
    assert before.difference(build()) == "its Python files differ"


def test_builds_differ_by_code_core_and_versions_and_not_by_revision() -> None:
    here = build()
    assert here.difference(dataclasses.replace(here, revision="docs were changed")) == ""
    assert here.difference(dataclasses.replace(here, python="3.9")) == f"Python {here.python} here, 3.9 there"
    assert "C++ core" in here.difference(dataclasses.replace(here, core=""))
