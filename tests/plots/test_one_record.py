"""Charts take names of quantities and labels of axes from their records, and write none a second time."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from analysis import quantities
from analysis.quantities import Quantity
from experiments.registry import EXPERIMENTS
from harness.metrics.metric import Metric
from harness.metrics.metrics import TABLES
from plots.shared import axis_labels

PLOTS = Path(axis_labels.__file__).parents[1]
LABELS = {"set_xlabel", "set_ylabel"}
RECORDS = [each for each in vars(quantities).values() if isinstance(each, Quantity)]
STATED: list[Metric] = [
    row.metric for e in EXPERIMENTS.values() for figure in e.figures for row in figure.published
]
NAMES = {*(each.name for each in RECORDS), *(each.name for each in (*TABLES, *STATED))}
SHARED = {
    *(words for each in RECORDS for words in (each.axis, each.short_axis)),
    *(words for name, words in vars(axis_labels).items() if name.isupper()),
}
"""The labels that a record has."""


def sources() -> dict[str, str]:
    return {str(path.relative_to(PLOTS)): path.read_text() for path in sorted(PLOTS.rglob("*.py"))}


def bare_names(source: str) -> list[str]:
    """Return the metrics that are named by a string, and `.metrics`, which bypasses `Point.recorded`."""
    nodes = list(ast.walk(ast.parse(source)))
    attributes = (node for node in nodes if isinstance(node, ast.Attribute) and node.attr == "metrics")
    return [
        *(str(node.value) for node in nodes if isinstance(node, ast.Constant) and node.value in NAMES),
        *map(ast.unparse, attributes),
    ]


def labels(source: str) -> Iterator[str]:
    """Yield the words that stand in calls that label an axis; a line break counts as a space."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in LABELS:
            for argument in node.args:
                yield from map(_plain, _words(argument))


def _words(node: ast.AST) -> Iterator[str]:
    """Yield string literals; an f-string is one, as it is written."""
    if isinstance(node, ast.JoinedStr):
        yield ast.unparse(node)[2:-1]
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    else:
        for child in ast.iter_child_nodes(node):
            yield from _words(child)


def _plain(words: str) -> str:
    return " ".join(words.replace("\\n", " ").split())


def written_twice(files: Mapping[str, str]) -> dict[str, list[str]]:
    """Return labels that several of the files write, or that a record has."""
    where: dict[str, list[str]] = {}
    for name, source in files.items():
        for label in dict.fromkeys(labels(source)):
            where.setdefault(label, []).append(name)
    return {label: names for label, names in where.items() if label and (len(names) > 1 or label in SHARED)}


def test_no_chart_names_a_metric_by_a_string() -> None:
    assert {"goodput_pct_mean", "links_unused_pct", "window_top_pkts"} <= NAMES
    charts = {name: source for name, source in sources().items() if name != "data.py"}
    found = {name: bare for name, source in charts.items() if (bare := bare_names(source))}
    assert found == {}, "use the Quantity of analysis/quantities.py"


def test_no_label_is_written_twice() -> None:
    charts = {name: source for name, source in sources().items() if name.startswith("charts/")}
    assert len(charts) > 60
    assert len({label for source in charts.values() for label in labels(source)}) > 40
    assert written_twice(charts) == {}, "use the Quantity's `axis`, or plots/shared/axis_labels.py"


@pytest.mark.parametrize(
    ("source", "bare"),
    [
        ('style.levels_of(panel, levels, "goodput_pct_mean")', ["goodput_pct_mean"]),
        ('unused = level.quantity.name == "links_unused_pct"', ["links_unused_pct"]),
        ('busy = point.metrics.get("cpu_busy_pct")', ["cpu_busy_pct", "point.metrics"]),
        ('own = point.metrics["no_record"]', ["point.metrics"]),
        ('TOP = "window_top_pkts"', ["window_top_pkts"]),
    ],
)
def test_a_bare_name_is_found(source: str, bare: list[str]) -> None:
    assert bare_names(source) == bare


def test_words_that_are_no_name_are_not() -> None:
    assert (
        bare_names('"""Draw levels of goodput_pct_mean."""\naxes.plot(table["t_s"], table["cwnd_pkts"])')
        == []
    )


def test_a_label_in_two_charts_is_found() -> None:
    one, two = 'axes.set_xlabel("paths per pair")', 'axes.set_ylabel("paths\\nper pair", fontsize=8)'
    assert written_twice({"one": one, "two": two}) == {"paths per pair": ["one", "two"]}
    assert written_twice({"one": one, "again": one.replace("per pair", "in use")}) == {}
    formatted = 'axes.set_xlabel(f"times {study.baseline}")'
    assert list(written_twice({"one": formatted, "two": formatted})) == ["times {study.baseline}"]
    chosen = 'axes.set_xlabel("rank of host" if place == 0 else "")'
    assert list(written_twice({"one": chosen, "two": chosen})) == ["rank of host"]


def test_a_label_of_a_record_is_found() -> None:
    own = 'axes.set_ylabel("mean goodput\\n(% of optimal)")'
    assert written_twice({"one": own}) == {"mean goodput (% of optimal)": ["one"]}
    assert list(written_twice({"one": 'axes.set_xlabel("load (%)")'})) == ["load (%)"]
