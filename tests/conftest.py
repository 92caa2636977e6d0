"""Settings of every test: Hypothesis has no limits of time, since machines are shared and noisy."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("noisy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("noisy")
