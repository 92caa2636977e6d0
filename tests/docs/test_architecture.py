"""The import rules hold, and docs/architecture.md shows the tree as it is."""

from __future__ import annotations

from docs.tools import walk
from docs.tools.architecture import PAGE, PICTURE, data, drawn_from, filled, packages_table, walk_list
from docs.tools.imports import EXCEPTIONS, Import, imports, violations

REMEDY = "run python docs/tools/architecture.py and commit what it writes"


def test_packages_import_only_what_is_left_of_them() -> None:
    assert set(violations(imports())) == set(EXCEPTIONS)


def test_an_import_to_the_right_is_found() -> None:
    assert violations([Import("model/spec.py", "plots.data.Panel")]) == ["model/spec.py -> plots"]
    assert violations([Import("plots/data.py", "model.spec.RunSpec")]) == []


def test_an_import_between_engines_is_found() -> None:
    crossing = Import("engines/flow_level/engine.py", "engines.simulation.engine.prepared")
    assert violations([crossing]) == ["engines/flow_level/engine.py -> engines.simulation"]
    assert violations([Import("engines/registry.py", "engines.fake.FakeEngine")]) == []


def test_the_picture_is_current() -> None:
    assert drawn_from(PICTURE.read_text()) == data(), REMEDY


def test_every_package_says_what_it_holds() -> None:
    assert [package for package, about in data().items() if not about["holds"]] == []


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    blocks = {"packages": packages_table(data()), "walk": walk_list(walk.files_entered())}
    assert "harness/execute" in blocks["walk"]
    assert page == filled(page, blocks), REMEDY
