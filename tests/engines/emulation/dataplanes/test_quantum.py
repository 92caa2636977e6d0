"""The core's quantum: a fraction of a packet's time in real time, and unchanged in virtual time."""

from __future__ import annotations

import pytest

from engines.emulation.dataplanes.fabric_dataplane import default_tuning
from fabric.plan import FRAME_BITS
from model.spec import ELASTIC, STRICT, VIRTUAL

LONGEST_CLOCK_SLEEP_US = 1000.0
"""The core sleeps on its socket from here on (kWorthPolling), and each frame would wake it up."""


@pytest.mark.parametrize("rate_mbps", [0.5, 1.0, 2.0, 5.0, 10.0, 40.0])
@pytest.mark.parametrize("clock", [ELASTIC, STRICT])
def test_a_packet_takes_at_least_eight_quanta(rate_mbps: float, clock: str) -> None:
    quantum_us = default_tuning(rate_mbps, clock).quantum_us
    assert quantum_us <= FRAME_BITS / rate_mbps / 8
    assert quantum_us < LONGEST_CLOCK_SLEEP_US


def test_slow_links_let_the_core_sleep_longer() -> None:
    assert default_tuning(2.0).quantum_us == 750.0
    assert default_tuning(10.0).quantum_us == FRAME_BITS / 10 / 8


def test_results_of_guests_keep_their_quantum() -> None:
    assert {default_tuning(rate, VIRTUAL).quantum_us for rate in (1.0, 2.0, 5.0, 10.0)} == {150.0}
