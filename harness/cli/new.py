"""`refabric new`: write a file to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from common.errors import UsageError
from common.named_files import write_new
from harness.catalogue import FILE_SUFFIX, Catalogue
from harness.cli.options import users_path

TEMPLATE = Path(__file__).with_name("template.txt")
TEMPLATE_NAME = "NAME"


@click.group(short_help="Write the template of an experiment of your own.")
def new() -> None:
    """Write the template of an experiment of your own."""


@new.command(short_help="Write a commented experiment to FILE, which ends in .py.")
@click.argument("file", type=users_path)
@click.pass_obj
def experiment(catalogue: Catalogue, file: Path) -> None:
    """Write a commented experiment to FILE, which ends in .py; it runs as it is."""
    name = file.stem
    if file.suffix != FILE_SUFFIX or not (name.isascii() and name.replace("_", "").isalnum()):
        raise UsageError(
            f"{file}: name a file of letters, digits and '_' that ends in {FILE_SUFFIX}, e.g. mine.py"
        )
    if any(name in (each.name, each.folder) for each in catalogue):
        raise UsageError(f"{file}: refabric has an experiment called {name}; choose another name")
    text = TEMPLATE.read_text().replace(TEMPLATE_NAME, name)
    write_new(str(file), file, text.encode())
    click.echo(f"{file}: run it with  refabric run {file if file.is_absolute() else f'./{file}'}")
