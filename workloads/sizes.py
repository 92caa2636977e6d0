"""Distributions of flow sizes: piecewise linear cumulative distributions, drawn by their inverse.

A distribution is one entry of DISTRIBUTIONS. `fixed-<bytes>` and `uniform-<bytes>-<bytes>` need no entry.
"""

from __future__ import annotations

import bisect
import functools
import hashlib
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from common.errors import UsageError

PACKET = 1460
INLINE = "cdf-"
MAX_POINTS = 10_000
_NUMBERED = re.compile(r"(fixed)-([1-9]\d{0,12})|(uniform)-([1-9]\d{0,12})-([1-9]\d{0,12})")


@dataclass(frozen=True)
class Sizes:
    """A distribution. `points` are pairs of size in bytes and share of flows that are no larger.

    Both increase monotonically, the share from 0 to 1, with straight lines between the points. `source` is
    the publication.
    """

    points: tuple[tuple[int, float], ...]
    source: str = ""

    @property
    def mean_bytes(self) -> float:
        """The exact mean of the straight lines; drawn sizes are rounded to whole bytes."""
        mean = sum(
            (Fraction(str(p1)) - Fraction(str(p0))) * (x0 + x1) / 2
            for (x0, p0), (x1, p1) in zip(self.points, self.points[1:], strict=False)
        )
        return float(mean)

    def at(self, share: float) -> int:
        """Return the size in bytes that `share` (0 to 1) of the flows do not exceed."""
        right = min(max(bisect.bisect_left(self._shares, share), 1), len(self._shares) - 1)
        (x0, p0), (x1, p1) = self.points[right - 1], self.points[right]
        part = (share - p0) / (p1 - p0) if p1 > p0 else 1.0
        return max(1, round(x0 + (x1 - x0) * part))

    @functools.cached_property
    def _shares(self) -> tuple[float, ...]:
        return tuple(share for _, share in self.points)

    def draw(self, rng: random.Random) -> int:
        return self.at(rng.random())


def _packets(*points: tuple[int, float]) -> tuple[tuple[int, float], ...]:
    return tuple((packets * PACKET, share) for packets, share in points)


def _upper_steps(points: tuple[tuple[int, float], ...]) -> tuple[tuple[int, float], ...]:
    """Return the distribution in which every flow has one of the sizes of `points`, the next larger one."""
    steps = [(points[0][0], 0.0)]
    for (_, before), (size, share) in pairwise(points):
        steps += [(size, before), (size, share)]
    return tuple(steps)


_WEB_SEARCH = _packets(
    (6, 0.0), (6, 0.15), (13, 0.2), (19, 0.3), (33, 0.4), (53, 0.53), (133, 0.6),
    (667, 0.7), (1333, 0.8), (3333, 0.9), (6667, 0.97), (20000, 1.0),
)  # fmt: skip
_DATA_MINING = _packets(
    (1, 0.0), (1, 0.5), (2, 0.6), (3, 0.7), (7, 0.8), (267, 0.9), (2107, 0.95), (66667, 0.99),
    (666667, 1.0),
)  # fmt: skip
_STEPS = "only in the sizes of its points (upper steps), as the CS244 2017 reproduction of pFabric draws them"

DISTRIBUTIONS: dict[str, Sizes] = {
    "websearch": Sizes(
        _WEB_SEARCH,
        "web search cluster of Alizadeh et al., DCTCP, SIGCOMM 2010 (figure 4), in the packets of 1460 bytes "
        "that public simulations after pFabric (SIGCOMM 2013) use",
    ),
    "datamining": Sizes(
        _DATA_MINING,
        "data mining cluster of Greenberg et al., VL2, SIGCOMM 2009 (figure 2), in the packets of 1460 bytes "
        "of pFabric's simulations; points recalled, their mean is the 5117 packets of public scripts",
    ),
    "caida": Sizes(
        ((1, 0.0), (10_000, 0.976), (100_000, 0.995), (10**6, 0.999), (5 * 10**6, 0.9998), (10**8, 1.0)),
        "flows of an Internet backbone (CAIDA) as the code of Narayan et al., SIGCOMM 2018, draws them",
    ),
    "websearch-steps": Sizes(_upper_steps(_WEB_SEARCH), f"web search, {_STEPS}"),
    "datamining-steps": Sizes(_upper_steps(_DATA_MINING), f"data mining, {_STEPS}"),
}


def parse(text: str) -> Sizes:
    """Return the distribution `websearch`, `fixed-70000` or `uniform-1000-9000`. Raises UsageError."""
    if text in DISTRIBUTIONS:
        return DISTRIBUTIONS[text]
    if text.startswith(INLINE):
        return Sizes(_read(text), "given by the user")
    found = _NUMBERED.fullmatch(text)
    if not found:
        known = ", ".join((*DISTRIBUTIONS, "fixed-BYTES", "uniform-BYTES-BYTES", "@FILE"))
        raise UsageError(f"flow sizes '{text}': choose one of {known}")
    low = int(found[2] or found[4])
    high = int(found[2] or found[5])
    if high < low:
        raise UsageError(f"flow sizes '{text}': the smaller number comes first")
    return Sizes(((low, 0.0), (high, 1.0)))


def written(points: Sequence[tuple[int, float]]) -> str:
    """Return points as `parse` reads them after `cdf-`: `8760x0.15-18980x1`, from a share of 0 on."""
    first = [] if points[0][1] == 0 else [(points[0][0], 0.0)]
    return "-".join(f"{size}x{_decimal(share)}" for size, share in (*first, *points))


def short(value: int | str) -> int | str:
    """Return a parameter of a workload with a digest for the points of a distribution: `cdf-1f3870be`."""
    if isinstance(value, str) and value.startswith(INLINE):
        return INLINE + hashlib.sha256(value.encode()).hexdigest()[:8]
    return value


def _decimal(share: float) -> str:
    """Return the number without an exponent, whose minus sign would separate points."""
    return f"{share:.12f}".rstrip("0").rstrip(".")


def _read(text: str) -> tuple[tuple[int, float], ...]:
    try:
        pairs = [each.split("x") for each in text.removeprefix(INLINE).split("-")]
        points = tuple((int(size), float(share)) for size, share in pairs)
    except ValueError:
        raise UsageError(f"flow sizes '{text}': write {INLINE}8760x0-18980x1") from None
    rising = all(a <= c and b <= d for (a, b), (c, d) in pairwise(points))
    if not rising or points[0][0] < 1 or (points[0][1], points[-1][1]) != (0.0, 1.0):
        raise UsageError(f"flow sizes '{text}': sizes and shares must rise, shares from 0 to 1")
    return points
