"""Changes to the packaged kernel source, each with its reason.

The inserted texts are parts of the Linux kernel and have its licence (GPL-2.0).
"""

from __future__ import annotations

from engines.linux.kernel.edits import clock, determinism, floating_point, tcp
from engines.linux.kernel.edits.edit import Edit

EDITS: tuple[Edit, ...] = (*tcp.EDITS, *determinism.EDITS, *floating_point.EDITS, *clock.EDITS)
"""In the order in which they are applied."""
