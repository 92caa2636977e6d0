"""The lines that a first run prints while it builds the guests' kernel."""

from __future__ import annotations

import dataclasses

import pytest

from engines.linux.kernel.store import Kernel
from harness.cli import machine
from setup import kernel_build as building
from setup.kernel_build import Moment, Progress


def test_a_first_run_shows_steps_and_every_tenth(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {field.name: field.name for field in dataclasses.fields(Kernel)}
    built = Kernel(**{**values, "congestion_controls": ("reno", "rf_lia")})  # type: ignore[arg-type]

    def build(progress: Progress) -> Kernel:
        progress(Moment("unpack the source", 0.0))
        for pct in range(7, 99):
            progress(Moment("compile", float(pct), 60.0))
        progress(Moment("done", 100.0, 0.0))
        return built

    monkeypatch.setattr(building, "build", build)
    said: list[str] = []
    machine.first_build(said.append)
    assert "built once" in said[0]
    assert said[1] == "kernel:   0 %  unpack the source"
    assert "kernel:  50 %  compile, 1 min 00 s left" in said
    assert len([line for line in said if "compile" in line]) == 10
    assert "reno, rf_lia" in said[-1]
