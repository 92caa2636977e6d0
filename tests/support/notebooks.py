"""Execute the code cells of a notebook as Jupyter would, without Jupyter."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any


def cells(path: Path, kind: str) -> list[str]:
    """Return the sources of the cells of a kind, `code` or `markdown`."""
    notebook = json.loads(path.read_text())
    assert notebook["nbformat"] == 4
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def execute(path: Path) -> list[object]:
    """Run all code cells in one namespace; return the value that each cell shows, None for none."""
    names: dict[str, Any] = {"__name__": "__main__"}
    return [_run(source, f"{path.name}, code cell {number}", names)
            for number, source in enumerate(cells(path, "code"), 1)]  # fmt: skip


def _run(source: str, where: str, names: dict[str, Any]) -> object:
    """Run one cell; return the value of its last line if that is an expression."""
    tree = ast.parse(source, where)
    shown: object = None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, where, "exec"), names)
    if last is not None:
        assert isinstance(last, ast.Expr)
        shown = eval(compile(ast.Expression(last.value), where, "eval"), names)
    return shown
