"""Random draws that are identical on every machine: they use comparisons and basic arithmetic only."""

from __future__ import annotations

import random


def exponential(rng: random.Random) -> float:
    """Return a draw from the exponential distribution with mean 1, using comparisons only.

    Source: von Neumann, Various techniques used in connection with random digits, 1951: a run of falling
    uniform numbers that begins at x has odd length with probability exp(-x).
    """
    whole = 0.0
    while True:
        first = last = rng.random()
        odd = True
        while (drawn := rng.random()) < last:
            last, odd = drawn, not odd
        if odd:
            return whole + first
        whole += 1.0
