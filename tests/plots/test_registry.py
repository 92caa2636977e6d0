"""The registry: each chart can be drawn, explained in two sentences, and costs nothing before."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from plots.registry import CHARTS
from plots.shared import saving
from tests.support.chart_points import point


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_draws_and_explains_itself(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "FORMATS", ("svg",))
    chart = CHARTS[name]
    assert chart.draw([], tmp_path) == []
    files = chart.draw([point(1), point(8)], tmp_path, expected=(1, 8))
    assert all(path.name.startswith(name) and path.is_file() for path in files)
    assert len(re.findall(r"[.](?: [A-Z]|$)", chart.reading)) == 2, "two sentences"
    assert chart.name == name and chart.title and not chart.title.endswith(".")


def test_knowing_the_charts_does_not_import_matplotlib() -> None:
    code = "import sys, plots.registry; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
