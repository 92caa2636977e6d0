"""Write measured numbers into docs/experiments/sigcomm11.md: tables, charts, and reasons for differences.

    python docs/tools/paper_page.py [--results results] [--page PAGE] [--section NAME]

The script replaces the text between `<!-- claims: SECTION -->`, or `<!-- differs: SECTION -->`, and `<!-- end
-->`, and what follows `<!-- score -->` on its line. With `--section` it replaces the text of these sections
alone, for results that do not have the others, and leaves the score. An image whose link is followed by `<!--
FIGURE/PATTERN.png -->` is replaced by the simulated chart of that name in the results folder. All other text
stays.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import click

sys.path.append(str(Path(__file__).resolve().parents[2]))

from common.errors import RefabricError, UsageError
from docs.tools import pages
from experiments.sigcomm11 import whole
from harness.claims.claims import once
from harness.report.tables import NOTHING, ClaimCell, ClaimRow, claim_rows, score_of

WIDTH, MANY = 100, 3
PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "sigcomm11.md"
HERE = " (docs/experiments/sigcomm11.md)"
"""Where reports find more about a difference: this page."""
HEAD = ("claim", "published", "simulated", "emulated", "verdict")
_BLOCK = re.compile(r"<!-- (claims|differs): (.+?) -->\n.*?<!-- end -->", re.DOTALL)
_RECALLED = re.compile(" (with|from) what is recalled$")
_PAGE = re.compile(r"\(docs/(([\w-]+)\.md)\)")
_SCORE = re.compile(r"<!-- score -->.*")


def written(page: str, found: Sequence[ClaimRow], scored: str, sections: Sequence[str] = ()) -> str:
    """Return `page` with the numbers of these claims and their score, or only the numbers of `sections`.

    Raises UsageError for a section without claims.
    """
    if unknown := sorted(set(sections) - {section for _, section in _BLOCK.findall(page)}):
        raise UsageError(f"section {unknown[0]}: the page has no such section")

    def block(match: re.Match[str]) -> str:
        what, section = match.groups()
        if sections and section not in sections:
            return match[0]
        mine = [row for row in found if row.section == section]
        if not mine:
            known = ", ".join(dict.fromkeys(row.section for row in found))
            raise UsageError(f"section {section}: no claim is of it; choose from: {known}")
        text = _table(mine) if what == "claims" else _differences(mine)
        return f"<!-- {what}: {section} -->\n{text}\n<!-- end -->"

    numbered = _BLOCK.sub(block, page)
    return numbered if sections else _SCORE.sub(f"<!-- score -->{scored}", numbered)


def _table(found: Sequence[ClaimRow]) -> str:
    names = Counter(row.statement for row in found)
    lines = (
        (row.statement if names[row.statement] == 1 else f"{row.statement} ({row.about.rpartition(', ')[0]})",
         f"{row.published.value} ({row.published.note})", _measured(row, row.simulated),
         _measured(row, row.emulated), _verdict(row))
        for row in found
    )  # fmt: skip
    head, cells = pages.basis_in_head(HEAD, list(lines))
    if all(row.emulated.value == NOTHING for row in found):
        head, cells = [*head[:3], head[4]], [[*row[:3], row[4]] for row in cells]
    return pages.table(head, cells)


def _verdict(row: ClaimRow) -> str:
    """Return the verdict, bold if it is red; the published value says if it is recalled."""
    word = _RECALLED.sub("", row.verdict)
    return f"**{word}**" if row.colour == "red" else word


def _measured(row: ClaimRow, cell: ClaimCell) -> str:
    """Return a measured value without its unit, which the published one has."""
    _, blank, unit = row.published.value.partition("\N{NO-BREAK SPACE}")
    return cell.short().replace(blank + unit, "").replace(" of the flows unfinished", " unfinished")


def _differences(found: Sequence[ClaimRow]) -> str:
    """Return the reasons as a list; claims that differ for the same reasons share an item."""
    claims: dict[tuple[str, ...], list[str]] = {}
    for row in found:
        if row.reasons:
            claims.setdefault(row.reasons, []).append(row.statement)
    items = [f"* {_named(about)}: {' '.join(reasons)}" for reasons, about in claims.items()]
    linked = [_PAGE.sub(r"([\2](../\1))", item.replace(HERE, "")) for item in items]
    return "\n".join(wrapped(item) for item in linked) or "Nothing that was measured differs."


def _named(about: Sequence[str]) -> str:
    """Return the claims of an item; of more than three the first and how many others there are."""
    return "; ".join(about) if len(about) <= MANY else f"{about[0]}, and {len(about) - 1} more"


def wrapped(item: str) -> str:
    """Return a list item in lines of at most WIDTH characters."""
    return textwrap.fill(item, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


@click.command()
@pages.RESULTS
@pages.page_option(PAGE)
@click.option("--section", "sections", multiple=True, help="Replace this section alone. Repeatable.")
def main(results: Path, path: Path, sections: tuple[str, ...]) -> None:
    """Write the page from stored results."""
    try:
        found = pages.stored(whole.EXPERIMENT, results)
        claims = once(claim for shown in found.figures for claim in shown.claims)
        path.write_text(written(path.read_text(), claim_rows(claims), score_of(claims), sections))
        if not sections:
            pages.copy_charts(path, results / whole.NAME / "charts")
    except (RefabricError, OSError) as error:
        click.echo(f"paper_page: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
