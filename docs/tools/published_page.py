"""The tables of docs/published.md: every number that a result is compared with.

`docs/tools/site.py` puts them on the page. A statement appears once, although several figures may show it,
and so does one that only names a congestion control or an engine before the same words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from experiments.registry import EXPERIMENTS
from harness.claims.claims import place
from harness.experiment import Experiment, Figure
from harness.metrics.published import UNPUBLISHED, Published, Source
from model.transports import transport

MARK = "<!-- numbers -->"
QUOTES = "the source's words"
COLUMNS = (
    "section or figure", "what it says", QUOTES, "metric", "network, workload", "transport", "value",
    "source", "tolerance",
)  # fmt: skip
FiguresOf = dict[Published, list[Figure]]
"""Statements, and the figures that show each."""


def metric_of(row: Published) -> tuple[str, str]:
    """Return the metric of a statement in words, and its unit."""
    metric = row.metric
    return metric.about, metric.unit


def statements(experiments: Iterable[Experiment]) -> FiguresOf:
    """Return every statement once, in the order of the experiments."""
    shown: FiguresOf = {}
    first: dict[object, Published] = {}
    for experiment in experiments:
        for figure in experiment.figures:
            for row in figure.published:
                shown.setdefault(first.setdefault((_about(row), row.words), row), []).append(figure)
    return {row: figures for row, figures in shown.items() if (_about(row), _unprefixed(row)) not in first}


def _about(row: Published) -> tuple[object, ...]:
    """Return what two statements have in common if they differ in a prefix of their words only."""
    network = row.topology, row.k, row.shape, row.workload, row.subflows, row.setting
    return row.citation, metric_of(row), network, row.relation, row.value, row.source


def _unprefixed(row: Published) -> str:
    """Return the words after a prefix such as `LIA: `; empty without such a prefix."""
    return row.words.partition(": ")[2]


def section_of(row: Published, figures: Sequence[Figure]) -> str:
    """Return the section or figure of the source, else the figure of refabric that shows the statement."""
    unknown = "" if row.source in UNPUBLISHED else "section not known, "
    sections = (row.section, *(figure.section for figure in figures))
    return next(filter(None, sections), f"{unknown}`{figures[0].name}`")


def quoted(row: Published) -> str:
    """Return the source's words, or why there are none."""
    if row.source is Source.FIGURE:
        return "read from a figure"
    return "recalled" if row.source is Source.RECALLED else row.quote or "-"


def table_row(row: Published, figures: Sequence[Figure]) -> str:
    """Return a statement as a row of COLUMNS; what was not published has no words of a source."""
    about, unit = metric_of(row)
    cells = (
        section_of(row, figures),
        row.words,
        *([quoted(row).replace("<", "&lt;")] if row.source not in UNPUBLISHED else []),
        f"{about} ({unit})" if unit else about,
        ", ".join(filter(None, (place(row), f"`{row.workload}`", row.setting))),
        transport(row.algorithm, row.subflows) if row.algorithm else _plain_transport(row.subflows),
        row.short().replace("<", "&lt;"),
        row.source,
        _tolerance(row),
    )
    return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"


def _plain_transport(subflows: int) -> str:
    return "TCP" if subflows == 1 else f"MPTCP {subflows}"


def _tolerance(row: Published) -> str:
    return f"{row.tolerance:g}: {row.because}" if row.because else f"{row.tolerance:g}"


def numbers(shown: FiguresOf) -> str:
    """Return a heading and a table for each paper: published ones first, then theory and the like."""
    published = {row: figures for row, figures in shown.items() if row.source not in UNPUBLISHED}
    others = {row: figures for row, figures in shown.items() if row.source in UNPUBLISHED}
    theory = "## Theory, expectations and references"
    others_have = [name for name in COLUMNS if name != QUOTES]
    parts = ("## Published numbers", *_tables(published, COLUMNS), theory, *_tables(others, others_have))
    return "\n\n".join(parts)


def _tables(shown: FiguresOf, columns: Sequence[str]) -> list[str]:
    head = f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|"
    citations = dict.fromkeys(row.citation for row in shown)
    return ["\n".join([f"### {each}", "", head, *_rows(shown, each)]) for each in citations]


def _rows(shown: FiguresOf, citation: str) -> list[str]:
    return [table_row(row, figures) for row, figures in shown.items() if row.citation == citation]


def page(text: str) -> str:
    """Return docs/published.md with its tables."""
    return text.replace(MARK, numbers(statements(EXPERIMENTS.values())))
