"""Which chart files commands write in a test. Drawing takes most of a short run's time."""

from __future__ import annotations

from pathlib import Path

import pytest

from common import files
from harness.report import figures
from plots.data import Inputs
from plots.registry import Chart


def write_formats(patch: pytest.MonkeyPatch, *formats: str) -> None:
    """Write charts in these formats."""
    patch.setattr("plots.shared.saving.FORMATS", formats)


_DRAW = figures.draw


def draw_nothing(patch: pytest.MonkeyPatch) -> None:
    """Let commands find that there is no chart to draw."""
    patch.setattr(figures, "draw", lambda wanted: {each.figure.name: [] for each in wanted})


def draw_all(patch: pytest.MonkeyPatch) -> None:
    """Let commands draw charts."""
    patch.setattr(figures, "draw", _DRAW)


def sketch(patch: pytest.MonkeyPatch) -> None:
    """Write an empty picture for each chart."""

    def draw(chart: Chart, inputs: Inputs) -> list[Path]:
        picture = inputs.out / f"{chart.name}.svg"
        files.replace_file(picture, b'<svg xmlns="http://www.w3.org/2000/svg"/>')
        return [picture]

    draw_all(patch)
    patch.setattr(Chart, "draw", draw)
