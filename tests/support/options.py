"""Options of a sweep from their texts, without a command line."""

from __future__ import annotations

from typing import Any

from harness.options.fields import OPTIONS
from harness.options.options import by_path
from model.spec import Settings

_BY_NAME = {option.name: option for option in OPTIONS}


def options_typed(**texts: Any) -> Settings:
    """Return what a user gave with these texts. Raises UsageError."""
    return by_path(
        {
            name: _BY_NAME[name].read(text) if name in _BY_NAME else text
            for name, text in texts.items()
            if text is not None
        }
    )
