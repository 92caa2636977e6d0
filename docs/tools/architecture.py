"""Draw the picture of docs/architecture.md from the imports, and fill in its tables.

    python docs/tools/architecture.py

The script replaces the text between `<!-- packages -->`, `<!-- harness -->` or `<!-- walk -->`, and
`<!-- end -->`. The metadata of the picture contain the data it was drawn from, so that a test can check
whether it is current.
"""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

sys.path.append(str(Path(__file__).resolve().parents[2]))

from docs.tools import walk
from docs.tools.imports import HARNESS, ORDER, ROOT, edges, first_line, imports

PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
_DATA = re.compile(r"<dc:description>(.*?)</dc:description>", re.DOTALL)
_BLOCK = r"<!-- {0} -->\n.*?<!-- end -->"
WALKED = ("experiments/", "harness/", "engines/", "plots/")
"""Folders that the walk shows; every step also uses the packages to the left of these."""
INK, FAINT, BOX, DOT, WRONG = "#222222", "#5f5f5f", "#eef3f8", "#0072B2", "#D55E00"
BOX_WIDTH, CELL, FIRST_COLUMN = 7.6, 0.62, 8.1


def data(root: Path = ROOT) -> dict[str, dict[str, Any]]:
    """Return for each package what it holds, its folders, and the packages that it imports."""
    imported = edges(imports(root))
    return {
        package: {
            "holds": first_line(root / package / "__init__.py"),
            "folders": _folders(root / package),
            "imports": imported[package],
        }
        for package in ORDER
    }


def _folders(package: Path) -> list[str]:
    """Return the names of the folders with source files in them, however deep."""
    return sorted(path.name for path in package.iterdir() if path.name[0] != "_" and any(_sources(path)))


def _sources(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if path.suffix in {".py", ".hpp", ".h", ".cpp"})


def drawn_from(picture: str) -> object:
    """Return the data that the SVG text `picture` was drawn from."""
    found = _DATA.search(picture)
    return json.loads(found.group(1).replace("&quot;", '"').replace("&amp;", "&")) if found else None


def draw(found: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the packages as a stack, and a dot for each package that one imports."""
    rows = list(reversed(ORDER))
    with mpl.rc_context({"svg.hashsalt": "refabric", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(11, 7.4))
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        axes.set_xlim(0, FIRST_COLUMN + CELL * len(rows) + 0.1)
        axes.set_ylim(len(rows) + 0.1, -1.9)
        axes.axis("off")
        for row, package in enumerate(rows):
            _box(axes, row, package, found[package])
            _dots(axes, row, rows, found[package]["imports"])
        _titles(axes, rows)
        description = json.dumps(found, sort_keys=True)
        figure.savefig(path, format="svg", metadata={"Date": None, "Description": description})


def _box(axes: Axes, row: int, package: str, about: dict[str, Any]) -> None:
    axes.add_patch(Rectangle((0.05, row + 0.06), BOX_WIDTH, 0.88, facecolor=BOX, edgecolor=FAINT, lw=0.7))
    axes.text(0.2, row + 0.36, package, fontsize=11, fontweight="bold", color=INK, va="center")
    folders = "  ".join(f"{name}/" for name in about["folders"])
    axes.text(BOX_WIDTH - 0.1, row + 0.36, folders, fontsize=7, color=FAINT, va="center", ha="right")
    axes.text(0.2, row + 0.72, about["holds"], fontsize=6.9, color=INK, va="center")


def _dots(axes: Axes, row: int, rows: list[str], imported: list[str]) -> None:
    for column, package in enumerate(rows):
        x, y = FIRST_COLUMN + CELL * (column + 0.5), row + 0.5
        if column == row:
            axes.text(x, y, "·", color=FAINT, ha="center", va="center")
        elif package in imported:
            axes.plot([x], [y], "o", color=DOT if column > row else WRONG, markersize=8)
        elif column > row:
            axes.plot([x], [y], "o", color="#d8d8d8", markersize=2.5)


def _titles(axes: Axes, rows: list[str]) -> None:
    axes.text(0.05, -1.35, "The packages: each imports only packages below it", fontsize=13, color=INK)
    axes.text(0.05, -0.75, "Read from the imports by docs/tools/architecture.py", fontsize=8, color=FAINT)
    axes.text(
        FIRST_COLUMN, len(rows) - 0.02, "large dot: the row's package imports the column's", fontsize=7.2,
        color=FAINT, va="bottom",
    )  # fmt: skip
    for column, package in enumerate(rows):
        x = FIRST_COLUMN + CELL * (column + 0.5)
        axes.text(x, -0.12, package, rotation=55, fontsize=8, color=INK, ha="left", va="bottom")


def packages_table(found: dict[str, dict[str, Any]]) -> str:
    """Return a Markdown table with one row per package, from left to right."""
    lines = ["| package | holds | imports today |", "|---|---|---|"]
    for package, about in found.items():
        imported = ", ".join(f"`{each}`" for each in about["imports"]) or "nothing"
        lines.append(f"| `{package}/` | {about['holds']} | {imported} |")
    return "\n".join(lines)


def harness_table(root: Path = ROOT) -> str:
    """Return a Markdown table with one row per package or module of the harness, in the order of HARNESS."""
    lines = ["| in `harness/` | holds |", "|---|---|"]
    for name in HARNESS:
        folder, module = root / "harness" / name, root / "harness" / f"{name}.py"
        shown, file = (f"{name}/", folder / "__init__.py") if folder.is_dir() else (module.name, module)
        lines.append(f"| `{shown}` | {first_line(file)} |")
    return "\n".join(lines)


def walk_list(files: list[str]) -> str:
    """Return a numbered Markdown list of the files in WALKED; consecutive files of a folder share an item."""
    lines = []
    shown = [file for file in files if file.startswith(WALKED)]
    for number, (folder, of) in enumerate(groupby(shown, key=lambda file: str(Path(file).parent)), 1):
        names = ", ".join(f"`{Path(file).name}`" for file in of)
        lines.append(textwrap.fill(f"{number}. `{folder}/`: {names}", 100, subsequent_indent="    "))
    return "\n".join(lines)


def blocks(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    """Return the text of each generated block of the page, by its name."""
    return {
        "packages": packages_table(found),
        "harness": harness_table(),
        "walk": walk_list(walk.files_entered()),
    }


def filled(page: str, texts: dict[str, str]) -> str:
    """Return `page` with new text in each of its blocks."""
    for name, text in texts.items():
        block = f"<!-- {name} -->\n{text}\n<!-- end -->"
        page = re.sub(_BLOCK.format(name), lambda _, new=block: new, page, flags=re.DOTALL)  # type: ignore[misc]
    return page


def main() -> None:
    found = data()
    draw(found, PICTURE)
    PAGE.write_text(filled(PAGE.read_text(), blocks(found)))


if __name__ == "__main__":
    main()
