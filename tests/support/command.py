"""Commands of refabric run in the process of the test."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner, Result

from experiments.command import main


def refabric(*arguments: object, **more: Any) -> Result:
    """Run a command; `more` goes to CliRunner.invoke."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments], **more)


def objects(done: Result, event: str = "") -> list[dict[str, Any]]:
    """Return the JSON events that a command printed, all of them or those of one name."""
    found = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    return [each for each in found if event in {"", each["event"]}]
