"""The generated parts of docs/architecture.md: the picture of the packages, and the walk of one run.

`docs/tools/site.py` puts them on the page while it builds the site. The order of the packages is that of the
import rules in pyproject.toml.
"""

from __future__ import annotations

import re
import textwrap
import tomllib
from itertools import groupby
from pathlib import Path

import grimp
import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from docs.tools import walk

ROOT = Path(__file__).resolve().parents[2]
WALKED = ("experiments/", "harness/", "engines/", "plots/")
"""Folders that the walk shows; every step also uses the packages below these."""
INK, FAINT, BOX, DOT = "#222222", "#5f5f5f", "#eef3f8", "#0072B2"
BOX_WIDTH, CELL, FIRST_COLUMN = 7.6, 0.62, 8.1


def packages() -> list[str]:
    """Return the packages from the top to the bottom of the import rules."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers: list[str] = settings["contracts"][0]["layers"]
    return layers


def page(text: str) -> str:
    """Return docs/architecture.md with its generated parts."""
    return text.replace("<!-- picture -->", "![Packages and imports](images/architecture.svg)").replace(
        "<!-- walk -->", walk_list(walk.files_entered())
    )


def draw(path: Path) -> None:
    """Draw the packages as a stack, with a dot for each package that one imports."""
    rows = packages()
    graph = grimp.build_graph(*rows, cache_dir=None)
    for package in rows:
        graph.squash_module(package)
    with mpl.rc_context({"svg.hashsalt": "refabric", "svg.fonttype": "path", "font.family": "DejaVu Sans"}):
        figure = Figure(figsize=(11, 7.4))
        axes = figure.add_axes((0.01, 0.01, 0.98, 0.98))
        axes.set_xlim(0, FIRST_COLUMN + CELL * len(rows) + 0.1)
        axes.set_ylim(len(rows) + 0.1, -1.9)
        axes.axis("off")
        axes.text(0.05, -1.35, "The packages: each imports only packages below it", fontsize=13, color=INK)
        note = "large dot: the row's package imports the column's"
        axes.text(FIRST_COLUMN, len(rows) - 0.02, note, fontsize=7.2, color=FAINT, va="bottom")
        for row, package in enumerate(rows):
            corner = (0.05, row + 0.06)
            axes.add_patch(Rectangle(corner, BOX_WIDTH, 0.88, facecolor=BOX, edgecolor=FAINT, lw=0.7))
            axes.text(0.2, row + 0.36, package, fontsize=11, fontweight="bold", color=INK, va="center")
            axes.text(0.2, row + 0.72, _purpose(package), fontsize=6.9, color=INK, va="center")
            x = FIRST_COLUMN + CELL * (row + 0.5)
            axes.text(x, -0.12, package, rotation=55, fontsize=8, color=INK, ha="left", va="bottom")
            axes.text(x, row + 0.5, "·", color=FAINT, ha="center", va="center")
            imported = graph.find_modules_directly_imported_by(package)
            for column in range(row + 1, len(rows)):
                there = rows[column] in imported
                color, size = (DOT, 8.0) if there else ("#d8d8d8", 2.5)
                x = FIRST_COLUMN + CELL * (column + 0.5)
                axes.plot([x], [row + 0.5], "o", color=color, markersize=size)
        figure.savefig(path, format="svg", metadata={"Date": None})


def _purpose(package: str) -> str:
    """Return the first sentence of the docstring of a package."""
    found = re.match(r'"""(.*?\.)(?=\s|""")', (ROOT / package / "__init__.py").read_text(), re.DOTALL)
    return " ".join(found[1].replace("`", "").split()) if found else ""


def walk_list(files: list[str]) -> str:
    """Return a numbered Markdown list of the files in WALKED; consecutive files of a folder share an item."""
    lines = []
    shown = [file for file in files if file.startswith(WALKED)]
    for number, (folder, of) in enumerate(groupby(shown, key=lambda file: str(Path(file).parent)), 1):
        names = ", ".join(f"`{Path(file).name}`" for file in of)
        lines.append(textwrap.fill(f"{number}. `{folder}/`: {names}", 100, subsequent_indent="    "))
    return "\n".join(lines)
