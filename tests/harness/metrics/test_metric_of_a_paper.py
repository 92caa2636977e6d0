"""A paper with metrics of its own is one package: figure, statements and metrics, and no edit elsewhere."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from analysis.completion import completions, slowdown
from harness.catalogue import Catalogue
from harness.claims.claims import AGREES, DIFFERS
from harness.cli.commands import command_line
from harness.results.point_results import judge
from harness.results.store import load
from tests.support.made_up_paper.figure import EXPERIMENT
from tests.support.made_up_paper.metrics import NFCT_LARGE, SMALL_BYTES

pytestmark = pytest.mark.usefixtures("in_this_process")


def refabric(*arguments: str) -> list[dict[str, Any]]:
    """Run a command whose catalogue holds only this paper; return its JSON events."""
    main = command_line(Catalogue({EXPERIMENT.name: EXPERIMENT}))
    done = CliRunner().invoke(main, [*arguments, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_its_statements_get_verdicts(tmp_path: Path) -> None:
    events = refabric("run", EXPERIMENT.name, "--results", str(tmp_path))
    verdicts = {event["quantity"]: event for event in events if event["event"] == "verdict"}
    words = {name: event["verdict"] for name, event in verdicts.items()}
    assert words == {"nfct_small": AGREES, "nfct_large": DIFFERS}
    stored = load(tmp_path / EXPERIMENT.folder)
    (point,) = (each for each in judge(stored) if each.completions.started)
    done = completions(point.flows).completed
    small = statistics.fmean(slowdown(flow) for flow in done if flow.size_bytes <= SMALL_BYTES)
    assert verdicts["nfct_small"]["measured"]["value"] == pytest.approx(small)
    assert verdicts["nfct_large"]["measured"]["value"] == NFCT_LARGE.at(point)
    (page,) = tmp_path.rglob("report.html")
    assert "large flows are faster than on an idle path" in page.read_text()
