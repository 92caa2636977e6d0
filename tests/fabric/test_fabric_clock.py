"""The fabric's clock: real time less pauses, for now and for instants of the recent past."""

from __future__ import annotations

import random

import pytest

from fabric._core import FabricClock

MS = 1_000_000


def clock(at_ms: int = 1000) -> FabricClock:
    found = FabricClock()
    found.start(at_ms * MS)
    return found


def test_without_pauses_it_is_real_time() -> None:
    c = clock()
    assert c.at(1500 * MS) == 500 * MS
    assert c.of_past(1200 * MS) == 200 * MS
    assert c.real_ns(500 * MS) == 1500 * MS
    assert c.pauses() == (0, 0, 0)


def test_a_pause_takes_no_fabric_time() -> None:
    c = clock()
    c.lived(1100 * MS)
    c.pause(1100 * MS, 1110 * MS)
    assert c.at(1110 * MS) == 100 * MS
    assert c.real_ns(101 * MS) == 1111 * MS
    assert c.pauses() == (1, 10 * MS, 10 * MS)


def test_time_that_has_passed_is_not_taken_back() -> None:
    c = clock()
    c.lived(1108 * MS)
    c.pause(1100 * MS, 1110 * MS)
    assert c.pauses() == (1, 2 * MS, 2 * MS)
    c.pause(1090 * MS, 1100 * MS)
    assert c.pauses() == (1, 2 * MS, 2 * MS)


def test_a_pause_that_goes_on_is_one() -> None:
    c = clock()
    c.pause(1100 * MS, 1105 * MS)
    c.pause(1105 * MS, 1120 * MS)
    assert c.pauses() == (1, 20 * MS, 20 * MS)
    assert c.of_past(1112 * MS) == 100 * MS
    c.restart_longest()
    c.pause(1200 * MS, 1203 * MS)
    assert c.pauses() == (2, 23 * MS, 3 * MS)


@pytest.mark.parametrize("seed", range(5))
def test_the_past_agrees_with_a_clock_that_counts_every_microsecond(seed: int) -> None:
    """There are more pauses than are remembered; all instants lie within the remembered ones."""
    draw = random.Random(seed)
    c = FabricClock()
    c.start(0)
    fabric_us, real_us, running_us = [0], 0, 0
    for _ in range(100):
        for paused, length in ((False, draw.randint(1, 40)), (True, draw.randint(1, 20))):
            if paused:
                c.pause(real_us * 1000, (real_us + length) * 1000)
            for _ in range(length):
                running_us += not paused
                fabric_us.append(running_us)
            real_us += length
        c.lived(real_us * 1000)
        assert c.at(real_us * 1000) == running_us * 1000
    recent = range(max(0, real_us - 300), real_us + 1)
    assert [c.of_past(us * 1000) // 1000 for us in recent] == [fabric_us[us] for us in recent]
