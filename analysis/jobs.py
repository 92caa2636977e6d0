"""Completion times of jobs that consist of several transfers each. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from model.result import FlowRow


def mean_job_s(flows: Sequence[FlowRow], transfers: int) -> float | None:
    """Return the mean time from a job's first start to the end of its last transfer, in s.

    Flows are in the order of jobs, `transfers` each. None without flows, or if a transfer did not complete.
    """
    jobs = [flows[first : first + transfers] for first in range(0, len(flows), transfers)]
    times = []
    for job in jobs:
        ends = [flow.start_s + flow.completed_s for flow in job]
        if any(math.isnan(end) for end in ends):
            return None
        times.append(max(ends) - min(flow.start_s for flow in job))
    return statistics.fmean(times) if times else None
