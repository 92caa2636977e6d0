"""Cost of a command that reads stored results: seconds, CPU seconds, and the memory of its largest process.

The command runs several times in a row, each time in a process of its own. The first run finds what earlier
commands left; each of the others finds what the one before it left, such as charts that need not be drawn
again. Copy a results folder first: `run`, `plot` and `report` write into it.

    python -m benchmarks.stored_results --times 2 -- run pfabric --profile paper --results DIR
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import click

from engines.provenance import machine

COMMAND = "from refabric.command import main; main()"


@dataclass(frozen=True)
class Cost:
    """The cost of one run; `cpu_s` and `peak_mb` include the processes that it started."""

    seconds: float
    cpu_s: float
    peak_mb: float
    exit_code: int


def cost(arguments: Sequence[str]) -> Cost:
    """Run `refabric` with these arguments; what it prints is dropped."""
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, used = os.wait4(process.pid, 0)
    seconds = time.monotonic() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    cpu_s = used.ru_utime + used.ru_stime
    return Cost(round(seconds, 2), round(cpu_s, 2), round(used.ru_maxrss / 1024, 1), process.returncode)


@click.command()
@click.option("--times", default=2, show_default=True, type=click.IntRange(min=1), help="Runs in a row.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.argument("arguments", nargs=-1, required=True, type=click.UNPROCESSED)
def main(times: int, as_json: bool, arguments: tuple[str, ...]) -> None:
    """Measure `refabric ARGUMENTS`, several times in a row."""
    costs = [cost(arguments) for _ in range(times)]
    if as_json:
        runs = [asdict(each) for each in costs]
        click.echo(json.dumps({"command": list(arguments), "runs": runs, "machine": machine()}))
        return
    for each in costs:
        click.echo(
            f"{each.seconds:8.2f} s, {each.cpu_s:8.2f} s of CPU time, {each.peak_mb:7.1f} MB at the peak, "
            f"exit code {each.exit_code}"
        )


if __name__ == "__main__":
    main()
