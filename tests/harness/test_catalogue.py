"""Experiments by name: what an unknown name gets."""

from __future__ import annotations

import pytest

from common.errors import UsageError
from experiments.registry import CATALOGUE


def test_the_closest_names_are_in_the_error_and_all_others_are_not() -> None:
    with pytest.raises(UsageError) as caught:
        CATALOGUE.find("sigcom11")
    message = str(caught.value)
    assert "did you mean sigcomm11" in message
    assert "`refabric list`" in message
    assert sum(name in message.replace("?", "").split() for name in CATALOGUE.experiments) <= 3
    with pytest.raises(UsageError, match="zzz: unknown; `refabric list`"):
        CATALOGUE.find("zzz")
