"""English grammar for messages."""

from __future__ import annotations

import pytest

from common.text import three_digits


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.01628, "0.0163"), (91.73, "91.7"), (999.4, "999"), (999.6, "1000"), (4163, "4163"),
        (-3713.2, "-3713"),
    ],
)  # fmt: skip
def test_large_numbers_have_no_exponent(value: float, text: str) -> None:
    assert three_digits(value) == text
