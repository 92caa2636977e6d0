"""Build the documentation's site: `refabric docs` calls this, with the interpreter of .venv.

    .venv/bin/python docs/tools/site.py FOLDER

Pages of docs/ are staged in build/site-pages together with those made from the code; MkDocs (.venv-docs)
builds FOLDER from them. A dead link, a dead anchor or a page without a place in docs/site/mkdocs.yml is an
error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RunError
from docs.tools import architecture, gallery, published_page, site_reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "site-pages"
MKDOCS = ROOT / ".venv-docs" / "bin" / "mkdocs"
CONFIG = DOCS / "site" / "mkdocs.yml"
NOTEBOOK = DOCS / "guide" / "tutorial.ipynb"
DEADLINE_S = 300.0
_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_ITEM = re.compile(r"(?:[*+-]|\d+\.) ")
_NESTED = re.compile(r"^( {2,3})(?=(?:[*+-]|\d+\.) )")


def pages() -> dict[str, str]:
    """Return the text of every page of the site by its path: those of docs/ and those made from the code.

    Starts a short simulated run, whose files the architecture page lists.
    """
    own = {path.relative_to(DOCS).as_posix(): path.read_text(encoding="utf-8") for path in DOCS.rglob("*.md")}
    made = {
        "guide/tutorial.md": notebook(NOTEBOOK),
        "experiments/gallery.md": gallery.page(own),
        "published.md": published_page.page(own["published.md"]),
        "architecture.md": architecture.page(own["architecture.md"]),
    }
    return {**own, **made, **site_reference.pages()}


def staged(text: str, name: str) -> str:
    """Return a page as MkDocs needs it: a blank line before a list, nested items indented by four, and no
    link to a file that the site does not have."""
    lines: list[str] = []
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        if not fenced and _ITEM.match(line) and lines and _is_prose(lines[-1]):
            lines.append("")
        lines.append(line if fenced else _NESTED.sub("    ", line))
    return _LINK.sub(lambda link: _kept(link, name), "\n".join(lines) + "\n")


def _is_prose(line: str) -> bool:
    return bool(line.strip()) and not _ITEM.match(line) and not line.startswith((" ", "#", "```"))


def _kept(link: re.Match[str], name: str) -> str:
    """Return a link within docs/ as it is; of one to a source file, only its text."""
    target = link[3].partition("#")[0]
    if not target or ":" in target:
        return link[0]
    if target.endswith(".ipynb"):
        return link[0].replace(".ipynb", ".md")
    path = (DOCS / name).parent / target
    return link[0] if path.resolve().is_relative_to(DOCS) else link[2]


def notebook(path: Path) -> str:
    """Return a notebook as a page: its prose, and its code in blocks."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
    return "\n\n".join(parts) + "\n"


def stage(folder: Path = STAGED) -> Path:
    """Write every page and picture below `folder`, which is replaced."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(DOCS / "images", folder / "images")
    shutil.copytree(DOCS / "guide/programs", folder / "guide/programs")
    architecture.draw(folder / "images" / "architecture.svg")
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(staged(text, name), encoding="utf-8")
    return folder


def build(output: Path) -> str:
    """Build the site in `output`; return what MkDocs printed. Raises RunError if anything is wrong."""
    environment = {
        **os.environ, "REFABRIC_SITE_SOURCE": str(stage()), "REFABRIC_SITE": str(output.resolve()),
        "NO_MKDOCS_2_WARNING": "1",
    }  # fmt: skip
    done = subprocess.run(
        [MKDOCS, "build", "--strict", "--config-file", CONFIG], env=environment, cwd=ROOT, text=True,
        capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise RunError(
            f"building the site: mkdocs exited with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout + done.stderr


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def main(folder: Path) -> None:
    """Build the documentation's site in FOLDER."""
    try:
        build(folder)
    except RunError as error:
        print(f"refabric: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
