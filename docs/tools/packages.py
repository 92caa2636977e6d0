"""Read what the docstring of a package says: its modules and folders, and what it may import.

A docstring names each file by its name and each folder with a slash behind it, and has a sentence that begins
with "May import". Names in that sentence stand in backticks and include what is below them: `model` includes
`model.spec`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from docs.tools.imports import ORDER, ROOT, Import, rank

INIT = "__init__.py"
_MAY = re.compile(r"\bMay import\b(.*?)(?:\n\n|\Z)", re.DOTALL)


def packages(files: Iterable[str]) -> list[str]:
    """Return the packages among the files of the tree, as folders relative to its root."""
    folders = (PurePosixPath(file).parent for file in files if PurePosixPath(file).name == INIT)
    return sorted(str(folder) for folder in folders if folder.parts[0] in ORDER)


def docstring(package: str, root: Path = ROOT) -> str:
    return ast.get_docstring(ast.parse((root / package / INIT).read_text())) or ""


def contents(package: str, files: Iterable[str]) -> list[str]:
    """Return the files and folders in a package as its docstring names them: folders end with a slash."""
    below = [file.removeprefix(f"{package}/") for file in files if file.startswith(f"{package}/")]
    names = {name.split("/")[0] + "/" if "/" in name else name for name in below}
    return sorted(names - {INIT})


def unnamed(text: str, names: Iterable[str]) -> list[str]:
    """Return the files and folders that a docstring does not name."""
    return [name for name in names if not re.search(rf"(?<![\w/.-]){re.escape(name)}(?!\w)", text)]


def may_import(text: str) -> list[str] | None:
    """Return what a docstring says that its package may import; None if it does not say."""
    found = _MAY.search(text)
    return re.findall(r"`([\w.]+)`", found.group(1)) if found else None


def undeclared(package: str, allowed: Iterable[str], found: Iterable[Import]) -> list[str]:
    """Return imports from outside of the package that nothing in `allowed` includes, as `FILE -> MODULE`."""
    names = (package.replace("/", "."), *allowed)
    return [
        f"{each.file} -> {each.module}"
        for each in found
        if each.file.startswith(f"{package}/") and not any(_includes(name, each.module) for name in names)
    ]


def forbidden(package: str, allowed: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the names in `allowed` that do not exist, or that are to the right of the package."""
    own = rank(package.replace("/", "."))
    return [name for name in allowed if not _exists(name, root) or rank(name) > own]


def _includes(name: str, module: str) -> bool:
    return f"{module}.".startswith(f"{name}.")


def _exists(name: str, root: Path) -> bool:
    path = root / name.replace(".", "/")
    return name.split(".", maxsplit=1)[0] in ORDER and (path.is_dir() or path.with_suffix(".py").is_file())
