"""Changes to the packaged kernel source, each with its reason.

clock.py           read the virtual clock without a system call
determinism.py     the same seed gives the same run
edit.py            one change to one file of the kernel's source
floating_point.py  leave floating-point registers in the process
tcp.py             make TCP behave as on other machines

The inserted texts are parts of the Linux kernel and have its licence (GPL-2.0).

May import `common`.
"""

from __future__ import annotations

from engines.linux.kernel.edits import clock, determinism, floating_point, tcp
from engines.linux.kernel.edits.edit import Edit

EDITS: tuple[Edit, ...] = (*tcp.EDITS, *determinism.EDITS, *floating_point.EDITS, *clock.EDITS)
"""In the order in which they are applied."""
