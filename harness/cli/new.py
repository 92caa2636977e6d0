"""`refabric new`: write a file to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from common import files
from common.errors import UsageError
from harness.catalogue import Catalogue
from harness.own.experiment_file import SUFFIX

TEMPLATE = Path(__file__).resolve().parents[1] / "own" / "template.txt"
TEMPLATE_NAME = "NAME"


@click.group(short_help="Write the template of an experiment of your own.")
def new() -> None:
    """Write the template of an experiment of your own."""


@new.command(short_help="Write a commented experiment to FILE, which ends in .py.")
@click.argument("file", type=click.Path(path_type=Path))
@click.pass_obj
def experiment(catalogue: Catalogue, file: Path) -> None:
    """Write a commented experiment to FILE, which ends in .py; it runs as it is."""
    name = file.stem
    if file.suffix != SUFFIX or not (name.isascii() and name.replace("_", "").isalnum()):
        raise UsageError(
            f"{file}: name a file of letters, digits and '_' that ends in {SUFFIX}, e.g. mine.py"
        )
    if any(name in (each.name, each.folder) for each in catalogue):
        raise UsageError(f"{file}: refabric has an experiment called {name}; choose another name")
    text = TEMPLATE.read_text().replace(TEMPLATE_NAME, name)
    try:
        files.write_bytes(file, text.encode())
    except FileExistsError:
        raise UsageError(f"{file}: it exists; name another file, or remove it") from None
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror}") from error
    click.echo(f"{file}: run it with  refabric run {file if file.is_absolute() else f'./{file}'}")
