"""The reference pages of the site, made from the code: commands, exit codes, files, metrics, Python."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, get_type_hints

import click

import refabric
from experiments.command import main as command
from experiments.registry import CATALOGUE
from harness.cli.manuals import EXIT_CODES
from harness.metrics import summary_csv
from harness.metrics.metrics import TABLES, Metric, ShownIn
from harness.options.fields import OPTIONS
from model.result import SAMPLE_COLUMNS, FlowRow, PortRow, RunResult
from model.spec import RunSpec
from workloads.matrices import MATRICES

MADE = "<!-- made from the code by docs/tools/site_reference.py -->\n\n"


def pages() -> dict[str, str]:
    """Return every page by its path below docs/."""
    makers = {
        "command-line": commands,
        "exit-codes": exit_codes,
        "results": results,
        "metrics": metrics,
        "python": python,
    }
    return {f"reference/{name}.md": MADE + make() for name, make in makers.items()}


def commands() -> str:
    """Return the page of every command and option."""
    head = "# Command line\n\n`.venv/bin/refabric COMMAND --help` prints the same.\n"
    return head + "\n".join(_command(command, "refabric", None))


def _command(found: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    context = click.Context(found, info_name=name, parent=parent)
    path = context.command_path
    if parent is not None:
        yield f"\n## {path}\n" if parent.parent is None else f"\n### {path}\n"
        yield f"{_words(found.help)}\n"
        yield f"```text\n{path} {' '.join(found.collect_usage_pieces(context))}\n```\n"
        rows = [r for p in found.get_params(context) if (r := p.get_help_record(context)) is not None]
        yield from _table(("option", "meaning"), [(f"`{flag}`", text) for flag, text in rows])
    if isinstance(found, click.Group):
        for inner in found.list_commands(context):
            each = found.get_command(context, inner)
            if each is not None and not each.hidden:
                yield from _command(each, inner, context)


def exit_codes() -> str:
    """Return the page of exit codes."""
    return "# Exit codes\n\n" + "\n".join(
        _table(("code", "meaning"), [(f"`{code}`", meaning) for code, meaning in EXIT_CODES])
    )


def metrics() -> str:
    """Return the page of metrics: those of tables, and those that only statements use."""
    shown = [(f"`{m.name}`", m.unit, m.about, _shown(m)) for m in TABLES]
    known = {metric.name for metric in TABLES}
    others: dict[str, Metric] = {}
    for experiment in CATALOGUE:
        for figure in experiment.figures:
            for row in figure.published:
                if row.metric.name not in known:
                    others.setdefault(row.metric.name, row.metric)
    rows = [(f"`{m.name}`", m.unit, m.about) for m in sorted(others.values(), key=lambda m: m.name)]
    return "\n".join([
        "# Metrics\n\nThe registry of metrics is `harness/metrics/metrics.py`.\n\n## In tables\n",
        *_table(("name", "unit", "meaning", "shown in"), shown),
        "\n## Of published statements\n",
        *_table(("name", "unit", "meaning"), rows),
    ])  # fmt: skip


def _shown(metric: Metric) -> str:
    names = {
        ShownIn.SUMMARY: "summary.csv",
        ShownIn.RUN: "run",
        ShownIn.REPORT: "report",
        ShownIn.COMPARE: "compare",
    }
    return ", ".join(name for flag, name in names.items() if flag in metric.shown)


def results() -> str:
    """Return the page of the files of a results folder."""
    parts = ["# Results\n\nWhat each file below `results/EXPERIMENT/` holds. Units are in the names.\n"]
    parts += [
        "## summary.csv\n\nOne row per point.\n",
        *_table(("column", "meaning"), [(f"`{n}`", summary_csv.MEANINGS[n]) for n in summary_csv.COLUMNS]),
    ]
    parts += ["\n## POINT/flows.csv\n\nOne row per flow.\n", *_fields(FlowRow)]
    parts += ["\n## POINT/ports.csv\n\nOne row per direction of a link.\n", *_fields(PortRow)]
    rows = [
        (f"`{name}`" if not place else "", f"`{column}`", meaning)
        for name, columns in _samples().items()
        for place, (column, meaning) in enumerate(columns.items())
    ]
    parts += [
        "\n## POINT/samples\n\nTables over time, `NAME.csv.gz`.\n",
        *_table(("table", "column", "meaning"), rows),
    ]
    parts += [
        "\n## POINT/run.json\n\n`spec` is what was asked for:\n",
        *_table(("field", "option", "meaning"), list(_settings(RunSpec))),
        "\nBeside it is what came out:\n",
        *_fields(RunResult),
    ]
    return "\n".join(parts)


def _samples() -> dict[str, Mapping[str, str]]:
    """Return the tables of all kinds of workloads."""
    found = dict(SAMPLE_COLUMNS)
    for package in sorted({matrix.kind for matrix in MATRICES.values()}):
        found |= import_module(package).KIND.tables
    return found


def _settings(of: type[Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield each field of a spec by path, with its option and meaning."""
    meanings, types = _meanings(of), get_type_hints(of)
    options = {each.path: each for each in OPTIONS if each.path}
    for field in dataclasses.fields(of):
        path = f"{prefix}{field.name}"
        option = options.get(path)
        if option is None and dataclasses.is_dataclass(types[field.name]):
            yield from _settings(types[field.name], f"{path}.")
            continue
        meaning = option.help.partition(" [default")[0] if option else meanings.get(field.name, "")
        yield f"`{path}`", f"`{option.flag}`" if option else "", meaning


