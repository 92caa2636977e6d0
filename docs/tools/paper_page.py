"""Write what was measured into docs/sigcomm11.md: its tables, its charts, and why what differs does.

    python docs/tools/paper_page.py [--results results] [--page docs/sigcomm11.md]

Between `<!-- claims: SECTION -->`, or `<!-- differs: SECTION -->`, and `<!-- end -->` everything is made
anew, as is what follows `<!-- score -->` on its line. An image whose link is followed by
`<!-- FIGURE/PATTERN.png -->` is the simulated chart of that name in the results folder. Text is left alone.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RefabricError, UsageError
from experiments.sigcomm11 import whole
from harness.claims.claims import once
from harness.plan import session
from harness.plan.options import ENGINE, Given
from harness.report.claims import Row, rows, score
from harness.results.load import Loaded, load

PAGE = Path(__file__).resolve().parents[2] / "docs" / "sigcomm11.md"
HEAD = "| claim | published | simulated | emulated | verdict |\n|---|---|---|---|---|"
_BLOCK = re.compile(r"<!-- (claims|differs): (.+?) -->\n.*?<!-- end -->", re.DOTALL)
_SCORE = re.compile(r"<!-- score -->.*")
_IMAGE = re.compile(r"\((images/[\w.-]+\.png)\)<!-- (\S+\.png) -->")


def written(page: str, found: Sequence[Row]) -> str:
    """The page with the numbers of these claims. Raises UsageError for a section without claims."""

    def block(match: re.Match[str]) -> str:
        what, section = match.groups()
        mine = [row for row in found if row.section == section]
        if not mine:
            known = ", ".join(dict.fromkeys(row.section for row in found))
            raise UsageError(f"section {section}: no claim is of it; choose from: {known}")
        text = _table(mine) if what == "claims" else _differences(mine)
        return f"<!-- {what}: {section} -->\n{text}\n<!-- end -->"

    return _SCORE.sub(f"<!-- score -->{score(found)}", _BLOCK.sub(block, page))


def _table(found: Sequence[Row]) -> str:
    lines = (
        (row.statement, f"{row.published.value} ({row.published.note})", row.simulated.short(),
         row.emulated.short(), f"**{row.verdict}**" if row.colour == "red" else row.verdict)
        for row in found
    )  # fmt: skip
    return "\n".join(
        [HEAD, *(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)]
    )


def _differences(found: Sequence[Row]) -> str:
    told = [f"* {row.statement}: {' '.join(row.reasons)}" for row in found if row.reasons]
    return "\n".join(told) or "Nothing that was measured differs."


def charts(page: str) -> dict[str, str]:
    """Images of the page, and the pattern of the chart that each is."""
    return dict(_IMAGE.findall(page))


def simulated_chart(folder: Path, pattern: str) -> Path | None:
    """Charts of both engines may be there, told apart by their names: the simulated one, or None."""
    found = [path for path in folder.glob(pattern) if ENGINE not in path.stem.split("-")]
    return min(found, key=lambda path: (len(path.name), path.name), default=None)


def _loaded(results: Path) -> Loaded:
    paper, asked = whole.EXPERIMENT, Given()
    found = load(paper, results, session.make_plan(paper, asked, session.engine_for(paper, asked)))
    if not found.points:
        raise UsageError(f"--results {results}: nothing there: run `refabric run {paper.name}` first")
    return found


@click.command()
@click.option("--results", type=click.Path(path_type=Path), default=Path("results"), show_default=True)
@click.option("--page", "path", type=click.Path(path_type=Path), default=PAGE, show_default=True)
def main(results: Path, path: Path) -> None:
    try:
        found = _loaded(results)
        page = written(
            path.read_text(), rows(once(claim for shown in found.figures for claim in shown.claims))
        )
        missing = []
        for image, chart in charts(page).items():
            source = simulated_chart(results / whole.NAME / "charts", chart)
            if source:
                shutil.copyfile(source, path.parent / image)
            else:
                missing.append(chart)
        path.write_text(page)
    except (RefabricError, OSError) as error:
        click.echo(f"paper_page: {error}", err=True)
        sys.exit(2)
    click.echo(f"{path}: {len(charts(page)) - len(missing)} charts")
    for name in missing:
        click.echo(f"not there, so left as it was: {name}", err=True)


if __name__ == "__main__":
    main()
