"""Settings of every test: Hypothesis has no limits of time, since machines are shared and noisy; SIGINT has
an effect, which a shell takes from the background processes that it starts, and they from their children."""

from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("noisy")
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def svg_alone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write charts as SVG alone, unless the test has the marker `every_format`: the drawing is the same."""
    if request.node.get_closest_marker("every_format") is None:
        monkeypatch.setattr("plots.shared.saving.FORMATS", ("svg",))
