"""The import rules hold, and docs/architecture.md shows the tree as it is."""

from __future__ import annotations

import functools
import re
import subprocess
from pathlib import PurePosixPath

from docs.tools.architecture import PAGE, PICTURE, blocks, data, drawn_from, filled
from docs.tools.imports import EXCEPTIONS, HARNESS, ROOT, Import, cycles, imports, violations
from docs.tools.packages import contents, docstring

MAX_FAMILY = 3
"""Source files of one folder whose names begin with the same word. More belong in a folder of that name."""
FAMILIES = {
    "plots/charts/pfabric/normalised_*": "charts of one paper, named like the files that they write",
}
SOURCES = {".py", ".sh", ".cpp", ".hpp", ".c", ".h"}
UNPLACED = "drawing"
"""A module that HARNESS lacks."""
REMEDY = "run python docs/tools/architecture.py and commit what it writes"
tree, found = functools.cache(imports), functools.cache(data)
"""Read once: to parse all files takes a second."""


def test_packages_import_only_what_is_left_of_them() -> None:
    assert set(violations(tree())) == set(EXCEPTIONS)


def test_an_import_to_the_right_is_found() -> None:
    assert violations([Import("model/spec.py", "plots.data.Panel")]) == ["model/spec.py -> plots"]
    assert violations([Import("plots/data.py", "model.spec.RunSpec")]) == []


def test_an_upward_import_inside_the_harness_is_found() -> None:
    upward = [
        Import("harness/plan/session.py", "harness.execute.sweep.run"),
        Import("harness/execute/cluster/worker.py", "harness.load"),
        Import("harness/experiment.py", "harness.plan.session.Plan"),
        Import("harness/__init__.py", "harness.points.labels"),
        Import(f"harness/{UNPLACED}.py", "harness.points.labels"),
    ]
    assert violations(upward) == [
        "harness/plan/session.py -> harness.execute",
        "harness/execute/cluster/worker.py -> harness.load",
        "harness/experiment.py -> harness.plan",
        "harness/__init__.py -> harness.points",
        f"harness/{UNPLACED}.py -> harness.points",
    ]


def test_imports_down_the_harness_and_within_one_package_are_allowed() -> None:
    downward = [
        Import("harness/execute/sweep.py", "harness.plan.jobs.Job"),
        Import("harness/load.py", "harness.claims.verdicts"),
        Import("harness/cli/run.py", "harness.cli.help.manual"),
        Import("experiments/registry.py", "harness.cli.commands"),
    ]
    assert violations(downward) == []


def test_everything_in_the_harness_has_a_place_in_its_order() -> None:
    names = [name.removesuffix("/").removesuffix(".py") for name in contents("harness", tracked_files())]
    assert sorted(names) == sorted(HARNESS)
    listed = re.findall(r"^(\w+)(?:/|\.py) ", docstring("harness"), re.MULTILINE)
    assert tuple(listed) == HARNESS


def test_an_import_between_engines_is_found() -> None:
    crossing = Import("engines/flow_level/engine.py", "engines.simulation.engine.prepared")
    assert violations([crossing]) == ["engines/flow_level/engine.py -> engines.simulation"]
    assert violations([Import("engines/registry.py", "engines.fake.FakeEngine")]) == []


def test_a_chart_that_shared_parts_import_is_found() -> None:
    rank = Import("plots/shared/style.py", "plots.charts.goodput.rank")
    assert violations([rank]) == ["plots/shared/style.py -> plots.charts"]
    assert violations([Import("plots/charts/goodput/rank.py", "plots.charts.goodput.throughput")]) == []
    assert violations([Import("plots/shared/style.py", "plots.data.Panel")]) == []


def test_no_two_packages_of_experiments_import_one_another() -> None:
    assert cycles(tree(), "experiments") == []


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
    assert drawn_from(PICTURE.read_text()) == found(), REMEDY


def test_every_package_says_what_it_holds() -> None:
    assert [package for package, about in found().items() if not about["holds"]] == []


def test_the_tables_are_current() -> None:
    page = PAGE.read_text()
    texts = blocks(found())
    assert "harness/execute" in texts["walk"]
    assert page == filled(page, texts), REMEDY


def test_no_folder_has_a_family_of_files_told_apart_by_a_prefix() -> None:
    assert set(families(tracked_files())) == set(FAMILIES), "make a folder of the files"


def test_a_family_is_found_whatever_its_files_are() -> None:
    stems = ("test_by_x", "by_y", "by", "__init__", "__main__", "__a__", "__b__")
    three = [f"{folder}/{stem}.py" for folder in "ab" for stem in stems] + ["a/by_data"]
    assert families(three) == {}
    pair = [f"a/by_z.{suffix}" for suffix in ("cpp", "hpp")]
    assert families([*three, *pair]) == {"a/by_*": ["by", "by_x", "by_y", "by_z"]}


def tracked_files() -> list[str]:
    argv = ["git", "ls-files"]
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()


def families(files: list[str]) -> dict[str, list[str]]:
    """Return the families of more than MAX_FAMILY source files, as `FOLDER/WORD_*`, with their names.

    A header and its source are one file; `test_` is no prefix, and neither is `__init__`.
    """
    named: dict[str, set[str]] = {}
    for file in map(PurePosixPath, files):
        name = file.stem.removeprefix("test_")
        if file.suffix in SOURCES and not name.startswith("__"):
            named.setdefault(f"{file.parent}/{name.partition('_')[0]}_*", set()).add(name)
    return {family: sorted(names) for family, names in named.items() if len(names) > MAX_FAMILY}
