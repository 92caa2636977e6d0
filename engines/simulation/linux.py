"""Linux as the simulator has it, for what is compared with hosts that run it."""

from __future__ import annotations

from engines.spec import StackSpec

LINUX = StackSpec()
