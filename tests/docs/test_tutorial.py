"""docs/guide/tutorial.ipynb runs from its first cell to its last. What it says about the results is true."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import refabric
from tests.support.notebooks import cells, execute

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "guide" / "tutorial.ipynb"


def test_every_cell_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    shown = execute(TUTORIAL)
    assert len(shown) == len(cells(TUTORIAL, "code"))
    (results,) = (value for value in shown if isinstance(value, refabric.Results))
    tcp, mptcp = results.measured
    assert tcp.goodput_pct is not None
    assert mptcp.goodput_pct is not None
    assert 55 <= tcp.goodput_pct <= 60, "the text says so"
    assert mptcp.goodput_pct > 85, "the text says so"
    charts = [value for value in shown if isinstance(value, refabric.Charts)]
    assert charts
    assert all("<img" in chart._repr_html_() for chart in charts)


def test_it_is_stored_without_outputs() -> None:
    notebook = json.loads(TUTORIAL.read_text())
    assert not any(cell.get("outputs") for cell in notebook["cells"])
