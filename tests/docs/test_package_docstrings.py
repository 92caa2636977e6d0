"""The docstring of every package names what is in it, and what it may import."""

from __future__ import annotations

import subprocess

from docs.tools.imports import EXCEPTIONS, ROOT, Import, imports
from docs.tools.packages import contents, docstring, forbidden, may_import, packages, undeclared, unnamed

TEXT = """A package.

spec.py   something
machine/  more

May import `common` and
`model.spec`.
"""


def tracked_files() -> list[str]:
    argv = ["git", "ls-files"]
    return subprocess.run(
        argv, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    ).stdout.splitlines()


FILES = tracked_files()
PACKAGES = packages(FILES)


def test_every_file_and_folder_is_named() -> None:
    assert len(PACKAGES) > 80
    missing = {package: unnamed(docstring(package), contents(package, FILES)) for package in PACKAGES}
    assert {package: names for package, names in missing.items() if names} == {}


def test_every_package_says_what_it_may_import() -> None:
    assert [package for package in PACKAGES if may_import(docstring(package)) is None] == []


def test_no_package_imports_more_than_it_says() -> None:
    found = [each for each in imports() if not _is_exception(each)]
    assert len(found) > 1000
    broken = [
        each
        for package in PACKAGES
        for each in undeclared(package, may_import(docstring(package)) or (), found)
    ]
    assert broken == [], "import less, or say in the package's docstring that it may"


def test_no_package_may_import_what_is_right_of_it() -> None:
    said = {package: forbidden(package, may_import(docstring(package)) or ()) for package in PACKAGES}
    assert {package: names for package, names in said.items() if names} == {}


def test_what_a_docstring_leaves_out_is_found() -> None:
    names = ["flows.py", "machine/", "spec.py"]
    files = ["model/__init__.py", "model/machine/effects.py", "plots/data.py"]
    assert contents("model", [*files, "model/flows.py", "model/spec.py"]) == names
    assert unnamed(TEXT, names) == ["flows.py"]
    parts = [name[1:] for name in names]
    assert unnamed(TEXT, parts) == parts
    assert may_import(TEXT) == ["common", "model.spec"]
    assert may_import("May import no other package.") == []
    assert may_import("A package.") is None


def test_an_import_that_is_not_declared_is_found() -> None:
    found = [
        Import("plots/data.py", "plots.registry.CHARTS"),
        Import("plots/data.py", "model.spec.RunSpec"),
        Import("plots/data.py", "model.result"),
        Import("harness/streams.py", "model.result"),
    ]
    assert undeclared("plots", ["model.spec", "common"], found) == ["plots/data.py -> model.result"]
    assert undeclared("plots", ["model"], found) == []
    assert forbidden("harness/plan", ["harness.points", "harness.execute"]) == ["harness.execute"]
    assert forbidden("model", ["common", "model.spec", "plots", "common.nothing"]) == [
        "plots",
        "common.nothing",
    ]


def _is_exception(each: Import) -> bool:
    return any(f"{each.file} -> {each.module}.".startswith(f"{known}.") for known in EXCEPTIONS)
