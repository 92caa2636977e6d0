"""The program .ci/smoke.py as a module, for tests of its checks."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType


def smoke_module() -> ModuleType:
    """Return it, executed anew, so that a test may change its functions."""
    spec = importlib.util.spec_from_file_location("smoke", Path(__file__).parents[2] / ".ci" / "smoke.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