def _fields(of: type[Any]) -> Iterator[str]:
    """Yield a table of the fields of a dataclass, with the docstring that follows each."""
    meanings = _meanings(of)
    rows = [(f"`{f.name}`", f"`{_type(f.type)}`", meanings.get(f.name, "")) for f in dataclasses.fields(of)]
    yield f"{_words(inspect.getdoc(of))}\n"
    yield from _table(("field", "type", "meaning"), rows)


def _meanings(of: type[Any]) -> dict[str, str]:
    """Return the docstrings below the fields of a class."""
    (body,) = ast.parse(inspect.getsource(of)).body
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        text = getattr(after.value, "value", None) if isinstance(after, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, str):
            found[field.target.id] = _words(text)
    return found


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def python() -> str:
    """Return the page of `import refabric`."""
    parts = ["# Python API\n\n`import refabric` has these names. [How to use them](../guide/python.md).\n"]
    for name in refabric.__all__:
        each = getattr(refabric, name)
        if inspect.isclass(each):
            parts += [f"\n## {name}\n", f"{_doc(each)}\n", *_members(each)]
        elif callable(each):
            parts += [f"\n## {name}\n", _signature(name, each), _doc(each)]
    return "\n".join(parts) + "\n"


def _members(of: type[Any]) -> Iterator[str]:
    for name, member in vars(of).items():
        if name.startswith("_") or isinstance(member, (staticmethod, classmethod)):
            continue
        if isinstance(member, property) or hasattr(member, "attrname"):
            yield f"* `{name}`: {_words(inspect.getdoc(member))}"
        elif inspect.isfunction(member):
            yield f"* `{name}{_arguments(member)}`: {_words(inspect.getdoc(member))}"


def _signature(name: str, each: Callable[..., Any]) -> str:
    return f"```text\n{name}{_arguments(each)}\n```\n"


def _arguments(each: Callable[..., Any]) -> str:
    return str(inspect.signature(each)).replace("'", "")


def _doc(each: Any) -> str:
    """Return a docstring as Markdown; the lines of code in it are indented already."""
    return _without_markup(inspect.getdoc(each) or "")


def _words(text: str | None) -> str:
    return _without_markup(" ".join((text or "").split()))


def _without_markup(text: str) -> str:
    return text.replace("<", "&lt;").replace("\b", "")


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table; none without rows."""
    if not rows:
        return
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(_cell(cell) for cell in row)} |"


def _cell(text: str) -> str:
    plain = re.sub(r"\s+", " ", text).replace("|", r"\|")
    return plain if plain.startswith("`") else plain.replace("<", "&lt;")
