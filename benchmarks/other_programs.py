"""What disturbed a measurement: the CPU time that other programs used and that the hypervisor took."""

from __future__ import annotations

from engines.emulation.kernel.cpu import CpuSample, CpuSampler
from engines.emulation.verdict import company
from engines.emulation.verdict.blame import MIN_OTHERS_PCT

MAX_PCT = MIN_OTHERS_PCT
"""A repetition above it is suspect, as a point is. In percent of the machine's CPU time."""


class OtherPrograms:
    """Measures from its construction on. Other programs are distinguishable in private namespaces only."""

    def __init__(self) -> None:
        self._cpu, self._before = CpuSampler(), company.read()

    def share(self) -> tuple[CpuSample, float]:
        """Return the CPU use since then, and the percentage that others had, the hypervisor included."""
        use, others_pct = self._cpu.sample(), company.others_pct(self._before, company.read())
        return use, others_pct + use.machine.steal_pct
