"""The import rules hold, and docs/architecture.md shows the tree as it is."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import PurePosixPath

from docs.tools import walk
from docs.tools.architecture import PAGE, PICTURE, data, drawn_from, filled, packages_table, walk_list
from docs.tools.imports import EXCEPTIONS, ROOT, Import, cycles, imports, violations

MAX_FILES = 22
"""Files of one folder. A larger folder holds several kinds of things, or families told apart by a prefix."""
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


def test_no_two_packages_of_experiments_import_one_another() -> None:
    assert cycles(imports(), "experiments") == []


def test_a_cycle_of_packages_is_found_also_by_way_of_a_third() -> None:
    chain = [
        Import("experiments/ccp/links.py", "experiments.coupled.wire"),
        Import("experiments/coupled/wire.py", "experiments.dctcp.queue"),
        Import("experiments/coupled/wire.py", "experiments.coupled.metrics"),
    ]
    assert cycles(chain, "experiments") == []
    back = Import("experiments/dctcp/queue.py", "experiments.ccp.links")
    assert cycles([*chain, back], "experiments") == ["ccp <-> coupled", "ccp <-> dctcp", "coupled <-> dctcp"]


def test_the_picture_is_current() -> None:
    assert drawn_from(PICTURE.read_text()) == data(), REMEDY


def test_every_package_says_what_it_holds() -> None:
    assert [package for package, about in data().items() if not about["holds"]] == []


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    blocks = {"packages": packages_table(data()), "walk": walk_list(walk.files_entered())}
    assert "harness/execute" in blocks["walk"]
    assert page == filled(page, blocks), REMEDY


def test_no_folder_has_too_many_files() -> None:
    files = tracked_files()
    assert "tests/docs/test_architecture.py" in files
    crowded = {folder: n for folder, n in files_by_folder(files).items() if n > MAX_FILES}
    assert crowded == {}, "make a folder of the files that belong together"


def test_files_are_counted_by_their_own_folder() -> None:
    assert files_by_folder(["a/b/one", "a/b/two", "a/three"]) == {"a/b": 2, "a": 1}


def tracked_files() -> list[str]:
    argv = ["git", "ls-files"]
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()


def files_by_folder(files: list[str]) -> Counter[str]:
    return Counter(str(PurePosixPath(file).parent) for file in files)
