"""Random numbers that are the same on every machine: by comparisons and plain arithmetic alone."""

from __future__ import annotations

import random


def exponential(rng: random.Random) -> float:
    """A value of the exponential distribution of mean 1, by comparisons alone.

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
