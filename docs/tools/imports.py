"""Read the imports of the tree, and the rules they must keep. Pure; used by architecture.py and its test.

A package imports only packages to its left in `ORDER`, and inside `harness/` only those to its left in
`HARNESS`. Inside `engines/` no engine imports another one. `plots/shared/` imports no chart. Packages of
`experiments/` do not import one another in a circle.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
ORDER = (
    "common", "fabric", "topos", "controllers", "workloads", "ccp", "model", "analysis", "engines", "setup",
    "plots", "harness", "experiments", "refabric",
)  # fmt: skip
HARNESS = (
    "points", "options", "results", "streams", "metrics", "watch", "experiment", "plan", "execute", "claims",
    "load", "compare", "report", "own_experiment", "catalogue", "cli", "api",
)  # fmt: skip
"""The packages and modules of `harness/`, in the same order. docs/decisions.md gives the reason for it."""
ENGINES = ("emulation", "simulation", "flow_level", "linux")
EXCEPTIONS: dict[str, str] = {}
"""Imports that break a rule, and why they are there. Nothing may be added."""


class Import(NamedTuple):
    """One import statement: `file` relative to the root, `module` with its dots."""

    file: str
    module: str

    @property
    def importer(self) -> str:
        return self.file.split("/", maxsplit=1)[0]

    @property
    def imported(self) -> str:
        return self.module.split(".", maxsplit=1)[0]


def modules(root: Path = ROOT) -> list[Path]:
    """Return the Python files of the packages in ORDER."""
    return sorted(path for package in ORDER for path in (root / package).rglob("*.py"))


def imports(root: Path = ROOT) -> list[Import]:
    """Return every import of one package of ORDER by another module of the tree, the lazy ones included."""
    return [
        Import(path.relative_to(root).as_posix(), module)
        for path in modules(root)
        for module in imported_by(path.read_text())
        if module.split(".")[0] in ORDER
    ]


def imported_by(source: str) -> Iterator[str]:
    """Yield the names that `source` imports, as `package.module.name`."""
    for node in statements(ast.parse(source).body):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield all statements, however deep. `ast.walk` would visit every expression, too."""
    for each in body:
        yield each
        for part in (each, *getattr(each, "handlers", ()), *getattr(each, "cases", ())):
            for name in ("body", "orelse", "finalbody"):
                yield from statements(getattr(part, name, ()))


def violations(found: list[Import]) -> list[str]:
    """Return the imports that break a rule, as `FILE -> PACKAGE`, each once."""
    broken = [f"{each.file} -> {_package(each.module)}" for each in found if _climbs(each)]
    broken += [f"{each.file} -> {'.'.join(each.module.split('.')[:2])}" for each in found if _crosses(each)]
    broken += [f"{each.file} -> plots.charts" for each in found if _draws(each)]
    return list(dict.fromkeys(broken))


def rank(name: str) -> tuple[int, int]:
    """Return the place in ORDER of a package or module, given with its dots, and its place in HARNESS.

    The second is -1 outside of the harness, for `harness` itself, and for a name that HARNESS lacks.
    """
    package, _, inside = name.partition(".")
    part = inside.split(".")[0]
    return ORDER.index(package), HARNESS.index(part) if package == "harness" and part in HARNESS else -1


def _climbs(each: Import) -> bool:
    return rank(each.module) > rank(each.file.removesuffix(".py").replace("/", "."))


def _package(module: str) -> str:
    """Return the package of a module by the name it has in ORDER, or in the harness `harness.NAME`."""
    parts = module.split(".")
    return ".".join(parts[:2] if parts[0] == "harness" else parts[:1])


def _crosses(each: Import) -> bool:
    """Return whether one engine imports another; `engines/registry.py` makes engines and may import all."""
    if each.importer != "engines" or each.file == "engines/registry.py" or each.imported != "engines":
        return False
    imported = each.module.split(".")[1]
    return imported in ENGINES and each.file.split("/")[1] != imported


def _draws(each: Import) -> bool:
    """Return whether what all charts share imports one of them."""
    return each.file.startswith("plots/shared/") and f"{each.module}.".startswith("plots.charts.")


def cycles(found: list[Import], package: str) -> list[str]:
    """Return the folders of `package` that import one another, directly or by way of others, as `A <-> B`."""
    direct: dict[str, set[str]] = {}
    for each in found:
        names = each.file.split("/")[1:2] + each.module.split(".")[1:2]
        if each.importer == each.imported == package and len(names) == 2 and names[0] != names[1]:
            direct.setdefault(names[0], set()).add(names[1])
    reached = {folder: _reached(direct, folder) for folder in direct}
    return [
        f"{one} <-> {other}"
        for one in sorted(reached)
        for other in sorted(reached[one])
        if one < other and one in reached.get(other, ())
    ]


def _reached(direct: dict[str, set[str]], start: str) -> set[str]:
    """Return the folders that can be reached from `start` by one import or more."""
    found: set[str] = set()
    waiting = [*direct[start]]
    while waiting:
        folder = waiting.pop()
        if folder not in found:
            found.add(folder)
            waiting += direct.get(folder, ())
    return found


def edges(found: list[Import]) -> dict[str, list[str]]:
    """Return for each package the packages that it imports, in the order of ORDER."""
    pairs = {(each.importer, each.imported) for each in found if each.importer != each.imported}
    return {importer: [each for each in ORDER if (importer, each) in pairs] for importer in ORDER}


def first_line(path: Path) -> str:
    """Return the first line of the docstring of a module, or an empty string."""
    return (ast.get_docstring(ast.parse(path.read_text())) or "").split("\n")[0]
